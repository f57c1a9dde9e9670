"""The columnar batch header. `layouts.COLUMNAR_HEADER` declares its fixed part.

Functions that take `row` take one row of `BatchFields`; `batch` is an Outline.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import get_i16, get_i64, get_u32, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.simd.simd_int64 import span_of
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.lengths import delta_code, get_delta
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_uvarint, put_uvarint, uvarint_bytes

_LAYOUT, _PRODUCER = layouts.COLUMNAR_HEADER, layouts.COLUMNAR_PRODUCER
EPOCH, MAGIC, CRC, ATTRIBUTES, MAX_TIME = (
    layouts.position(_LAYOUT, name)
    for name in ("partition_leader_epoch", "magic", "crc", "attributes", "max_timestamp_ms")
)
HEADER, PRODUCER_BYTES, THIS_MAGIC = _LAYOUT.itemsize, _PRODUCER.itemsize, 4
PRODUCER_EPOCH_AT, SEQUENCE_AT = (layouts.position(_PRODUCER, name) for name in ("producer_epoch", "base_sequence"))
CODEC_MASK, LAST_CODEC = layouts.CODEC_MASK, layouts.LAST_CODEC
APPEND, TRANSACTIONAL, CONTROL = layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT, layouts.CONTROL_BIT
HORIZON, PRODUCER = layouts.DELETE_HORIZON_BIT, layouts.PRODUCER_BIT
AGES, OFFSETS, KEYS, NULL_KEYS = layouts.AGES_BIT, layouts.OFFSETS_BIT, layouts.KEYS_BIT, layouts.NULL_KEYS_BIT
VALUES, NULL_VALUES = layouts.VALUES_BIT, layouts.NULL_VALUES_BIT
HEADERS, EXTENSIONS = layouts.HEADERS_BIT, layouts.EXTENSIONS_BIT
COLUMN_BITS = AGES | KEYS | NULL_KEYS | VALUES | NULL_VALUES | HEADERS
BASE_TAG, HORIZON_TAG, ANCHOR_TAG, WIDE_TAG, BY_ROWS_TAG = (
    layouts.BASE_TIMESTAMP_TAG, layouts.DELETE_HORIZON_TAG, layouts.ANCHOR_TAG, layouts.WIDE_MAXIMUM_TAG,
    layouts.BY_ROWS_TAG,
)  # fmt: skip
HAS_BASE, HAS_HORIZON, HAS_ANCHOR, BY_ROWS = (1 << tag for tag in (BASE_TAG, HORIZON_TAG, ANCHOR_TAG, BY_ROWS_TAG))
EXTENSION_BYTES = 2 + 8  # size of each extension except BY_ROWS_TAG, which no encoder writes
TIME_LIMIT = 1 << layouts.TIMESTAMP_BITS - 1  # timestamps from -TIME_LIMIT to TIME_LIMIT - 1 fit the header
NULL, NO_TIMESTAMP, UNSET = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP, layouts.UNSET
ONE = np.uint64(1)


class Outline(NamedTuple):
    """The values of a batch header, derived from the records of the batch. All fields but the last two are int64."""

    count: int
    base_offset: int
    last_delta: int
    base_time: int
    default_base_time: int  # the base timestamp that readers assume if no extension stores one
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
    """Return whether the batch needs the extension "anchor": the time from which the ages of records count.

    With log append time, the batch needs it if any create time is known.
    """
    if row.timestamp_type:
        return batch.count > 0 and (batch.latest != NO_TIMESTAMP or batch.greatest_age != 0)
    return batch.count > 0 and batch.latest != batch.max_time


@leaf
def count_extensions(row, batch):
    number = np.int64(1) if batch.base_time != batch.default_base_time else np.int64(0)
    number += 1 if row.delete_horizon_ms >= 0 else 0
    return number + (1 if is_anchored(row, batch) else 0) + (1 if is_wide(batch.max_time) else 0)


@leaf
def has_producer(row):
    return row.producer_id != -1 or row.producer_epoch != -1 or row.base_sequence != -1


@leaf
def header_bytes(row, batch, extensions):
    size = HEADER + uvarint_bytes(np.uint64(batch.count)) + (PRODUCER_BYTES if has_producer(row) else 0)
    if batch.has_holes:
        size += uvarint_bytes(delta_code(batch.last_delta, True))
    return size + (1 + EXTENSION_BYTES * extensions if extensions else 0)


@leaf
def _put_extension(out, at, tag, value):
    put_u8(out, at, np.uint8(tag))
    put_u8(out, at + 1, np.uint8(8))
    put_i64(out, at + 2, value)
    return at + EXTENSION_BYTES


@leaf
def put_header(out, at, row, batch, extensions):
    """Write a batch header without length, checksum and attributes. Return the next position, where columns begin.

    extensions: the number of extensions to write.
    """
    put_i64(out, at, batch.base_offset)
    put_i32(out, at + EPOCH, row.partition_leader_epoch)
    put_u8(out, at + MAGIC, np.uint8(THIS_MAGIC))
    has_wide_time = is_wide(batch.max_time)
    put_max_time(out, at, np.int64(0) if has_wide_time else batch.max_time)
    at += HEADER
    if has_producer(row):
        put_i64(out, at, row.producer_id)
        put_i16(out, at + PRODUCER_EPOCH_AT, row.producer_epoch)
        put_i32(out, at + SEQUENCE_AT, row.base_sequence)
        at += PRODUCER_BYTES
    at = put_uvarint(out, at, np.uint64(batch.count))
    if batch.has_holes:
        at = put_uvarint(out, at, delta_code(batch.last_delta, True))
    if extensions:
        put_u8(out, at, np.uint8(extensions))
        at += 1
        if batch.base_time != batch.default_base_time:
            at = _put_extension(out, at, BASE_TAG, batch.base_time)
        if row.delete_horizon_ms >= 0:
            at = _put_extension(out, at, HORIZON_TAG, row.delete_horizon_ms)
        if is_anchored(row, batch):
            at = _put_extension(out, at, ANCHOR_TAG, batch.latest)
        if has_wide_time:
            at = _put_extension(out, at, WIDE_TAG, batch.max_time)
    return at


@leaf
def put_max_time(out, at, time_ms):
    """Write the maximum timestamp, which must fit 48 bits, into the header of the batch at `at`."""
    put_i16(out, at + MAX_TIME, np.int16(time_ms >> 32))
    put_i32(out, at + MAX_TIME + 2, np.int32(((time_ms & 0xFFFFFFFF) ^ 2**31) - 2**31))  # the low 32 bits


@leaf
def crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


class Extensions(NamedTuple):
    """The extensions of a batch header: optional timestamps. All fields are int64. Missing ones have their default."""

    state: int
    base_time: int  # valid with HAS_BASE
    horizon: int  # valid with HAS_HORIZON
    anchor: int
    max_time: int
    tags: int  # one bit per tag: HAS_BASE, HAS_HORIZON, HAS_ANCHOR, BY_ROWS
    position: int  # the position after the extensions


class Header(NamedTuple):
    """A parsed batch header. All fields are int64."""

    state: int
    attributes: int
    count: int
    last_delta: int
    base_time: int  # valid with HAS_BASE
    horizon: int  # valid with HAS_HORIZON
    max_time: int
    anchor: int  # the time from which the ages of records count
    extensions: int  # one bit per tag: HAS_BASE, HAS_HORIZON, HAS_ANCHOR, BY_ROWS
    body: int  # position of the columns


@part
def _read_extensions(data, p, end, max_time):
    """Read the Extensions at position p. max_time: the maximum timestamp in the fixed part of the header."""
    base_time, horizon, anchor, found = np.int64(NO_TIMESTAMP), np.int64(NO_TIMESTAMP), max_time, np.int64(0)
    number, p = get_uvarint(data, p, end)
    state, last_tag = status.SOUND if number else status.EXTENSIONS, np.int64(-1)
    for _ in range(number):
        tag, p = get_uvarint(data, p, end)
        size, p = get_uvarint(data, p, end)
        due = 0 if tag == BY_ROWS_TAG else 8
        if p > end or size > end - p or tag <= last_tag or tag > BY_ROWS_TAG or size != due:
            state = status.EXTENSIONS
            break
        last_tag = tag
        found |= np.int64(1) << tag
        if tag == BY_ROWS_TAG:
            continue
        value = get_i64(data, p)
        p += 8
        if tag == BASE_TAG:
            base_time = value
        elif tag == HORIZON_TAG:
            horizon = value
        elif tag == ANCHOR_TAG:
            anchor = value
        else:
            max_time = value
    if not found & HAS_ANCHOR:
        anchor = max_time
    return Extensions(np.int64(state), base_time, horizon, anchor, max_time, found, np.int64(p))


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
    base_time = horizon = np.int64(NO_TIMESTAMP)
    state, anchor, tags = np.int64(status.SOUND), max_time, np.int64(0)
    if bits & EXTENSIONS:
        state, base_time, horizon, anchor, max_time, tags, p = _read_extensions(data, p, end, max_time)
        if tags & HAS_HORIZON and tags & HAS_BASE:
            state = np.int64(status.EXTENSIONS)
    if p > end:
        state = status.BATCH_HEADER
    elif (tags & HAS_HORIZON != 0) != (bits & HORIZON != 0):
        state = status.EXTENSIONS
    elif bits & CODEC_MASK > LAST_CODEC:
        state = status.CODEC
    elif count > INT32_MAX:
        state = status.COUNT
    elif (bits & (KEYS | NULL_KEYS) == NULL_KEYS or bits & (VALUES | NULL_VALUES) == NULL_VALUES
          or (count == 1 and bits & (NULL_KEYS | NULL_VALUES))):  # fmt: skip
        state = status.ATTRIBUTES
    elif count == 0 and bits & (COLUMN_BITS | OFFSETS) != OFFSETS:
        state = status.EMPTY_BATCH
    return Header(np.int64(state), bits, count, last_delta, base_time, horizon, max_time, anchor, tags, np.int64(p))
