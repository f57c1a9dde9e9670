"""Tables of results, as text for a terminal, as Markdown and as HTML. Reports format all their numbers here.

This module needs no pandas, so `kfbench table` answers in well under two seconds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, Self, TypeAlias

from kfbench.measure.cpu import Interval
from kfbench.text import text_table

FLAGS = ("NO", "error", "differs")  # cells with these texts are highlighted
ABSENT = "–"  # the text of a missing number, which is not zero: v0 has no timestamps, a run may lack a measurement


class Band(NamedTuple):
    """The smallest and the largest value of a range of ratios."""

    low: float
    high: float


class Ranked(str):
    """A cell that shows text and stands for the number `rank`, if it has one."""

    rank: float | None

    def __new__(cls, words: str, rank: float | None) -> Self:
        self = super().__new__(cls, words)
        self.rank = rank
        return self


class Mark(str):
    """A cell whose text, if any, marks its row. A page shows the row in bold."""


Cell: TypeAlias = str | int | float | bool | Interval | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    digits: the number of decimals of a float. swatch: True if the cells are names of formats; each is then shown with
    its format's colour.
    """

    name: str
    unit: str = ""
    digits: int = 2
    swatch: bool = False

    @property
    def label(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name


def plain_columns(*labels: str, digits: int = 2) -> tuple[Column, ...]:
    """Return one column per label. A label is a name, optionally followed by the unit in brackets: "size (bytes)"."""
    parts = (label.partition(" (") for label in labels)
    return tuple(Column(name=name, unit=unit.removesuffix(")"), digits=digits) for name, _, unit in parts)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of results. Its first columns identify a row.

    caption: the text above the table. rows: one cell per column. notes: lines printed below the table.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells for {len(self.columns)} columns")

    @cached_property
    def keys(self) -> int:
        """The number of leading columns that together identify a row.

        It is the smallest number for which no two rows have the same cells, but not all columns. If there is no such
        number, it is 1.
        """
        for count in range(1, len(self.columns)):
            if len({row[:count] for row in self.rows}) == len(self.rows):
                return count
        return 1

    def to_text(self) -> str:
        """Return the table for a terminal: padded columns, numbers aligned to the right."""
        head = [column.label for column in self.columns]
        body = [[number(c, col.digits) for c, col in zip(row, self.columns, strict=True)] for row in self.rows]
        right = [i for i in range(len(head)) if self._is_numeric(i)]
        return "\n".join([self.caption, "", *text_table([head, *body], right, has_rule=True), *self.notes])

    def to_html(self) -> str:
        """Return a <table> inside a scrollable group. The attribute `data-v` of a cell is its number, for the copy.

        It has five digits, or all digits of a whole number.
        """
        out = [
            f'<div class="scroll" tabindex="0" role="group" aria-labelledby="c-{self.name}">',
            f'<table id="t-{self.name}"><caption id="c-{self.name}">{escape(self.caption)}</caption><thead><tr>',
        ]
        for i, column in enumerate(self.columns):
            kind = ' class="n"' if self._is_numeric(i) else ""
            unit = f" <span>{escape(column.unit)}</span>" if column.unit else ""
            out.append(f'<th scope="col"{kind}>{escape(column.name)}{unit}</th>')
        out.append("</tr></thead><tbody>")
        for row in self.rows:
            is_marked = any(isinstance(cell, Mark) and cell for cell in row)
            out.append('<tr class="marked">' if is_marked else "<tr>")
            for i, (cell, column) in enumerate(zip(row, self.columns, strict=True)):
                out.append(self._html_cell(i, cell, column))
            out.append("</tr>\n")
        out.append("</tbody></table></div>")
        out.extend(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return "".join(out)

    def _html_cell(self, index: int, cell: Cell, column: Column) -> str:
        if isinstance(cell, Interval):
            ends = f"{number(cell.low, column.digits)}–{number(cell.high, column.digits)}"
            text = f"{number(cell.median, column.digits)} <small>{ends}</small>"
        elif column.swatch:
            text = f'<i class="sw" style="background:var(--{slug(str(cell))})"></i>{escape(str(cell))}'
        else:
            text = escape(number(cell, column.digits))
        raw = sort_key(cell)
        kind = ' class="bad"' if cell in FLAGS else ""
        if self._is_numeric(index) != (raw is not None):  # a cell with `data-v` and without a class is a number
            kind = ' class="n"' if raw is None else ' class="w"'
        attributes = kind + (f' data-v="{raw:.{12 if raw == int(raw) else 5}g}"' if raw is not None else "")
        tag = 'th scope="row"' if index < self.keys else "td"
        return f"<{tag}{attributes}>{text}</{tag[:2]}>"

    def _is_numeric(self, index: int) -> bool:
        return any(not isinstance(row[index], str) and sort_key(row[index]) is not None for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values for --json. An interval becomes {median, low, high}."""
        names = [column.label for column in self.columns]
        return {
            "name": self.name,
            "caption": self.caption,
            "rows": [dict(zip(names, map(_plain, row), strict=True)) for row in self.rows],
            "notes": list(self.notes),
        }


def _plain(cell: Cell) -> Any:
    return cell._asdict() if isinstance(cell, Interval) else cell


def sort_key(cell: Cell) -> float | None:
    """Return the number by which a cell is sorted; None for text and for missing values."""
    if isinstance(cell, Interval):
        return cell.median
    if isinstance(cell, Ranked):
        return cell.rank
    if isinstance(cell, bool) or cell is None or isinstance(cell, str):
        return None
    return float(cell)


def number(cell: Cell, digits: int = 2) -> str:
    """Format a cell as text: thousands separators, `digits` decimals for floats, a dash for None, yes/no for bool."""
    if cell is None:
        return ABSENT
    if isinstance(cell, Interval):
        return f"{number(cell.median, digits)} ({number(cell.low, digits)}–{number(cell.high, digits)})"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}".replace("-", "−")
    text = f"{cell:,.{digits}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def slug(name: str) -> str:
    """Return the name of the CSS variable with a format's colour. Example: v3-header-only -> k-v3-header-only."""
    return "k-" + "".join(c if c.isalnum() or c == "-" else "-" for c in name)


def prose(text: str) -> str:
    """Return a paragraph as HTML: `code` and **strong** as in Markdown."""
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", re.sub("`([^`]+)`", r"<code>\1</code>", escape(text)))


def listed(words: Sequence[str]) -> str:
    """Join words with commas and a final "and": "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]
