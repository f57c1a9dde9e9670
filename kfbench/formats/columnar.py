"""columnar, magic 4, a research format: bit-packed columns of all records, then their payload.

A batch takes 30 bytes or more. Header: `layouts.COLUMNAR_HEADER`, then `[producerId i64, producerEpoch i16,
baseSequence i32], count uvarint, [lastOffsetDelta uvarint], [extensions], [ages], [offsets], [key lengths], [value
lengths], [headers]`. The payload follows: all keys, all values, all header bytes. A codec covers the payload only. The
CRC-32C covers attributes to end.

| attributes bit | meaning if set | meaning if not set |
|---|---|---|
| 0-6 | as in v2; bit 6 (delete horizon): extension 1 is there | |
| 7 | producer ID, epoch and sequence are there | all three are -1 |
| 8 | column of ages: create time = anchor - age | all create times are the anchor |
| 9 | lastOffsetDelta (int32 in two's complement) and offset deltas | record i has baseOffset + i |
| 10, 11 | column of key lengths; some keys are null | all keys are null |
| 12, 13 | column of value lengths; some values are null | all values are null |
| 14, 15 | headers; extensions | |

The anchor is a timestamp: the maximum timestamp, or extension 2.

Extensions: `number uvarint, {tag uvarint, size uvarint, bytes}` with tags in ascending order:

| tag | content |
|---|---|
| 0 | base timestamp, if it is not the default of v2 |
| 1 | delete horizon |
| 2 | anchor, if it is not the maximum timestamp, or if the maximum timestamp is an append time |
| 3 | maximum timestamp, if it does not fit 48 bits |
| 4 | empty: the payload is record by record (readers accept this, the encoder never writes it) |

In a batch of one record, a column is a zig-zag varint, or a uvarint for a length. Otherwise it begins with a byte, the
descriptor:

| kind, bits 6-7 of the descriptor | after the descriptor | value i |
|---|---|---|
| 0 | packed | bits |
| 1 | base, packed | base + bits |
| 2 | base, slope, packed | base + i * slope + bits |
| 3 | low bits 0 delta, 1 patched, 2 both, 3 rice, 4 rice delta: `width u8, [first], base, packed, [high bits]` | |
| 3 | low bits 5: `width u8, base, d u8, packed d, packed indexes` | base + value d_i |

For kinds 0 to 2, bits 0-5 are the width; 63 means 64 bits. docs/columnar.md is the full specification.

The encoder takes the smallest kind, and rice only if it is smaller by an eighth. The choice depends only on the
records, so equal records become equal bytes. Create times are relative to the maximum timestamp. Under log append time
it is the append time, so they are -1 unless extension 2 is there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import FIELD_NAMES, BatchFields, DecodedLog, DecodedTimes
from kfbench.codecs import CODECS, Allowance
from kfbench.errors import InvalidRecords
from kfbench.formats.base.appending import Appending
from kfbench.formats.base.arguments import shapes_of
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.columnar_reading import ColumnarReading
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.index import Index
from kfbench.formats.base.reading import Part, Reading
from kfbench.formats.base.sealed import Outcome, PlainBatches, SealedFormat
from kfbench.kernels.broker import request_checks
from kfbench.kernels.formats.columnar import (
    batch_header,
    choosing,
    columns,
    describing,
    fetching,
    header_forms,
    header_values,
    header_writing,
    reading,
    writing,
)
from kfbench.records import Records, Shapes

CAPABILITIES: Final = Capabilities(
    timestamps=True,
    headers=True,
    empty_batches=True,
    batch_fields=FIELD_NAMES - {"tagged_fields"},
    codecs=tuple(CODECS),
    dictionaries=True,
    sizes_from_shapes=False,
)
NO_PARTS: Final = np.zeros(0, np.int64)
NO_SIZES: Final = np.zeros(0, np.int64)
NO_HEADER_ROOM: Final = NO_SIZES, NO_SIZES, np.zeros(0, np.uint8), NO_SIZES, *2 * (np.zeros(0, np.uint8),)


def _scratch(shapes: Shapes, bounds: Int64) -> tuple[NDArray[Any], ...]:
    """Allocate the working memory of the encode kernels: the arrays of a `header_values.Scratch`."""
    # Room for all records, because finding the largest batch would take time. Memory that nobody touches costs nothing.
    most, plans = int(bounds[-1] - bounds[0]), np.empty(choosing.BUCKETS, np.int64)
    if not shapes.has_headers:
        return np.empty(most + columns.GROUP, np.int64), plans, *NO_HEADER_ROOM
    most = max(most, shapes.header_count)
    longest = shapes.longest_header_value_bytes
    return (
        np.empty(most + columns.GROUP, np.int64),
        plans,
        np.empty(most + columns.GROUP, np.int64),
        np.empty(header_values.KNOWN, np.int64),
        np.empty(longest, np.uint8),
        np.empty(longest + 1, np.int64),
        np.empty(shapes.header_bytes + header_forms.SLACK, np.uint8),
        np.empty(shapes.header_bytes + header_forms.SLACK, np.uint8),
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class ColumnarFormat(SealedFormat):
    name: str = "columnar"
    magic: int = batch_header.THIS_MAGIC
    summary: str = "columns of all records, bit-packed and outside the codec, before their payload"
    capabilities: Capabilities = CAPABILITIES
    origin: Origin = "research"
    appending: ClassVar[Appending] = Appending(kind=request_checks.COLUMNAR, is_only_path=True)
    has_metadata_reader: ClassVar[bool] = True
    bare_parts: ClassVar[tuple[str, ...]] = (
        "batch_header.", "timestamp_age", "offset_delta", "key_length", "value_length", "header_columns",
    )  # fmt: skip
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", batch_header.CRC, batch_header.ATTRIBUTES)

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        return (
            batches * writing.MAX_BATCH_OVERHEAD
            + len(shapes) * writing.MAX_RECORD_OVERHEAD
            + shapes.header_count * header_forms.MAX_OVERHEAD
            + shapes.payload_bytes
        )

    def _encode(self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches) -> Outcome:
        scratch = _scratch(records.shapes, bounds)
        encode = writing.encode_with_headers if records.shapes.has_headers else writing.encode
        return Outcome(*encode(records.columns, bounds, fields.rows, codec, scratch, *plain))

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        self._measure(records, bounds, fields, out, NO_PARTS)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        parts = np.zeros(len(writing.PARTS), np.int64)
        self._measure(records, bounds, fields, np.empty(len(bounds) - 1, np.int64), parts)
        return dict(zip(writing.PARTS, parts.tolist(), strict=True))

    def _measure(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64, parts: Int64) -> None:
        scratch = _scratch(shapes_of(records), bounds)
        header_sizes = _header_sizes(records, bounds, scratch)
        writing.sizes(shapes_of(records).columns, bounds, fields.rows, header_sizes, *scratch[:2], out, parts)

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: Part, check_crcs: bool
    ) -> Reading:
        read = ColumnarReading(data, positions, on_error, allowance, check_crcs)
        {"all": read.read, "columns": read.read_columns, "metadata": read.read_metadata}[part]()
        return read

    def compressed_starts(self, data: Bytes, positions: Int64, allowance: Allowance) -> Int64:
        read = ColumnarReading(data, positions, "raise", allowance, check_crcs=False)
        read.read_columns()
        read.damage.errors()
        return read.bodies

    def _fetch(
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        most = allowance.limits.batch_records, allowance.log_records, allowance.limits.field_bytes
        fetching.fetch(data, positions, indices, *most, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        damage, counts = Damage(positions, "raise"), np.empty(len(positions) - 1, np.int64)
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
        describing.mark_canonical(
            read.data, read.positions, read.bodies, read.source, read.starts, read.ends, read.sound, *plain, rows,
        )  # fmt: skip
        return rows


def _header_sizes(records: Records | Shapes, bounds: Int64, scratch: tuple[NDArray[Any], ...]) -> Int64:
    """Return the sizes of header columns from `header_writing.sizes`, int64[3 * batches]; empty without headers."""
    if isinstance(records, Shapes) or not records.shapes.has_headers:
        return NO_SIZES
    sizes = np.empty(3 * (len(bounds) - 1), np.int64)
    most = len(scratch[0]) * (header_forms.MAX_OVERHEAD + writing.MAX_RECORD_OVERHEAD) + writing.MAX_BATCH_OVERHEAD
    room = np.empty(most + records.shapes.header_bytes, np.uint8)  # a template's mask is smaller than its values
    header_writing.sizes(records.columns, bounds, scratch, room, sizes)
    return sizes


FORMATS = (ColumnarFormat(),)
