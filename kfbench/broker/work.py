"""The work of a broker path, counted during the work: evidence for claims such as "in place"."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog

CREATE_TIMES: Final = "create timestamps"  # a loss: producers' times that an append time replaced
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Work:
    """Counters of batches and bytes. Each batch counts once: untouched, in place, shifted, rewritten or dropped.

    In v0 and v1 a plain message is a batch. Bytes are those of the log; a codec's plain bytes have separate counters. A
    batch that is copied into the result counts as completely read and written. Bytes that are read again for a checksum
    count again. Not counted: intermediate buffers, and the copy that `append` makes before it assigns.
    """

    untouched: int = 0  # batches that stay as they are
    in_place: int = 0  # batches with header fields set in place
    shifted: int = 0  # the same, but the header's size changed, so the rest of the batch moved
    rewritten: int = 0  # batches that were rebuilt
    dropped: int = 0
    read_bytes: int = 0  # of the input: headers alone, or whole batches
    written_bytes: int = 0  # fields that were set, bytes that moved, batches that were copied or built
    decompressed_bytes: int = 0  # plain bytes that codecs produced
    recompressed_bytes: int = 0  # plain bytes given to codecs
    losses: Mapping[str, int] = field(default_factory=lambda: _NOTHING)  # see EncodedLog.losses

    @property
    def batches(self) -> int:
        """The number of batches of the input."""
        return self.untouched + self.in_place + self.shifted + self.rewritten + self.dropped

    def __add__(self, other: Self) -> Self:
        numbers = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        losses = {name: self.losses.get(name, 0) + other.losses.get(name, 0) for name in {*self.losses, *other.losses}}
        return type(self)(**numbers, losses=dict(sorted(losses.items())))


COUNTERS: Final = tuple(name for name in Work.__dataclass_fields__ if name != "losses")


@dataclass(frozen=True, kw_only=True)
class NewLog:
    """The log that a broker path makes: data uint8[size], positions int64[batches + 1], and the work."""

    data: Bytes
    positions: Int64
    work: Work

    @property
    def encoded(self) -> EncodedLog:
        """The same bytes as an EncodedLog, with the losses."""
        return EncodedLog(data=self.data, positions=self.positions, losses=dict(self.work.losses))
