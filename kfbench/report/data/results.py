"""The rows of one run for reports: slices along one axis, ratios to v2, and the noise of the A/A arm.

A slice has cells that differ in one axis only. The other axes are as near to the reference point as the run allows. The
cells of a slice may be from several blocks of the sweep. The A/A arm is the base (v2), timed a second time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.arms import COLD, Band, interval_of, middle_95, one_per_arm
from kfbench.report.data.axes import GRID, REFERENCE, distance, setting
from kfbench.report.data.shown_formats import in_order, worth_a_column
from kfbench.tables import Cell, Interval


def as_cell(value: Any) -> Cell:
    """Convert a value of a data frame to a cell of a table. NaN becomes None; an Interval is not changed."""
    if isinstance(value, Interval):
        return value
    return None if is_absent(value) else float(value)


def is_absent(value: Any) -> bool:
    return value is None or (not isinstance(value, Interval) and bool(pd.isna(value)))


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Rows of workload settings (cells) that differ in one axis only. fixed: the values of all other axes."""

    axis: str
    rows: pd.DataFrame
    fixed: Mapping[str, Any]

    def pivot(self, column: str) -> pd.DataFrame:
        """Return a frame with a row per value of the axis, ascending, and a column per format."""
        table = self.rows.pivot(index=self.axis, columns="format", values=column).sort_index()
        return table[worth_a_column(table)]

    @property
    def setting(self) -> str:
        """A description of the fixed values of the other axes."""
        return setting(self.fixed)


class Plane(NamedTuple):
    """Rows of workload settings (cells) that differ in two axes only. fixed: the values of all other axes."""

    rows: pd.DataFrame
    fixed: Mapping[str, Any]


P = TypeVar("P", Slice, Plane)


class Results:
    """The rows of one run, split into those that reports compare and the rest.

    Args:
        every: all stored rows.
        all: the rows that reports compare: CPU times of one host only, without research formats and their measurements.
        research: the rows of `all`, of the research formats, and of the measurements made for them.
        left_out: CPU times of other hosts.
        elsewhere: host of `left_out` -> the number of workload settings (cells) that it timed.
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
        self.ok = self.all[is_ok & ~is_floor]  # the floor is not a format
        self._floors = self.all[is_ok & is_floor]
        self._ratios: dict[tuple[str, str, str], Interval | None] = {}
        self._on_grid = self.ok[self.ok["workload"] == GRID]
        self.grid_rows = _numpy_columns(one_per_arm(self._on_grid, by_block=True))

    @cached_property
    def formats(self) -> list[str]:
        return in_order(self.ok["format"])

    def grid_arms(self, kind: str) -> pd.DataFrame:
        """Return the rows of one kind on the grid, one row per measurement.

        The grid consists of synthetic workloads that differ in axes such as batch size.
        """
        return _numpy_columns(one_per_arm(self._on_grid[self._on_grid["kind"] == kind]))

    @cached_property
    def grid_bytes(self) -> pd.DataFrame:
        """The sizes on the grid (synthetic workloads), one row per setting (cell), format, codec and level.

        Added columns: size_per_record and overhead_per_record, in bytes.
        """
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
        """The metadata floors (lower limits for metadata), one row per workload setting (cell).

        Added column: overhead_per_record, in bytes. A floor is computed from the same records as the sizes. Older runs
        have no floors.
        """
        rows = one_per_arm(self._floors)
        return rows.assign(overhead_per_record=rows["overhead_bytes"] / rows["records"])

    def slices(self, rows: pd.DataFrame, axis: str) -> list[Slice]:
        """Return all slices along `axis` with two values or more. The slice that the report shows comes first.

        A slice has rows that differ in `axis` only. The first one is nearest to the grid's defaults, among slices with
        at least three quarters of the greatest number of values. So a slice with one value more does not win with
        unusual values of the other axes.
        """
        found = [
            (count, Slice(axis=axis, rows=part, fixed=fixed))
            for part, fixed in self._parts(rows, axis)
            if (count := part[axis].nunique()) > 1
        ]
        return _nearest_first(found)

    def _parts(self, rows: pd.DataFrame, *moved: str) -> Iterator[Plane]:
        """Yield the rows that differ in the axes `moved` only, for each combination of the other axes."""
        others = [axis for axis in self.axes if axis not in moved]
        for key, part in rows.groupby(others, dropna=False, sort=True) if len(rows) else ():
            yield Plane(part, dict(zip(others, key, strict=True)))

    def along(self, rows: pd.DataFrame, axis: str) -> Slice | None:
        return next(iter(self.slices(rows, axis)), None)

    @cached_property
    def over_batch_size(self) -> Slice | None:
        """The sizes without a codec along the batch size, all other axes fixed. Most sections show these rows."""
        return self.along(self.uncompressed, "batch_size")

    def plane(self, rows: pd.DataFrame, *moved: str) -> Plane | None:
        """Return the rows that vary in two axes only. The other axes are as near to the grid's defaults as possible.

        The choice is among planes with at least three quarters of the greatest number of cells (pairs of values).
        Return None unless both axes have two values, and more than half of the pairs were measured. Otherwise, the
        cells might be just two crossing lines.
        """
        found = []
        for part in self._parts(rows, *moved):
            levels = [part.rows[axis].nunique() for axis in moved]
            cells = len(part.rows.drop_duplicates(list(moved)))
            if min(levels) > 1 and 2 * cells > levels[0] * levels[1]:
                found.append((cells, part))
        return next(iter(_nearest_first(found)), None)

    def nearest(self, rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
        """Return all rows of the workload setting (cell) that is nearest to a point.

        wanted: the values of the point that differ from the grid's defaults.
        """
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
        """CPU times on the grid (synthetic workloads), with data in the caches.

        Added columns: ns_per_record (median CPU time in ns), and `together`, which is equal for rows timed in the same
        rounds.
        """
        return self._timed[self._timed["cache"] != COLD]

    @cached_property
    def cold(self) -> pd.DataFrame:
        """CPU times on the grid (synthetic workloads), with data that is in no cache.

        The columns are those of `cpu`.
        """
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
        """Add the column `ratio`: CPU time relative to v2 as an Interval; None if v2 was not timed."""
        names = ("together", "format", "arm", "cpu_ns", "inner_loops", "spread")
        columns = zip(*(rows[name] for name in names), strict=True)  # itertuples is slow for wide rows
        return rows.assign(ratio=[self._ratio(*row) for row in columns])

    def _ratio(
        self, together: str, name: str, arm: str, cpu_ns: NDArray[np.float64], inner_loops: float, spread: float
    ) -> Interval | None:
        key = together, name, arm
        if key not in self._ratios:
            base = self._base_ns.get(together)
            if base is None:
                self._ratios[key] = None
            elif name == BASE_FORMAT and arm == "measure":
                self._ratios[key] = Interval(median=1.0, low=1.0, high=1.0)
            else:
                self._ratios[key] = interval_of(np.asarray(cpu_ns, dtype=np.float64) / inner_loops, base, spread)
        return self._ratios[key]

    @cached_property
    def aa(self) -> pd.DataFrame:
        """The second timing of v2 (A/A) for every workload setting and operation, with its ratio to the first."""
        return self.with_ratios(self.cpu[self.cpu["arm"] == "aa"])

    @cached_property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of v2 to itself (A/A). Without noise, all ratios would be 1."""
        return middle_95([ratio.median for ratio in self.aa["ratio"] if ratio is not None])


def reasons(rows: pd.DataFrame) -> list[str]:
    """Return the reason why each row has no number.

    It is the missing capability of the format, or the first line of the error.
    """
    found = []
    for status, error, name in zip(rows["status"], rows["error"].fillna(""), rows["format"], strict=True):
        line = str(error).partition("\n")[0]
        failed = f"error, {line}" if line else "error"
        found.append(line.removeprefix(f"{name} has ") if status == "skipped" else failed)
    return found


def _nearest_first(found: list[tuple[int, P]]) -> list[P]:
    """Sort sets of rows (slices or planes) by their distance from the grid's defaults.

    found: pairs of the number of measured values and the set. Sets with less than three quarters of the greatest number
    come last.
    """
    most = max((count for count, _ in found), default=0)
    found.sort(key=lambda item: (item[0] < 0.75 * most, distance(item[1].fixed), -item[0]))
    return [part for _, part in found]


def _is_elsewhere(rows: pd.DataFrame) -> pd.Series:
    """Return a mask: True for CPU times of other hosts than the one that timed most workload settings (cells).

    Times of two machines must not be compared, and their noise says nothing about each other. Sizes and the counters of
    broker paths are the same on all hosts, so their rows stay. Tables of broker times check the hosts themselves.
    Failures stay, too.
    """
    timed = rows["kind"].isin(["cpu", *READINGS, "prefix"]) & rows["host"].notna() & (rows["status"] == "ok")
    cells = rows[timed].groupby("host")["cell_id"].nunique().sort_index()
    return timed & (rows["host"] != cells.idxmax()) if len(cells) > 1 else timed & False


def _without_research(rows: pd.DataFrame) -> pd.DataFrame:
    rebatched = (rows["workload"] != GRID) & rows["batch_size"].notna()
    return rows[~(rows["format"].isin(RESEARCH) | rows["kind"].isin(READINGS) | rebatched)]


def _numpy_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Convert nullable columns to NumPy columns: integers if every row has a value, otherwise floats with NaN.

    Columns of axes get the types of the grid's axes. Rows of other workloads have no axes. They turned these columns
    into floats and objects.
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
