"""columnar, magic 5, a research format: bit-packed columns of all records, then their payload.

A batch takes 30 bytes or more. Header: `kernels.batch_header.LAYOUT`, then `[producerId i64, producerEpoch i16,
baseSequence i32], count uvarint, [lastOffsetDelta uvarint], [deleteHorizon i64], [baseTimestamp i64], [anchor i64],
[wideMaxTimestamp i64], [ages], [offsets], [key lengths], [value lengths], [headers]`. The payload follows: all keys,
all values, all header bytes. A codec covers the payload only. The CRC-32C covers attributes to end.

| attributes bit | meaning if set | meaning if not set |
|---|---|---|
| 0-6 | as in v2; bit 6: the delete horizon is there | |
| 7 | producer ID, epoch and sequence are there | all three are -1 |
| 8 | column of ages: create time = anchor - age | all create times are the anchor |
| 9 | lastOffsetDelta (int32 in two's complement) and offset deltas | record i has baseOffset + i |
| 10, 11 | column of key lengths, value lengths | all keys, all values are null |
| 12 | headers | no record has a header |
| 13 | base timestamp | it is the default of v2 |
| 14 | anchor | the anchor is the maximum timestamp |
| 15 | maximum timestamp as an i64 | it fits 48 bits |

Lengths are stored as codes: 0 for a null, else the length plus 1. In a batch of one record, a column is a zig-zag
varint, or a uvarint for a length. Otherwise it begins with a byte, the descriptor: the kind in bits 6-7, the width in
bits 0-5 (63 means 64 bits).

| kind | after the descriptor | value i |
|---|---|---|
| 0 bits | packed | bits |
| 1 base | base, packed | base + bits |
| 2 patched lengths | base, packed, patches | base + bits, with the high bits of a few values |
| 2 patched ages or offsets | first, base, packed, patches | the value before + base + bits, with those of a few steps |

docs/columnar.md is the full specification.

The encoder takes the smallest kind. The choice depends only on the records, so equal records become equal bytes. Create
times are relative to the maximum timestamp. Under log append time it is the append time, so they are -1 unless the
anchor is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import FIELD_NAMES, BatchFields, DecodedLog, DecodedTimes
from kfbench.codecs import Allowance
from kfbench.errors import InvalidRecords
from kfbench.formats.base.appending import Appending, Assignment, BrokerFields, Flags
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.damage import BatchDamage, OnError
from kfbench.formats.base.format import EncodeResult, Format, PlainBatches, shapes_of
from kfbench.formats.base.reading import Index, Reading, ReadScope
from kfbench.kernels.broker import request_checks
from kfbench.records import Records, Shapes
from kfbench.research.columnar.kernels import (
    batch_header,
    column_writing,
    columns,
    header_writing,
    reading,
    templates,
    writing,
)
from kfbench.research.columnar.reader import ColumnarReading

CAPABILITIES: Final = Capabilities(
    timestamps=True,
    headers=True,
    empty_batches=True,
    batch_fields=FIELD_NAMES - {"tagged_fields"},
    codecs=("none", "gzip", "snappy", "lz4", "zstd"),
    dictionaries=True,
    sizes_from_shapes=False,
)
NO_PARTS: Final = np.zeros(0, np.int64)


def _scratch(shapes: Shapes, bounds: Int64) -> tuple[NDArray[Any], ...]:
    """Allocate the working memory of the encode kernels: the arrays of a `header_writing.Scratch`.

    They are a plain tuple, because a call with a named one takes 4 µs more.
    """
    # Room for all records, because finding the largest batch would take time. Memory that nobody touches costs nothing.
    most, longest, known, header_bytes = int(bounds[-1] - bounds[0]), 0, 0, 0
    if shapes.has_headers:
        most, longest, known = max(most, shapes.header_count), shapes.longest_header_value_bytes, header_writing.KNOWN
        header_bytes = shapes.header_bytes + templates.SLACK
    return (
        np.empty(most + columns.GROUP, np.int64),
        np.empty(column_writing.BUCKETS, np.int64),
        np.empty(most + columns.GROUP if known else 0, np.int64),
        np.empty(known, np.int64),
        np.empty(longest, np.uint8),
        np.empty(longest + 1, np.int64),
        np.empty(header_bytes, np.uint8),
        np.empty(header_bytes, np.uint8),
    )


@dataclass(frozen=True, kw_only=True)
class ColumnarAppending(Appending):
    """The append of columnar: it validates a batch without opening its payload, and sets offset and epoch in place."""

    def rule_fields(self, data: Bytes, positions: Int64) -> Int64:
        found = np.empty(5 * (len(positions) - 1), np.int64)
        batch_header.rule_fields(data, positions, found)
        return found

    def keeps_times(self, data: Bytes, positions: Int64, latest_ms: Int64) -> Flags:
        found = np.empty(len(positions) - 1, np.bool_)
        batch_header.keeps_times(data, positions, latest_ms, found)
        return found

    def assign(
        self, target: Bytes, positions: Int64, fields: BrokerFields, chosen: Flags, is_moved: bool = False
    ) -> Assignment:
        return Assignment(batch_header.assign(target, positions, fields.ends, fields.epoch, chosen), 0)


@dataclass(frozen=True, kw_only=True, repr=False)
class ColumnarFormat(Format):
    name: str = "columnar"
    magic: int = batch_header.THIS_MAGIC
    summary: str = "columns of all records, bit-packed and outside the codec, before their payload"
    capabilities: Capabilities = CAPABILITIES
    origin: Origin = "research"
    appending: ClassVar[Appending] = ColumnarAppending(kind=request_checks.OTHER, is_only_path=True)
    retired_magics: ClassVar[Mapping[int, str]] = batch_header.RETIRED_MAGICS
    has_metadata_reader: ClassVar[bool] = True
    bare_parts: ClassVar[tuple[str, ...]] = (
        "batch_header.", "timestamp_age", "offset_delta", "key_length", "value_length", "header_columns",
    )  # fmt: skip
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", batch_header.CRC, batch_header.ATTRIBUTES)

    def add_record_counts(self, data: Bytes, positions: Int64, most: int, counts: Int64) -> None:
        batch_header.add_record_counts(data, positions, most, counts)

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        return (
            batches * writing.MAX_BATCH_OVERHEAD
            + len(shapes) * writing.MAX_RECORD_OVERHEAD
            + shapes.header_count * header_writing.MAX_OVERHEAD
            + shapes.payload_bytes
        )

    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches
    ) -> EncodeResult:
        scratch = _scratch(records.shapes, bounds)
        encode = writing.encode_with_headers if records.shapes.has_headers else writing.encode
        return EncodeResult(*encode(records.columns, bounds, fields.rows, codec, scratch, *plain))

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        self._measure(records, bounds, fields, out, NO_PARTS)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        parts = np.zeros(len(writing.PARTS), np.int64)
        self._measure(records, bounds, fields, np.empty(len(bounds) - 1, np.int64), parts)
        return dict(zip(writing.PARTS, parts.tolist(), strict=True))

    def _measure(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64, parts: Int64) -> None:
        shapes, room = shapes_of(records), np.empty(0, np.uint8)
        scratch = _scratch(shapes, bounds)
        if isinstance(records, Shapes) or not shapes.has_headers:
            writing.sizes(shapes.columns, bounds, fields.rows, scratch, room, out, parts)
            return
        per_item = header_writing.MAX_OVERHEAD + writing.MAX_RECORD_OVERHEAD
        most = len(scratch[0]) * per_item + writing.MAX_BATCH_OVERHEAD
        room = np.empty(most + shapes.header_bytes, np.uint8)  # a template's mask is smaller than its values
        writing.sizes_with_headers(records.columns, bounds, fields.rows, scratch, room, out, parts)

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: ReadScope, check_crcs: bool
    ) -> Reading:
        read = ColumnarReading(data, positions, on_error, allowance, check_crcs)
        read.read(part)
        return read

    def _fetch(
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        most = allowance.limits.batch_records, allowance.log_records, allowance.limits.field_bytes
        reading.fetch(data, positions, indices, *most, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        damage, counts = BatchDamage(positions, "raise"), np.empty(len(positions) - 1, np.int64)
        most = allowance.limits.batch_records, allowance.log_records
        records, *_ = reading.survey(data, positions, *most, False, counts, damage.state)
        room = records + columns.GROUP  # kernels write whole groups
        timestamps, offsets = np.empty(room, np.int64), np.empty(room, np.int64)
        bounds = np.empty(len(positions), np.int64)
        reading.times(data, positions, counts, damage.state, timestamps, offsets, bounds)
        damage.errors()
        return DecodedTimes(timestamps[:records], offsets[:records], bounds)

    def _rows(self, read: Reading, records: Records, bounds: Int64) -> NDArray[np.void]:
        """Return the fields of each undamaged batch as one row (dtype `BATCH`).

        A batch is canonical if our encoder writes the same bytes for it.
        """
        assert isinstance(read, ColumnarReading)
        rows = read.rows(records, bounds)
        log = DecodedLog(records=records, bounds=bounds, create_timestamps_ms=read.index.created, rows=lambda: rows)
        fields, source = log.batch_fields, log.source_records
        encoded = np.empty(self._bound(records.shapes, len(rows), fields), np.uint8)
        plain = PlainBatches.room(encoded, len(rows))
        try:
            self._encode(source, bounds, fields, 0, plain).is_written()
        except InvalidRecords:  # the encoder refuses these records: no batch is canonical
            return rows
        batch_header.mark_canonical(
            read.data, read.positions, read.bodies, read.source, read.starts, read.ends, read.sound, *plain, rows,
        )  # fmt: skip
        return rows


FORMATS = (ColumnarFormat(),)
