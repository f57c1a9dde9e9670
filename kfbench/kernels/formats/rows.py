"""Write and read records that stand one after another, each with all its fields (Kafka's `DefaultRecord`).

v2 uses this order, and v3 unless its feature "headers first" puts the metadata of all records before the payload.
"""

import numpy as np

from kfbench.kernels.formats import batch_header
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_u8, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_on
from kfbench.kernels.wire.lengths import (
    count_bytes,
    delta_code,
    get_count,
    get_delta,
    get_length,
    header_bytes,
    length_bytes,
    put_count,
    put_field,
    put_header_list,
    skip,
    skip_length,
    small_varint_bytes,
)
from kfbench.kernels.wire.sealing import FULL, Body, extend_crc
from kfbench.kernels.wire.varint import get_varlong, is_shortest, put_uvarint, uvarint_bytes, varint_bytes, zigzag


@leaf
def _put_record(out, at, columns, i, span, attribute_bytes, shared, with_headers, unsigned):
    """Write record i, with its length field. Return the next position, or FULL if it does not fit.

    Args:
        columns, i: the columns of all records, and the number of the record.
        out, at, span, attribute_bytes, shared, with_headers, unsigned: as in `_put_records`.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    keys, key_starts = columns.key_data, columns.key_starts
    values, value_starts = columns.value_data, columns.value_starts
    time_delta = zigzag(timestamps[i] - span.base_time_ms)
    offset_delta = delta_code(offsets[i] - span.base_offset, unsigned)
    key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
    size = (
        attribute_bytes + uvarint_bytes(time_delta) + uvarint_bytes(offset_delta)
        + length_bytes(key_length, unsigned) + max(key_length, 0)
        + length_bytes(value_length, unsigned) + max(value_length, 0)
    )  # fmt: skip
    if with_headers:
        size += header_bytes(columns, i, shared, unsigned)
    else:
        size += 1
    if size + 5 > len(out) - at and size + count_bytes(size, unsigned) > len(out) - at:
        return FULL
    # Putting length, deltas and key length together in one word measured 15 % slower than these loops.
    at = put_count(out, at, size, unsigned)
    put_u8(out, at, np.uint8(0))  # overwritten if records have no attributes
    at = put_uvarint(out, at + attribute_bytes, time_delta)
    at = put_uvarint(out, at, offset_delta)
    at = put_field(out, at, keys, key_starts[i], key_length, unsigned)
    at = put_field(out, at, values, value_starts[i], value_length, unsigned)
    if with_headers:
        first, end = np.int64(header_bounds[i]) + shared, np.int64(header_bounds[i + batch_header.ONE])
        return put_header_list(out, at, columns, first, end, unsigned)
    put_u8(out, at, np.uint8(0))
    return at + 1


@leaf
def _put_records(out, at, columns, first, end, span, attribute_bytes, shared, with_headers, unsigned, crc):
    """Write the records of a batch. Return a `sealing.Body`; its position is FULL if they do not fit.

    Args:
        out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc: as in `put_body`.
        with_headers: a literal bool; False if no record of the batch has a header.
    """
    offsets, far = columns.offsets, np.int64(0)
    for i in range(first, end):
        at = _put_record(out, at, columns, i, span, attribute_bytes, shared, with_headers, unsigned)
        if at == FULL:
            break
        far |= offsets[i] - span.base_offset + 2**31
        crc = extend_crc(crc, out, at)
    return Body(np.int64(at), far, crc)


@leaf
def put_body(out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc):
    """Write the records first to end - 1. Return a `sealing.Body`; its position is FULL if they do not fit.

    Args:
        out, at: uint8 buffer and position.
        columns: RecordColumns.
        first, end: uint64, bounds of the batch's records.
        span: the Outline of the batch.
        attribute_bytes: the size of each record's attributes, 0 or 1.
        shared: the number of headers per record that tag 1 has; they are not written again.
        unsigned: a literal, see `wire.lengths`.
        crc: the RunningCrc of the batch up to `at`.
    """
    if columns.header_bounds[first] == columns.header_bounds[end]:
        return _put_records(out, at, columns, first, end, span, attribute_bytes, shared, False, unsigned, crc)
    return _put_records(out, at, columns, first, end, span, attribute_bytes, shared, True, unsigned, crc)


@leaf
def size_of(columns, i, span, attribute_bytes, shared, unsigned):
    """Return the value of the length field of record i. shared: the number of its headers that tag 1 stores instead."""
    key_length, value_length = np.int64(columns.key_lengths[i]), np.int64(columns.value_lengths[i])
    return (
        attribute_bytes + varint_bytes(columns.timestamps_ms[i] - span.base_time_ms)
        + uvarint_bytes(delta_code(columns.offsets[i] - span.base_offset, unsigned))
        + length_bytes(key_length, unsigned) + max(key_length, 0)
        + length_bytes(value_length, unsigned) + max(value_length, 0)
        + header_bytes(columns, i, shared, unsigned)
    )  # fmt: skip


@leaf
def body_bytes(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Return the number of bytes that `put_body` would write. columns: ShapeColumns. Other args: as in `put_body`."""
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    any_headers = len(columns.header_key_lengths) > 0
    total, wide = np.int64(0), np.int64(0)
    if not any_headers:
        for i in range(first, end):
            time_delta, delta = timestamps[i] - span.base_time_ms, offsets[i] - span.base_offset
            far = delta if unsigned else (delta << 1) ^ (delta >> 63)
            wide |= ((time_delta << 1) ^ (time_delta >> 63)) | far
    if any_headers or wide >> 28 != 0:
        for i in range(first, end):
            size = size_of(columns, i, span, attribute_bytes, shared, unsigned)
            total += size + count_bytes(size, unsigned)
        return total
    for i in range(first, end):  # nearly every batch takes this loop, which compilers vectorize
        time_delta, delta = timestamps[i] - span.base_time_ms, offsets[i] - span.base_offset
        near = (time_delta << 1) ^ (time_delta >> 63)
        far = delta if unsigned else (delta << 1) ^ (delta >> 63)
        key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
        size = (
            1 + attribute_bytes + small_varint_bytes(near) + small_varint_bytes(far)
            + length_bytes(key_length, unsigned) + max(key_length, 0)
            + length_bytes(value_length, unsigned) + max(value_length, 0)
        )  # fmt: skip
        total += size + count_bytes(size, unsigned)
    return total


@leaf
def read(source, run, columns, header_bounds, unsigned):
    """Read the records of a RecordRun into the columns of an `Index` and header_bounds. Return the batch's `status`."""
    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    p, end, attribute_bytes = run.start, run.end, run.attribute_bytes
    headers_before = header_bounds[run.row]
    for q in range(np.uint64(run.row), np.uint64(run.row + run.count)):
        size, p = get_count(source, p, end, unsigned)
        stop = p + size
        if p > end or size < attribute_bytes or stop > end:
            return status.RECORD_LENGTH
        delta, p = get_varlong(source, p + attribute_bytes, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = run.base_time_ms + delta
        timestamps[q] = run.append_time_ms if run.is_append else run.base_time_ms + delta
        delta, p = get_delta(source, p, stop, unsigned)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = run.base_offset + delta
        length, p = get_length(source, p, stop, unsigned)
        if length > stop - p:
            return status.KEY_LENGTH
        key_lengths[q], key_starts[q] = max(length, batch_header.NULL), p  # any negative length is null to Kafka
        length, p = get_length(source, p + max(length, 0), stop, unsigned)
        if length > stop - p:
            return status.VALUE_LENGTH
        value_lengths[q], value_starts[q] = max(length, batch_header.NULL), p
        headers, p = get_count(source, p + max(length, 0), stop, unsigned)
        if headers < 0 or headers > (stop - p) >> 1:  # a header has at least two bytes
            return status.HEADER_COUNT
        headers_before += run.shared + headers
        header_bounds[q + batch_header.ONE] = headers_before
        for _ in range(headers):
            key_length, p = get_count(source, p, stop, unsigned)
            if key_length < 0 or key_length > stop - p:
                return status.HEADER_KEY_LENGTH
            length, p = get_length(source, p + key_length, stop, unsigned)
            if length > stop - p:
                return status.HEADER_VALUE_LENGTH
            if max(key_length, length) > run.most_bytes:
                return status.LIMIT_FIELD
            p += max(length, 0)
        if p != stop:
            return status.RECORD_LENGTH
    return status.SOUND if p == end else status.TRAILING


@leaf
def read_times(source, run, timestamps, offsets):
    """Read only the offsets and timestamps of a batch's records. Their varints must be signed (zig-zag).

    Return the batch's `status`. Damage in other fields than length, timestamp and offset is not noticed.
    """
    p, end, attribute_bytes = run.start, run.end, run.attribute_bytes
    for q in range(np.uint64(run.row), np.uint64(run.row + run.count)):
        size, p = get_count(source, p, end, False)
        stop = p + size
        if p > end or size < attribute_bytes or stop > end:
            return status.RECORD_LENGTH
        ask_on(source, p, size)
        delta, p = get_varlong(source, p + attribute_bytes, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        timestamps[q] = run.append_time_ms if run.is_append else run.base_time_ms + delta
        delta, p = get_delta(source, p, stop, False)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = run.base_offset + delta
        p = stop
    return status.SOUND if p == end else status.TRAILING


@leaf
def read_headers(source, p, h, number, headers, unsigned):
    """Read `number` undamaged record headers at p into the rows of `headers` from row h on."""
    key_lengths, key_starts, value_lengths, value_starts = headers
    end = len(source)
    for k in range(np.uint64(h), np.uint64(h + number)):
        length, p = get_count(source, p, end, unsigned)
        key_lengths[k], key_starts[k] = length, p
        length, p = get_length(source, p + length, end, unsigned)
        value_lengths[k], value_starts[k] = max(length, batch_header.NULL), p
        p += max(length, 0)


@leaf
def is_canonical(source, p, end, attribute_bytes, unsigned, metadata_first):
    """Return whether the record at p has the bytes that our encoder would write, and the next position.

    All varints must have the fewest possible bytes, nulls the length -1, and attributes must be 0. metadata_first: True
    if the record has no length, and its payload lies elsewhere.
    """
    whole = True
    if not metadata_first:
        _, p, whole = skip(source, p, end, unsigned)
    if attribute_bytes:
        whole &= get_u8(source, p) == 0
        p += 1
    delta, after = get_varlong(source, p, end)
    whole &= is_shortest(source, p, after, delta)
    _, p, short = skip(source, after, end, unsigned)
    whole &= short
    for _ in range(2):
        length, p, short = skip_length(source, p, end, unsigned)
        whole &= short
        p += 0 if metadata_first else max(length, 0)
    headers, p, short = skip(source, p, end, unsigned)
    whole &= short
    for _ in range(headers):
        length, p, short = skip(source, p, end, unsigned)
        whole &= short
        p += 0 if metadata_first else length
        length, p, short = skip_length(source, p, end, unsigned)
        whole &= short
        p += 0 if metadata_first else max(length, 0)
    return whole, p
