"""Write and read records that stand one after another, each with all its fields (Kafka's `DefaultRecord`).

v2 uses this order, and v3 unless its feature "headers first" puts the metadata of all records before the payload.
"""

import numpy as np

from kfbench.kernels.formats import batch_header, batch_writing
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64, get_u8, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead, ask_on
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
from kfbench.kernels.wire.sealing import FULL, Body, followed
from kfbench.kernels.wire.varint import get_varlong, is_shortest, put_uvarint, uvarint_bytes, varint_bytes, zigzag


@leaf
def _put_record(out, at, columns, i, span, attribute_bytes, shared, with_headers, unsigned):
    """Write record i, with its length field. Return the next position, or FULL if it does not fit.

    Args:
        columns, i: the columns of all records, and the number of the record.
        out, at, span, attribute_bytes, shared, with_headers, unsigned: as in `_put_records`.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    keys, key_starts, values, value_starts = columns[7:11]
    time_delta = zigzag(timestamps[i] - span.base_time_ms)
    offset_delta = delta_code(offsets[i] - span.base_offset, unsigned)
    key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
    size = (
        attribute_bytes + uvarint_bytes(time_delta) + uvarint_bytes(offset_delta)
        + length_bytes(key_length, unsigned) + max(key_length, 0)
        + length_bytes(value_length, unsigned) + max(value_length, 0)
    )  # fmt: skip
    if with_headers:
        size += header_bytes(header_bounds, columns[5], columns[6], i, shared, unsigned)
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
        out, at, columns, first, end, span, attribute_bytes, shared, crc: as in `batch_writing.put_body`.
        with_headers: a literal bool; False if no record of the batch has a header.
        unsigned: a literal bool: write lengths as unsigned varints.
    """
    offsets, far = columns[1], np.int64(0)
    for i in range(first, end):
        at = _put_record(out, at, columns, i, span, attribute_bytes, shared, with_headers, unsigned)
        if at == FULL:
            break
        far |= offsets[i] - span.base_offset + 2**31
        crc = followed(crc, out, at)
    return Body(np.int64(at), far, crc)


@leaf
def _put_body(out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc):
    """Write the records of a batch. Args: as in `batch_writing.put_body`."""
    if columns[4][first] == columns[4][end]:
        return _put_records(out, at, columns, first, end, span, attribute_bytes, shared, False, unsigned, crc)
    return _put_records(out, at, columns, first, end, span, attribute_bytes, shared, True, unsigned, crc)


@leaf
def size_of(columns, i, span, attribute_bytes, shared, unsigned):
    """Return the value of the length field of record i. shared: the number of its headers that tag 1 stores instead."""
    key_length, value_length = np.int64(columns[2][i]), np.int64(columns[3][i])
    return (
        attribute_bytes + varint_bytes(columns[0][i] - span.base_time_ms)
        + uvarint_bytes(delta_code(columns[1][i] - span.base_offset, unsigned))
        + length_bytes(key_length, unsigned) + max(key_length, 0)
        + length_bytes(value_length, unsigned) + max(value_length, 0)
        + header_bytes(columns[4], columns[5], columns[6], i, shared, unsigned)
    )  # fmt: skip


@leaf
def _body_bytes(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Return the size in bytes of all records of a batch. Args: as in `batch_writing.body_bytes`."""
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    any_headers = len(columns[5]) > 0
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


encode, encode_tagged, encode_unsigned, encode_tagged_unsigned, sizes, sizes_unsigned = batch_writing.kernels_for(
    __name__, _put_body, _body_bytes
)


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


@kernel
def fetch(data, positions, magic, indices, state, columns):
    """Read one record of each batch. Check no checksum.

    Args:
        data, positions: uint8 log, and int64[batches + 1].
        magic: 2 or 3.
        indices: int64[batches], the number of the record within each batch, from 0.
        state: int8[batches], filled with the `status` of each batch; compressed batches get NOT_FETCHED.
        columns: arrays of an `Index` without create times; row b is filled with the record of batch b.
    """
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        ask_ahead(data, positions, b)
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + batch_header.MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        if end - at < (batch_header.V2_SIZE if magic == 2 else batch_header.V3_SIZE):
            state[b] = status.SIZE
            continue
        header = batch_header.read_header(data, at, end, magic)
        bits, p = header.attributes, header.body
        attribute_bytes, problem = batch_header.attribute_bytes_of(bits, magic), status.SOUND
        if p > end:
            problem = status.BATCH_HEADER
        elif header.count < 0:
            problem = status.COUNT
        elif bits & (
            batch_header.CODEC_MASK
            | (batch_header.UNSIGNED | batch_header.HEADERS_FIRST | batch_header.TAGGED if magic == 3 else 0)
        ):
            problem = status.NOT_FETCHED
        elif i < 0 or i >= header.count:
            problem = status.NO_SUCH_RECORD
        else:
            for _ in range(i):
                size, p = get_count(data, p, end, False)
                if size < 0 or size > end - p:
                    problem = status.RECORD_LENGTH
                    break
                ask_on(data, p, size)
                p += size
        if problem != status.SOUND:
            state[b] = problem
            continue
        size, p = get_count(data, p, end, False)
        stop = p + size
        if p > end or size < attribute_bytes or stop > end:
            state[b] = status.RECORD_LENGTH
            continue
        delta, p = get_varlong(data, p + attribute_bytes, stop)
        timestamps[b] = header.max_time_ms if bits & batch_header.APPEND else header.base_time_ms + delta
        delta, p = get_delta(data, p, stop, False)
        offsets[b] = get_i64(data, at) + delta
        length, p = get_length(data, p, stop, False)
        key_lengths[b], key_starts[b] = max(length, batch_header.NULL), p
        if p > stop or length > stop - p:
            state[b] = status.KEY_LENGTH
            continue
        length, p = get_length(data, p + max(length, 0), stop, False)
        value_lengths[b], value_starts[b] = max(length, batch_header.NULL), p
        if p > stop or length > stop - p:
            state[b] = status.VALUE_LENGTH


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
def is_canonical(source, p, end, attribute_bytes, unsigned):
    """Return whether the record at p has the bytes that our encoder would write, and the next position.

    All varints must have the fewest possible bytes, nulls the length -1, and attributes must be 0.
    """
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
        p += max(length, 0)
    headers, p, short = skip(source, p, end, unsigned)
    whole &= short
    for _ in range(headers):
        key_length, p, short = skip(source, p, end, unsigned)
        whole &= short
        p += key_length
        length, p, short = skip_length(source, p, end, unsigned)
        whole &= short
        p += max(length, 0)
    return whole, p
