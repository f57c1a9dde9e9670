"""Write the tables of docs/why-not-parquet.md.

usage: rivals_page.py

The abilities come from kfbench/rivals/abilities.py, the damage from docs/rivals-damage.json, and the bytes from the
stored run in datasets/joined/rivals. Without that run the bytes stay empty. tests/tools/test_rivals_page.py fails if
the page is out of date.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kfbench.report.data.joined import Joined
from kfbench.report.data.rivals import EACH, Rivals
from kfbench.rivals.abilities import ABILITIES, FORMATS, Entry
from kfbench.store import open_run
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "why-not-parquet.md"
RUN: Final = ROOT / "datasets" / "joined" / "rivals"
DAMAGE: Final = ROOT / "docs" / "rivals-damage.json"
BYTES: Final = Block(page=PAGE, name="bytes", by="`python -m tools.rivals_page` from datasets/joined/rivals")
JSON: Final = Block(page=PAGE, name="typed columns", by="`python -m tools.rivals_page` from datasets/joined/rivals")
CPU: Final = Block(page=PAGE, name="CPU", by="`python -m tools.rivals_page` from datasets/joined/rivals")
ABLE: Final = Block(page=PAGE, name="abilities", by="`python -m tools.rivals_page` from kfbench/rivals/abilities.py")
DAMAGED: Final = Block(page=PAGE, name="damage", by="`python -m tools.rivals_page` from docs/rivals-damage.json")
WORKLOAD, CODEC, LEVEL = "user-activity", "zstd", 3
BASES: Final = ("v2", "columnar")
BATCHES: Final = (1, 10, 100, 1_000, 10_000)  # records per batch
ENDINGS: Final = {
    "error": "exception",
    "wrong": "other records",
    "same": "same records",
    "panic": "panic",
    "crash": "process dies",
    "hang": "hang",
}

Cell = tuple[str, int]  # workload, records per batch
Sizes = Mapping[str, Mapping[Cell, float]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def is_foreign(source: str) -> bool:
    return "://" in source


def answer(entry: Entry, foreign: Sequence[str]) -> str:
    """Return the answer, with a link to a page of ours or the number of a foreign document."""
    words = f"{entry.answer}: {entry.note}" if entry.note else entry.answer
    if is_foreign(entry.source):
        return f"{words} ({foreign.index(entry.source) + 1})"
    return f"[{words}]({entry.source})" if entry.source else words


def abilities_table() -> str:
    sources = [each.entries[name].source for each in ABILITIES for name in FORMATS]
    foreign = [*dict.fromkeys(filter(is_foreign, sources))]
    rows = [[each.words, *(answer(each.entries[name], foreign) for name in FORMATS)] for each in ABILITIES]
    shown_places = (f"({i}) {source.partition('://')[2]}" for i, source in enumerate(foreign, 1))
    return f"{table(['', *FORMATS], rows).replace('---:', '---')}\n\nDocuments: {', '.join(shown_places)}."


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


def sizes(rows: Iterable[Mapping[str, Any]], grid: str) -> Sizes:
    """Return the bytes per record per arm and cell of a grid, for zstd 3. Rows without a size are left out."""
    found: dict[str, dict[Cell, float]] = {}
    for row in rows:
        wanted = row["grid"] == grid and row["codec"] == CODEC and row["level"] in (None, LEVEL)
        if wanted and row["size_bytes"] and row["records"]:
            name = row["format"] + (f", {row['arm']}" if "shredded" in row["format"] else "")
            found.setdefault(name, {})[row["workload"], row["batch_size"]] = row["size_bytes"] / row["records"]
    return found


def bytes_table(found: Sizes) -> str:
    """Bytes per record of one workload, and in how many cells of all workloads an arm is smaller than columnar."""
    columnar = found["columnar"]

    def smaller(arm: Mapping[Cell, float]) -> str:
        cells = arm.keys() & columnar.keys()
        return f"{sum(arm[cell] < columnar[cell] for cell in cells)} of {len(cells)}"

    names = [*(name for name in BASES if name in found), *sorted(found.keys() - {*BASES})]
    rows = [
        [name, *(shown(found[name].get((WORKLOAD, batch))) for batch in BATCHES), smaller(found[name])]
        for name in names
    ]
    head = [f"{WORKLOAD}, zstd {LEVEL}, records per batch", *(f"{batch:,}" for batch in BATCHES)]
    return table([*head, "smaller than columnar, cells of all workloads"], rows)


def json_table(found: Sizes) -> str:
    """The number of workloads in which JSON in typed columns is smaller than columnar with opaque values."""
    columnar = found["columnar"]
    batches = sorted({batch for _, batch in columnar})

    def smaller(arm: Mapping[Cell, float], batch: int) -> str:
        cells = [cell for cell in arm if cell in columnar and cell[1] == batch]
        return f"{sum(arm[cell] < columnar[cell] for cell in cells)} of {len(cells)}"

    names = [name for name in sorted(found) if "shredded, best" in name]
    rows = [[name, *(smaller(found[name], batch) for batch in batches)] for name in names]
    return table(["workloads smaller than columnar, records per batch", *(f"{batch:,}" for batch in batches)], rows)


def cpu_table(found: Rivals) -> str:
    """CPU time of Parquet's two arms relative to v2's, at 100 records per batch, one batch a call."""
    at = [(operation, codec) for operation in ("encode", "decode") for codec in ("none", CODEC)]
    rows = [
        [name, *(shown(found.mean_time(100, codec, name, EACH, operation)) for operation, codec in at)]
        for name in ("parquet", "parquet-best")
    ]
    heads = (f"{operation}, {'no codec' if codec == 'none' else codec}" for operation, codec in at)
    return table(["CPU relative to v2, 100 records per batch", *heads], rows)


def shown(size: float | None) -> str:
    if size is None:
        return "–"
    return f"{size:,.0f}" if size >= 100 else f"{size:.1f}"


def blocks() -> list[tuple[Block, str]]:
    """Return each generated part of the page, with its text."""
    found = [(ABLE, abilities_table())]
    if DAMAGE.is_file():
        found.append((DAMAGED, damage_table()))
    if RUN.is_dir():
        run = open_run(RUN)
        found.append((CPU, cpu_table(Rivals(Joined(run=run, is_own=True)))))
        rows = run.table.to_pylist()
        found.append((BYTES, bytes_table(sizes(rows, "rivals-batches"))))
        found.append((JSON, json_table(sizes(rows, "rivals-json"))))
    return found


def main() -> None:
    for block, text in blocks():
        block.write(text)


if __name__ == "__main__":
    main()
