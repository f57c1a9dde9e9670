"""columnar, magic 4, ours: bit-packed columns of all records, outside the codec, then their payload. 30 bytes and up.

Header: `layouts.COLUMNAR_HEADER`, then `[producerId i64, producerEpoch i16, baseSequence i32], count uvarint,
[lastOffsetDelta uvarint], [extensions], [ages], [offsets], [key lengths], [value lengths], [headers]`, then the
payload: all keys, all values, all header bytes. The CRC-32C covers attributes..end, the codec the payload alone.
| attributes bit | |
|---|---|
| 0-6 | as v2's; 6: extension 1 is there |
| 7 | producer state; else all three are -1 |
| 8 | ages: create times are the anchor less them; else all are the anchor |
| 9 | lastOffsetDelta (an int32's two's complement) and offset deltas; else record i has baseOffset + i |
| 10, 11 | key lengths, nulls among them; no column: all null |
| 12, 13 | the same of values |
| 14, 15 | headers; extensions |

Extensions: `number uvarint, {tag uvarint, size uvarint, bytes}`, tags rising: 0 base timestamp where it is not v2's
default, 1 delete horizon, 2 anchor where it is not the maximum or that is an append time, 3 the maximum where 48 bits
are too few, 4 payload by rows (read, never written). Of one record a column is a zig-zag varint, or an uvarint if it is
a length; of more:
| kind, in the descriptor's bits 6-7 | behind the descriptor | value i |
|---|---|---|
| 0 | packed | bits |
| 1 | base, packed | base + bits |
| 2 | base, slope, packed | base + i * slope + bits |
| 3 | low bits 0 delta, 1 patched, 2 both, 3 rice, 4 rice delta: `width u8, [first], base, packed, [high bits]` | |
| 3 | low bits 5: `width u8, base, d u8, packed d, packed indexes` | base + value d_i |

Bits 0-5 are the width, 63 a word of 64. In `kernels.formats.columnar`, `columns` has the rest, `choosing` the encoder's
choice, and the `header_*` modules the headers by position or by record. docs/columnar.md has all in full, with what
each choice is worth.

The encoder takes the smallest kind (rice where it is smaller by an eighth), so that the same records always are the
same bytes. A broker overwrites the header's maximum with the append time: create times were relative to that, and are
-1 unless extension 2 is there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import FIELD_NAMES, BatchFields, DecodedLog, DecodedTimes
from kfbench.codecs import CODECS, Allowance
from kfbench.errors import InvalidRecords
from kfbench.formats.base.appending import Appending, ColumnarAppending
from kfbench.formats.base.arguments import shapes_of
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.columnar_reading import ColumnarReading
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.index import Index
from kfbench.formats.base.reading import Part, Reading
from kfbench.formats.base.sealed import Outcome, PlainBatches, SealedFormat
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
    sizes_from_shapes=False,
)
NO_PARTS: Final = np.zeros(0, np.int64)
NO_SIZES: Final = np.zeros(0, np.int64)
NO_HEADER_ROOM: Final = NO_SIZES, NO_SIZES, np.zeros(0, np.uint8), NO_SIZES, *2 * (np.zeros(0, np.uint8),)


def _scratch(shapes: Shapes, bounds: Int64) -> tuple[NDArray[Any], ...]:
    """Return the arrays of a `header_values.Scratch`."""
    # Room for all records: finding the largest batch would take a pass, and untouched pages are free.
    most, highs = int(bounds[-1] - bounds[0]), np.empty(choosing.BUCKETS, np.int64)
    if not shapes.has_headers:
        return np.empty(most + columns.GROUP, np.int64), highs, *NO_HEADER_ROOM
    most = max(most, shapes.header_count)
    longest = shapes.longest_header_value_bytes
    return (
        np.empty(most + columns.GROUP, np.int64),
        highs,
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
    appending: ClassVar[Appending] = ColumnarAppending()
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

    def _fetch(
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        most = allowance.limits.batch_records, allowance.log_records, allowance.limits.field_bytes
        fetching.fetch(data, positions, indices, *most, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        damage, counts = Damage(positions, "raise"), np.empty(len(positions) - 1, np.int64)
        most = allowance.limits.batch_records, allowance.log_records
        records, _, _, _ = reading.survey(data, positions, *most, False, counts, damage.state)
        room = records + columns.GROUP  # kernels write whole groups
        timestamps, offsets = np.empty(room, np.int64), np.empty(room, np.int64)
        bounds = np.empty(len(positions), np.int64)
        reading.times(data, positions, counts, damage.state, timestamps, offsets, bounds)
        damage.errors()
        return DecodedTimes(timestamps[:records], offsets[:records], bounds)

    def _rows(self, read: Reading, records: Records, bounds: Int64) -> NDArray[np.void]:
        """Return one BATCH row per sound batch. A batch is canonical if this encoder writes the same bytes."""
        assert isinstance(read, ColumnarReading)
        rows = read.rows(records, bounds)
        log = DecodedLog(records=records, bounds=bounds, create_timestamps_ms=read.index.created, rows=lambda: rows)
        fields, source = log.batch_fields, log.source_records
        made = np.empty(self._bound(records.shapes, len(rows), fields), np.uint8)
        plain = PlainBatches.room(made, len(rows))
        try:
            self._encode(source, bounds, fields, 0, plain).is_written()
        except InvalidRecords:  # the encoder refuses these records: no batch is canonical
            return rows
        describing.same_prefixes(
            read.data, read.positions, read.bodies, read.source, read.starts, read.ends, read.sound, *plain, rows,
        )  # fmt: skip
        return rows


def _header_sizes(records: Records | Shapes, bounds: Int64, scratch: tuple[NDArray[Any], ...]) -> Int64:
    """Return int64[3 * batches] as `header_writing.sizes` fills it, empty if there are no headers."""
    if isinstance(records, Shapes) or not records.shapes.has_headers:
        return NO_SIZES
    sizes = np.empty(3 * (len(bounds) - 1), np.int64)
    most = len(scratch[0]) * (header_forms.MAX_OVERHEAD + writing.MAX_RECORD_OVERHEAD) + writing.MAX_BATCH_OVERHEAD
    room = np.empty(most + records.shapes.header_bytes, np.uint8)  # a template's mask takes less than its values
    header_writing.sizes(records.columns, bounds, scratch, room, sizes)
    return sizes


FORMATS = (ColumnarFormat(),)
