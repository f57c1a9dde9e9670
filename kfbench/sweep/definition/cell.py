"""A cell: the recipe of one measurement."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from kfbench.sweep.definition.sweep_file import Kind
from kfbench.workloads import WORKLOADS, Workload


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One workload's records, to be measured in several formats under one codec.

    A cell has no records, only the recipe for them, so it is cheap to send to executors. A cell that several blocks
    name is measured once.

    Args:
        cell_id: hash of the workload and of the axes that differ from their default.
        records, batches, payload_bytes: the size of the cell.
        grids: the formats that each block measures, by the name of the block.
        path: the broker path; empty for other kinds.
        to: the format that the path converts to; None if it does not convert.
        start: the first record of a cell of the size model; 0 for other kinds.
    """

    kind: Kind
    cell_id: str
    seed: int
    workload: Workload
    records: int
    codec: str
    level: int | None
    formats: tuple[str, ...]
    grids: Mapping[str, tuple[str, ...]]
    rounds: int = 0
    sample_us: int = 0
    cache: str = "resident"
    path: str = ""
    to: str | None = None
    batches: int = 1
    payload_bytes: int = 0
    start: int = 0

    @cached_property
    def axes(self) -> Mapping[str, Any]:
        return axes_of(self.workload)

    @property
    def title(self) -> str:
        axes = ", ".join(f"{name} {value}" for name, value in non_default_axes(self.workload).items())
        codec = self.codec if self.level is None else f"{self.codec} {self.level}"
        path = f"; {self.path}{f' to {self.to}' if self.to else ''}" if self.path else ""
        start = f"; from record {self.start:,} on" if self.start else ""
        cache = "; cold caches" if self.cache == "cold" else ""
        where = f"{self.workload.name}: {axes or 'defaults'}; {codec}{path}{cache}{start}"
        return f"{self.kind} cell {self.cell_id} ({where})"

    @property
    def key(self) -> tuple[object, ...]:
        """The values that identify a cell in its sweep."""
        slice_ = (self.start, self.records) if self.kind == "model" else None
        return self.kind, self.cell_id, self.seed, self.codec, self.level, self.path, self.to, self.cache, slice_

    def only(self, grids: Mapping[str, tuple[str, ...]]) -> "Cell":
        """Return the cell with only these blocks and formats."""
        wanted = {name for formats in grids.values() for name in formats}
        return replace(self, grids=dict(grids), formats=tuple(name for name in self.formats if name in wanted))

    def merged(self, other: "Cell") -> "Cell":
        """Return the cell with the blocks and formats of another cell that has the same key."""
        formats = tuple(dict.fromkeys((*self.formats, *other.formats)))
        return replace(self, formats=formats, grids={**self.grids, **other.grids})


def axes_of(workload: Workload) -> dict[str, Any]:
    """Return a workload's axes: the fields of its dataclass, without its name."""
    assert is_dataclass(workload)
    return {axis.name: getattr(workload, axis.name) for axis in fields(workload) if axis.name != "name"}


def non_default_axes(workload: Workload) -> dict[str, Any]:
    """Return the axes that differ from their default."""
    default = axes_of(WORKLOADS[workload.name])
    return {axis: value for axis, value in sorted(axes_of(workload).items()) if value != default[axis]}


def workload_label(workload: Workload) -> str:
    variant = non_default_axes(workload).get("variant")
    return f"{workload.name}/{variant}" if variant else workload.name
