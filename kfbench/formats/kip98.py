"""kip98: the record batch as the text of KIP-98 has it, which never shipped. 53 bytes a batch, 4 to 26 a record.

Header: `layouts.KIP98_HEADER`; v2 added partitionLeaderEpoch and count to it. The CRC-32C covers attributes..end.
Attributes are v2's bits 0-5: codec, timestamp type, transactional, control batch. Without a count, messages follow
until `length` is used up; the codec covers them only.

Message: `length uvarint, attributes i8, timestampDelta varlong, offsetDelta uvarint, [keyLength uvarint, key],
[value]`. The value takes what is left. No headers.
| message attributes bits | ours, for the text is silent |
|---|---|
| 0 | the key is null, and has no length |
| 1 | the value is null |
| 2-7 | refused |

An offsetDelta below zero, which the text does not think of, is the two's complement of an int32: 5 bytes.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, BatchFields, DecodedLog
from kfbench.codecs import CODECS, Allowance, Codec, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats._damage import Damage, OnError
from kfbench.formats._format import Capabilities, Format, chunks, compressed, gathered, shapes_of
from kfbench.formats._index import Index, header_room
from kfbench.kernels import kip98 as kernels
from kfbench.kernels import status
from kfbench.records import Records, Shapes

CARRIED: Final = Capabilities(
    timestamps=True,
    headers=False,
    empty_batches=True,
    batch_fields=frozenset(
        {
            "base_offset",
            "last_offset",
            "base_timestamp_ms",
            "max_timestamp_ms",
            "append_time_ms",
            "timestamp_type",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "is_transactional",
            "is_control",
        }
    ),
    codecs=tuple(CODECS),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Kip98Format(Format):
    """The paper layout."""

    name: str = "kip98"
    magic: int = kernels.THIS_MAGIC
    summary: str = "the batch as the text of KIP-98 has it, never shipped"
    capabilities: Capabilities = CARRIED

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:  # noqa: ARG002
        overhead = batches * kernels.HEADER + len(shapes) * kernels.MAX_MESSAGE_OVERHEAD
        return overhead + shapes.key_bytes + shapes.value_bytes

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        return self._encode(records, bounds, fields, 0, out, positions)[0]

    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, out: Bytes, positions: Int64
    ) -> tuple[bool, Int64]:
        """Whether it fitted into `out`, and where the messages of each batch begin."""
        bodies = np.empty(len(bounds) - 1, np.int64)
        problem, batch = kernels.encode(records.columns, bounds, fields.rows, codec, out, positions, bodies)
        _refuse(problem, batch)
        return problem != kernels.OUT_TOO_SMALL, bodies

    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        pieces = []
        for part, part_fields in chunks(bounds, fields, records.shapes):
            sizes, positions = np.empty(len(part) - 1, np.int64), np.empty(len(part), np.int64)
            self._sizes(records, part, part_fields, sizes)
            plain = np.empty(int(sizes.sum()), np.uint8)
            fits, bodies = self._encode(records, part, part_fields, codec.id, plain, positions)
            assert fits, "sizes and encode disagree"
            payload, payload_bounds = compressed(codec, level, plain, bodies, positions[1:])
            data = np.empty(len(sizes) * kernels.HEADER + len(payload), np.uint8)
            new_positions = np.empty_like(positions)
            _refuse(*kernels.assemble(plain, positions, bodies, payload, payload_bounds, data, new_positions))
            pieces.append((data, new_positions))
        return gathered(pieces, out)

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        kernels.sizes(shapes_of(records).columns, bounds, fields.rows, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(kernels.PARTS), np.int64)
        kernels.breakdown(shapes_of(records).columns, bounds, fields.rows, out)
        return dict(zip(kernels.PARTS, out.tolist(), strict=True))

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        batches = len(positions) - 1
        damage = Damage(positions, on_error)
        codecs, counts, bodies = np.empty(batches, np.int8), np.empty(batches, np.int64), np.empty(batches, np.int64)
        any_codec, append = kernels.survey(data, positions, codecs, bodies, damage.state)
        source, starts, ends = data, bodies, positions[1:]
        if any_codec:
            stops = np.where(damage.state == status.SOUND, ends, bodies)
            source, starts, ends = damage.plain(data, bodies, stops, codecs, codec_of, allowance)
        limits = allowance.limits
        n = kernels.count(data, positions, source, starts, ends, limits.batch_records, damage.state, counts)

        index = Index(n, two_clocks=append)
        bounds = np.empty(batches + 1, np.int64)
        kernels.index(
            data, positions, source, starts, ends, counts, limits.field_bytes, damage.state, *index.columns, bounds
        )
        errors = damage.errors()
        records = index.records(source, np.zeros(bounds[-1] + 1, np.int64), header_room(0))
        if errors:
            bounds = np.append(bounds[:-1][damage.state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=index.created[: len(records)],
            rows=partial(_rows, data, positions, source, starts, ends, counts, damage.state),
            errors=errors,
        )


def _rows(
    data: Bytes,
    positions: Int64,
    source: Bytes,
    starts: Int64,
    ends: Int64,
    counts: Int64,
    state: NDArray[np.int8],
) -> NDArray[np.void]:
    sound = np.flatnonzero(state == status.SOUND)
    rows = np.zeros(len(sound), BATCH)
    kernels.describe(data, positions, source, starts, ends, counts, sound, rows)
    return rows


def _refuse(problem: int, batch: int) -> None:
    if problem == kernels.OFFSET_TOO_FAR:
        raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
    if problem == kernels.BATCH_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")


FORMATS = (Kip98Format(),)
