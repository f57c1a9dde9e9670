"""Numbers in texts: `{TABLE.METRIC[column=value,...]:FORMAT}` becomes a number of a declared table.

METRIC is a metric of the table, or any metric that its rows have; with `over`, METRIC_least or another way to join.
There are no expressions: a number that a text needs is a metric or a table.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import pandas as pd

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.present.declaration import Metric, nearest
from kfbench.present.engine import METRICS, BuiltTable
from kfbench.present.names import level
from kfbench.present.table import number

FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "pct0": lambda value: f"{number(100 * value, 0)} %",
    "pct1": lambda value: f"{number(100 * value, 1)} %",
    "bytes1": lambda value: f"{number(value, 1)} bytes",
    "ns0": lambda value: f"{number(value, 0)} ns",
    "s2": lambda value: f"{number(value, 2)} s",
    "usd2": lambda value: f"US$ {number(value, 2)}",
    "x2": lambda value: f"{number(value, 2)} ×",
    "count0": lambda value: number(value, 0),
}
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_PARTS: Final = re.compile(r"([\w-]+)\.(\w+)\[([^\]]*)\]:(\w+)")
_UNIT: Final = re.compile(r"(?<=\d) (?=[%×]|n?s\b)|(?<=US\$) ")
_HOW: Final = ("least", "most", "median", "count", "sum")


class Unmeasured(Exception):
    """The run has no row for a field. reason: what it lacks, without the place of the field."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.reason = reason


def fill_fields(text: str, tables: Mapping[str, BuiltTable], place: str) -> str:
    """Return a text with its numbers, each in one line with its unit (no-break spaces).

    place: the file and the key of the text, for messages. Raises InvalidConfig for anything in braces that is no field,
    and for an unknown name; Unmeasured if the tables have no such number.
    """
    return _UNIT.sub("\N{NO-BREAK SPACE}", _FIELD.sub(lambda found: _value(found[1], tables, place), text))


def _value(field: str, tables: Mapping[str, BuiltTable], place: str) -> str:
    parts = _PARTS.fullmatch(field)
    if parts is None:
        raise InvalidConfig(f"{place}: {{{field}}} is not a field, such as {{TABLE.METRIC[column=value]:pct1}}")
    table_name, metric, at, style = parts.groups()
    if table_name not in tables:
        raise InvalidConfig(f"{place}: {{{field}}}: no table {table_name}{nearest(table_name, tables)}")
    if style not in FORMATS:
        raise InvalidConfig(f"{place}: {{{field}}}: no format {style}, but {', '.join(FORMATS)}")
    built = tables[table_name]
    wanted: dict[str, object] = {}
    for name, _, value in (each.strip().partition("=") for each in at.split(",") if each.strip()):
        if built.arms.empty:
            raise Unmeasured(f"{place}: {{{field}}}", f"no rows of {table_name}")
        wanted[name] = _level(built, name, value, f"{place}: {{{field}}}")
    cell = built.cell(_metric(built, metric, f"{place}: {{{field}}}"), wanted)
    value = cell.median if isinstance(cell, Interval) else cell
    if isinstance(value, str):
        raise InvalidConfig(f"{place}: {{{field}}}: {metric} is a text")
    if value is None:
        raise Unmeasured(f"{place}: {{{field}}}", f"no number in {table_name} at {at}")
    return FORMATS[style](float(value))


def _level(built: BuiltTable, name: str, value: str, where: str) -> object:
    """Return the stored value of a column that reads as `value`."""
    if name not in built.arms:
        raise InvalidConfig(f"{where}: no column {name}{nearest(name, map(str, built.arms.columns))}")
    known = {_words(name, each): each for each in built.arms[name].unique() if not pd.isna(each)}
    if value not in known:
        raise Unmeasured(where, f"no row of {built.view.name} with {name} = {value}{nearest(value, known)}")
    return known[value]


def _words(name: str, value: object) -> str:
    shown = level(name, value)
    return f"{shown:g}" if isinstance(shown, float) else str(shown)


def _metric(built: BuiltTable, name: str, where: str) -> Metric:
    """Return the metric of a field: one of the table's, or any other that its rows have."""
    stem, _, how = name.rpartition("_")
    for metric in built.view.metrics:
        if metric.key == name or (not metric.key and metric.metric == name and metric.how == "mean"):
            return metric
        if metric.metric == stem and metric.how == how:
            return metric
    if how in _HOW and built.view.over:
        return Metric(metric=stem, how=how)  # type: ignore[arg-type]
    if name in METRICS or name in built.arms:
        return Metric(metric=name)
    known = [*(metric.metric for metric in built.view.metrics), *METRICS]
    raise InvalidConfig(f"{where}: no metric {name}{nearest(name, known)}")
