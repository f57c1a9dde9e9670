"""Declarations of a format: the parts of records that it can store, its checksum, its origin."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from kfbench.batches import FIELD_DEFAULTS

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


class Checksum(NamedTuple):
    """The checksum of an entry: a u32 at byte `position` of the entry.

    It covers the bytes from `covers_from` to the end.
    """

    algorithm: Literal["CRC-32", "CRC-32C"]
    position: int
    covers_from: int
