"""Write the generated parts of docs/why-not-parquet.md (one screen) and docs/rivals.md (the details).

usage: rivals_page.py

The figures are those of the report's chapter about rivals (kfbench/report/data/rivals.py), from the stored run in
datasets/joined/rivals. The abilities come from kfbench/rivals/abilities.py, the damage from docs/rivals-damage.json.
tests/tools/test_rivals_page.py fails if a page is out of date.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data import noise
from kfbench.report.data.joined import Joined
from kfbench.report.data.rivals import (
    BEST,
    CODEC,
    COLUMNAR,
    EACH,
    JSON,
    OPAQUE,
    SEARCH,
    STREAM,
    BreakEven,
    Rivals,
    crossing,
)  # fmt: skip
from kfbench.report.topics.rivals.sentences import OTHER_CODECS, TYPED
from kfbench.report.topics.rivals.trial import BATCHES, WORKLOAD
from kfbench.rivals.abilities import ABILITIES, FORMATS, Ability, Entry
from kfbench.store import open_run
from kfbench.tables import ABSENT, listed
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "why-not-parquet.md"
DETAILS: Final = ROOT / "docs" / "rivals.md"
RUN: Final = ROOT / "datasets" / "joined" / "rivals"
DAMAGE: Final = ROOT / "docs" / "rivals-damage.json"
BY: Final = "`python -m tools.rivals_page`"
BYTES: Final = Block(page=PAGE, name="bytes", by=BY)
FACTS: Final = Block(page=PAGE, name="facts", by=BY)
ABLE: Final = Block(page=PAGE, name="abilities", by=BY)
SHOWN_BY: Final = Block(page=DETAILS, name="abilities", by=f"{BY} from kfbench/rivals/abilities.py")
DAMAGED: Final = Block(page=DETAILS, name="damage", by=f"{BY} from docs/rivals-damage.json")
CLAIMED: Final = Block(page=DETAILS, name="claims", by=f"{BY} from datasets/joined/rivals")
WIDTH: Final = 140
ENDINGS: Final = {
    "error": "exception",
    "wrong": "other records",
    "same": "same records",
    "panic": "panic",
    "crash": "process dies",
    "hang": "hang",
}
OTEL_LOGS: Final = {10: (1_013, 2_473, 984), 100: (6_377, 6_557, 3_872), 500: (28_004, 22_398, 15_160)}
"""otel-arrow's docs/benchmarks-phase1.md: bytes of OTLP, Arrow without state, Arrow's stream, per message of n logs."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bullet(text: str) -> str:
    return fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def size_words(size: float | None) -> str:
    if size is None:
        return ABSENT
    return f"{size:,.0f}" if size >= 100 else f"{size:.1f}"


def bytes_table(found: Rivals) -> str:
    """Bytes per record of one workload, and in how many sets of batches an arm is smaller than columnar."""
    rows = []
    for name in (BASE_FORMAT, COLUMNAR, *sorted(found.arms)):
        won = found.won(name)
        sizes = [size_words(found.size(OPAQUE, WORKLOAD, batch, name)) for batch in BATCHES]
        counts = "" if name in (BASE_FORMAT, COLUMNAR) else f"{won.smaller} of {won.compared}"
        rows.append([name, *sizes, counts])
    head = [f"{WORKLOAD}, {CODEC} 3, bytes per record at", *(f"{batch:,}" for batch in BATCHES)]
    return table([*head, f"sets in which it is smaller than {COLUMNAR}"], rows)


def break_even_words(found: Rivals, base: str) -> str:
    """Name the arms that reach `base` in the median workload, with their batch sizes, the smallest first."""
    of = {name: each for name in found.best if (each := found.break_even(name, base))}
    reached = sorted((name for name in of if not math.isinf(of[name].records)), key=lambda name: of[name].records)
    return listed([f"{name} {of[name].records:,.0f} ({range_words(of[name])})" for name in reached]) or "none"


def range_words(each: BreakEven) -> str:
    """Return the quartiles."""
    low, high = ("never" if math.isinf(end) else f"{end:,.0f}" for end in (each.low, each.high))
    return f"{low} to {high}"


def cpu_words(found: Rivals) -> str:
    """CPU to encode and to decode, relative to v2."""
    words = []
    for name in (COLUMNAR, *found.best):
        times = [found.mean_time(found.quoted_batch, CODEC, name, EACH, each) for each in ("encode", "decode")]
        if any(times):
            words.append(f"{name} {'/'.join(f'{ratio:.1f}' if ratio else ABSENT for ratio in times)}")
    return ", ".join(words)


def search_words(found: Rivals) -> str:
    """CPU to encode if all settings are tried, relative to v2."""
    of = {name: found.mean_time(found.quoted_batch, CODEC, name, SEARCH, "encode") for name in found.best}
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in of.items() if ratio) or "not measured"


def typed_words(found: Rivals, arm: str) -> str:
    """Say from which batch size on Parquet's typed columns are as small as v2 and as columnar."""
    words = []
    for base in (BASE_FORMAT, COLUMNAR):
        each = found.break_even(TYPED, base, JSON, arm)
        if each:
            is_never = math.isinf(each.records)
            words.append(f"{base} never" if is_never else f"{base} from {each.records:,.0f}")
    return listed(words)


def losses_words(found: Rivals) -> str:
    """Count the sets of batches that a rival makes smaller, and give the largest difference."""
    parts = []
    for codec in (CODEC, *OTHER_CODECS):
        losses = found.losses(codec)
        least = min(losses, key=lambda loss: loss.ratio, default=None)
        worst = f" (at worst {least.rival} takes {least.ratio:.2f} × its bytes, {least.workload})" if least else ""
        parts.append(f"{codec} {len(losses)}{worst}")
    return ", ".join(parts)


def facts(found: Rivals, state: str) -> str:
    """One line each on break-even, CPU, schema and losses."""
    batch = found.quoted_batch
    even = f"{break_even_words(found, BASE_FORMAT)}. With {COLUMNAR}: {break_even_words(found, COLUMNAR)}"
    typed = typed_words(found, BEST)
    without = typed_words(found, f"{BEST} without schema")
    scale = f"{CODEC}, {batch:,} records per batch, one batch per call, {BASE_FORMAT} = 1"
    group = f"{len(found.workloads(JSON))} workloads of JSON, medians"
    workloads = f"{len(found.timed_workloads(batch))} workloads"
    cpu = f"{cpu_words(found)}. Trying all settings: {search_words(found)}. Means of {workloads}"
    without_schema = f"Computed without the schema: {without}"
    same = "Vortex and Lance encode columns even without a codec"
    lines = (
        f"**Break-even** with {BASE_FORMAT}, records per batch, median workload (quartiles): {even}.",
        f"**CPU** to encode/decode, {scale}: {cpu}. {state}.",
        f"**Known schema** ({group}, records per batch): Parquet's typed columns reach {typed}. {without_schema}.",
        f"**Where {COLUMNAR} loses**, of {found.compared} sets with the same codec: {losses_words(found)}. {same}.",
    )
    return "\n".join(map(bullet, lines))


def short_abilities_table() -> str:
    rows = [[each.words, *(each.entries[name].answer for name in FORMATS)] for each in ABILITIES]
    return table(["", *FORMATS], rows).replace("---:", "---")


def is_ours(source: str) -> bool:
    return ".md#" in source


def answer(entry: Entry, foreign: Sequence[str]) -> str:
    """Return the answer, with a link to a page of ours or the number of a foreign document."""
    words = f"{entry.answer}: {entry.note}" if entry.note else entry.answer
    if is_ours(entry.source):
        return f"[{words}]({entry.source})"
    return f"{words} ({foreign.index(entry.source) + 1})" if entry.source else words


def tests_words(each: Ability) -> str:
    return ", ".join(f"`{test}`" for test in each.tests) or "documents"


def abilities_table() -> str:
    """The answers with their conditions, and what shows each."""
    sources = [each.entries[name].source for each in ABILITIES for name in FORMATS]
    foreign = [*dict.fromkeys(source for source in sources if source and not is_ours(source))]
    rows = [
        [each.words, *(answer(each.entries[name], foreign) for name in FORMATS), tests_words(each)]
        for each in ABILITIES
    ]
    places = "\n".join(f"{i}. {source}" for i, source in enumerate(foreign, 1))
    head = ["", *FORMATS, "shown by"]
    return f"{table(head, rows).replace('---:', '---')}\n\nDocuments:\n\n{places}"


def damage_table() -> str:
    """The endings per arm with documented settings. The stored run has the others, too."""
    run: Mapping[str, Any] = json.loads(DAMAGE.read_text(encoding="utf-8"))
    rows = []
    shown_arms = {name: arm for name, arm in run["arms"].items() if not name.endswith(("-best", "-bare"))}
    for name, arm in shown_arms.items():
        counts: Counter[str] = Counter()
        for endings in arm["endings"].values():
            for outcome, _, count in endings:
                counts[outcome] += count
        rows.append([f"{name} ({arm['library']})", *(f"{counts[ending]:,}" for ending in ENDINGS)])
    head = [f"{run['damaged_per_arm']:,} damaged containers each, {run['date']}", *ENDINGS.values()]
    return table(head, rows)


def crossing_words(found: Rivals, name: str, kind: str, arm: str) -> str:
    each = found.break_even(name, BASE_FORMAT, kind, arm)
    if each is None:
        return "not measured"
    return "not reached" if math.isinf(each.records) else f"from {each.records:,.0f} records per batch on"


def parquet_words(found: Rivals) -> str:
    """Parquet's encode CPU relative to v2."""
    batch, parts = found.quoted_batch, list[str]()
    for codec in ("none", CODEC):
        of = {name: found.mean_time(batch, codec, name, EACH, "encode") for name in ("parquet", "parquet-best")}
        parts += [f"{name} {ratio:.1f} × ({codec})" for name, ratio in of.items() if ratio]
    return f"CPU to encode {batch:,} records, {BASE_FORMAT} = 1: {', '.join(parts)}"


def claims_table(found: Rivals) -> str:
    """Return a table of published figures, beside the same figure of the stored run where there is one."""
    alone = crossing([(n, arrow / otlp) for n, (otlp, arrow, _) in OTEL_LOGS.items()])
    streamed = crossing([(n, stream / otlp) for n, (otlp, _, stream) in OTEL_LOGS.items()])
    arrow, stream = "arrow-shredded", "arrow-stream"
    arm = next((key.arm for key in found.sizes if (key.kind, key.format) == (STREAM, stream)), "")
    return table(
        ["source", "figure", "here"],
        [
            ["KIP-1008, “Motivation”: Parquet compresses larger batches better", "no number", "nothing to recompute"],
            [
                "KIP-1008, “Motivation”: overhead of Parquet's encryption",
                "5.7 % in writing, 3.7 % in reading",
                "no number: nothing here is encrypted",
            ],
            [
                "otel-arrow, docs/benchmarks-phase1.md: logs under zstd, messages alone",
                f"its bytes cross at about {alone:,.0f} logs",
                f"{arrow} against {BASE_FORMAT}: {crossing_words(found, arrow, JSON, BEST)}",
            ],
            [
                "the same, one stream",
                f"Arrow is smaller from {streamed:,.0f} logs on, the least it has",
                f"{stream} ({arm}) against {BASE_FORMAT}: {crossing_words(found, stream, STREAM, arm)}",
            ],
            [
                "J. Vanlightly, “Why I’m not a fan of zero-copy Apache Kafka-Apache Iceberg” (read in a summary only)",
                "“order of magnitude” more CPU and memory to write Parquet than to copy segments; no measurement",
                parquet_words(found),
            ],
        ],
    ).replace("---:", "---")


def blocks() -> list[tuple[Block, str]]:
    """Return each generated part of the pages, with its text."""
    joined = Joined(run=open_run(RUN), is_own=True)
    found, state = Rivals(joined), noise.state_words(joined.run.manifest.get("noise"))
    return [
        (BYTES, bytes_table(found)),
        (FACTS, facts(found, state)),
        (ABLE, short_abilities_table()),
        (SHOWN_BY, abilities_table()),
        (DAMAGED, damage_table()),
        (CLAIMED, claims_table(found)),
    ]


def main() -> None:
    for block, text in blocks():
        block.write(text)


if __name__ == "__main__":
    main()
