"""The common part of v2, v3, kip98 and columnar: batches of one header and a body that a codec may cover."""

from abc import abstractmethod

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields
from kfbench.codecs import Codec
from kfbench.errors import InvalidRecords
from kfbench.formats.base.compression import compress_bodies
from kfbench.formats.base.format import Format
from kfbench.kernels.wire import sealing
from kfbench.records import Records


class SealedFormat(Format):
    """A format whose batch is a header, an optional checksum (`checksum` None: none) and a body."""

    @abstractmethod
    def _encode(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: int,
        out: Bytes,
        positions: Int64,
        bodies: Int64,
    ) -> tuple[int, int]:
        """Write batches with a body that is still plain; note where each begins, and where its body does.

        Return one of the problems of `kernels.wire.sealing`, and the batch that has it.
        """

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        bodies = np.empty(len(bounds) - 1, np.int64)
        return fits(*self._encode(records, bounds, fields, 0, out, positions, bodies))

    def _compress_chunk(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        plain: Bytes,
        first: int,
    ) -> tuple[Bytes, Int64]:
        bodies, plain_positions = np.empty(len(bounds) - 1, np.int64), np.empty(len(bounds), np.int64)
        problem, batch = self._encode(records, bounds, fields, codec.id, plain, plain_positions, bodies)
        has_room = fits(problem, first + batch)
        assert has_room, "sizes and encode disagree"
        payload, payload_bounds = compress_bodies(codec, level, plain, bodies, plain_positions[1:])
        data = np.empty(int((bodies - plain_positions[:-1]).sum()) + len(payload), np.uint8)
        positions, checksum = np.empty_like(plain_positions), self.checksum
        problem, batch = sealing.assemble(
            plain,
            plain_positions,
            bodies,
            payload,
            payload_bounds,
            checksum.position if checksum else sealing.NO_CHECKSUM,
            checksum.covers_from if checksum else sealing.NO_CHECKSUM,
            data,
            positions,
        )
        fits(problem, first + batch)
        return data, positions


def fits(problem: int, batch: int) -> bool:
    """Return True unless `out` was too small. Raise InvalidRecords for a batch that the format has no room for."""
    if problem == sealing.OFFSET_TOO_FAR:
        raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
    if problem == sealing.BATCH_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")
    return problem != sealing.OUT_TOO_SMALL
