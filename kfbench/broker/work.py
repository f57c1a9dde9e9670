"""The results of broker operations: new logs, and counters of the work, as evidence for claims such as "in place"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields, EncodedLog
from kfbench.log.writing import BatchEncoding, codec_bytes, write_batches
from kfbench.records import Records

CREATE_TIMES: Final = "create timestamps"  # the name of a loss: an append time replaced the producer's time


@dataclass(frozen=True, kw_only=True)
class Work:
    """Counters of batches and bytes. Each batch counts once: untouched, in place, shifted, rewritten or dropped.

    In v0 and v1 a plain message counts as a batch. Bytes before compression have separate counters; all other bytes are
    counted as stored in the log. A batch that is copied into the result counts as completely read and written. Bytes
    that are read again for a checksum count again.

    Not counted: intermediate buffers, and the copy that `append` makes of its input.
    """

    untouched: int = 0  # batches that stay as they are
    in_place: int = 0  # batches with header fields set in place
    shifted: int = 0  # batches whose header fields were set with another size, so the rest of the batch moved
    rewritten: int = 0  # batches that were rebuilt
    dropped: int = 0  # batches that the result does not have
    read_bytes: int = 0  # bytes of the input that were read: headers alone, or whole batches
    written_bytes: int = 0  # fields that were set, bytes that moved, batches that were copied or built
    decompressed_bytes: int = 0  # number of bytes after decompression
    recompressed_bytes: int = 0  # number of bytes before compression
    losses: Mapping[str, int] = field(default_factory=dict)  # see EncodedLog.losses

    @property
    def batches(self) -> int:
        """The number of batches in the input."""
        return self.untouched + self.in_place + self.shifted + self.rewritten + self.dropped

    def __add__(self, other: Self) -> Self:
        numbers = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        losses = {name: self.losses.get(name, 0) + other.losses.get(name, 0) for name in {*self.losses, *other.losses}}
        return type(self)(**numbers, losses=dict(sorted(losses.items())))


COUNTERS: Final = tuple(name for name in Work.__dataclass_fields__ if name != "losses")


@dataclass(frozen=True, kw_only=True)
class NewLog:
    """The log that a broker operation produces.

    Args:
        data: the bytes, uint8[size].
        positions: the byte position of each batch, and the end, int64[batches + 1].
        work: counters of the operation.
    """

    data: Bytes
    positions: Int64
    work: Work

    @property
    def encoded(self) -> EncodedLog:
        """The same log as an EncodedLog, with its losses."""
        return EncodedLog(data=self.data, positions=self.positions, losses=dict(self.work.losses))


class NewBatches(NamedTuple):
    """Newly encoded batches. plain_bytes: their number of bytes before compression, in batches with a codec."""

    log: EncodedLog
    plain_bytes: int


def build(
    records: Records,
    bounds: Int64,
    fields: BatchFields,
    number: Int64,
    kinds: Sequence[BatchEncoding],
    lossy: bool = False,
) -> NewBatches:
    """Encode batches as `write_batches` does. Raise its errors."""
    log = write_batches(records, bounds, fields, number, kinds, lossy)
    return NewBatches(log, codec_bytes(records, bounds, fields, number, kinds))
