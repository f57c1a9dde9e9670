"""Write the figures of topic dictionaries into docs/proposals/topic-dictionaries.md and docs/dictionaries-broker.md.

usage: dictionary_pages.py

All of them come from the stored run of the profile `dictionary` in datasets/joined/dictionary/. A ratio compares a log
with the same records in v2 under zstd 3, and is the geometric mean of the block's workloads. The stored bytes of a
dictionary are charged over 10 MB of the topic's v2 log. tests/tools/test_dictionary_pages.py fails if a page is out of
date.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, Final, TypeAlias

import numpy as np

from kfbench.comparison.timed_arms import arms_of
from kfbench.dictionary_sizes import RAW_BYTES, SIZE_BYTES
from kfbench.formats import BASE_FORMAT
from kfbench.measure.dictionary_cpu import DICTIONARY_OPERATIONS
from kfbench.report.data.dictionaries import (
    FORMATS,
    GROUPS,
    KINDS,
    LEVEL,
    LINES,
    PLAIN,
    RAW,
    SHARE,
    TRAINED,
    Dictionaries,
    Group,
    Key,
    Kind,
    Pair,
    TimeKey,
    geometric_mean_of,
    group_of,
    kib,
    mean_time,
    part_ratio,
)
from kfbench.report.data.joined import Joined
from kfbench.store import open_run
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
RUN: Final = ROOT / "datasets" / "joined" / "dictionary"
PROPOSAL: Final = ROOT / "docs" / "proposals" / "topic-dictionaries.md"
BROKER: Final = ROOT / "docs" / "dictionaries-broker.md"
BY: Final = "`make proposal` from datasets/joined/dictionary"
BATCHES: Final = (1, 10, 100)  # records per batch
LIVE_BATCHES: Final = (1, 10, 50)
V2, V2_TRAINED = Kind(BASE_FORMAT, BASE_FORMAT, PLAIN), KINDS[0]
V2_RAW: Final = Kind(f"{BASE_FORMAT} + newest {kib(RAW_BYTES)} as dictionary", BASE_FORMAT, RAW)
CODEC_WORDS: Final = {"lean": "zstd in a lean frame, no dictionary"}
PATH_WORDS: Final = {
    "append": "append",
    "seek-time": "seek by time",
    "compact": "compact (workloads with keys)",
    "mirror": "mirror that decompresses and recompresses, to plain zstd",
    "mirror-renumber": "mirror that passes batches on, to another number",
    "down-convert": "fetch by a client without codec 5",
}


PathKey: TypeAlias = tuple[str | None, str, str | None, int | None]  # path, format, dictionary, records per batch


class Figures:
    """The tables of the two pages, from one stored run."""

    def __init__(self, path: Path = RUN) -> None:
        self.run = open_run(path)
        self.found = Dictionaries(Joined(run=self.run, is_own=True))

    def origin(self) -> str:
        manifest: Mapping[str, Any] = self.run.manifest
        noise = manifest.get("noise") or {}
        state = "The run counts as noisy, so its CPU times are leads." if noise.get("noisy") else "The run was quiet."
        return (
            f"Stored run: `datasets/joined/dictionary`, {str(manifest['started'])[:10]}, "
            f"{manifest['environment']['cpu']}, kfbench {str(manifest['git_revision'])[:10]}. {state} "
            "Repeat it with `kfbench sweep dictionary`."
        )

    def bytes_table(self) -> str:
        kinds = (V2_TRAINED, V2_RAW, *KINDS[1:])
        return table(
            [f"bytes compared with v2 + zstd {LEVEL}, dictionary charged", *map(str, BATCHES)],
            (
                [
                    f"{group.words}: {kind.label}",
                    *(
                        shown(self.found.mean(kind, group, batch, RAW_BYTES if kind is V2_RAW else SIZE_BYTES))
                        for batch in BATCHES
                    ),
                ]
                for group, kind in product(self._groups, kinds)
            ),
        )

    def codecs_table(self) -> str:
        topics = sorted({key.workload for key in self.found.other_codecs["lz4"] if group_of(key.workload) is LINES})
        return table(
            [f"log lines, v2, bytes compared with v2 + zstd {LEVEL}", *map(str, BATCHES)],
            (
                [
                    CODEC_WORDS.get(arm, arm) + " + dictionary" * (dictionary == TRAINED),
                    *(shown(self.found.codec_mean(arm, topics, batch, BASE_FORMAT, dictionary)) for batch in BATCHES),
                ]
                for arm, dictionary in [("lean", PLAIN), *product(("lz4", "gzip"), (PLAIN, TRAINED))]
            ),
        )

    def choices_table(self) -> str:
        choices = [
            *((f"v2, {kib(size)}", V2_TRAINED, size, LEVEL) for size in (4_096, SIZE_BYTES, 65_536)),
            *((f"v2, {kib(SIZE_BYTES)}, level {level}", V2_TRAINED, SIZE_BYTES, level) for level in (1, 6, 9)),
            *((f"v2, no dictionary, level {level}", V2, SIZE_BYTES, level) for level in (1, 9)),
        ]
        return table(
            ["log lines", *map(str, BATCHES)],
            (
                [words, *(shown(self.found.mean(kind, LINES, batch, size, level)) for batch in BATCHES)]
                for words, kind, size, level in choices
            ),
        )

    def cpu_table(self) -> str:
        arms = ((f"{kib(SIZE_BYTES)}", self.found.times, SIZE_BYTES), ("lean frame alone", self.found.lean_times, 0))
        return table(
            [f"codec's CPU time compared with plain zstd, level {LEVEL}, log lines", *map(str, BATCHES)],
            (
                [
                    f"{name}, {words}: {operation}",
                    *(
                        shown(mean_time(times, LINES, TimeKey("", batch, name, operation, size_bytes)))
                        for batch in BATCHES
                    ),
                ]
                for name, (words, times, size_bytes), operation in product(FORMATS, arms, DICTIONARY_OPERATIONS)
            ),
        )

    def live_table(self) -> str:
        columns = list(product(DICTIONARY_OPERATIONS, LIVE_BATCHES))
        return table(
            [
                f"dictionaries in turn, v2, level {LEVEL}, {kib(SIZE_BYTES)}",
                *(f"{operation}, {batch}" for operation, batch in columns),
            ],
            (
                [
                    str(live),
                    *(
                        shown(
                            mean_time(
                                self.found.live_times, None, TimeKey("", batch, BASE_FORMAT, operation, live=live)
                            )
                        )
                        for operation, batch in columns
                    ),
                ]
                for live in (1, 16, 64, 256)
            ),
        )

    def cost_table(self) -> str:
        sizes = [
            size
            for workload in self.found.topics(LINES, BATCHES[0])
            for batch in BATCHES
            if (size := self.found.size(V2_TRAINED, workload, batch))
        ]
        trained_s = [size.training_s_per_mb for size in sizes if size.training_s_per_mb is not None]
        stored_bytes = [size.stored_bytes for size in sizes]
        policy = [cost.ratio for cost in self.found.policy_costs]
        dictionary = f"{kib(SIZE_BYTES)}, log lines"
        return table(
            ["cost", "", ""],
            [
                [
                    f"training, {dictionary}",
                    f"{median(trained_s):.3f} s per MB of samples",
                    f"most {max(trained_s):.3f}",
                ],
                [
                    f"stored dictionary, {dictionary}",
                    f"{median(stored_bytes):,.0f} bytes",
                    f"most {max(stored_bytes):,.0f}",
                ],
                [
                    f"memory of a digest and a context, level {LEVEL} (estimate)",
                    f"{median(size.memory_bytes for size in sizes):,.0f} bytes",
                    "",
                ],
                [
                    "policy, dictionaries counted, against the same format and level in plain zstd",
                    f"geometric mean {geometric_mean(policy):.2f}",
                    f"worst of {len(policy)} {max(policy):.3f}",
                ],
            ],
        )

    def age_table(self) -> str:
        batch = 10
        topics = sorted({key.workload for key in self.found.ages if group_of(key.workload) is LINES})

        def mean(name: str, share: float, part: int) -> float | None:
            keys = (Key(topic, batch, name, TRAINED, SIZE_BYTES, LEVEL, share, part) for topic in topics)
            return geometric_mean_of(part_ratio(self.found.ages, key) for key in keys)

        parts = range(1, 6)
        return table(
            [f"log lines at {batch}; trained on the first", *(f"part {part} of the rest" for part in parts)],
            (
                [f"{share:.0%}, {name}", *(shown(mean(name, share, part)) for part in parts)]
                for share, name in product((0.1, 0.5), FORMATS)
            ),
        )

    def change_table(self) -> str:
        """Topics whose records change at their middle, with a dictionary of the records before the change."""
        found = self.found.changes
        keys = [key for key in found if key.dictionary == TRAINED and key.share == SHARE and key.part == 1]
        return table(
            ["bytes compared with the same format in plain zstd", *map(str, BATCHES)],
            (
                [
                    f"{workload}: {name} + dictionary",
                    *(shown(part_ratio(found, Key(workload, batch, name, TRAINED, SIZE_BYTES))) for batch in BATCHES),
                ]
                for workload, name in product(sorted({key.workload for key in keys}), FORMATS)
            ),
        )

    def larger_batch_table(self) -> str:
        """v2 in plain zstd with ten times as many records per batch, against v2 with a dictionary."""
        pairs = ((1, 10), (10, 100))

        def cell(group: Group, small: int, large: int) -> str:
            ratios = []
            for workload in self.found.topics(group, small):
                base, larger = self.found.base(workload, small), self.found.base(workload, large)
                ratio = self.found.ratio(V2_TRAINED, workload, small)
                if base and larger and ratio:
                    per_record = larger.size_bytes / larger.records / (base.size_bytes / base.records)
                    ratios.append(per_record / ratio)
            won = sum(ratio < 1 for ratio in ratios)
            return f"{shown(geometric_mean_of(ratios))}, smaller in {won} of {len(ratios)}"

        return table(
            [
                "plain zstd at ten times the batch, compared with v2 + dictionary",
                *(f"{b} against {a}" for a, b in pairs),
            ],
            ([group.words, *(cell(group, *pair) for pair in pairs)] for group in self._groups),
        )

    def losses_table(self) -> str:
        """Dictionaries of 32 KiB at level 3 that do not pay, and the log size from which the others do."""

        def cell(group: Group, name: str, batch: int) -> str:
            gains = [gain for gain in self.found.gains if gain.set.group is group and gain.set[2:] == (batch, name)]
            worst = max(gains, key=lambda gain: gain.ratio)
            lost = sum(gain.ratio > 1 for gain in gains)
            pays = [gain.pays_from_bytes for gain in gains if gain.pays_from_bytes is not None]
            kb = f"{round(median(pays) / 1000):,} KB" if pays else "–"
            return f"{lost} of {len(gains)} lose; worst {worst.ratio:.2f}, {worst.set.workload}; pays from {kb}"

        return table(
            ["dictionary charged over 10 MB; median log size from which it pays", *map(str, BATCHES)],
            (
                [f"{group.words}: {name}", *(cell(group, name, batch) for batch in BATCHES)]
                for group, name in product(self._groups, FORMATS)
            ),
        )

    def duplicates_table(self) -> str:
        """Log lines without the topic that repeats itself."""
        topics = [name for name in self.found.topics(LINES, BATCHES[0]) if name != "lines-spark-driver"]
        return table(
            [f"bytes compared with v2 + zstd {LEVEL}, five topics", *map(str, BATCHES)],
            (
                [kind.label, *(shown(geometric_mean_of(self.found.ratio(kind, t, b) for t in topics)) for b in BATCHES)]
                for kind in KINDS
            ),
        )

    @property
    def _groups(self) -> list[Group]:
        return [group for group in GROUPS if set(BATCHES) <= set(self.found.batches(group))]

    def frame_table(self) -> str:
        """Kafka's frame with a dictionary ID takes 7 bytes per batch more than number, check and lean frame."""

        def mean(batch: int, more_bytes: int) -> float | None:
            ratios = []
            for workload in self.found.topics(LINES, batch):
                size, base = self.found.size(V2_TRAINED, workload, batch), self.found.base(workload, batch)
                assert size and base
                ratios.append(size.charged_ratio(base) + more_bytes * size.batches / base.size_bytes)
            return geometric_mean_of(ratios)

        arms = (
            ("number, check of 3 bytes, lean frame (proposed)", 0),
            ("the same with a check of 4 bytes", 1),
            ("Kafka's frame with a dictionary ID, no check", 7),
            ("a SHA-256 in each batch", 29),
        )
        return table(
            [f"log lines, v2, level {LEVEL}, {kib(SIZE_BYTES)}", *map(str, BATCHES)],
            ([words, *(shown(mean(batch, more)) for batch in BATCHES)] for words, more in arms),
        )

    def paths_table(self) -> str:
        rows = [
            [f"{words}: {kind.label}", *(shown(self._path_mean(path, kind, batch)) for batch in BATCHES)]
            for path, words in PATH_WORDS.items()
            for kind in KINDS
        ]
        us = (self._path_us("down-convert", V2_TRAINED, batch) for batch in BATCHES)
        rows.append([f"the same: {V2_TRAINED.label}, µs per record", *map(shown, us)])
        return table(["CPU time compared with v2 + plain zstd on the same path", *map(str, BATCHES)], rows)

    @cached_property
    def _paths(self) -> Mapping[PathKey, Sequence[Pair]]:
        """The times per record of broker paths. One pair per workload."""
        found: dict[PathKey, list[Pair]] = {}
        for timed in arms_of(self.run.table).values():
            row = timed.arm.row
            if row.kind == "dictionary-broker" and row.arm == "measure":
                key = (row.operation, row.format, row.dictionary, row.batch_size)
                found.setdefault(key, []).append(Pair(timed.arm.ns_per_record, timed.base.ns_per_record, timed.spread))
        return found

    def _path_mean(self, path: str, kind: Kind, batch: int) -> float | None:
        pairs = self._paths.get((path, kind.format, kind.dictionary, batch), ())
        return geometric_mean_of(pair.median for pair in pairs)

    def _path_us(self, path: str, kind: Kind, batch: int) -> float | None:
        """Return the geometric mean of the workloads' median CPU times per record, in microseconds."""
        pairs = self._paths.get((path, kind.format, kind.dictionary, batch), ())
        return geometric_mean_of(float(np.median(pair.ns)) * 1e-3 for pair in pairs)


def shown(mean: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" if mean < 10 else f"{mean:.0f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def blocks(figures: Figures) -> list[tuple[Block, str]]:
    """Return each generated part of the two pages, with its text."""
    parts = {
        "origin": figures.origin,
        "bytes": figures.bytes_table,
        "choices": figures.choices_table,
        "CPU": figures.cpu_table,
        "live dictionaries": figures.live_table,
        "costs": figures.cost_table,
        "ages": figures.age_table,
        "changes": figures.change_table,
        "larger batches": figures.larger_batch_table,
        "losses": figures.losses_table,
        "without duplicates": figures.duplicates_table,
        "frames": figures.frame_table,
        "codecs": figures.codecs_table,
    }
    found = [(Block(page=PROPOSAL, name=name, by=BY), part()) for name, part in parts.items()]
    of_broker = {"origin": figures.origin, "paths": figures.paths_table}
    return found + [(Block(page=BROKER, name=name, by=BY), part()) for name, part in of_broker.items()]


def main() -> None:
    for block, text in blocks(Figures()):
        block.write(text)


if __name__ == "__main__":
    main()
