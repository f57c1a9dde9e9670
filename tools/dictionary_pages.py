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
from typing import Any, Final

import numpy as np

from kfbench.comparison.timed_arms import arms_of
from kfbench.store import open_run
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
RUN: Final = ROOT / "datasets" / "joined" / "dictionary"
PROPOSAL: Final = ROOT / "docs" / "proposals" / "topic-dictionaries.md"
BROKER: Final = ROOT / "docs" / "dictionaries-broker.md"
BY: Final = "`make proposal` from datasets/joined/dictionary"
CHARGED_BYTES: Final = 10_000_000
SIZES: Final = (1, 10, 100)  # records per batch
LIVE_SIZES: Final = (1, 10, 50)
FORMATS: Final = ("v2", "columnar")
LINES, PUBLIC, NAMED, LINES_CPU, LIVE, AGE, CODECS, PATHS = (
    "dictionary-lines", "dictionary-public", "dictionary-batches", "dictionary-lines-cpu", "dictionary-live",
    "dictionary-lines-age", "dictionary-codecs", "dictionary-broker",
)  # fmt: skip
GROUPS: Final = {LINES: "log lines", PUBLIC: "public data", NAMED: "named workloads"}
PATH_WORDS: Final = {
    "append": "append",
    "seek-time": "seek by time",
    "compact": "compact (workloads with keys)",
    "mirror": "mirror that decompresses and recompresses, to plain zstd",
    "mirror-renumber": "mirror that passes batches on, to another number",
    "down-convert": "fetch by a client without codec 5",
}
Key = tuple[Any, ...]
SIZE_KEY: Final = (
    "grid", "workload", "batch_size", "format", "level", "dictionary", "dictionary_size_bytes", "trained_share", "part"
)  # fmt: skip


class Figures:
    """The tables of the two pages, from one stored run."""

    def __init__(self, path: Path = RUN) -> None:
        self.run = open_run(path)

    @cached_property
    def sizes(self) -> Mapping[Key, Any]:
        rows = self.run.table.to_pandas()
        rows = rows[(rows["kind"] == "dictionary") & (rows["status"] == "ok")]
        rows = rows.astype(dict.fromkeys(SIZE_KEY, object)).where(rows.notna(), None)
        return {tuple(getattr(row, name) for name in SIZE_KEY): row for row in rows.itertuples()}

    def ratio(
        self, grid: str, batch: int, fmt: str, dictionary: str, *, size: int = 32_768, level: int = 3, own: bool = False
    ) -> str:
        """Return the bytes of an arm against v2 with zstd 3. own: against the same format and level without it."""
        found = []
        for workload in sorted({key[1] for key in self.sizes if key[0] == grid}):
            wanted = None if dictionary == "plain" else 8_192 if dictionary == "raw" else size
            row = self._row(grid, workload, batch, fmt, level, dictionary, wanted)
            base = self._row(grid, workload, batch, fmt if own else "v2", level if own else 3, "plain", None)
            if row is not None and base is not None:
                charged = 0 if dictionary == "plain" else row.dictionary_stored_bytes / CHARGED_BYTES
                found.append(row.size_bytes / base.size_bytes + charged)
        return shown(found)

    def _row(
        self, grid: str, workload: str, batch: int, fmt: str, level: int, dictionary: str, size: int | None
    ) -> Any:
        own = 10 if batch == 10 else batch
        for size_of_batch in (own, None):  # the workload's own batches may have this size
            row = self.sizes.get((grid, workload, size_of_batch, fmt, level, dictionary, size, 0.5, 1))
            if row is not None:
                return row
        return None

    def times(self, grid: str, **wanted: Any) -> dict[str, list[float]]:
        """Return the paired ratio of each measurement of a block, by workload. wanted: values of columns."""
        found: dict[str, list[float]] = {}
        for timed in self._arms.values():
            row = timed.arm.row
            if row.grid == grid and all(self._is(row, name, value) for name, value in wanted.items()):
                ratio = float(np.median(timed.arm.ns_per_record / timed.base.ns_per_record))
                found.setdefault(row.workload, []).append(ratio)
        return found

    @staticmethod
    def _is(row: Any, name: str, value: Any) -> bool:
        given = getattr(row, name)
        return (given == value) or (name == "batch_size" and given is None and value == 10)

    @cached_property
    def _arms(self) -> Mapping[Any, Any]:
        return arms_of(self.run.table)

    def timed(self, grid: str, **wanted: Any) -> str:
        values = [value for each in self.times(grid, **{"arm": "measure"} | wanted).values() for value in each]
        return shown(values)

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
        kinds = (("v2", "trained"), ("v2", "raw"), ("columnar", "plain"), ("columnar", "trained"))
        words = {"trained": " + dictionary", "raw": " + newest 8 KiB as dictionary", "plain": ""}
        return table(
            ["bytes compared with v2 + zstd 3, dictionary charged", *map(str, SIZES)],
            (
                [f"{title}: {fmt}{words[kind]}", *(self.ratio(grid, batch, fmt, kind) for batch in SIZES)]
                for (grid, title), (fmt, kind) in product(GROUPS.items(), kinds)
                if any(key[0] == grid for key in self.sizes)
            ),
        )

    def codecs_table(self) -> str:
        rows = self.run.table.to_pandas()
        rows = rows[(rows["grid"] == CODECS) & (rows["status"] == "ok") & rows["workload"].str.startswith("lines-")]
        if not len(rows):
            return f"The stored run has no block `{CODECS}` yet."
        by = rows.assign(batch_size=rows["batch_size"].fillna(10)).set_index(
            ["workload", "batch_size", "format", "arm", "dictionary"]
        )

        def ratio(batch: int, arm: str, dictionary: str) -> str:
            found = []
            for workload in sorted(rows["workload"].unique()):
                key = (workload, batch, "v2", arm, dictionary)
                if key in by.index:
                    row, base = by.loc[key], by.loc[(workload, batch, "v2", "stream", "plain")]
                    charged = 0 if dictionary == "plain" else row.dictionary_stored_bytes / CHARGED_BYTES
                    found.append(row.size_bytes / base.size_bytes + charged)
            return shown(found)

        return table(
            ["log lines, v2, bytes compared with v2 + zstd 3", *map(str, SIZES)],
            (
                [arm + " + dictionary" * (kind == "trained"), *(ratio(batch, arm, kind) for batch in SIZES)]
                for arm, kind in product(("lz4", "gzip"), ("plain", "trained"))
            ),
        )

    def choices_table(self) -> str:
        sizes = [
            [f"v2, {size >> 10} KiB", *(self.ratio(LINES, batch, "v2", "trained", size=size) for batch in SIZES)]
            for size in (4_096, 32_768, 65_536)
        ]
        levels = [
            [f"v2, 32 KiB, level {level}", *(self.ratio(LINES, batch, "v2", "trained", level=level) for batch in SIZES)]
            for level in (1, 6, 9)
        ]
        plain = [
            [f"v2, no dictionary, level {level}", *(self.ratio(LINES, b, "v2", "plain", level=level) for b in SIZES)]
            for level in (1, 9)
        ]
        return table(["log lines", *map(str, SIZES)], [*sizes, *levels, *plain])

    def cpu_table(self) -> str:
        return table(
            ["codec's CPU time with / without, level 3, 32 KiB, log lines", *map(str, SIZES)],
            (
                [f"{fmt}: {operation}", *(self._codec(LINES_CPU, fmt, operation, batch) for batch in SIZES)]
                for fmt, operation in product(FORMATS, ("compress", "decompress"))
            ),
        )

    def _codec(self, grid: str, fmt: str, operation: str, batch: int, live: int = 1) -> str:
        return self.timed(
            grid, format=fmt, operation=operation, batch_size=batch, live=live, level=3, dictionary="trained",
            dictionary_size_bytes=32_768,
        )  # fmt: skip

    def live_table(self) -> str:
        return table(
            ["dictionaries in turn, v2, level 3, 32 KiB", *(f"{o}, {b}" for o, b in product(_OPERATIONS, LIVE_SIZES))],
            (
                [str(live), *(self._codec(LIVE, "v2", o, b, live) for o, b in product(_OPERATIONS, LIVE_SIZES))]
                for live in (1, 16, 64, 256)
            ),
        )

    def cost_table(self) -> str:
        rows = [row for key, row in self.sizes.items() if key[0] == LINES and key[3:7] == ("v2", 3, "trained", 32_768)]
        trained_s = [row.training_ns * 1e-9 / (row.trained_bytes * 1e-6) for row in rows]
        own = [
            float(policy.size_bytes + policy.dictionary_stored_bytes) / plain.size_bytes
            for key, policy in self.sizes.items()
            if key[0] in (LINES, NAMED, "dictionary-workloads") and key[5] == "policy"
            if (plain := self.sizes.get((*key[:5], "plain", None, 0.0, 1))) is not None
        ]
        pays = [row.dictionary_stored_bytes for row in rows]
        return table(
            ["cost", "", ""],
            [
                [
                    "training, 32 KiB, log lines",
                    f"{median(trained_s):.3f} s per MB of samples",
                    f"most {max(trained_s):.3f}",
                ],
                ["stored dictionary, 32 KiB, log lines", f"{median(pays):,.0f} bytes", f"most {max(pays):,.0f}"],
                [
                    "memory of a digest and a context, level 3 (estimate)",
                    f"{median(row.dictionary_memory_bytes for row in rows):,.0f} bytes",
                    "",
                ],
                [
                    "policy, dictionaries counted, against the same format and level in plain zstd",
                    f"geometric mean {geometric_mean(own):.2f}",
                    f"worst of {len(own)} {max(own):.3f}",
                ],
            ],
        )

    def age_table(self) -> str:
        def ratio(fmt: str, share: float, part: int) -> str:
            found = []
            for key, row in self.sizes.items():
                if key[0] == AGE and key[3:] == (fmt, 3, "trained", 32_768, share, part):
                    base = self.sizes.get((*key[:5], "plain", None, share, part))
                    found += [row.size_bytes / base.size_bytes] if base is not None else []
            return shown(found)

        return table(
            ["log lines at 10; trained on the first", *(f"part {part} of the rest" for part in range(1, 6))],
            (
                [f"{share:.0%}, {fmt}", *(ratio(fmt, share, part) for part in range(1, 6))]
                for share, fmt in product((0.1, 0.5), FORMATS)
            ),
        )

    def frame_table(self) -> str:
        """Kafka's frame with a dictionary ID takes 7 bytes per batch more than number, check and lean frame."""

        def ratio(batch: int, more_bytes: int) -> str:
            found = []
            for workload in sorted({key[1] for key in self.sizes if key[0] == LINES}):
                row = self._row(LINES, workload, batch, "v2", 3, "trained", 32_768)
                base = self._row(LINES, workload, batch, "v2", 3, "plain", None)
                if row is not None and base is not None:
                    charged = row.dictionary_stored_bytes / CHARGED_BYTES
                    found.append((row.size_bytes + more_bytes * row.batches) / base.size_bytes + charged)
            return shown(found)

        arms = (
            ("number, check of 3 bytes, lean frame (proposed)", 0),
            ("the same with a check of 4 bytes", 1),
            ("Kafka's frame with a dictionary ID, no check", 7),
            ("a SHA-256 in each batch", 29),
        )
        return table(
            ["log lines, v2, level 3, 32 KiB", *map(str, SIZES)],
            ([words, *(ratio(batch, more) for batch in SIZES)] for words, more in arms),
        )

    def paths_table(self) -> str:
        rows = []
        for path, words in PATH_WORDS.items():
            for fmt, kind in (("v2", "trained"), ("columnar", "plain"), ("columnar", "trained")):
                of = {"operation": path, "format": fmt, "dictionary": kind}
                rows.append(
                    [f"{words}: {fmt}{' + dictionary' * (kind == 'trained')}"]
                    + [self.timed(PATHS, batch_size=batch, **of) for batch in SIZES]
                )
        if all(cell == "–" for row in rows for cell in row[1:]):
            return f"The stored run has no block `{PATHS}` yet."
        dear = {"operation": "down-convert", "format": "v2", "dictionary": "trained"}
        rows.append(["the same: v2 + dictionary, µs per record", *(self._us(PATHS, b, dear) for b in SIZES)])
        return table(["CPU time compared with v2 + plain zstd on the same path", *map(str, SIZES)], rows)

    def _us(self, grid: str, batch: int, wanted: Mapping[str, Any]) -> str:
        """Return the geometric mean of the workloads' median CPU times per record, in microseconds."""
        wanted = {**wanted, "arm": "measure", "batch_size": batch, "grid": grid}
        rows = [timed.arm for timed in self._arms.values()]
        found = [arm for arm in rows if all(self._is(arm.row, name, value) for name, value in wanted.items())]
        return shown([float(np.median(arm.ns_per_record)) * 1e-3 for arm in found])


_OPERATIONS: Final = ("compress", "decompress")


def shown(values: Sequence[float]) -> str:
    """Return the geometric mean of some ratios; – for none."""
    if not values:
        return "–"
    mean = geometric_mean(values)
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
