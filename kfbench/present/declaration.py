"""Declarations of tables, figures and pages in TOML (`views/*.toml`), and their faults.

A declaration says which stored rows feed a number, how they are laid out, and the words around them. docs/tables.md
explains the keys.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kfbench.errors import InvalidConfig

Scalar = str | int | float | bool
Where = dict[str, Scalar | list[Scalar]]


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number of a table.

    Args:
        metric: its name in METRICS, or a column of the table's source.
        key: its name in fields and in views; without it, the metric's.
        name: the heading. `{format}` stands for the value of that column. Without it, the values of `columns`.
        unit, digits: instead of the metric's own.
        columns: the columns whose values become columns of the table; instead of the table's own.
        of: only arms with these values have the number.
        base: the arm that it is divided by; instead of the table's own.
        how: over the members of the table's `over`: mean (geometric), least, most, median, count or sum.
        hides_base: the base itself has no column, because it is always 1.
    """

    metric: str
    key: str = ""
    name: str = ""
    unit: str | None = None
    digits: int | None = None
    columns: list[str] | None = None
    of: Where = {}
    base: Where | None = None
    how: Literal["mean", "least", "most", "median", "count", "sum"] = "mean"
    hides_base: bool = True


class TableView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table.

    Args:
        source: "run", a joined profile, or the name of a function that returns rows.
        where: column -> value, or a list of values, of the stored rows that feed it.
        at: "reference": axes that are not named elsewhere have the grid's default.
        free: the axes that `at` leaves free although they are no row.
        rows, columns: the columns that identify a row and a column of the table.
        headings: column of `rows` -> its heading, instead of the usual one.
        base: column -> value of the arm that ratios are divided by.
        over: the columns over whose members a number is joined, such as the workloads of a mean.
        order: column -> its values in their order; other values follow.
        least_share: a column with fewer numbers than this share of the rows is hidden, unless it is a main format.
        is_hidden: the table only feeds fields in texts. It is in tables.json, and on no page.
    """

    name: str
    caption: str
    rows: list[str]
    metrics: list[Metric]
    source: str = "run"
    where: Where = {}
    at: Literal["", "reference"] = ""
    free: list[str] = []
    columns: list[str] = []
    headings: dict[str, str] = {}
    base: Where = {}
    over: list[str] = []
    order: dict[str, list[Scalar]] = {}
    least_share: float = 0.0
    notes: list[str] = []
    is_hidden: bool = False


class DataView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table whose rows a reader filters and draws. Its metrics have no columns of their own."""

    name: str
    table: str


class PresetView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and the drawing of a view's rows that answers it (`templates/view.js`).

    Args:
        view: a DataView; empty for the drawing "text".
        label: the columns that name a row of bars.
        where: column -> the values that are selected at first.
        chips: the columns that the reader can change; of those in `one`, exactly one value is selected.
        metric, beside: the metric that is drawn, and those whose numbers stand beside it.
        base: the row that is 100 %, by its values. of_base: line and heat map show the change from the base.
        x, y, series: the axes of a line (x, series) and of a heat map (x, y).
    """

    id: str
    title: str
    drawing: Literal["bars", "line", "heat", "text"]
    caption: str = ""
    view: str = ""
    label: list[str] = []
    where: dict[str, list[Scalar]] = {}
    chips: list[str] = []
    one: list[str] = []
    metric: str = ""
    beside: list[str] = []
    base: Where = {}
    of_base: bool = False
    order: Literal["descending", "ascending", "stored"] = "ascending"
    is_log: bool = False
    x: str = ""
    y: str = ""
    series: str = ""
    text: str = ""


class SectionView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section of a page: its title, its texts by hand, and the names of what it shows.

    profile: the joined run whose rows it shows, if not the report's own.
    """

    name: str
    title: str
    text: list[str] = []
    tables: list[str] = []
    more: list[str] = []
    profile: str = ""


class PageView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of the report.

    Args:
        place: its place among the pages, ascending. Pages of one name are one page: the first one's words count.
        answer: one sentence for its tile on the front page.
    """

    name: str
    short: str
    title: str
    place: int = 80
    answer: str = ""
    lead: str = ""


_KEY: Final = re.compile(r"\$[a-z]\w*")


class _ViewFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    joins: list[str] = []
    page: PageView | None = None
    section: list[SectionView] = []
    view: list[DataView] = []
    preset: list[PresetView] = []
    table: list[TableView] = []


@dataclass(frozen=True, kw_only=True)
class View:
    """The declarations of one file. joins: the profiles whose newest runs its sources read."""

    path: Path
    joins: tuple[str, ...]
    page: PageView | None
    sections: tuple[SectionView, ...]
    data: tuple[DataView, ...]
    presets: tuple[PresetView, ...]
    tables: tuple[TableView, ...]


def read_view(path: Path) -> View:
    """Read a file of declarations.

    `[defaults]` has keys of every table. `each` makes one table per entry: `$key` stands for the entry's value.

    Raises InvalidConfig.
    """
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        defaults = parsed.pop("defaults", {})
        tables = msgspec.convert(parsed.get("table", []), list[dict[str, Any]])
        parsed["table"] = [
            _metrics(_fill(table, entry))
            for table in (_with_defaults(each, defaults) for each in tables)
            for entry in msgspec.convert(table.pop("each", [{}]), list[dict[str, Any]])
        ]
        found = msgspec.convert(parsed, _ViewFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, KeyError) as error:
        raise InvalidConfig(f"{path.name}: {error.args[0]}") from error
    return View(
        path=path,
        joins=tuple(found.joins),
        page=found.page,
        sections=tuple(found.section),
        data=tuple(found.view),
        presets=tuple(found.preset),
        tables=tuple(found.table),
    )


def _with_defaults(table: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    where = {**defaults.get("where", {}), **table.get("where", {})} if table.get("source", "run") == "run" else None
    return {**defaults, **table, "where": table.get("where", {}) if where is None else where}


def _fill(part: Any, entry: Mapping[str, Any]) -> Any:
    """Replace `$key` by the entry's value: a whole text by the value itself, a part of a text by its words."""
    if isinstance(part, str):
        if part.startswith("$") and part[1:] in entry:
            return entry[part[1:]]
        for key, value in entry.items():
            part = part.replace(f"${key}", str(value))
        if lost := _KEY.search(part):
            raise KeyError(f"{lost[0]} has no value in `each`")
        return part
    if isinstance(part, list):
        return [_fill(each, entry) for each in part]
    if isinstance(part, dict):
        return {_fill(key, entry): _fill(value, entry) for key, value in part.items()}
    return part


def _metrics(table: dict[str, Any]) -> dict[str, Any]:
    """Let a metric be its name alone."""
    listed = table.get("metrics", [])
    if not isinstance(listed, list):
        return table
    return {**table, "metrics": [{"metric": each} if isinstance(each, str) else each for each in listed]}


def unique_tables(views: Iterable[View]) -> dict[str, tuple[View, TableView]]:
    """Return all tables by name. Raises InvalidConfig if two have the same name."""
    found: dict[str, tuple[View, TableView]] = {}
    for view in views:
        for table in view.tables:
            if table.name in found:
                raise InvalidConfig(f"{view.path.name}: two tables are named {table.name}")
            found[table.name] = view, table
    return found


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a hint at the most similar word, for an error message."""
    close = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""
