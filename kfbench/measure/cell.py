"""The class Cell: the recipe of one measurement of a sweep, which can be pickled and sent to other processes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from msgspec import Struct

from kfbench.workloads import BLOCK_RECORDS, WORKLOADS, Workload
from kfbench.workloads.recorded import TOPICS


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The recipe of one measurement: one workload, one codec and level, and several formats.

    A cell does not contain the records, so it is cheap to send to Spark's executors. A cell that several [[grid]]
    blocks of a sweep contain is measured once.

    Args:
        kind: the kind of measurement, such as "bytes" or "cpu".
        cell_id: a hash of the workload and of its axes (parameters) that differ from their default.
        records, batches, payload_bytes: the size of the data.
        grids: the formats that each block measures, by the name of the block.
        rounds: the number of timed rounds; 0 for kinds that are not timed.
        sample_us: the shortest time of one sample, in microseconds.
        cache: "cold" if each timed call waits for its data from memory, else "resident".
        context: "kept" or "new": a codec keeps its context from batch to batch, or makes a new one for each. None: it
            keeps it, or there is no codec.
        path: the broker path, such as "append", or the operation, such as "encode"; empty for kinds without either.
        to: the format that the path converts to; None if it does not convert.
        start: the number of the cell's first record in the workload; 0 unless the kind divides a workload into cells.
        settings: the settings of its block that the kind needs while it measures; None if it needs none.
    """

    kind: str
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
    context: str | None = None
    path: str = ""
    to: str | None = None
    batches: int = 1
    payload_bytes: int = 0
    start: int = 0
    settings: Struct | None = None

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
        context = f"; {self.context} contexts" if self.context else ""
        where = f"{self.workload.name}: {axes or 'defaults'}; {codec}{path}{cache}{context}{start}"
        return f"{self.kind} cell {self.cell_id} ({where})"

    def only(self, grids: Mapping[str, tuple[str, ...]]) -> "Cell":
        """Return a copy of the cell for only these [[grid]] blocks, with only the formats that they measure.

        grids: the formats of each block, by the name of the block.
        """
        wanted = {name for formats in grids.values() for name in formats}
        return replace(self, grids=dict(grids), formats=tuple(name for name in self.formats if name in wanted))

    def merge(self, other: "Cell") -> "Cell":
        """Add the [[grid]] blocks and formats of `other`, a cell with the same key. Return the new cell."""
        formats = tuple(dict.fromkeys((*self.formats, *other.formats)))
        return replace(self, formats=formats, grids={**self.grids, **other.grids})


def axes_of(workload: Workload) -> dict[str, Any]:
    """Return a workload's axes (parameters) by name: the fields of its dataclass, except `name`."""
    assert is_dataclass(workload)
    return {axis.name: getattr(workload, axis.name) for axis in fields(workload) if axis.name != "name"}


def non_default_axes(workload: Workload) -> dict[str, Any]:
    """Return the workload's axes that differ from their default, by name."""
    default = axes_of(TOPICS[workload.name] if workload.name in TOPICS else WORKLOADS[workload.name])
    return {axis: value for axis, value in sorted(axes_of(workload).items()) if value != default[axis]}


def block_records(workload: Workload) -> int:
    """Return the largest multiple of the batch size that is at most BLOCK_RECORDS (65,536); at least one batch.

    A workload without a batch size counts as one record per batch.
    """
    batch = int(axes_of(workload).get("batch_size") or 1)
    return max(BLOCK_RECORDS // batch, 1) * batch


def workload_label(workload: Workload) -> str:
    variant = non_default_axes(workload).get("variant")
    return f"{workload.name}/{variant}" if variant else workload.name
