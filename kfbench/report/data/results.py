"""The rows of one run for reports: slices along one axis, ratios to v2, and the noise of the A/A arm.

A slice fixes every axis but one, as near to the reference point as the run allows. It may join cells of several blocks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.measure.cpu import READINGS
from kfbench.measure.floor import FLOOR
from kfbench.report.data.arms import COLD, Band, interval_of, middle_95, one_per_arm
from kfbench.report.data.axes import GRID, REFERENCE, distance, setting
from kfbench.report.data.shown_formats import in_order, worth_a_column
from kfbench.tables import Cell, Interval


def as_cell(value: Any) -> Cell:
    """Return a number of a frame, or an Interval, as a cell. NaN becomes None."""
    if isinstance(value, Interval):
        return value
    return None if is_absent(value) else float(value)


def is_absent(value: Any) -> bool:
    return value is None or (not isinstance(value, Interval) and bool(pd.isna(value)))


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Rows of cells that differ in one axis only. fixed: the values of the other axes."""

    axis: str
    rows: pd.DataFrame
    fixed: Mapping[str, Any]

    def pivot(self, column: str) -> pd.DataFrame:
        """Return a row per level of the axis, ascending, and a column per format."""
        table = self.rows.pivot(index=self.axis, columns="format", values=column).sort_index()
        return table[worth_a_column(table)]

    @property
    def setting(self) -> str:
        """The other axes in words."""
        return setting(self.fixed)


class Plane(NamedTuple):
    """Rows of cells that differ in two axes only. fixed: the values of the other axes."""

    rows: pd.DataFrame
    fixed: Mapping[str, Any]


P = TypeVar("P", Slice, Plane)


class Results:
    """The rows of one run.

    Args:
        every: the stored rows.
        all: the rows that reports compare: one host's times, without research formats and their measurements.
        research: `all` with the research formats, and with the cells that were measured for them.
        left_out: CPU times of other hosts.
        elsewhere: the number of cells that each of these hosts timed.
    """

    def __init__(self, measurements: pd.DataFrame) -> None:
        self.every = measurements
        is_elsewhere = _is_elsewhere(measurements)
        self.research, self.left_out = measurements[~is_elsewhere], measurements[is_elsewhere]
        self.all = _without_research(self.research)
        self.elsewhere = {
            str(host): int(cells) for host, cells in self.left_out.groupby("host")["cell_id"].nunique().items()
        }
        self.axes = [axis for axis in REFERENCE if axis in measurements.columns]
        is_ok, is_floor = self.all["status"] == "ok", self.all["kind"] == FLOOR
        self.ok = self.all[is_ok & ~is_floor]  # a floor is no format
        self._floors = self.all[is_ok & is_floor]
        self._ratios: dict[tuple[str, str, str], Interval | None] = {}
        self._on_grid = self.ok[self.ok["workload"] == GRID]
        self.grid_rows = _numpy_columns(one_per_arm(self._on_grid, by_block=True))

    @cached_property
    def formats(self) -> list[str]:
        return in_order(self.ok["format"])

    def grid_arms(self, kind: str) -> pd.DataFrame:
        """Return the rows of the grid of one kind, one per arm."""
        return _numpy_columns(one_per_arm(self._on_grid[self._on_grid["kind"] == kind]))

    @cached_property
    def grid_bytes(self) -> pd.DataFrame:
        """Byte rows of the grid, one per cell, format, codec and level, with bytes per record."""
        rows = self.grid_arms("bytes")
        return rows.assign(
            size_per_record=rows["size_bytes"] / rows["records"],
            overhead_per_record=rows["overhead_bytes"] / rows["records"],
        )

    @cached_property
    def uncompressed(self) -> pd.DataFrame:
        return self.grid_bytes[self.grid_bytes["codec"] == "none"]

    @cached_property
    def floors(self) -> pd.DataFrame:
        """The metadata floors of the grid and of named workloads, one row per cell, with overhead_bytes per record.

        A floor has the cell and the records of the byte rows. Older runs have no floors.
        """
        rows = one_per_arm(self._floors)
        return rows.assign(overhead_per_record=rows["overhead_bytes"] / rows["records"])

    def slices(self, rows: pd.DataFrame, axis: str) -> list[Slice]:
        """Return the sets of cells that differ in `axis` only, with two levels or more; first the one to show.

        The first slice is nearest to the reference point, among those with at least three quarters of the most levels.
        One level more is not worth an unusual point.
        """
        found = [
            (count, Slice(axis=axis, rows=part, fixed=fixed))
            for part, fixed in self._parts(rows, axis)
            if (count := part[axis].nunique()) > 1
        ]
        return _nearest_first(found)

    def _parts(self, rows: pd.DataFrame, *moved: str) -> Iterator[Plane]:
        """Yield the rows that differ in the moved axes only, for each combination of the other axes."""
        others = [axis for axis in self.axes if axis not in moved]
        for key, part in rows.groupby(others, dropna=False, sort=True) if len(rows) else ():
            yield Plane(part, dict(zip(others, key, strict=True)))

    def along(self, rows: pd.DataFrame, axis: str) -> Slice | None:
        return next(iter(self.slices(rows, axis)), None)

    @cached_property
    def over_batch_size(self) -> Slice | None:
        """Bytes without a codec over batch size: the slice that most sections show."""
        return self.along(self.uncompressed, "batch_size")

    def plane(self, rows: pd.DataFrame, *moved: str) -> Plane | None:
        """Return the plane of two axes nearest to the reference point, among those with most cells.

        Return None unless both axes have two levels and more than half of their pairs were measured. Two crossing lines
        are no
        plane.
        """
        found = []
        for part in self._parts(rows, *moved):
            levels = [part.rows[axis].nunique() for axis in moved]
            cells = len(part.rows.drop_duplicates(list(moved)))
            if min(levels) > 1 and 2 * cells > levels[0] * levels[1]:
                found.append((cells, part))
        return next(iter(_nearest_first(found)), None)

    def nearest(self, rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
        """Return all rows of the cell nearest to a point. wanted: axes of the point that differ from the reference."""
        if rows.empty:
            return rows
        target = {**REFERENCE, **wanted}
        cells = rows.drop_duplicates("cell_id").sort_values("cell_id")
        points = cells[self.axes].to_dict("records")
        distances = [distance({str(axis): value for axis, value in point.items()}, target) for point in points]
        best = cells["cell_id"].iloc[distances.index(min(distances))]
        return rows[rows["cell_id"] == best]

    @cached_property
    def cpu(self) -> pd.DataFrame:
        """CPU rows in resident caches, with the median ns per record. `together` names the arms of the same rounds."""
        return self._timed[self._timed["cache"] != COLD]

    @cached_property
    def cold(self) -> pd.DataFrame:
        """CPU rows in cold caches, with the columns of `cpu`."""
        return self._timed[self._timed["cache"] == COLD]

    @cached_property
    def _timed(self) -> pd.DataFrame:
        rows = self.grid_arms("cpu").copy()
        medians = rows["cpu_ns"].map(lambda ns: float(np.median(ns))).astype("float64")
        rows["ns_per_record"] = medians / rows["records"] / rows["inner_loops"]
        levels = rows["level"].astype("object").where(rows["level"].notna(), "")
        rows["together"] = (
            rows["cell_id"] + "/" + rows["operation"] + "/" + rows["codec"] + "/" + levels.astype(str)
            + rows["cache"].map({COLD: "/cold"}).fillna("")
        )  # fmt: skip
        return rows

    @cached_property
    def _base_ns(self) -> dict[str, NDArray[np.float64]]:
        rows = self._timed[(self._timed["format"] == BASE_FORMAT) & (self._timed["arm"] == "measure")]
        columns = zip(rows["together"], rows["cpu_ns"], rows["inner_loops"], strict=True)
        return {together: np.asarray(cpu_ns, np.float64) / loops for together, cpu_ns, loops in columns}

    def with_ratios(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with `ratio`: an Interval of CPU time relative to v2, round by round; None without v2."""
        names = ("together", "format", "arm", "cpu_ns", "inner_loops")
        columns = zip(*(rows[name] for name in names), strict=True)  # itertuples is slow for wide rows
        return rows.assign(ratio=[self._ratio(*row) for row in columns])

    def _ratio(
        self, together: str, name: str, arm: str, cpu_ns: NDArray[np.float64], inner_loops: float
    ) -> Interval | None:
        key = together, name, arm
        if key not in self._ratios:
            base = self._base_ns.get(together)
            if base is None:
                self._ratios[key] = None
            elif name == BASE_FORMAT and arm == "measure":
                self._ratios[key] = Interval(median=1.0, low=1.0, high=1.0)
            else:
                self._ratios[key] = interval_of(np.asarray(cpu_ns, dtype=np.float64) / inner_loops, base)
        return self._ratios[key]

    @cached_property
    def aa(self) -> pd.DataFrame:
        """The A/A arm of every cell, with its ratio."""
        return self.with_ratios(self.cpu[self.cpu["arm"] == "aa"])

    @cached_property
    def noise(self) -> Band | None:
        """The middle 95 % of the A/A ratios. Without noise, all of them would be 1."""
        return middle_95([ratio.median for ratio in self.aa["ratio"] if ratio is not None])


def reasons(rows: pd.DataFrame) -> list[str]:
    """Return the reason of each row without a number: what its format lacks, or the first line of its error."""
    found = []
    for status, error, name in zip(rows["status"], rows["error"].fillna(""), rows["format"], strict=True):
        line = str(error).partition("\n")[0]
        failed = f"error, {line}" if line else "error"
        found.append(line.removeprefix(f"{name} has ") if status == "skipped" else failed)
    return found


def _nearest_first(found: list[tuple[int, P]]) -> list[P]:
    """Sort parts by their distance from the reference point; parts with few cells or levels come last."""
    most = max((count for count, _ in found), default=0)
    found.sort(key=lambda item: (item[0] < 0.75 * most, distance(item[1].fixed), -item[0]))
    return [part for _, part in found]


def _is_elsewhere(rows: pd.DataFrame) -> pd.Series:
    """Return True for CPU times of other hosts than the one that timed most cells.

    Times of two machines share no table, and their A/A arms say nothing about each other. Bytes and the counters of
    broker paths are the same on all hosts, so they stay. Tables of broker times check the hosts. Failures stay too.
    """
    timed = rows["kind"].isin(["cpu", *READINGS, "prefix"]) & rows["host"].notna() & (rows["status"] == "ok")
    cells = rows[timed].groupby("host")["cell_id"].nunique().sort_index()
    return timed & (rows["host"] != cells.idxmax()) if len(cells) > 1 else timed & False


def _without_research(rows: pd.DataFrame) -> pd.DataFrame:
    rebatched = (rows["workload"] != GRID) & rows["batch_size"].notna()
    return rows[~(rows["format"].isin(RESEARCH) | rows["kind"].isin(READINGS) | rebatched)]


def _numpy_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Return nullable columns as NumPy columns: integers if every row has a value, else floats with NaN.

    Axes get the types of the grid. Other workloads have no axes, so their rows turned the axes into floats and objects.
    """
    found = {}
    for name, column in rows.items():
        if isinstance(column.dtype, pd.BooleanDtype | pd.Int32Dtype | pd.Int64Dtype):
            missing = column.isna().any()
            kind = "float64" if missing else "bool" if isinstance(column.dtype, pd.BooleanDtype) else "int64"
            found[str(name)] = column.astype(kind)
    for axis, value in REFERENCE.items():
        if axis in rows and not isinstance(value, str) and rows[axis].notna().all():
            found[axis] = rows[axis].astype({bool: "bool", int: "int64", float: "float64"}[type(value)])
    return rows.assign(**found)
