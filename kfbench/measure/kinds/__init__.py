"""The kinds of measurement by name: those of the modules in this folder, which define KINDS, and those of plug-ins.

Sweep files, runs, verification, the result table, comparison and estimates ask the registry. None of them names a kind.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from kfbench.measure.cell import Cell
from kfbench.measure.columns import StoredRow
from kfbench.measure.kinds.base import Kind, RemovedKind
from kfbench.plugins import Registry


def _ours() -> list[Kind]:
    names = sorted(info.name for info in iter_modules(__path__) if info.name != "base")
    return [kind for name in names for kind in import_module(f"{__name__}.{name}").KINDS]


KINDS: Final[Registry[Kind]] = Registry("kinds", "KINDS", Kind, _ours)
REMOVED_KINDS: Final[Registry[RemovedKind]] = Registry("kinds", "REMOVED_KINDS", RemovedKind, is_optional=True)


def stored_kind(name: str) -> Kind | RemovedKind | None:
    """Return a kind whose rows a stored run may have; None if nothing that is installed knows it."""
    return KINDS.get(name) or REMOVED_KINDS.get(name)


def kind_of(cell: Cell) -> Kind:
    return KINDS[cell.kind]


def estimate_s(cell: Cell) -> float:
    """Return about how many seconds a cell takes when its kernels are compiled.

    The estimate decides how cells are grouped into tasks, which cells exceed the budget, and the time limit of a cell.
    """
    return kind_of(cell).estimate_s(cell)


def cell_key(cell: Cell) -> tuple[object, ...]:
    """Return the values that identify a cell in its sweep. Two cells with the same key are one measurement."""
    kind = kind_of(cell)
    part: object = (cell.start, cell.records) if kind.has_slices else tuple(cell.grids) if kind.has_own_blocks else None
    modes = cell.cache, cell.context
    return cell.kind, cell.cell_id, cell.seed, cell.codec, cell.level, cell.path, cell.to, *modes, part


def row_key(row: StoredRow) -> tuple[object, ...]:
    """Return the key (`cell_key`) of the cell that a stored row belongs to."""
    kind = KINDS[row.kind]
    part: object = (row.start, row.records) if kind.has_slices else (row.grid,) if kind.has_own_blocks else None
    path, to = (row.operation, row.to_format) if kind.has_targets else ("", None)
    cache = row.cache if kind.has_cold_mode else "resident"
    return row.kind, row.cell_id, row.seed, row.codec, row.level, path, to, cache, row["context"], part
