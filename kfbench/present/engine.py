"""Build tables from declarations: rows -> arms -> value, ratio to a base, interval -> cells.

A cell of a table is one number of one arm, or one number over the members of `over`. Two arms for one cell are an
error, because a declaration must say which rows feed a number.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import geometric_mean, median
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import OPERATIONS, Interval
from kfbench.measure.kinds.floor import FLOOR
from kfbench.measure.paths import PATHS
from kfbench.present.arms import arms_of, keys, lost_of, work_words
from kfbench.present.declaration import Metric, TableView, Where, nearest
from kfbench.present.names import AXES, MAIN, in_order, level
from kfbench.present.rows import Rows, as_cell, at_reference, matches
from kfbench.present.table import Cell, Column, Table

GIB: Final = 1 << 30
Values: TypeAlias = Any  # a sequence with a number, a text, an Interval or None per arm


class Arms(NamedTuple):
    """The arms of a table, and for each the arm that it is divided by.

    base: a frame with the same index as `frame`; rows without a base have only nulls. None if the metric has no base.
    """

    frame: pd.DataFrame
    base: pd.DataFrame | None
    rows: Rows | None


class Formula(NamedTuple):
    """A metric of docs/terms.md: its unit, its decimals, and its numbers, one per arm.

    is_ratio: the number of the base itself is always 1.
    """

    unit: str
    digits: int
    values: Callable[[Arms], Values]
    is_ratio: bool = False


def _per_record(column: str) -> Callable[[Arms], Values]:
    return lambda arms: arms.frame[column] / arms.frame["records"]


def _size(frame: pd.DataFrame) -> Values:
    return frame["size_bytes"] / frame["records"]


def _ns(frame: pd.DataFrame) -> "pd.Series[float]":
    times = zip(frame["cpu_ns"], frame["inner_loops"], frame["records"], strict=True)
    ns = [np.nan if each is None else float(np.median(each)) / loops / records for each, loops, records in times]
    return pd.Series(ns, index=frame.index, dtype=float)


def _base(arms: Arms) -> pd.DataFrame:
    assert arms.base is not None
    return arms.base


def _time_ratio(arms: Arms) -> Values:
    """Return time ratios with their intervals. The base divided by itself is 1 without an interval."""
    base, rows = _base(arms), arms.rows
    assert rows is not None
    found: list[Any] = []
    for (_, arm), (_, of) in zip(arms.frame.iterrows(), base.iterrows(), strict=True):
        if arm["cpu_ns"] is None or of["cpu_ns"] is None or not isinstance(of["cell_id"], str):
            found.append(None)
        elif arm["format"] == of["format"] and arm["arm"] == of["arm"] and arm["operation"] == of["operation"]:
            found.append(1.0)
        else:
            found.append(rows.time_ratio(arm, of))
    return found


def _seconds_per_gib(arms: Arms) -> Values:
    frame = arms.frame
    return _ns(frame) * frame["records"] / 1e9 / frame["source_bytes"] * GIB


def _losses(arms: Arms) -> Values:
    """Return the names of the lost fields of each arm; of a failure, the reason."""
    columns = zip(arms.frame["status"], arms.frame["error"], arms.frame["losses"], strict=True)
    return [", ".join(lost_of(losses)) if status == "ok" else error for status, error, losses in columns]


def _work(arms: Arms) -> Values:
    """Return what happened to the batches of each arm in words; of a failure, its status."""
    return [work_words(arm) for arm in arms_of(arms.frame)]


METRICS: Final[Mapping[str, Formula]] = {
    "size": Formula("bytes", 2, lambda arms: _size(arms.frame)),
    "overhead": Formula("bytes", 2, _per_record("overhead_bytes")),
    "ratio": Formula("×", 3, lambda arms: _size(arms.frame) / _size(_base(arms)), True),
    "saving": Formula("", 3, lambda arms: 1 - _size(arms.frame) / _size(_base(arms))),
    "records_per_batch": Formula("", 1, lambda arms: arms.frame["records"] / arms.frame["batches"]),
    "ns": Formula("ns per record", 1, lambda arms: _ns(arms.frame)),
    "time_ratio": Formula("×", 2, _time_ratio, True),
    "ratio_of_medians": Formula("×", 2, lambda arms: _ns(arms.frame) / _ns(_base(arms)), True),
    "out": Formula("× bytes in", 3, lambda arms: arms.frame["size_bytes"] / arms.frame["source_bytes"]),
    "read": Formula("bytes per record", 1, _per_record("read_bytes")),
    "written": Formula("bytes per record", 1, _per_record("written_bytes")),
    "decompressed": Formula("bytes per record", 1, _per_record("decompressed_bytes")),
    "recompressed": Formula("bytes per record", 1, _per_record("recompressed_bytes")),
    "extra_memory": Formula("KiB", 0, lambda arms: arms.frame["extra_bytes"] / 1024),
    "conversion": Formula("CPU s per GiB", 2, _seconds_per_gib),
    "losses": Formula("", 0, _losses),
    "work": Formula("", 0, _work),
}


_NEED_A_BASE: Final = ("ratio", "saving", "time_ratio", "ratio_of_medians")


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """Rows for declarations: the stored rows of a run, or a frame that a function returned."""

    rows: Rows | None = None
    frame: pd.DataFrame | None = None


class BuiltTable:
    """A table that was built from its declaration. Raises InvalidConfig for unknown columns and metrics."""

    def __init__(self, view: TableView, source: TableSource, place: str) -> None:
        self.view, self._source, self._place = view, source, place
        self._where: Where = dict(view.where)
        self.shown_keys: list[tuple[Any, ...]] = []  # the values of the rows' columns of `table`, row by row
        self.places: dict[str, int] = {}  # the key of a metric -> its first column in `table`, if it has any number
        if view.at:
            named = {*view.rows, *view.columns, *view.free, *view.over}
            self._where = dict(at_reference(self._where, [*named]))
        self._check()
        self.arms = self._arms()

    def _check(self) -> None:
        """Refuse names that rows do not have. An empty frame of a function may have no columns: then all are known."""
        view, known, is_run = self.view, self._column_names, self._source.rows is not None
        bases = [view.base, *(metric.base or {} for metric in view.metrics)] if is_run else []
        parts = [self._where, *bases, *(metric.of for metric in view.metrics)]
        named = [*view.rows, *view.columns, *view.over, *(name for part in parts for name in part)]
        for name in named if known else ():
            if name not in known:
                raise self._fault(f"no column {name}", name, known)
        for name in view.headings:
            if name not in view.rows:
                raise self._fault(f"a heading of {name}, which is no column of its rows", name, view.rows)
        for metric in view.metrics:
            across = self._across(metric)
            if known and metric.metric not in known and not (is_run and metric.metric in METRICS):
                raise self._fault(f"no metric {metric.metric}", metric.metric, [*METRICS, *known])
            for name in (*across, *(field for _, field, _, _ in Formatter().parse(metric.name) if field is not None)):
                if name not in across or (known and name not in known):
                    raise self._fault(f"{metric.metric}: no column {name}", name, known)
        for name in view.order:
            if name not in (*view.rows, *(each for metric in view.metrics for each in self._across(metric))):
                raise self._fault(f"an order of {name}, which is no column of it", name, [*view.rows, *view.columns])

    def _across(self, metric: Metric) -> list[str]:
        """The columns that identify a column of a metric."""
        return self.view.columns if metric.columns is None else metric.columns

    def _arms(self) -> pd.DataFrame:
        if self._source.rows is not None:
            return self._source.rows.arms(self._where)
        assert self._source.frame is not None
        frame = self._source.frame
        if frame.empty:
            return frame
        for name, wanted in self._where.items():
            frame = frame[matches(frame[name], wanted)]
        return frame.reset_index(drop=True)

    @property
    def _column_names(self) -> list[str]:
        rows, frame = self._source.rows, self._source.frame
        return [str(name) for name in (rows.rows if rows is not None else frame if frame is not None else ())]

    def _fault(self, what: str, word: str = "", words: Sequence[str] = ()) -> InvalidConfig:
        return InvalidConfig(f"{self._place}: table {self.view.name}: {what}{nearest(word, words)}")

    def values(self, metric: Metric) -> Values:
        """Return a metric of each arm, in the order of `arms`."""
        if self._source.rows is None or metric.metric not in METRICS:
            return list(self.arms[metric.metric]) if len(self.arms) else []
        if self.arms.empty:
            return []
        base = self.view.base if metric.base is None else metric.base
        if not base and metric.metric in _NEED_A_BASE:
            raise self._fault(f"{metric.metric} needs a base")
        bases = self._bases(base) if base else None
        return list(METRICS[metric.metric].values(Arms(self.arms, bases, self._source.rows)))

    def _bases(self, base: Where) -> pd.DataFrame:
        rows = self._source.rows
        assert rows is not None
        key = repr(sorted(base.items()))
        if key not in self._known_bases:
            frame = rows.based(self._where, base)
            places = rows.bases(self.arms, self._where, base)
            if frame.empty:
                found = self.arms.iloc[:0].reindex(self.arms.index)
            else:
                taken = frame.iloc[[0 if place is None else place for place in places]].set_axis(self.arms.index)
                found = taken.where(pd.Series([place is not None for place in places], index=self.arms.index), None)
            self._known_bases[key] = found.assign(
                **{name: found[name].astype(float) for name in ("size_bytes", "records", "overhead_bytes")}
            )
        return self._known_bases[key]

    @cached_property
    def _known_bases(self) -> dict[str, pd.DataFrame]:
        return {}

    def cell(self, metric: Metric, at: Mapping[str, Any]) -> Cell:
        """Return the number of the arm, or over the arms, with these values. None if there is no such arm.

        A mean must be that of one cell of the table. Other joins take the numbers of all cells with these values.
        """
        is_at = {name: (self.arms[name] == value).to_numpy(bool) for name, value in at.items()}
        mask = np.logical_and.reduce([self._is_of(metric), *is_at.values()])
        rows = keys(self.arms, self.view.rows)
        cells = set(itertools.compress(zip(rows, keys(self.arms, self._across(metric)), strict=True), mask))
        if self.view.over and metric.how == "mean" and len(cells) > 1:
            raise self._fault(f"{len(cells)} cells of {metric.metric} have these values; name all columns")
        # The members of the cell's row; of those that a field names, only they.
        wanted = {row for row, _ in cells}
        of_row = [row in wanted for row in rows]
        named = [is_at[name] for name in self.view.over if name in is_at]
        members = itertools.compress(keys(self.arms, self.view.over), np.logical_and.reduce([of_row, *named]))
        values = list(itertools.compress(self.values(metric), mask))
        return self._join_values(metric, values, len(set(members)))

    def _is_of(self, metric: Metric) -> "NDArray[np.bool_]":
        """Return a mask: the arms that have a metric's number."""
        mask = np.ones(len(self.arms), bool)
        for name, value in metric.of.items():
            mask &= matches(self.arms[name], value).to_numpy(bool)
        return mask

    def _join_values(self, metric: Metric, values: Sequence[Any], members: int) -> Cell:
        """Join the values of one cell. Without `over` there may be one only."""
        if not values:
            return None
        if not self.view.over:
            if len(values) > 1:
                raise self._fault(f"{len(values)} arms feed one cell of {metric.metric}; "
                                  "name the column in which they differ")  # fmt: skip
            return as_cell(values[0])
        numbers = [each.median if isinstance(each, Interval) else each for each in values]
        known = [float(each) for each in numbers if each is not None and not pd.isna(each)]
        if metric.how == "count":
            return len(known)
        if not known or (metric.how == "mean" and len(known) < members):
            return None
        if metric.how == "mean" and min(known) <= 0:
            raise self._fault(f"{metric.metric} has numbers below or at 0, and no geometric mean")
        return float(_JOINS[metric.how](known))

    @cached_property
    def row_keys(self) -> list[tuple[Any, ...]]:
        """The values of the rows' columns, in the order of the table."""
        return self._ordered(self.view.rows)

    def ordered_values(self, name: str) -> list[Any]:
        """Return the values of a column in the order of the table."""
        return [value for (value,) in self._ordered([name])]

    def _ordered(self, names: Sequence[str], of: pd.DataFrame | None = None) -> list[tuple[Any, ...]]:
        frame = self.arms if of is None else of
        found = list(dict.fromkeys(keys(frame, names)))
        ranks = [self._ranks(name, [key[place] for key in found]) for place, name in enumerate(names)]
        return sorted(found, key=lambda key: tuple(rank[value] for rank, value in zip(ranks, key, strict=True)))

    def _ranks(self, name: str, values: Sequence[Any]) -> dict[Any, Any]:
        """Return the rank of each value of a column: by the declaration, or else by the column's own order."""
        present = list(dict.fromkeys(values))
        own = _own_order(name, present)
        wanted = [each for each in self.view.order.get(name, []) if each in present]
        return {value: rank for rank, value in enumerate(dict.fromkeys([*wanted, *own]))}

    @cached_property
    def table(self) -> Table | None:
        """The table; None without any number."""
        if self.arms.empty:
            return None
        columns: list[Column] = [dimension(name, self.view.headings) for name in self.view.rows]
        cells: list[list[Cell]] = [[value if value is None or (isinstance(value, float) and name not in AXES) else
                                    level(name, value) for name, value in zip(self.view.rows, key, strict=True)]
                                   for key in self.row_keys]  # fmt: skip
        for metric in self.view.metrics:
            for column, numbers in self._columns(metric):
                self.places.setdefault(metric.key or metric.metric, len(columns))
                columns.append(column)
                for row, number in zip(cells, numbers, strict=True):
                    row.append(number)
        first = len(self.view.rows)
        kept = [at for at, row in enumerate(cells) if any(cell is not None and cell != "" for cell in row[first:])]
        if not kept:
            return None
        self.shown_keys = [self.row_keys[at] for at in kept]
        return Table(
            name=self.view.name,
            caption=self.view.caption,
            columns=tuple(columns),
            rows=tuple(tuple(cells[at]) for at in kept),
            notes=tuple(self.view.notes),
        )

    def _columns(self, metric: Metric) -> Iterator[tuple[Column, list[Cell]]]:
        """Yield the columns of a metric, with a number per row of the table."""
        across = self._across(metric)
        base = self.view.base if metric.base is None else metric.base
        is_wanted = self._is_of(metric)
        row_of, column_of = keys(self.arms, self.view.rows), keys(self.arms, across)
        members: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
        for row, member in zip(row_of, keys(self.arms, self.view.over), strict=True):
            members.setdefault(row, set()).add(member)
        cells: dict[tuple[tuple[Any, ...], tuple[Any, ...]], list[Any]] = {}
        for row, column, value, wanted in zip(row_of, column_of, self.values(metric), is_wanted, strict=True):
            if wanted:
                cells.setdefault((column, row), []).append(value)
        formula = METRICS.get(metric.metric) if self._source.rows is not None else None
        unit = metric.unit if metric.unit is not None else formula.unit if formula else ""
        digits = metric.digits if metric.digits is not None else formula.digits if formula else 2
        for key in self._ordered(across, self.arms[is_wanted]):
            named = dict(zip(across, key, strict=True))
            is_base = bool(base) and all(named.get(name) == value for name, value in base.items())
            if is_base and metric.hides_base and formula and formula.is_ratio:
                continue
            numbers = [self._join_values(metric, cells.get((key, row), []), len(members[row])) for row in self.row_keys]
            present = sum(number is not None for number in numbers)
            is_main = str(named.get("format", "")) in MAIN
            if present < self.view.least_share * len(numbers) and not is_main:
                continue
            words = ", ".join(str(level(name, value)) for name, value in named.items())
            heading = metric.name.format(**named) or words or (metric.key or metric.metric).replace("_", " ")
            yield Column(name=heading, unit=unit, digits=digits), numbers


_JOINS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "mean": geometric_mean,
    "least": min,
    "most": max,
    "median": median,
    "sum": sum,
}


def _own_order(name: str, values: Sequence[Any]) -> list[Any]:
    """Return values of a column in its own order.

    Formats: v0 to v3, then by name, the floor last. Operations: as in PATHS. Codecs: none first. Others: ascending.
    """
    known = [value for value in values if value is not None]
    if name in ("format", "to_format"):
        ordered: list[Any] = [
            *in_order(each for each in known if each != FLOOR),
            *(FLOOR for each in known if each == FLOOR),
        ]
    elif name == "operation":
        ordered = sorted(known, key=lambda each: [*OPERATIONS, *PATHS, each].index(each))
    elif name == "with_codec":
        ordered = sorted(known, key=lambda each: (each != "none", each.split()[0], int("0" + each.partition(" ")[2])))
    elif all(isinstance(each, int | float) for each in known) or name == "label":
        ordered = sorted(known)
    else:
        ordered = known
    return [*ordered, *(None for value in values if value is None)]


_DIMENSIONS: Final = {
    **AXES,
    "format": Column(name="format", swatch=True),
    "to_format": Column(name="to"),
    "with_codec": Column(name="codec"),
    "label": Column(name="workload"),
}


def dimension(name: str, headings: Mapping[str, str] = MappingProxyType({})) -> Column:
    """Return the heading of a column that identifies rows. headings: column -> heading, instead of the usual ones."""
    usual = _DIMENSIONS.get(name) or Column(name=name.replace("_", " "))
    return replace(usual, name=headings[name]) if name in headings else usual
