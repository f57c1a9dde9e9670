"""What v2 and v3 share: batches with a header of their own and records of varints (`DefaultRecordBatch`)."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, FIELD_DEFAULTS, BatchFields, DecodedLog
from kfbench.codecs import CODECS, Allowance, Codec, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats._damage import Damage, OnError
from kfbench.formats._format import Capabilities, Format, chunks, compressed, gathered
from kfbench.formats._index import Index, header_room
from kfbench.kernels import batch as kernels
from kfbench.kernels import status
from kfbench.records import Records, Shapes

ALL: Final = Capabilities(
    timestamps=True, headers=True, empty_batches=True, batch_fields=frozenset(FIELD_DEFAULTS), codecs=tuple(CODECS)
)


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchedFormat(Format):
    """v2, or v3 with its features: attribute bits that are set in every batch."""

    name: str
    magic: int
    summary: str
    features: int = 0
    capabilities: Capabilities = field(default=ALL, init=False)

    def _losses(self, shapes: Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:  # noqa: ARG002
        return {}  # these formats carry all that records and BatchFields can hold

    def _bound(self, shapes: Shapes, batches: int) -> int:
        return (
            batches * layouts.MAX_BATCH_OVERHEAD
            + len(shapes) * layouts.MAX_RECORD_OVERHEAD
            + shapes.header_count * layouts.MAX_HEADER_OVERHEAD
            + shapes.payload_bytes
        )

    def _write(self, records: Records, bounds: Int64, rows: NDArray[np.void], out: Bytes, positions: Int64) -> bool:
        return self._encode(records, bounds, rows, 0, out, positions)[0]

    def _encode(
        self, records: Records, bounds: Int64, rows: NDArray[np.void], codec: int, out: Bytes, positions: Int64
    ) -> tuple[bool, Int64]:
        """Whether it fitted into `out`, and where the records of each batch begin."""
        bodies = np.empty(len(bounds) - 1, np.int64)
        problem, batch = kernels.encode(
            records.columns, bounds, rows, self.magic, self.features, codec, out, positions, bodies
        )
        _refuse(problem, batch)
        return problem != kernels.OUT_TOO_SMALL, bodies

    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        rows: NDArray[np.void],
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        pieces = []
        for part, part_rows in chunks(bounds, rows, records.shapes):
            sizes, positions = np.empty(len(part) - 1, np.int64), np.empty(len(part), np.int64)
            self._sizes(records.shapes, part, part_rows, sizes)
            plain = np.empty(int(sizes.sum()), np.uint8)
            fits, bodies = self._encode(records, part, part_rows, codec.id, plain, positions)
            assert fits, "sizes and encode disagree"
            payload, payload_bounds = compressed(codec, level, plain, bodies, positions[1:])
            data = np.empty(int((bodies - positions[:-1]).sum()) + len(payload), np.uint8)
            new_positions = np.empty_like(positions)
            _refuse(*kernels.assemble(plain, positions, bodies, payload, payload_bounds, data, new_positions))
            pieces.append((data, new_positions))
        return gathered(pieces, out)

    def _sizes(self, shapes: Shapes, bounds: Int64, rows: NDArray[np.void], out: Int64) -> None:
        kernels.sizes(shapes.columns, bounds, rows, self.magic, self.features, out)

    def _parts(self, shapes: Shapes, bounds: Int64, rows: NDArray[np.void]) -> dict[str, int]:
        out = np.zeros(len(kernels.PARTS), np.int64)
        kernels.breakdown(shapes.columns, bounds, rows, self.magic, self.features, out)
        return dict(zip(kernels.PARTS, out.tolist(), strict=True))

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        batches = len(positions) - 1
        damage = Damage(positions, on_error)
        codecs, counts, bodies = np.empty(batches, np.int8), np.empty(batches, np.int64), np.empty(batches, np.int64)
        known = layouts.V3_ATTRIBUTES_MASK
        n, any_codec, append = kernels.survey(data, positions, self.magic, known, codecs, counts, bodies, damage.state)
        source, starts, ends = data, bodies, positions[1:]
        if any_codec:
            stops = np.where(damage.state == status.SOUND, ends, bodies)
            source, starts, ends = damage.plain(data, bodies, stops, codecs, codec_of, allowance)
            too_many = counts > (ends - starts) // layouts.MIN_RECORD_BYTES
            damage.state[(damage.state == status.SOUND) & too_many] = status.COUNT
            n = int(counts[damage.state == status.SOUND].sum())

        index = Index(n, two_clocks=append)
        header_bounds, bounds = np.empty(n + 1, np.int64), np.empty(batches + 1, np.int64)
        kernels.index(
            data, positions, self.magic, source, starts, ends, damage.state, *index.columns, header_bounds, bounds
        )
        errors = damage.errors()

        header_bounds = header_bounds[: bounds[-1] + 1]
        headers = header_room(int(header_bounds[-1]))
        if len(headers[0]):
            values = index.value_starts[: len(header_bounds) - 1], index.value_lengths
            kernels.index_headers(source, *values, header_bounds, *headers)
        records = index.records(source, header_bounds, headers)
        if errors:
            bounds = np.append(bounds[:-1][damage.state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=index.created[: len(records)],
            rows=partial(_rows, data, positions, self.magic, source, starts, ends, damage.state),
            errors=errors,
        )


def _rows(
    data: Bytes, positions: Int64, magic: int, source: Bytes, starts: Int64, ends: Int64, state: NDArray[np.int8]
) -> NDArray[np.void]:
    sound = np.flatnonzero(state == status.SOUND)
    rows = np.zeros(len(sound), BATCH)
    kernels.describe(data, positions, magic, source, starts, ends, sound, rows)
    return rows


def _refuse(problem: int, batch: int) -> None:
    if problem == kernels.OFFSET_TOO_FAR:
        raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
    if problem == kernels.BATCH_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")
