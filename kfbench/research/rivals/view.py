"""Rows for the page about rivals: bytes of containers, compared with v2 and columnar under zstd.

Batches that are much smaller than wanted are left out: a workload's producers may not send so many records.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.present.rows import Runs
from kfbench.present.table import Cell, Ranked, number
from kfbench.report.view_packages import ViewPackage

PROFILE: Final = "rivals"  # also the kind of its sizes
COLUMNAR: Final = "columnar"
CODEC: Final = "zstd"
BASES: Final = (BASE_FORMAT, COLUMNAR)
FULL: Final = 0.9  # of the wanted records per batch
OWN: Final = 0  # batch size 0 means: the batches that the workload defines
NOT_REACHED: Final = "not reached"


class ContainerSizes:
    """The bytes per record under zstd 3.

    Args:
        table: a row per workload and batch size, a column per format; NaN where it was not measured.
        names: the rivals, in the order of the sweep.
    """

    def __init__(self, runs: Runs) -> None:
        rows = _rows(runs, PROFILE)
        self.names = [name for name in rows["format"].unique() if name not in FORMATS]
        rows = rows[(rows["codec"] == CODEC) & rows["size_bytes"].notna()]
        rows = rows.assign(size=rows["size_bytes"] / rows["records"])
        sizes = rows.drop_duplicates(["workload", "batch", "format"]).pivot(
            index=["workload", "batch"], columns="format", values="size"
        )
        sizes = sizes.reindex(columns=[*BASES, *self.names]).astype(float)
        rivals = sizes[self.names].notna().any(axis="columns").groupby(level="workload").transform("any")
        self.table = sizes[rivals.astype(bool)].sort_index()

    @cached_property
    def batches(self) -> list[int]:
        """The batch sizes, without OWN."""
        return sorted({int(batch) for _, batch in self.table.index} - {OWN})

    def break_even(self, name: str, base: str) -> list[float]:
        """Return, for each workload with the largest batches, the records per batch from which `name` is as small.

        They are sorted. inf: at no measured size.
        """
        ratios = (self.table[name] / self.table[base]).dropna()
        found = []
        for _, of in ratios.groupby(level="workload"):
            points = [(int(batch), float(ratio)) for (_, batch), ratio in of.items() if batch != OWN]
            if points and points[-1][0] == self.batches[-1]:
                found.append(crossing(points))
        return sorted(found)


def rivals_means(runs: Runs) -> pd.DataFrame:
    """Return bytes relative to v2, by container and batch size: the geometric mean of the workloads that have them."""
    sizes = ContainerSizes(runs)
    found = []
    for name in (COLUMNAR, *sizes.names):
        logs = np.log(sizes.table[name] / sizes.table[BASE_FORMAT]).groupby(level="batch").mean()
        for batch in (*sizes.batches, OWN):
            ratio = math.exp(logs[batch]) if batch in logs.index else math.nan
            found.append((name, number(batch) if batch else "own batches", batch, batch == OWN, ratio))
    return pd.DataFrame(found, columns=["container", "batches", "batch_size", "is_own", "ratio"])


def rivals_break_even(runs: Runs) -> pd.DataFrame:
    """Return the batch sizes from which rivals take no more bytes than v2 and columnar: medians and quartiles."""
    sizes = ContainerSizes(runs)
    found = [
        (name, base, *_break_even_cells(ends))
        for base in BASES
        for name in sizes.names
        if (ends := sizes.break_even(name, base))
    ]
    return pd.DataFrame(found, columns=["container", "base", "records", "quartiles", "never"])


def _break_even_cells(found: Sequence[float]) -> tuple[Cell, str, int]:
    low, middle, high = (found[min(int(share * len(found)), len(found) - 1)] for share in (0.25, 0.5, 0.75))
    ends = [NOT_REACHED if math.isinf(each) else number(round(each)) for each in (low, high)]
    records = Ranked(NOT_REACHED, None) if math.isinf(middle) else round(middle)
    return records, "–".join(ends if low != high else ends[:1]), sum(map(math.isinf, found))


def _rows(runs: Runs, kind: str) -> pd.DataFrame:
    """Return the rows of a kind, without failures. batch: 0 for own batches."""
    rows = runs.joined.get(PROFILE, runs.own).rows
    rows = rows[(rows["kind"] == kind) & (rows["status"] == "ok")]
    is_small = (rows["records"] / rows["batches"] < FULL * rows["batch_size"]).fillna(False)
    rows = rows[~is_small.astype(bool)]
    return rows.assign(batch=rows["batch_size"].fillna(OWN).astype(int), arm=rows["arm"].fillna(""))


def crossing(ratios: Iterable[tuple[int, float]]) -> float:
    """Return the batch size from which the ratio stays at 1 or below; inf if it never does.

    Between two sizes it lies where the straight line through both points crosses 1, in logarithms.
    """
    points = list(ratios)
    above = [i for i, (_, ratio) in enumerate(points) if ratio > 1]
    if not above:
        return float(points[0][0])
    if above[-1] == len(points) - 1:
        return math.inf
    (small, high), (large, low) = points[above[-1]], points[above[-1] + 1]
    share = math.log(high) / (math.log(high) - math.log(low))
    return float(small * (large / small) ** share)


_SOURCES: Final = (rivals_means, rivals_break_even)
VIEWS: Final = (
    ViewPackage(
        name="rivals",
        path=Path(__file__).with_name("view.toml"),
        sources={each.__name__: each for each in _SOURCES},
    ),
)
