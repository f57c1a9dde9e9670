"""Rows for the page about columnar: its bytes and CPU times beside those of v2, v3 and v3-headers-first."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, Interval
from kfbench.measure.kinds.cpu import READINGS
from kfbench.present.arms import middle_95, ties
from kfbench.present.names import HEADERS_FIRST, NEW, batch_words
from kfbench.present.rows import AA, Rows, Runs
from kfbench.present.table import Band
from kfbench.report.view_packages import ViewPackage

NAME: Final = "columnar"
OTHERS: Final = (BASE_FORMAT, NEW, HEADERS_FIRST)
BYTES: Final = "bytes"
TIMED: Final = ("cpu", *READINGS, "broker")  # kinds
ORDER: Final = (BYTES, *OPERATIONS, *READINGS.values())  # then broker paths, by name
OWN: Final = 0  # batch size 0 means: the batches that the workload defines
_CELL: Final = ["what", "with_codec", "label", "batch"]


class WorkloadArms(NamedTuple):
    """The arms of a workload setting under one codec. what: "bytes" or the operation."""

    what: str
    with_codec: str
    workload: str
    batch: int
    arms: dict[str, "pd.Series[Any]"]  # by format; AA for the second timing of v2

    @property
    def words(self) -> tuple[str, str, str]:
        """The workload, the batches and the codec."""
        batches = batch_words(self.batch) if self.batch else "own batches"
        return self.workload, batches, "no codec" if self.with_codec == "none" else self.with_codec

    def size_ratio(self, name: str, base: str) -> float:
        sizes = [self.arms[each]["size_bytes"] / self.arms[each]["records"] for each in (name, base)]
        return float(sizes[0] / sizes[1])


def columnar_bytes(runs: Runs) -> pd.DataFrame:
    """Return bytes relative to v2 with the same codec, by codec, batches, workload and format."""
    cells = sorted(_cells(runs.own, [BYTES]), key=lambda cell: (cell.with_codec != "none", cell.with_codec, cell.batch))
    found = [
        (*cell.words, name, cell.size_ratio(name, BASE_FORMAT))
        for cell in cells
        for name in (NAME, NEW, HEADERS_FIRST)
        if name in cell.arms
    ]
    return pd.DataFrame(found, columns=["workload", "batches", "codec", "format", "ratio"])


def columnar_times(runs: Runs) -> pd.DataFrame:
    """Return CPU times relative to v2, round by round, by workload, batches, codec, operation and format."""
    found = [
        (*cell.words, cell.what, name, runs.own.time_ratio(cell.arms[name], cell.arms[BASE_FORMAT]))
        for cell in _cells(runs.own, TIMED)
        for name in (NAME, NEW, HEADERS_FIRST)
        if name in cell.arms
    ]
    return pd.DataFrame(found, columns=["workload", "batches", "codec", "operation", "format", "ratio"])


def columnar_losses(runs: Runs) -> pd.DataFrame:
    """Return the cells in which columnar takes more than another format. A tie in CPU time is no loss."""
    found = [(cell.what, *cell.words, other, ratio) for cell, other, ratio, is_loss in _compared(runs.own) if is_loss]
    return pd.DataFrame(found, columns=["what", "workload", "batches", "codec", "against", "ratio"])


def columnar_loss_counts(runs: Runs) -> pd.DataFrame:
    """Return the number of losses and of compared cells, by what was measured and by the other format."""
    lost, compared = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for cell, other, _, is_loss in _compared(runs.own):
        lost[cell.what, other] += is_loss
        compared[cell.what, other] += 1
    measured = dict.fromkeys(what for what, _ in compared)
    found = [(what, other, lost[what, other], compared[what, other] or None) for what in measured for other in OTHERS]
    return pd.DataFrame(found, columns=["what", "other", "lost", "cells"])


def _cells(rows: Rows, kinds: Sequence[str]) -> list[WorkloadArms]:
    """Return the cells of named workloads that have columnar and v2, sorted by operation, codec, workload and batch."""
    arms = rows.arms({"kind": list(kinds), "population": "named", "arm": "any"})
    arms = arms[arms["cell_id"].isin(arms.loc[arms["format"] == NAME, "cell_id"])]
    arms = arms[arms["cache"].fillna("") != "cold"]
    arms = arms.assign(batch=arms["batch_size"].fillna(OWN).astype(int), what=arms["operation"].fillna(BYTES))
    found = []
    for (what, codec, label, batch), of in arms.groupby(_CELL, sort=False):
        names = of["format"].where(of["arm"].fillna("") != AA, AA)
        by = dict(zip(names, (row for _, row in of.iterrows()), strict=True))
        if {NAME, BASE_FORMAT} <= by.keys():
            found.append(WorkloadArms(str(what), str(codec), str(label), int(batch), by))
    place = {what: i for i, what in enumerate(ORDER)}
    return sorted(
        found,
        key=lambda cell: (
            place.get(cell.what, len(place)), cell.what, cell.with_codec != "none", cell.with_codec, cell.workload,
            cell.batch,
        ),
    )  # fmt: skip


def _compared(rows: Rows) -> Iterator[tuple[WorkloadArms, str, float | Interval, bool]]:
    """Yield columnar relative to each other format of each cell, and whether columnar takes more."""
    cells = _cells(rows, [BYTES, *TIMED])
    noise = _noise(rows, cells)
    for cell in cells:
        for other in (name for name in OTHERS if name in cell.arms):
            if cell.what == BYTES:
                size = cell.size_ratio(NAME, other)
                yield cell, other, size, size > 1
            else:
                time = rows.time_ratio(cell.arms[NAME], cell.arms[other])
                yield cell, other, time, time.median > 1 and not ties(time, noise.get(cell.what))


def _noise(rows: Rows, cells: Sequence[WorkloadArms]) -> dict[str, Band]:
    """Return the middle 95 % of the ratios of v2 to itself (A/A), by operation."""
    again: dict[str, list[float]] = {}
    for cell in cells:
        if AA in cell.arms:
            again.setdefault(cell.what, []).append(rows.time_ratio(cell.arms[AA], cell.arms[BASE_FORMAT]).median)
    return {what: band for what, medians in again.items() if (band := middle_95(medians)) is not None}


_SOURCES: Final = (columnar_bytes, columnar_times, columnar_losses, columnar_loss_counts)
VIEWS: Final = (
    ViewPackage(
        name=NAME, path=Path(__file__).with_name("view.toml"), sources={each.__name__: each for each in _SOURCES}
    ),
)
