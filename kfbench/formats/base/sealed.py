"""The common part of v2, v3 and kip98: batches with one header and a body that may be compressed."""

from abc import abstractmethod
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog, plan
from kfbench.codecs import Codec, Level
from kfbench.errors import InvalidRecords
from kfbench.formats.base.format import Format, compress_bodies
from kfbench.kernels.wire import sealing
from kfbench.records import Records


class PlainBatches(NamedTuple):
    """Buffers for n batches without a codec. Batch b is data[positions[b]:positions[b + 1]].

    Its body begins at byte bodies[b] of `data`. positions: int64[n + 1]. bodies: int64[n].
    """

    data: Bytes
    positions: Int64
    bodies: Int64

    @classmethod
    def room(cls, data: Bytes, batches: int) -> Self:
        return cls(data, np.empty(batches + 1, np.int64), np.empty(batches, np.int64))


class Outcome(NamedTuple):
    """The result of an encode kernel: a problem (a constant of `kernels.wire.sealing`), and the batch that has it."""

    problem: int
    batch: int

    def is_written(self, first: int = 0) -> bool:
        """Return False if the buffer was too small. Raise InvalidRecords for a batch that does not fit the format.

        first: the number of the kernel's first batch in the whole log.
        """
        batch = first + self.batch
        if self.problem == sealing.OFFSET_TOO_FAR:
            raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
        if self.problem == sealing.BATCH_TOO_LARGE:
            raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")
        return self.problem != sealing.OUT_TOO_SMALL


class SealedFormat(Format):
    """A format whose batch is a header and a body. The header has a checksum unless `checksum` is None."""

    @abstractmethod
    def _encode(self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches) -> Outcome:
        """Write batches with uncompressed bodies, and set `codec` in their headers. Fill all arrays of `plain`."""

    def plain_bodies(self, records: Records, batch_size: int | ArrayLike) -> list[bytes]:
        if not self.capabilities.dictionaries:
            return super().plain_bodies(records, batch_size)
        bounds = plan(len(records), batch_size)
        room = np.empty(self._bound(records.shapes, len(bounds) - 1, NO_FIELDS), np.uint8)
        plain = PlainBatches.room(room, len(bounds) - 1)
        self._encode(records, bounds, NO_FIELDS, 0, plain).is_written()
        starts, ends = plain.bodies.tolist(), plain.positions[1:].tolist()
        return [room[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        plain = PlainBatches(out, positions, np.empty(len(bounds) - 1, np.int64))
        return self._encode(records, bounds, fields, 0, plain).is_written()

    def _compress_chunk(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: Codec, level: Level, room: Bytes, first: int
    ) -> EncodedLog:
        plain = PlainBatches.room(room, len(bounds) - 1)
        is_written = self._encode(records, bounds, fields, codec.id, plain).is_written(first)
        assert is_written, "sizes and encode disagree"
        payloads = compress_bodies(codec, level, plain.data, plain.bodies, plain.positions[1:])
        data = np.empty(int((plain.bodies - plain.positions[:-1]).sum()) + len(payloads.data), np.uint8)
        positions, checksum = np.empty_like(plain.positions), self.checksum
        sealed = sealing.assemble(
            *plain,
            *payloads,
            checksum.position if checksum else sealing.NO_CHECKSUM,
            checksum.covers_from if checksum else sealing.NO_CHECKSUM,
            data,
            positions,
        )
        Outcome(*sealed).is_written(first)
        return EncodedLog(data=data, positions=positions)
