"""The rows of one run as a report asks for them: slices along one axis, ratios to v2, the noise of the A/A.

A slice holds every axis but one, as near to the reference point as the run allows. No grid is known by name:
any cells that differ in one axis only make a slice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import READINGS, paired_ratio
from kfbench.measure.floor import FLOOR
from kfbench.report.data.seeds import of_all_seeds, once
from kfbench.report.render.frames import Frame
from kfbench.report.render.tables import Cell, Column, Interval, number
from kfbench.report.render.words import batch_words
from kfbench.workloads import WORKLOADS

MAIN = ("v0", "v1", "v2", "v3")  # a table has a column for each, be it of dashes
# Pictures and sentences show these: fourteen lines are no picture. Tables show every format.
PICTURED = (*MAIN, "v3-attributes-only", "v3-header-only")
# This project's own, which nobody has proposed: `Results.research` has them. headers-first and the other variants of v3
# are texts of others, taken apart or put together, and stand among the formats.
RESEARCH = ("columnar",)
CPU_DIGITS = 2  # of a ratio of CPU times, printed
HEADLINE_BATCHES = (1, 10, 100, 1000)
COLD = "cold"
_GRID: Any = WORKLOADS["grid"]
REFERENCE: Mapping[str, Any] = {axis.name: getattr(_GRID, axis.name) for axis in fields(_GRID)}
AXES = {
    "batch_size": Column(name="records a batch"),
    "key_bytes": Column(name="key", unit="bytes"),
    "value_bytes": Column(name="value", unit="bytes"),
    "timestamp_spread_ms": Column(name="timestamp spread", unit="ms"),
    "headers": Column(name="headers a record"),
    "null_share": Column(name="share of null values"),
    "offset_stride": Column(name="offset stride"),
    "base_timestamp_ms": Column(name="base timestamp", unit="ms"),
    "payload": Column(name="payload"),
    "header_key_bytes": Column(name="header key", unit="bytes"),
    "header_value_bytes": Column(name="header value", unit="bytes"),
    "producer": Column(name="producer id"),
    "append_time": Column(name="log append time"),
}


def in_order(names: Iterable[str]) -> list[str]:
    """Formats as a reader expects them: v0, v1, v2, v3, then the variants of v3, then the rest."""
    return sorted(set(names), key=lambda name: (len(name) > 2, name))


def worth_a_column(table: Frame) -> list[str]:
    """The formats of a pivot, in order; a variant that was measured at a few of its rows only stays out.

    v0 to v3 always stay: where v0 has no headers, a dash says so.
    """
    return [name for name in in_order(table.columns) if name in MAIN or table[name].count() * 2 >= len(table)]


def pictured(table: Frame) -> Frame:
    """The columns of the formats that pictures and sentences show."""
    return table[[name for name in table.columns if name in PICTURED]]


def level(axis: str, value: Any) -> Cell:
    """One level of an axis as a cell: -1 bytes is a null, not a length."""
    if axis.endswith("_bytes") and value == -1:
        return "null"
    if axis in ("producer", "append_time"):
        return bool(value)
    return value if isinstance(value, str) else float(value) if axis == "null_share" else int(value)


def as_cell(value: Any) -> Cell:
    """A number of a frame, or an Interval, as a cell: NaN is absent."""
    if isinstance(value, Interval):
        return value
    return None if is_absent(value) else float(value)


def is_absent(value: Any) -> bool:
    return value is None or (not isinstance(value, Interval) and bool(pd.isna(value)))


def ties(ratio: Interval, noise: tuple[float, float] | None) -> bool:
    """Whether a ratio cannot be told from 1: its interval holds 1, or reaches into what v2 reads against itself.

    As they are printed, so that who reads the figures comes to the same.
    """
    low, high = (round(each, CPU_DIGITS) for each in noise or (1.0, 1.0))
    return round(ratio.high, CPU_DIGITS) >= low and round(ratio.low, CPU_DIGITS) <= high


def middle(medians: Sequence[float]) -> tuple[float, float] | None:
    """The middle 95 % of what an A/A arm reads, and 1 with it; None of no arm."""
    if not medians:
        return None
    low, high = np.percentile(medians, [2.5, 97.5])
    return float(min(low, 1.0)), float(max(high, 1.0))


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Rows of cells that differ in one axis only. fixed: where the other axes stand."""

    axis: str
    rows: Frame
    fixed: Mapping[str, Any]

    def pivot(self, column: str) -> Frame:
        """Index: the levels of the axis, ascending; one column a format."""
        table = self.rows.pivot(index=self.axis, columns="format", values=column).sort_index()
        return table[worth_a_column(table)]

    @property
    def setting(self) -> str:
        """The other axes in words."""
        return setting(self.fixed)


def setting(point: Mapping[str, Any]) -> str:
    """Where the axes stand, in words."""
    words = []
    for axis, pattern in (
        ("batch_size", ""),
        ("key_bytes", "{} byte keys"),
        ("value_bytes", "{} byte values"),
        ("timestamp_spread_ms", "{} ms from first to last timestamp"),
        ("headers", "{} headers a record"),
    ):
        value = point.get(axis)
        if value is None or (axis == "headers" and value == 0):
            continue
        if axis == "batch_size":
            words.append(batch_words(value))
            continue
        if axis == "timestamp_spread_ms" and value == 0:
            words.append("equal timestamps in a batch")
            continue
        shown = level(axis, value)
        words.append(pattern.replace(" byte", "").format("null") if shown == "null" else pattern.format(number(shown)))
    payload = point.get("payload", REFERENCE["payload"])
    if payload != REFERENCE["payload"]:
        words.append(f"{payload} payload")
    return ", ".join(words)


def distance(point: Mapping[str, Any], wanted: Mapping[str, Any] = REFERENCE) -> tuple[int, float]:
    """How far a point is from the wanted one: axes that differ, then by how many doublings."""
    differing = [axis for axis, value in point.items() if value != wanted[axis]]
    numbers = [axis for axis in differing if not isinstance(wanted[axis], str)]
    far = sum(abs(float(np.log2((float(point[axis]) + 2) / (float(wanted[axis]) + 2)))) for axis in numbers)
    return len(differing), far


class Results:
    """The rows of one run, sorted into what a report asks for.

    every: as stored; all: those that a report compares; left_out: CPU times of other hosts; elsewhere: how many cells
    each of these timed. research: `all` with RESEARCH, and with what was measured for its sake: a verdict on formats
    that can be had must not name one that cannot, nor count a workload again in batches that it does not have.
    """

    def __init__(self, measurements: Frame) -> None:
        self.every = measurements
        self.research, self.left_out = _of_one_host(measurements)
        self.all = _without_research(self.research)
        self.elsewhere = {
            str(host): int(cells) for host, cells in self.left_out.groupby("host")["cell_id"].nunique().items()
        }
        self.axes = [axis for axis in REFERENCE if axis in measurements.columns]
        is_ok, is_floor = self.all["status"] == "ok", self.all["kind"] == FLOOR
        self.ok = self.all[is_ok & ~is_floor]  # floors are of no format
        self._floors = self.all[is_ok & is_floor]
        self._ratios: dict[tuple[str, str, str], Interval | None] = {}
        self._on_grid = self.ok[self.ok["workload"] == "grid"]
        self.grid_rows = _plain(of_all_seeds(self._on_grid, by_block=True))

    @cached_property
    def formats(self) -> list[str]:
        return in_order(self.ok["format"])

    def _arms(self, kind: str) -> Frame:
        """The rows of the grid, one an arm."""
        return _plain(of_all_seeds(once(self._on_grid[self._on_grid["kind"] == kind])))

    @cached_property
    def grid_bytes(self) -> Frame:
        """Byte rows of the grid, one a cell, format, codec and level, with bytes a record."""
        rows = self._arms("bytes").copy()
        rows["size_per_record"] = rows["size_bytes"] / rows["records"]
        rows["overhead_per_record"] = rows["overhead_bytes"] / rows["records"]
        return rows

    @cached_property
    def uncompressed(self) -> Frame:
        return self.grid_bytes[self.grid_bytes["codec"] == "none"]

    @cached_property
    def floors(self) -> Frame:
        """The metadata floor of the cells that have one, of the grid and of named workloads: one row a cell, with
        overhead_bytes and overhead_per_record. cell_id is the bytes rows', and so are the records. No row in a run from
        before there were floors."""
        rows = of_all_seeds(once(self._floors)).copy()
        rows["overhead_per_record"] = rows["overhead_bytes"] / rows["records"]
        return rows

    def slices(self, rows: Frame, axis: str) -> list[Slice]:
        """Every set of cells that differ in `axis` only, with at least two levels; the one to show comes first.

        That is the one nearest to the reference point among those that have most of the levels: a slice at an odd
        point with one level more is not worth more than the point that everything else is shown at.
        """
        if rows.empty:
            return []
        others = [other for other in self.axes if other != axis]
        found = []
        for key, part in rows.groupby(others, dropna=False, sort=True):
            count = part[axis].nunique()
            if count > 1:
                found.append((count, Slice(axis=axis, rows=part, fixed=dict(zip(others, key, strict=True)))))
        most = max((count for count, _ in found), default=0)
        found.sort(key=lambda item: (item[0] < 0.75 * most, distance(item[1].fixed), -item[0]))
        return [each for _, each in found]

    def along(self, rows: Frame, axis: str) -> Slice | None:
        return next(iter(self.slices(rows, axis)), None)

    @cached_property
    def over_batch_size(self) -> Slice | None:
        """Bytes without a codec, the slice that most sections speak of."""
        return self.along(self.uncompressed, "batch_size")

    def plane(self, rows: Frame, *moved: str) -> tuple[Frame, Mapping[str, Any]] | None:
        """Rows of cells that differ in these two axes only, and where the others stand: of the planes that have most
        of the cells the one nearest to the reference point. None unless both axes have two levels, and more than half
        of their pairs were measured: two lines that cross are no plane."""
        others = [other for other in self.axes if other not in moved]
        found = []
        for key, part in rows.groupby(others, dropna=False, sort=True) if len(rows) else ():
            levels, cells = [part[axis].nunique() for axis in moved], len(part.drop_duplicates(list(moved)))
            if min(levels) > 1 and 2 * cells > levels[0] * levels[1]:
                found.append((cells, dict(zip(others, key, strict=True)), part))
        if not found:
            return None
        most = max(cells for cells, _, _ in found)
        _, fixed, part = min(found, key=lambda each: (each[0] < 0.75 * most, distance(each[1]), -each[0]))
        return part, fixed

    def nearest(self, rows: Frame, **wanted: Any) -> Frame:
        """All rows of the one cell nearest to the reference point, of which `wanted` moves some axes."""
        if rows.empty:
            return rows
        target = {**REFERENCE, **wanted}
        cells = rows.drop_duplicates("cell_id").sort_values("cell_id")
        points = cells[self.axes].to_dict("records")
        distances = [distance({str(axis): value for axis, value in point.items()}, target) for point in points]
        best = cells["cell_id"].iloc[distances.index(min(distances))]
        return rows[rows["cell_id"] == best]

    @cached_property
    def cpu(self) -> Frame:
        """CPU rows in resident caches, with the median ns a record and a key that says which arms belong together."""
        return self._timed[self._timed["cache"] != COLD]

    @cached_property
    def cold(self) -> Frame:
        """The same of cold caches."""
        return self._timed[self._timed["cache"] == COLD]

    @cached_property
    def _timed(self) -> Frame:
        rows = self._arms("cpu").copy()
        medians = rows["cpu_ns"].map(lambda ns: float(np.median(ns))).astype("float64")
        rows["ns_per_record"] = medians / rows["records"] / rows["inner_loops"]
        levels = rows["level"].astype("object").where(rows["level"].notna(), "")
        rows["together"] = (
            rows["cell_id"] + "/" + rows["operation"] + "/" + rows["codec"] + "/" + levels.astype(str)
            + rows["cache"].map({COLD: "/cold"}).fillna("")
        )  # fmt: skip
        return rows

    @cached_property
    def _base_ns(self) -> dict[str, np.ndarray]:
        rows = self._timed[(self._timed["format"] == BASE_FORMAT) & (self._timed["arm"] == "measure")]
        return {row.together: per_call(row) for row in rows.itertuples()}

    def with_ratios(self, rows: Frame) -> Frame:
        """The rows with `ratio`: the Interval of the paired ratio to v2, round by round; None without v2."""

        names = ("together", "format", "arm", "cpu_ns", "inner_loops")
        columns = zip(*(rows[name] for name in names), strict=True)  # whole rows are wide, and slow to make
        return rows.assign(ratio=[self._ratio(*each) for each in columns])

    def _ratio(self, together: str, name: str, arm: str, cpu_ns: np.ndarray, inner_loops: float) -> Interval | None:
        key = together, name, arm
        if key not in self._ratios:
            base = self._base_ns.get(together)
            if base is None:
                self._ratios[key] = None
            elif name == BASE_FORMAT and arm == "measure":
                self._ratios[key] = Interval(median=1.0, low=1.0, high=1.0)
            else:
                self._ratios[key] = _interval(np.asarray(cpu_ns, dtype=np.float64) / inner_loops, base)
        return self._ratios[key]

    @cached_property
    def aa(self) -> Frame:
        """The A/A arm of every cell, with its ratio."""
        return self.with_ratios(self.cpu[self.cpu["arm"] == "aa"])

    @cached_property
    def noise(self) -> tuple[float, float] | None:
        """What the A/A arm calls equal: the middle 95 % of its ratios, which would all be 1 without noise."""
        return middle([ratio.median for ratio in self.aa["ratio"] if ratio is not None])

    @cached_property
    def prefixes(self) -> Frame:
        """What was read of the prefix beside the whole, one row a cell, format, codec and level.

        decompress and read: the Interval of prefix / whole by the codec alone and by the format's reader; aa: of the
        codec's whole against itself.
        """
        rows = self._arms("prefix")
        arms = ["cell_id", "format", "codec", "level"]
        found = []
        for _, part in rows.groupby(arms, dropna=False, sort=False):
            by = {(row.operation, row.arm): row for row in part.itertuples()}
            whole, prefix = by["decompress", "measure"], by["decompress-prefix", "measure"]
            found.append(
                {name: getattr(whole, name) for name in (*self.axes, *arms, "kind", "batches", "metadata_bytes")}
                | {
                    "plain_bytes": whole.plain_bytes,
                    "made_bytes": prefix.plain_bytes,
                    "taken_share": prefix.compressed_bytes / whole.compressed_bytes,
                    "decompress": paired(prefix, whole),
                    "read": paired(by["decode-metadata", "measure"], by["decode", "measure"]),
                    "aa": paired(by["decompress", "aa"], whole),
                }
            )
        return pd.DataFrame(found)


def _of_one_host(rows: Frame) -> tuple[Frame, Frame]:
    """The rows without CPU times of other hosts than the one that timed most cells; and those times.

    Two machines share no table, nor do their A/A arms say anything of one another. Bytes are the same everywhere, and
    paths of a broker have counters that are: who tells of their times looks at the hosts itself. What is no number
    stays, wherever it failed.
    """
    timed = rows["kind"].isin(["cpu", *READINGS, "prefix"]) & rows["host"].notna() & (rows["status"] == "ok")
    cells = rows[timed].groupby("host")["cell_id"].nunique().sort_index()
    there = timed & (rows["host"] != cells.idxmax()) if len(cells) > 1 else timed & False
    return rows[~there], rows[there]


def _without_research(rows: Frame) -> Frame:
    others = (rows["workload"] != "grid") & rows["batch_size"].notna()
    return rows[~(rows["format"].isin(RESEARCH) | rows["kind"].isin(READINGS) | others)]


def _plain(rows: Frame) -> Frame:
    """Nullable columns as NumPy ones: integers where every row has a value, else floats with NaN. Axes as the grid has
    them: rows of other workloads beside these have none, which made floats and objects of integers and truths."""
    found = {}
    for name, column in rows.items():
        if isinstance(column.dtype, pd.BooleanDtype | pd.Int32Dtype | pd.Int64Dtype):
            missing = column.isna().any()
            kind = "float64" if missing else "bool" if isinstance(column.dtype, pd.BooleanDtype) else "int64"
            found[name] = column.astype(kind)
    for axis, value in REFERENCE.items():
        if axis in rows and not isinstance(value, str) and rows[axis].notna().all():
            found[axis] = rows[axis].astype({bool: "bool", int: "int64", float: "float64"}[type(value)])
    return rows.assign(**found)


def per_call(row: Any) -> np.ndarray:
    per_call: np.ndarray = np.asarray(row.cpu_ns, dtype=np.float64) / row.inner_loops
    return per_call


def _interval(arm: np.ndarray, base: np.ndarray) -> Interval:
    median, low, high = paired_ratio(arm, base, seed=0)
    return Interval(median=median, low=low, high=high)


def paired(arm: Any, base: Any) -> Interval:
    """Of two rows of one measurement."""
    return _interval(per_call(arm), per_call(base))
