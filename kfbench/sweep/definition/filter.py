"""Choose cells of a sweep by filters: COLUMN=VALUE[,VALUE...]. Other signs are != < <= > >=."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import ge, gt, le, lt
from typing import Any, Final

from kfbench.errors import InvalidConfig
from kfbench.measure.cell import Cell
from kfbench.sweep.definition.profile import Profile

NULL: Final = "null"
# Columns of a cell that are not axes of its workload.
COLUMNS: Final[dict[str, Callable[[Cell], Any]]] = {
    "kind": lambda cell: cell.kind,
    "workload": lambda cell: cell.workload.name,
    "codec": lambda cell: cell.codec,
    "level": lambda cell: cell.level,
    "path": lambda cell: cell.path or None,
    "to": lambda cell: cell.to,
}
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_FILTER: Final = re.compile(r"\s*([a-z_]+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A condition on one column of a cell. text: the filter as the user wrote it."""

    column: str
    sign: str
    values: tuple[str, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> "Filter":
        """Parse COLUMN, sign and values. Raises InvalidConfig."""
        found = _FILTER.fullmatch(text)
        values = tuple(value.strip() for value in found[3].split(",")) if found else ()
        if not found or not all(values):
            raise InvalidConfig(f"{text!r}: COLUMN=VALUE[,VALUE...] is wanted, or one of != < <= > >=")
        if found[2] in _ORDERS and (len(values) > 1 or _number(values[0]) is None):
            raise InvalidConfig(f"{text!r}: {found[2]} takes one number")
        return cls(column=found[1], sign=found[2], values=values, text=text)

    def matches(self, value: Any) -> bool:
        """Return True if a cell with this value in the column passes. The value None is equal only to `null`."""
        if self.sign in _ORDERS:
            given = _number(self.values[0])
            return (
                isinstance(value, int | float) and not _is_null(self.column, value) and _ORDERS[self.sign](value, given)
            )
        return any(_same(self.column, value, wanted) for wanted in self.values) == (self.sign == "=")


def filter_profile(profile: Profile, filters: Sequence[str]) -> Profile:
    """Return a copy of the profile with only the cells and [[grid]] blocks that pass all filters.

    The copy has publish = False. A cell of several blocks stays in the blocks that pass, with the formats that these
    blocks measure. A filter on an axis drops cells whose workload does not have this axis. Raises InvalidConfig for a
    column that no cell has, and if no cell is left.
    """
    wanted = [Filter.parse(text) for text in filters]
    axes = dict.fromkeys(axis for cell in profile.cells for axis in cell.axes)
    known = list(dict.fromkeys(("grid", *COLUMNS, *axes)))
    for each in wanted:
        if each.column not in known:
            raise InvalidConfig(f"{each.text!r}: no column {each.column!r} (columns: {', '.join(known)})")
    cells = tuple(passing for cell in profile.cells for passing in _passing(cell, wanted))
    if not cells:
        grids_of_profile = ", ".join(grid.name for grid in profile.grids)
        raise InvalidConfig(
            f"{' and '.join(filters)}: none of the {len(profile.cells):,} cells of {profile.name} passes "
            f"(grids: {grids_of_profile})"
        )
    named = {grid for cell in cells for grid in cell.grids}
    grids = tuple(grid for grid in profile.grids if grid.name in named)
    return replace(profile, cells=cells, grids=grids, filter=tuple(filters), publish=False)


def _passing(cell: Cell, filters: Collection[Filter]) -> Iterator[Cell]:
    grids = dict(cell.grids)
    for each in filters:
        if each.column == "grid":
            grids = {name: formats for name, formats in grids.items() if each.matches(name)}
        elif each.column in COLUMNS:
            if not each.matches(COLUMNS[each.column](cell)):
                return
        elif each.column not in cell.axes or not each.matches(cell.axes[each.column]):
            return
    if grids:
        yield cell.only(grids)


def _same(column: str, value: Any, wanted: str) -> bool:
    if _is_null(column, value) or wanted == NULL:
        return _is_null(column, value) and wanted == NULL
    if isinstance(value, bool):
        return wanted.lower() == str(value).lower()
    if isinstance(value, int | float):
        return _number(wanted) == value
    return fnmatchcase(str(value), wanted)


def _is_null(column: str, value: Any) -> bool:
    """Return True for None, and for a length of -1 (a column that ends in `_bytes`), which means null in a sweep."""
    return value is None or (column.endswith("_bytes") and value == -1)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
