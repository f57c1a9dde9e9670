"""The columnar batch header. `columnar.layout.HEADER` declares its fixed part.

Functions that take `row` take one row of `BatchFields`; `batch` is an Outline.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, get_i16, get_i64, get_u32, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.lengths import delta_code, get_delta
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_uvarint, put_uvarint, uvarint_bytes
from kfbench.research.columnar import layout
from kfbench.research.columnar.kernels.simd_int64 import span_of

_LAYOUT, _PRODUCER = layout.HEADER, layout.PRODUCER
EPOCH, MAGIC, CRC, ATTRIBUTES, MAX_TIME = (
    layouts.position(_LAYOUT, name)
    for name in ("partition_leader_epoch", "magic", "crc", "attributes", "max_timestamp_ms")
)
HEADER, PRODUCER_BYTES, THIS_MAGIC = _LAYOUT.itemsize, _PRODUCER.itemsize, layout.MAGIC
PRODUCER_EPOCH_AT, SEQUENCE_AT = (layouts.position(_PRODUCER, name) for name in ("producer_epoch", "base_sequence"))
CODEC_MASK = layouts.CODEC_MASK
APPEND, TRANSACTIONAL, CONTROL = layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT, layouts.CONTROL_BIT
HORIZON, PRODUCER = layouts.DELETE_HORIZON_BIT, layout.PRODUCER_BIT
AGES, OFFSETS, KEYS, VALUES = layout.AGES_BIT, layout.OFFSETS_BIT, layout.KEYS_BIT, layout.VALUES_BIT
HEADERS, BASE, ANCHOR, WIDE = (
    layout.HEADERS_BIT, layout.BASE_TIMESTAMP_BIT, layout.ANCHOR_BIT, layout.WIDE_MAXIMUM_BIT,
)  # fmt: skip
COLUMN_BITS = AGES | KEYS | VALUES | HEADERS
TIMES = HORIZON | BASE | ANCHOR | WIDE  # each stores a timestamp of TIME_BYTES
TIME_BYTES = 8
TIME_LIMIT = 1 << layout.TIMESTAMP_BITS - 1  # timestamps from -TIME_LIMIT to TIME_LIMIT - 1 fit the header
NULL, NO_TIMESTAMP, UNSET = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP, layouts.UNSET
ONE = np.uint64(1)


class Outline(NamedTuple):
    """The values of a batch header, derived from the records of the batch. All fields but the last two are int64."""

    count: int
    base_offset: int
    last_delta: int
    base_time: int
    default_base_time: int  # the base timestamp that readers assume if the batch does not store one
    max_time: int
    latest: int  # the latest create time
    greatest_age: int
    sum_of_ages: int
    has_holes: (
        bool  # some record i has not the offset baseOffset + i, or the last offset is not that of the last record
    )
    is_too_far: bool  # an offset delta or the number of records does not fit an int32


@leaf
def outline(timestamps, offsets, first, end, row):
    """Derive the header values of a batch from its records first to end - 1. Fields that `row` sets take precedence."""
    base_offset, last_offset = row.base_offset, row.last_offset
    base_time, max_time = row.base_timestamp_ms, row.max_timestamp_ms
    default, latest = np.int64(NO_TIMESTAMP), np.int64(NO_TIMESTAMP)
    count = np.int64(end - first)
    if base_offset == UNSET:
        base_offset = offsets[first] if first < end else np.int64(0)
    if last_offset == UNSET:
        last_offset = offsets[end - ONE] if first < end else base_offset
    last_delta = last_offset - base_offset
    earliest, strays, far, sum_of_times = latest, np.int64(0), last_delta + 2**31, np.int64(0)
    if first < end:
        default = timestamps[first]
        latest, earliest, sum_of_times, strays = span_of(timestamps, offsets, first, count, base_offset)
        far |= count - 1 + 2**31
        if strays:  # if each record i has the offset base + i, no delta is larger than count - 1
            for i in range(first, end):
                far |= offsets[i] - base_offset + 2**31
        strays |= last_delta ^ (count - 1)
    if row.delete_horizon_ms >= 0:
        default = row.delete_horizon_ms
    if base_time == UNSET:
        base_time = default
    if max_time == UNSET:
        max_time = row.append_time_ms if row.timestamp_type else latest
    return Outline(
        count, base_offset, last_delta, base_time, default, max_time, latest, latest - earliest,
        latest * count - sum_of_times, strays != 0 or first == end, far >> 32 != 0,
    )  # fmt: skip


@leaf
def is_wide(time_ms):
    """Return whether a timestamp needs more than the 48 bits that the header has for it."""
    return time_ms < -TIME_LIMIT or time_ms >= TIME_LIMIT


@leaf
def is_anchored(row, batch):
    """Return whether the batch stores an anchor: the time from which the ages of records count.

    With log append time, the batch stores it if any create time is known.
    """
    if row.timestamp_type:
        return batch.count > 0 and (batch.latest != NO_TIMESTAMP or batch.greatest_age != 0)
    return batch.count > 0 and batch.latest != batch.max_time


@leaf
def optional_bits(row, batch):
    """Return the attribute bits of the optional fields that the header needs: producer state and timestamps."""
    bits = np.int64(PRODUCER if has_producer(row) else 0)
    bits |= HORIZON if row.delete_horizon_ms >= 0 else 0
    bits |= BASE if batch.base_time != batch.default_base_time else 0
    return bits | (ANCHOR if is_anchored(row, batch) else 0) | (WIDE if is_wide(batch.max_time) else 0)


@leaf
def has_producer(row):
    return row.producer_id != -1 or row.producer_epoch != -1 or row.base_sequence != -1


@leaf
def times_bytes(bits):
    """Return the size of the optional timestamps of a batch with these attribute bits."""
    return TIME_BYTES * bit_count(np.uint64(bits & TIMES))


@leaf
def header_bytes(batch, bits):
    """Return the size of a batch header. bits: from `optional_bits`."""
    size = HEADER + uvarint_bytes(np.uint64(batch.count)) + (PRODUCER_BYTES if bits & PRODUCER else 0)
    if batch.has_holes:
        size += uvarint_bytes(delta_code(batch.last_delta, True))
    return size + times_bytes(bits)


@leaf
def _put_time(out, at, bits, bit, time_ms):
    if bits & bit:
        put_i64(out, at, time_ms)
        at += TIME_BYTES
    return at


@part
def _put_times(out, at, row, batch, bits):
    """Write the optional timestamps of a batch. Return the next position."""
    at = _put_time(out, at, bits, HORIZON, row.delete_horizon_ms)
    at = _put_time(out, at, bits, BASE, batch.base_time)
    at = _put_time(out, at, bits, ANCHOR, batch.latest)
    return _put_time(out, at, bits, WIDE, batch.max_time)


@leaf
def put_header(out, at, row, batch, bits):
    """Write a batch header without length, checksum and attributes. Return the next position, where columns begin.

    bits: from `optional_bits`.
    """
    put_i64(out, at, batch.base_offset)
    put_i32(out, at + EPOCH, row.partition_leader_epoch)
    put_u8(out, at + MAGIC, np.uint8(THIS_MAGIC))
    put_max_time(out, at, np.int64(0) if bits & WIDE else batch.max_time)
    at += HEADER
    if bits & PRODUCER:
        put_i64(out, at, row.producer_id)
        put_i16(out, at + PRODUCER_EPOCH_AT, row.producer_epoch)
        put_i32(out, at + SEQUENCE_AT, row.base_sequence)
        at += PRODUCER_BYTES
    at = put_uvarint(out, at, np.uint64(batch.count))
    if batch.has_holes:
        at = put_uvarint(out, at, delta_code(batch.last_delta, True))
    return _put_times(out, at, row, batch, bits) if bits & TIMES else at


@leaf
def put_max_time(out, at, time_ms):
    """Write the maximum timestamp, which must fit 48 bits, into the header of the batch at `at`."""
    put_i16(out, at + MAX_TIME, np.int16(time_ms >> 32))
    put_i32(out, at + MAX_TIME + 2, np.int32(((time_ms & 0xFFFFFFFF) ^ 2**31) - 2**31))  # the low 32 bits


@leaf
def crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


class Header(NamedTuple):
    """A parsed batch header. All fields are int64."""

    state: int
    attributes: int
    count: int
    last_delta: int
    horizon: int  # NO_TIMESTAMP without HORIZON
    base_time: int  # valid with BASE
    anchor: int  # the time from which the ages of records count
    max_time: int
    body: int  # position of the columns


class Times(NamedTuple):
    """The optional timestamps of a batch header. All fields are int64. Missing ones have their default."""

    horizon: int
    base_time: int
    anchor: int
    max_time: int


@leaf
def _read_time(data, p, end, bits, bit, otherwise):
    """Read an optional timestamp if `bits` has its bit. Return it, or `otherwise`, and the next position."""
    if not bits & bit:
        return otherwise, p
    return get_i64(data, p) if end - p >= TIME_BYTES else otherwise, p + TIME_BYTES


@part
def _read_times(data, p, end, bits, max_time):
    """Read the Times at p. Return them and the next position. max_time: the timestamp in the fixed part."""
    none = np.int64(NO_TIMESTAMP)
    horizon, p = _read_time(data, p, end, bits, HORIZON, none)
    base_time, p = _read_time(data, p, end, bits, BASE, none)
    anchor, p = _read_time(data, p, end, bits, ANCHOR, none)
    max_time, p = _read_time(data, p, end, bits, WIDE, max_time)
    return Times(horizon, base_time, anchor if bits & ANCHOR else max_time, max_time), p


@leaf
def read_header(data, at, end):
    """Read the header of the batch data[at:end]. The batch must have at least HEADER bytes."""
    bits = np.int64(get_i16(data, at + ATTRIBUTES)) & 0xFFFF
    max_time = np.int64(get_i16(data, at + MAX_TIME)) << 32 | np.int64(get_u32(data, at + MAX_TIME + 2))
    p = at + HEADER + (PRODUCER_BYTES if bits & PRODUCER else 0)
    count, p = get_uvarint(data, p, end)
    last_delta = count - 1
    if bits & OFFSETS:
        last_delta, p = get_delta(data, p, end, True)
    times = Times(np.int64(NO_TIMESTAMP), np.int64(NO_TIMESTAMP), max_time, max_time)
    if bits & TIMES:
        times, p = _read_times(data, p, end, bits, max_time)
    state = np.int64(status.SOUND)
    if p > end:
        state = status.BATCH_HEADER
    elif bits & CODEC_MASK > layouts.LAST_CODEC:
        state = status.CODEC
    elif count > INT32_MAX:
        state = status.COUNT
    elif bits & HORIZON and bits & BASE:
        state = status.BASE_TIMESTAMP
    elif count == 0 and bits & (COLUMN_BITS | OFFSETS) != OFFSETS:
        state = status.EMPTY_BATCH
    return Header(
        np.int64(state), bits, count, last_delta, times.horizon, times.base_time, times.anchor, times.max_time,
        np.int64(p),
    )  # fmt: skip
