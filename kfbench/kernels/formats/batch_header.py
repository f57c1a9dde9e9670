"""The header of a record batch: v2 (`DefaultRecordBatch`), and v3 with its features (KIP-931 and ablations).

`features` are the attribute bits of v3 that v2 does not have. SHARED_HEADERS is added for an encoder that stores common
record headers once, in tag 1. The tagged fields after a v3 header are in `batch_tags`.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.lengths import delta_code, get_delta
from kfbench.kernels.wire.varint import get_varlong, put_uvarint, put_varint, uvarint_bytes, varint_bytes

_V2, _V3, _TAIL = layouts.V2_HEADER, layouts.V3_HEADER, layouts.V3_FIXED_TAIL
at_ = layouts.position
EPOCH, MAGIC, CRC = (at_(_V2, name) for name in ("partition_leader_epoch", "magic", "crc"))
ATTRIBUTES = at_(_V2, "attributes")
V2_LAST, V2_BASE_TIME, V2_MAX_TIME = (
    at_(_V2, name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE = (
    at_(_V2, name) for name in ("producer_id", "producer_epoch", "base_sequence")
)
PRODUCER_EPOCH_AT, SEQUENCE_AT = V2_PRODUCER_EPOCH - V2_PRODUCER, V2_SEQUENCE - V2_PRODUCER  # in every format
V2_COUNT, V2_SIZE = at_(_V2, "count"), _V2.itemsize
V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE = (
    at_(_V3, name) for name in ("producer_id", "producer_epoch", "base_sequence")
)
V3_SIZE = _V3.itemsize
TAIL_LAST, TAIL_BASE_TIME, TAIL_MAX_TIME = (
    V3_SIZE + at_(_TAIL, name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
TAIL_COUNT, TAIL_SIZE = V3_SIZE + at_(_TAIL, "count"), V3_SIZE + _TAIL.itemsize
CODEC_MASK, APPEND, TRANSACTIONAL = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT
CONTROL, HORIZON = layouts.CONTROL_BIT, layouts.DELETE_HORIZON_BIT
BARE, FIXED, UNSIGNED = layouts.NO_RECORD_ATTRIBUTES_BIT, layouts.FIXED_HEADER_BIT, layouts.UNSIGNED_BIT
HEADERS_FIRST, TAGGED = layouts.HEADERS_FIRST_BIT, layouts.TAGGED_BIT
ATTRIBUTE_BITS = 0xFFFF
APPEND_TAG = layouts.APPEND_TIME_TAG
UNSET, NO_TIMESTAMP, NULL = layouts.UNSET, layouts.NO_TIMESTAMP, layouts.NULL_LENGTH
ONE = np.uint64(1)


class Outline(NamedTuple):
    """The header fields that are derived from the records of a batch, int64 each."""

    base_offset: int
    last_delta: int
    base_time_ms: int
    max_time_ms: int


@leaf
def outline(columns, first, end, row, horizon_ms, is_tagged):
    """Derive the header fields of a batch from its records first to end - 1. Fields that `row` sets take precedence."""
    timestamps, offsets = columns.timestamps_ms, columns.offsets
    base_offset, last_offset = row.base_offset, row.last_offset
    base_time, max_time = row.base_timestamp_ms, row.max_timestamp_ms
    if base_offset == UNSET:
        base_offset = offsets[first] if first < end else np.int64(0)
    if last_offset == UNSET:
        last_offset = offsets[end - ONE] if first < end else base_offset
    if base_time == UNSET:
        base_time = np.int64(NO_TIMESTAMP)
        if horizon_ms >= 0:
            base_time = horizon_ms
        elif first < end:
            base_time = timestamps[first]
    if max_time == UNSET:
        max_time = np.int64(NO_TIMESTAMP)
        if row.timestamp_type and not is_tagged:  # tag 0 has the append time of a tagged batch
            max_time = row.append_time_ms
        elif first < end:
            max_time = timestamps[first]
            for i in range(first, end):
                max_time = max(max_time, timestamps[i])
    return Outline(base_offset, last_offset - base_offset, base_time, max_time)


@leaf
def untagged_bytes(span, magic, features):
    """Return the size of a batch header in bytes, without tagged fields. span: the Outline of the batch."""
    if magic == 2:
        return V2_SIZE
    if features & FIXED:
        return TAIL_SIZE
    last = uvarint_bytes(delta_code(span.last_delta, features & UNSIGNED != 0))
    return V3_SIZE + last + varint_bytes(span.base_time_ms) + varint_bytes(span.max_time_ms - span.base_time_ms) + 4


@leaf
def attributes_of(row, codec, features, count):
    """Return the attribute bits of a batch header. row: the batch's FIELDS row; count: the number of records."""
    bits = features & ATTRIBUTE_BITS
    if count:  # an empty batch has nothing to compress
        bits |= codec
    if row.timestamp_type:
        bits |= APPEND
    if row.is_transactional:
        bits |= TRANSACTIONAL
    if row.is_control:
        bits |= CONTROL
    if row.delete_horizon_ms >= 0:
        bits |= HORIZON
    return bits


@leaf
def put_producer(out, at, row):
    """Write producer ID, epoch and base sequence. row: the batch's FIELDS row."""
    put_i64(out, at, row.producer_id)
    put_i16(out, at + PRODUCER_EPOCH_AT, row.producer_epoch)
    put_i32(out, at + SEQUENCE_AT, row.base_sequence)


@leaf
def put_v2_fields(out, at, row, attributes, span):
    """Write the header fields from the attributes to the base sequence, which v2 and kip98 have in common.

    Args:
        out, at: uint8 buffer, and the position of the attributes.
        row, attributes, span: as in `put_header`.
    """
    put_i16(out, at, np.int16(attributes))
    put_i32(out, at + V2_LAST - ATTRIBUTES, np.int32(span.last_delta))
    put_i64(out, at + V2_BASE_TIME - ATTRIBUTES, span.base_time_ms)
    put_i64(out, at + V2_MAX_TIME - ATTRIBUTES, span.max_time_ms)
    put_producer(out, at + V2_PRODUCER - ATTRIBUTES, row)


@leaf
def put_header(out, at, row, magic, attributes, span, count):
    """Write a batch header without length, checksum and tagged fields. Return the position after the record count.

    Args:
        out, at: uint8 buffer, and the position of the batch.
        row: the batch's FIELDS row.
        magic, attributes: 2 or 3, and the attribute bits.
        span: the Outline of its records.
        count: the number of its records.
    """
    put_i64(out, at, span.base_offset)
    put_i32(out, at + EPOCH, row.partition_leader_epoch)
    put_u8(out, at + MAGIC, np.uint8(magic))
    if magic == 2:
        put_v2_fields(out, at + ATTRIBUTES, row, attributes, span)
        put_i32(out, at + V2_COUNT, np.int32(count))
        return at + V2_SIZE
    put_i16(out, at + ATTRIBUTES, np.int16(attributes))
    put_producer(out, at + V3_PRODUCER, row)
    if attributes & FIXED:
        put_i32(out, at + TAIL_LAST, np.int32(span.last_delta))
        put_i64(out, at + TAIL_BASE_TIME, span.base_time_ms)
        put_i64(out, at + TAIL_MAX_TIME, span.max_time_ms)
        put_i32(out, at + TAIL_COUNT, np.int32(count))
        return at + TAIL_SIZE
    at = put_uvarint(out, at + V3_SIZE, delta_code(span.last_delta, attributes & UNSIGNED != 0))
    at = put_varint(out, at, span.base_time_ms)
    at = put_varint(out, at, span.max_time_ms - span.base_time_ms)
    put_i32(out, at, np.int32(count))
    return at + 4


class BatchHeader(NamedTuple):
    """The fields of a batch header that was read, int64 each.

    body: the position after the header, or the end of the batch + 1 if the header is cut short.
    """

    attributes: int
    last_delta: int
    base_time_ms: int
    max_time_ms: int
    count: int
    body: int


@leaf
def read_v2_fields(data, at, count, body):
    """Return the BatchHeader of v2 or kip98. at: the position of the attributes; count, body: its last two fields."""
    return BatchHeader(
        np.int64(get_i16(data, at)), np.int64(get_i32(data, at + V2_LAST - ATTRIBUTES)),
        get_i64(data, at + V2_BASE_TIME - ATTRIBUTES), get_i64(data, at + V2_MAX_TIME - ATTRIBUTES), count, body,
    )  # fmt: skip


@leaf
def read_header(data, at, end, magic):
    """Read the header of the batch data[at:end]. The batch must be long enough for the fixed-size fields of `magic`."""
    if magic == 2:
        return read_v2_fields(data, at + ATTRIBUTES, np.int64(get_i32(data, at + V2_COUNT)), np.int64(at + V2_SIZE))
    bits = np.int64(get_i16(data, at + ATTRIBUTES))
    if bits & FIXED:
        if at + TAIL_SIZE > end:
            return _cut_short(bits, end)
        return BatchHeader(
            bits, np.int64(get_i32(data, at + TAIL_LAST)), get_i64(data, at + TAIL_BASE_TIME),
            get_i64(data, at + TAIL_MAX_TIME), np.int64(get_i32(data, at + TAIL_COUNT)), np.int64(at + TAIL_SIZE),
        )  # fmt: skip
    last_delta, body = get_delta(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
    base_time, body = get_varlong(data, body, end)
    max_delta, body = get_varlong(data, body, end)
    if body + 4 > end:
        return _cut_short(bits, end)
    return BatchHeader(
        bits, np.int64(last_delta), base_time, base_time + max_delta, np.int64(get_i32(data, body)), np.int64(body + 4)
    )


@leaf
def _cut_short(bits, end):
    return BatchHeader(bits, np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(end + 1))


@leaf
def attribute_bytes_of(bits, magic):
    """Return the size of each record's attributes field in bytes, 0 or 1. bits: the attributes of the batch."""
    return 0 if magic == 3 and bits & BARE else 1


@leaf
def least_record_bytes(bits, magic):
    """Return the least number of bytes that a record takes. bits: the attributes of the batch.

    If the batch stores metadata before payload (headers first), records have no length field.
    """
    own_length = 0 if magic == 3 and bits & HEADERS_FIRST else 1
    return layouts.MIN_RECORD_BYTES + attribute_bytes_of(bits, magic) + own_length


@leaf
def crc_holds(data, at, end):
    """Return whether the stored CRC-32C matches the bytes of the batch data[at:end]."""
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


class RecordRun(NamedTuple):
    """The position of a batch's records, the output rows for them, and the batch header fields that readers need.

    Fields are int64 except is_append.
    """

    start: int  # the uncompressed records are source[start:end]
    end: int
    payload_end: int  # `end`, or `sealing.NEVER` if only the metadata was decompressed
    row: int  # the first row to fill
    count: int
    attribute_bytes: int  # the size of each record's attributes, 0 or 1
    base_offset: int
    base_time_ms: int
    is_append: bool  # readers return the append time instead of the create times
    append_time_ms: int
    shared: int  # the number of headers per record in tag 1
    most_bytes: int  # the size limit of a header key or value
