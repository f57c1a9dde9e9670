"""Declarations of a format: the parts of records that it can store, its checksum, its origin."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import CREATE_TIME, FIELD_DEFAULTS, BatchFields
from kfbench.records import Shapes

# shipped: in Kafka releases. proposed: in the text of a proposal. own: a proposal that kfbench changed.
# research: made for kfbench.
Origin = Literal["shipped", "proposed", "own", "research"]


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The parts of records and batches that a format can store. batch_fields: names of fields of `BatchFields`."""

    timestamps: bool
    milliseconds: bool = True  # False: timestamps are int32 seconds
    headers: bool
    empty_batches: bool
    batch_fields: frozenset[str]
    codecs: tuple[str, ...]
    dictionaries: bool = False  # True: zstd can use a dictionary
    sizes_from_shapes: bool = True  # False: sizes depend on the bytes of headers, so they need Records

    @cached_property
    def every_record(self) -> bool:
        return self.timestamps and self.milliseconds and self.headers and self.empty_batches

    @property
    def missing(self) -> list[str]:
        """The names of the parts that the format cannot store.

        `encode` refuses them, or leaves them out with lossy=True.
        """
        parts = [part for part in ("timestamps", "milliseconds", "headers", "empty_batches") if not getattr(self, part)]
        return parts + [name for name in (*FIELD_DEFAULTS, "tagged_fields") if name not in self.batch_fields]

    def losses(self, shapes: Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        """Return the number of items that the format cannot store, by name."""
        if self.every_record and not fields.set_fields:
            return {}
        losses: dict[str, int] = {}
        unknown = fields.set_fields - self.batch_fields
        if not self.timestamps:
            losses["timestamps"] = shapes.timestamp_count
        if not self.milliseconds:
            losses["milliseconds"] = shapes.timestamp_count - shapes.whole_second_count
        if not self.headers:
            losses["headers"] = shapes.header_count
        if not self.empty_batches:
            losses["empty batches"] = int(np.count_nonzero(bounds[1:] == bounds[:-1]))
        for name in sorted(unknown):
            set_in = fields.set_in(name)
            losses[name] = int(np.count_nonzero(np.broadcast_to(set_in, len(bounds) - 1)))
        if "append_time_ms" in fields.set_fields & self.batch_fields and "tagged_fields" not in self.batch_fields:
            # Under create time only a tagged field can store the append time.
            noted = fields.set_in("append_time_ms") & (fields.rows["timestamp_type"] == CREATE_TIME)
            losses["append_time_ms"] = int(np.count_nonzero(np.broadcast_to(noted, len(bounds) - 1)))
        return {name: number for name, number in losses.items() if number}


class Checksum(NamedTuple):
    """The checksum of an entry: a u32 at byte `position` of the entry.

    It covers the bytes from `covers_from` to the end.
    """

    algorithm: Literal["CRC-32", "CRC-32C"]
    position: int
    covers_from: int
