"""What v2, v3 and kip98 share: one header and one checksum a batch, and a body that a codec may cover."""

from abc import abstractmethod

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields
from kfbench.codecs import Codec
from kfbench.errors import InvalidRecords
from kfbench.formats.base.format import Format, chunks, compressed, gathered
from kfbench.kernels.wire import sealing
from kfbench.records import Records


class SealedFormat(Format):
    @abstractmethod
    def _encode(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: int,
        out: Bytes,
        positions: Int64,
        first: int = 0,
    ) -> tuple[bool, Int64]:
        """Whether it fitted into `out`, and where the body of each batch begins; with a codec that is still plain.

        first: the number of the first of these batches, for what is said of one.
        """

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        return self._encode(records, bounds, fields, 0, out, positions)[0]

    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        pieces, sizes = [], np.empty(len(bounds) - 1, np.int64)
        self._sizes(records, bounds, fields, sizes)
        for lo, hi in chunks(sizes):
            positions, plain = np.empty(hi - lo + 1, np.int64), np.empty(int(sizes[lo:hi].sum()), np.uint8)
            part, part_fields = bounds[lo : hi + 1], fields.part(lo, hi)
            fits, bodies = self._encode(records, part, part_fields, codec.id, plain, positions, lo)
            assert fits, "sizes and encode disagree"
            payload, payload_bounds = compressed(codec, level, plain, bodies, positions[1:])
            data = np.empty(int((bodies - positions[:-1]).sum()) + len(payload), np.uint8)
            new_positions = np.empty_like(positions)
            problem, batch = sealing.assemble(
                plain,
                positions,
                bodies,
                payload,
                payload_bounds,
                self.checksum.position,
                self.checksum.covers_from,
                data,
                new_positions,
            )
            written(problem, lo + batch)
            pieces.append((data, new_positions))
        return gathered(pieces, out)


def written(problem: int, batch: int) -> bool:
    """Whether all of it was; False where `out` is too small. Raises InvalidRecords."""
    if problem == sealing.OFFSET_TOO_FAR:
        raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
    if problem == sealing.BATCH_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")
    return problem != sealing.OUT_TOO_SMALL
