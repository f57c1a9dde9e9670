"""The columnar batch header: its layout (docs/columnar.md), and kernels that write, read, change and describe headers.

Functions that take `row` take one row of `BatchFields`; `batch` is a ColumnarOutline.
"""

from typing import Final, NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats.batch_description import describe_header, describe_producer
from kfbench.kernels.formats.batch_header import BatchHeader
from kfbench.kernels.formats.batch_tags import same_bytes
from kfbench.kernels.jit import kernel, leaf, part, skimming
from kfbench.kernels.simd.intrinsics import (
    bit_count,
    get_i16,
    get_i32,
    get_i64,
    get_u32,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
)
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.lengths import delta_code, get_delta
from kfbench.kernels.wire.sealing import INT32_MAX, LENGTH
from kfbench.kernels.wire.varint import get_uvarint, put_uvarint, uvarint_bytes
from kfbench.layouts import V3_HEADER
from kfbench.research.columnar.kernels.simd_int64 import span_of

THIS_MAGIC: Final = 5
RETIRED_MAGICS: Final = {4: "4 is columnar's layout before 2026-11-29: encode the records again"}
"""The magics of columnar in older versions, each with the reason to refuse such a batch."""

LAYOUT: Final = np.dtype(
    [
        *((name, V3_HEADER[name]) for name in ("base_offset", "length", "partition_leader_epoch", "magic", "crc")),
        ("attributes", ">u2"),
        ("max_timestamp_ms", "V6"),  # i48, -1: none; the broker sets the append time here
        # then, with PRODUCER, PRODUCER_LAYOUT; count uvarint; last_offset_delta uvarint, timestamps, columns
    ]
)
PRODUCER_LAYOUT: Final = np.dtype(
    [(name, V3_HEADER[name]) for name in ("producer_id", "producer_epoch", "base_sequence")]
)
EPOCH, MAGIC, CRC, ATTRIBUTES, MAX_TIME = (
    layouts.position(LAYOUT, name)
    for name in ("partition_leader_epoch", "magic", "crc", "attributes", "max_timestamp_ms")
)
HEADER, PRODUCER_BYTES = LAYOUT.itemsize, PRODUCER_LAYOUT.itemsize
PRODUCER_EPOCH_AT, SEQUENCE_AT = (
    layouts.position(PRODUCER_LAYOUT, name) for name in ("producer_epoch", "base_sequence")
)

# Attribute bits. Those from PRODUCER on say which optional fields and columns the batch has.
CODEC_MASK = layouts.CODEC_MASK
APPEND, TRANSACTIONAL, CONTROL = layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT, layouts.CONTROL_BIT
HORIZON, PRODUCER = layouts.DELETE_HORIZON_BIT, 1 << 7
AGES = 1 << 8  # if it is not set, every timestamp is the batch's anchor timestamp
OFFSETS = 1 << 9  # last offset delta and offsets; if it is not set, record i has offset base_offset + i
KEYS, VALUES = 1 << 10, 1 << 11  # if it is not set, all are null
HEADERS = 1 << 12
BASE, ANCHOR, WIDE = 1 << 13, 1 << 14, 1 << 15  # base timestamp, anchor, wide maximum timestamp
COLUMN_BITS = AGES | KEYS | VALUES | HEADERS
TIMES = HORIZON | BASE | ANCHOR | WIDE  # each stores a timestamp of TIME_BYTES
TIME_BYTES = 8
TIME_LIMIT = 1 << 47  # timestamps from -TIME_LIMIT to TIME_LIMIT - 1 fit the header
NULL, NO_TIMESTAMP, UNSET = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP, layouts.UNSET
ONE = np.uint64(1)


class ColumnarOutline(NamedTuple):
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
    has_holes: bool  # a record i has not the offset baseOffset + i, or the last offset is not that of the last record
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
    return ColumnarOutline(
        count, base_offset, last_delta, base_time, default, max_time, latest, latest - earliest,
        latest * count - sum_of_times, strays != 0 or first == end, far >> 32 != 0,
    )  # fmt: skip


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
    has_producer = row.producer_id != -1 or row.producer_epoch != -1 or row.base_sequence != -1
    bits = np.int64(PRODUCER if has_producer else 0)
    bits |= HORIZON if row.delete_horizon_ms >= 0 else 0
    bits |= BASE if batch.base_time != batch.default_base_time else 0
    is_wide = batch.max_time < -TIME_LIMIT or batch.max_time >= TIME_LIMIT
    return bits | (ANCHOR if is_anchored(row, batch) else 0) | (WIDE if is_wide else 0)


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
    max_time = np.int64(0) if bits & WIDE else batch.max_time
    put_i16(out, at + MAX_TIME, np.int16(max_time >> 32))
    put_i32(out, at + MAX_TIME + 2, np.int32(((max_time & 0xFFFFFFFF) ^ 2**31) - 2**31))  # the low 32 bits
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
def crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


class ColumnarHeader(NamedTuple):
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


class OptionalTimes(NamedTuple):
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
    """Read the OptionalTimes at p. Return them and the next position. max_time: the timestamp in the fixed part."""
    none = np.int64(NO_TIMESTAMP)
    horizon, p = _read_time(data, p, end, bits, HORIZON, none)
    base_time, p = _read_time(data, p, end, bits, BASE, none)
    anchor, p = _read_time(data, p, end, bits, ANCHOR, none)
    max_time, p = _read_time(data, p, end, bits, WIDE, max_time)
    return OptionalTimes(horizon, base_time, anchor if bits & ANCHOR else max_time, max_time), p


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
    times = OptionalTimes(np.int64(NO_TIMESTAMP), np.int64(NO_TIMESTAMP), max_time, max_time)
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
    return ColumnarHeader(
        np.int64(state), bits, count, last_delta, times.horizon, times.base_time, times.anchor, times.max_time,
        np.int64(p),
    )  # fmt: skip


# A broker's append: read what it checks in headers, and set offset and epoch in place.


@kernel
def rule_fields(data, positions, found):
    """Fill found, int64[5 * batches], with the `request_checks.RuleFields` of each batch.

    A header that is cut short or damaged breaks no rule: the reader refuses it.
    """
    for b in range(len(positions) - 1):
        at, end, i = positions[b], positions[b + 1], 5 * b
        found[i + 3], found[i + 4] = layouts.NO_PRODUCER_ID, layouts.NO_SEQUENCE
        read = read_header(data, at, end)
        if read.state != status.SOUND:
            found[i], found[i + 1], found[i + 2] = 0, 0, 1
            continue
        found[i], found[i + 1], found[i + 2] = read.attributes, read.last_delta, read.count
        if read.attributes & PRODUCER:
            p = at + HEADER
            found[i + 3], found[i + 4] = get_i64(data, p), np.int64(get_i32(data, p + SEQUENCE_AT))


@kernel
def keeps_times(data, positions, latest_ms, found):
    """Fill found, bool[batches]: whether a batch has create times, and the latest one as its maximum timestamp."""
    for b in range(len(found)):
        read = read_header(data, positions[b], positions[b + 1])
        found[b] = read.attributes & APPEND == 0 and max(read.max_time, np.int64(-1)) == latest_ms[b]


@kernel
def assign(data, positions, ends, epoch, chosen):
    """Set base offset and leader epoch of the chosen batches. Return the number of bytes written.

    ends: int64[batches], the next offset after the last record of each batch.
    """
    written = np.int64(0)
    for b in range(len(ends)):
        if chosen[b]:
            at = positions[b]
            put_i64(data, at, ends[b] - 1 - read_header(data, at, positions[b + 1]).last_delta)
            put_i32(data, at + EPOCH, np.int32(epoch))
            written += 12
    return written


@skimming
@kernel
def add_record_counts(data, positions, most, found):
    """Set the record counts of columnar batches in found, int64[batches], limited to the range from 1 to `most`."""
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        if data[at + MAGIC] == THIS_MAGIC and end - at > HEADER:
            found[b] = min(max(read_header(data, at, end).count, np.int64(1)), most)


# Batches that were read become BATCH rows.


@kernel
def describe(data, positions, starts, ends, bounds, created, sound, rows):
    """Fill a BATCH row for each undamaged batch. The field `canonical` is left to `mark_canonical`.

    Args:
        data uint8[], positions int64[batches + 1]: the log and the positions of its batches, checked by `reading.index`
        starts, ends int64[batches]: bounds of the uncompressed payload of each batch
        bounds int64[sound batches + 1]: number of the first record of each undamaged batch
        created int64[records]: create times in ms
        sound int64[sound batches]: the numbers of the undamaged batches
        rows BATCH[sound batches]: filled
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        header = read_header(data, at, end)
        bits, base_time, producer = header.attributes, header.base_time, at + HEADER
        if bits & HORIZON:
            base_time = header.horizon
        elif not bits & BASE and header.count:
            base_time = created[bounds[i]]
        signed = np.int64(get_i16(data, at + ATTRIBUTES))
        common = BatchHeader(signed, header.last_delta, base_time, header.max_time, header.count, header.body)
        describe_header(data, at, end, THIS_MAGIC, common, header.count, row)
        row.crc, row.partition_leader_epoch = get_u32(data, at + CRC), get_i32(data, at + EPOCH)
        row.producer_id, row.producer_epoch, row.base_sequence, row.last_sequence = -1, -1, -1, -1
        if bits & PRODUCER:
            describe_producer(data, producer, header.last_delta, row)
        row.delete_horizon_ms = header.horizon
        row.records_size_bytes = ends[b] - starts[b]


@kernel
def mark_canonical(
    data, positions, bodies, source, starts, ends, sound, encoded, encoded_positions, encoded_bodies, rows
):
    """Set `canonical` of each row: whether our encoder writes the same bytes for the records of the batch.

    Batch lengths and checksums are not compared.

    Args:
        data uint8[], positions int64[batches + 1], bodies int64[batches]: the log, its batches and their payloads
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the uncompressed payload of batch b
        sound int64[sound batches], rows BATCH[sound batches]: numbers of the undamaged batches, and rows to fill
        encoded uint8[], encoded_positions, encoded_bodies: the undamaged batches, encoded again without a codec
    """
    for i in range(len(sound)):
        b = sound[i]
        at, other = positions[b], encoded_positions[i]
        prefix, payload = encoded_bodies[i] - other, encoded_positions[i + 1] - encoded_bodies[i]
        same = bodies[b] - at == prefix and ends[b] - starts[b] == payload
        if same:
            same = same_bytes(data, at, encoded, other, LENGTH)
            same &= same_bytes(data, at + EPOCH, encoded, other + EPOCH, CRC - EPOCH)
            bits, other_bits = get_i16(data, at + ATTRIBUTES), get_i16(encoded, other + ATTRIBUTES)
            same &= (bits ^ other_bits) & ~CODEC_MASK == 0 and (rows[i].count > 0 or bits & CODEC_MASK == 0)
            same &= same_bytes(data, at + MAX_TIME, encoded, other + MAX_TIME, prefix - MAX_TIME)
            same &= same_bytes(source, starts[b], encoded, encoded_bodies[i], payload)
        rows[i].canonical = same
