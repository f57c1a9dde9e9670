"""Kernels that read columnar batches: batch headers, columns, and the positions of keys and values in the payload.

Common parameters:

    data uint8[], positions int64[batches + 1]: the log, and the positions of its batches
    p, end: a position in `data`, and the end of the batch
    n, r: number of records of the batch, and row of its first record
    header, base_offset: the ColumnarHeader and the base offset of the batch
    i: index of the record to read in its batch
    max_bytes: largest length of a key or value allowed
    x int64[records of the largest batch + GROUP]: scratch
    columns: IndexColumns, filled from row r on; kernels take a tuple of its arrays
    state int8[batches]: see `status`; a damaged batch gets the number of the broken promise
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats import control
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64, get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.varint import get_varlong
from kfbench.research.columnar.kernels import batch_header as layout
from kfbench.research.columnar.kernels import columns as packed
from kfbench.research.columnar.kernels.batch_header import crc_holds, read_header
from kfbench.research.columnar.kernels.columns import (
    ALL_ALIKE,
    ZERO,
    LengthAround,
    check_code,
    read_around,
    read_at,
    read_length,
)
from kfbench.research.columnar.kernels.header_reading import read_header_counts
from kfbench.research.columnar.kernels.simd_int64 import put_line, put_starts


class Survey(NamedTuple):
    """A summary of the batch headers of a log."""

    records: int  # number of records that the headers of all undamaged batches state
    largest: int  # number of records of the largest batch
    has_append_time: bool  # in any batch
    has_headers: bool  # in any batch


@kernel
def survey(data, positions, max_records, max_in_log, check_crcs, counts, state):
    """Read and check each batch header of a log. Return the Survey.

    Args:
        data, positions, state: see the module docstring
        max_records, max_in_log: records allowed per batch, and in the log
        check_crcs: whether to check the CRC of batches that are damaged or claim more records than they have bytes
        counts int64[batches]: filled with the number of records
    """
    records, largest, has_append_time, has_headers = ZERO, ZERO, False, False
    for b in range(len(state)):
        if not check_crcs:
            ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        counts[b] = 0
        if get_i8(data, at + layout.MAGIC) != layout.THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= layout.HEADER:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end)
        problem, count = header.state, header.count
        if problem == status.SOUND:
            if count > max_records:
                problem = status.LIMIT_RECORDS
            elif count > max_in_log - records:
                problem = status.LIMIT_LOG_RECORDS
        if check_crcs and (problem != status.SOUND or count > end - at) and not crc_holds(data, at, end):
            problem = status.CRC
        state[b] = problem
        if problem == status.SOUND:
            counts[b] = count
            records += count
            largest = max(largest, count)
            has_append_time |= header.attributes & layout.APPEND != 0
            has_headers |= header.attributes & layout.HEADERS != 0
    return Survey(records, largest, has_append_time, has_headers)


class IndexColumns(NamedTuple):
    """The output arrays of reading kernels: one item per record, with room for GROUP more."""

    timestamps: np.ndarray  # int64[]: as consumers see them; the same array as `created` without log append time
    created: np.ndarray  # int64[]: create times, as the producer set them
    offsets: np.ndarray  # int64[]
    key_lengths: np.ndarray  # int32[], -1 for a null
    key_starts: np.ndarray  # int64[]
    value_lengths: np.ndarray  # int32[], -1 for a null
    value_starts: np.ndarray  # int64[]


class ReadColumns(NamedTuple):
    """The result of reading the columns of one batch. All fields are int64."""

    state: int
    position: int  # the position after the columns; with one record it may be after the end of the batch
    key_bytes: int  # sum of the key lengths
    value_bytes: int


@leaf
def _read_only_times(data, p, end, bits):
    """Read the age and the offset delta of a batch's only record. Return both and the next position."""
    age = delta = ZERO
    if bits & layout.AGES:
        age, p = get_varlong(data, p, end)
    if bits & layout.OFFSETS:
        delta, p = get_varlong(data, p, end)
    return age, delta, p


@leaf
def _read_only_lengths(data, p, end, bits, max_bytes):
    """Read the lengths of a batch's only record. Return the state, the next position, the key and value length."""
    state, p, key_length = read_length(data, p, end, bits & layout.KEYS != 0, max_bytes)
    if state != status.SOUND:
        return state, p, key_length, ZERO
    state, p, value_length = read_length(data, p, end, bits & layout.VALUES != 0, max_bytes)
    return state, p, key_length, value_length


@leaf
def _read_times(data, p, end, n, header, base_offset, created, offsets, r):
    """Read create times and offsets of n >= 1 records. Return the state and the next position.

    Args: see the module docstring; created int64[], offsets int64[]: filled from row r on.
    """
    bits, to = header.attributes, np.uint64(r)
    if n == 1:
        age, delta, p = _read_only_times(data, p, end, bits)
        created[to], offsets[to] = header.anchor - age, base_offset + delta
        return status.COLUMN_OFFSET if (delta + 2**31) >> 32 else status.SOUND, p
    if bits & layout.AGES:
        state, p = packed.read(data, p, end, n, True, header.anchor, np.int64(-1), created, r)
        if state != status.SOUND:
            return state, p
    else:
        put_line(created, to, n, header.anchor, ZERO)
    if not bits & layout.OFFSETS:
        put_line(offsets, to, n, base_offset, np.int64(1))
        return status.SOUND, p
    state, p = packed.read(data, p, end, n, True, ZERO, np.int64(1), offsets, r)
    if state != status.SOUND:
        return state, p
    far = ZERO
    for i in range(to, to + np.uint64(n)):
        far |= offsets[i] + 2**31
        offsets[i] += base_offset
    return status.COLUMN_OFFSET if far >> 32 else status.SOUND, p


@leaf
def _read_lengths(data, p, end, n, has_column, max_bytes, x, lengths, to):
    """Read the key or value lengths of n >= 2 records into lengths[to:to + n]. Without a column, all are null (-1).

    Return the state, the next position and the sum of the lengths.

    Args:
        data, p, end, n, max_bytes, x: see the module docstring
        has_column: whether the batch has this column
        lengths, to: as in `columns.read_lengths`
    """
    if not has_column:
        put_line(lengths, to, n, np.int64(layout.NULL), ZERO)
        return status.SOUND, p, ZERO
    if p < end and get_u8(data, p) == ALL_ALIKE:  # the common case, without a call
        code, p = get_varlong(data, p + 1, end)
        put_line(lengths, to, n, code - 1, ZERO)
        return status.COLUMN if p > end else check_code(code, max_bytes), p, max(code - 1, 0) * n
    return packed.read_lengths(data, p, end, n, max_bytes, x, lengths, to)


@leaf
def _read_columns(data, end, n, header, base_offset, max_bytes, x, columns, r):
    """Read the columns of ages, offsets, key lengths and value lengths of n >= 1 records. Return the ReadColumns.

    An age is the time by which a record is older than the anchor of its batch. Args: see the module docstring.
    """
    bits, to = header.attributes, np.uint64(r)
    state, p = _read_times(data, header.body, end, n, header, base_offset, columns.created, columns.offsets, r)
    if state != status.SOUND:
        return ReadColumns(np.int64(state), np.int64(p), ZERO, ZERO)
    if n == 1:
        state, p, key_length, value_length = _read_only_lengths(data, p, end, bits, max_bytes)
        columns.key_lengths[to], columns.value_lengths[to] = key_length, value_length
        if state == status.SOUND and p > end:
            state = status.COLUMN
        return ReadColumns(np.int64(state), np.int64(p), max(key_length, 0), max(value_length, 0))
    has_keys, has_values = bits & layout.KEYS != 0, bits & layout.VALUES != 0
    state, p, key_bytes = _read_lengths(data, p, end, n, has_keys, max_bytes, x, columns.key_lengths, to)
    if state != status.SOUND:
        return ReadColumns(np.int64(state), np.int64(p), ZERO, ZERO)
    state, p, value_bytes = _read_lengths(data, p, end, n, has_values, max_bytes, x, columns.value_lengths, to)
    return ReadColumns(np.int64(state), np.int64(p), key_bytes, value_bytes)


@leaf
def _place(columns, r, n, at, key_bytes):
    """Compute the key starts and value starts of n records, whose payload begins at position `at`."""
    key_lengths, key_starts = columns.key_lengths, columns.key_starts
    value_lengths, value_starts = columns.value_lengths, columns.value_starts
    if n == 1:  # a vector load would wait for the lengths that were just stored
        key_starts[np.uint64(r)], value_starts[np.uint64(r)] = at, at + key_bytes
        return
    if key_bytes:
        put_starts(key_starts, key_lengths, np.uint64(r), n, at)
    else:
        put_line(key_starts, np.uint64(r), n, at, ZERO)
    put_starts(value_starts, value_lengths, np.uint64(r), n, at + key_bytes)


@leaf
def _are_controls_sound(source, columns, r, n):
    for i in range(np.uint64(r), np.uint64(r + n)):
        if not control.is_sound(
            source, columns.key_starts[i], np.int64(columns.key_lengths[i]), source, columns.value_starts[i],
            np.int64(columns.value_lengths[i]),
        ):  # fmt: skip
            return False
    return True


@leaf
def _set_times(columns, header, r, n, has_two_clocks):
    """Fill the timestamps that consumers see for n records, from row r on. The create times must be filled already."""
    if header.attributes & layout.APPEND:
        put_line(columns.timestamps, np.uint64(r), n, header.max_time, ZERO)
        if not header.attributes & layout.ANCHOR:  # the broker has overwritten the time from which ages count
            put_line(columns.created, np.uint64(r), n, np.int64(layout.NO_TIMESTAMP), ZERO)
    elif has_two_clocks:
        for i in range(np.uint64(r), np.uint64(r + n)):
            columns.timestamps[i] = columns.created[i]


@kernel
def index(data, positions, counts, limits, check_crcs, has_two_clocks, with_payload, x, state, columns, header_bounds,
          bodies, totals, codecs, bounds):  # fmt: skip
    """Read the columns of each undamaged batch. Return the number of bytes that were read.

    No payload is copied, and a compressed payload is not read. A damaged batch gets no records.

    Args:
        data, positions, x, state, columns: see the module docstring
        counts int64[batches]: from `survey`
        limits: the largest bytes per field, headers per batch, and headers in the log
        check_crcs: whether to check checksums
        has_two_clocks: whether `timestamps` and `created` are two arrays
        with_payload: whether to fill the starts of keys and values, if the payload is uncompressed without headers
        header_bounds int64[records + 1 + GROUP]: filled; empty if no batch has headers
        bodies int64[batches]: filled with the position of the payload, or of the header columns
        totals int64[batches]: filled with the size of keys and values
        codecs int8[batches]: filled with the codec; 0 if there is nothing to decompress
        bounds int64[batches + 1]: filled with the bounds of the records of each batch
    """
    rows = IndexColumns(*columns)
    r, plain_bytes = ZERO, ZERO
    bounds[0] = 0
    if len(header_bounds):
        header_bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        codecs[b] = totals[b] = bodies[b] = 0
        if state[b] != status.SOUND:
            continue
        at, end, count = positions[b], positions[b + 1], counts[b]
        if check_crcs and not crc_holds(data, at, end):
            state[b] = status.CRC
            continue
        header = read_header(data, at, end)
        bits = header.attributes
        found = ReadColumns(np.int64(status.SOUND), header.body, ZERO, ZERO)
        if count:
            found = _read_columns(data, end, count, header, get_i64(data, at), limits[0], x, rows, r)
        problem, p = found.state, found.position
        if problem == status.SOUND:
            problem, p = read_header_counts(data, p, end, count, bits, limits, x, header_bounds, r)
        if problem == status.SOUND:
            if p < end and count:
                codecs[b] = bits & layout.CODEC_MASK
            if codecs[b] == 0 and bits & layout.HEADERS == 0:
                if p + found.key_bytes + found.value_bytes != end:
                    problem = status.PAYLOAD
                elif with_payload:
                    _place(rows, r, count, p, found.key_bytes)
                    if bits & layout.CONTROL and not _are_controls_sound(data, rows, r, count):
                        problem = status.CONTROL_RECORD
        state[b] = problem
        if problem == status.SOUND:
            _set_times(rows, header, r, count, has_two_clocks)
            bodies[b], totals[b] = found.position, found.key_bytes + found.value_bytes
            plain_bytes += p - at
            r += count
            bounds[b + 1] = r
    return plain_bytes


@kernel
def times(data, positions, counts, state, timestamps, offsets, bounds):
    """Read only offsets and timestamps (those that consumers see) of each undamaged batch. Check no checksum.

    Args:
        data, positions, state: see the module docstring
        timestamps int64[records + GROUP], offsets int64[records + GROUP]: filled
        counts, bounds: as in `index`
    """
    r = ZERO
    bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND or counts[b] == 0:
            continue
        ask_ahead(data, positions, b)
        at, end, count = positions[b], positions[b + 1], counts[b]
        header = read_header(data, at, end)
        state[b], p = _read_times(data, header.body, end, count, header, get_i64(data, at), timestamps, offsets, r)
        if p > end:
            state[b] = status.COLUMN
        if state[b] == status.SOUND:
            if header.attributes & layout.APPEND:
                put_line(timestamps, np.uint64(r), count, header.max_time, ZERO)
            r += count
            bounds[b + 1] = r


@kernel
def place(data, positions, source, starts, ends, bounds, totals, header_totals, state, columns):
    """Fill the starts of keys and values in batches that have a codec or headers. Call it after `index`.

    Args:
        data, positions, state: see the module docstring
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the uncompressed payload of batch b
        bounds: as in `index`
        totals, header_totals int64[batches]: bytes of keys and values per batch, and bytes of headers per batch
        columns: as in `index`; up to GROUP rows of the next batch are overwritten before they are filled
    """
    rows = IndexColumns(*columns)
    for b in range(len(state)):
        r, n = bounds[b], bounds[b + 1] - bounds[b]
        if n == 0 or state[b] != status.SOUND:
            continue
        header = read_header(data, positions[b], positions[b + 1])
        if ends[b] - starts[b] != totals[b] + header_totals[b]:
            state[b] = status.PAYLOAD
            continue
        key_bytes = ZERO
        for i in range(np.uint64(r), np.uint64(r + n)):
            key_bytes += max(np.int64(rows.key_lengths[i]), 0)
        _place(rows, r, n, starts[b], key_bytes)
        if header.attributes & layout.CONTROL and not _are_controls_sound(source, rows, r, n):
            state[b] = status.CONTROL_RECORD


# The rest reads single records of batches without the others.


class FetchedRecord(NamedTuple):
    """One record, read from the columns of its batch. The fields but key and value are int64."""

    state: int
    age: int
    offset_delta: int
    key: LengthAround
    value: LengthAround  # its position is that of the batch's payload


@leaf
def _read_record(data, p, end, n, bits, i, max_bytes):
    """Read record i of a batch. Return the FetchedRecord.

    Args: see the module docstring; bits: attributes of the batch.
    """
    if n == 1:
        age, delta, p = _read_only_times(data, p, end, bits)
        state, p, key_length, value_length = _read_only_lengths(data, p, end, bits, max_bytes)
        key = LengthAround(np.int64(state), p, key_length, ZERO, max(key_length, 0))
        value = LengthAround(np.int64(state), p, value_length, ZERO, ZERO)
        return FetchedRecord(np.int64(state), age, delta, key, value)
    age, delta = ZERO, i
    key = LengthAround(np.int64(status.SOUND), p, np.int64(layout.NULL), ZERO, ZERO)
    if bits & layout.AGES:
        state, p, age = read_at(data, p, end, n, i)
        if state != status.SOUND:
            return FetchedRecord(np.int64(state), age, delta, key, key)
    if bits & layout.OFFSETS:
        state, p, delta = read_at(data, p, end, n, i)
        if state != status.SOUND:
            return FetchedRecord(np.int64(state), age, delta, key, key)
    if bits & layout.KEYS:
        key = read_around(data, p, end, n, i, True, max_bytes)
        p = key.position
        if key.state != status.SOUND:
            return FetchedRecord(key.state, age, delta, key, key)
    if bits & layout.VALUES:
        value = read_around(data, p, end, n, i, False, max_bytes)
    else:
        value = LengthAround(np.int64(status.SOUND), p, np.int64(layout.NULL), ZERO, ZERO)
    return FetchedRecord(value.state, age, delta, key, value)


@leaf
def _check(header, i, max_records, max_in_log):
    """Check that record i of a batch exists and can be fetched. Return SOUND or the `status` of the problem."""
    if header.state != status.SOUND:
        return header.state
    if i < 0 or i >= header.count:
        return np.int64(status.NO_SUCH_RECORD)
    if header.attributes & (layout.CODEC_MASK | layout.HEADERS):
        return np.int64(status.NOT_FETCHED)
    if header.count > max_records:
        return np.int64(status.LIMIT_RECORDS)
    return np.int64(status.LIMIT_LOG_RECORDS if header.count > max_in_log else status.SOUND)


@kernel
def fetch(data, positions, indices, max_records, max_in_log, max_bytes, state, columns):
    """Read one record of each batch. Check no checksum.

    A batch that is damaged, has a codec or has headers gets its state and no record.

    Args:
        data, positions, max_bytes, state: see the module docstring
        indices int64[batches]: index of the record in its batch
        max_records: records allowed per batch
        max_in_log: records allowed in all batches; some columns are read value by value, and values may take no byte
        columns: the arrays of IndexColumns; row b is filled with the record of batch b, but no create time
    """
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        ask_ahead(data, positions, b)
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + layout.MAGIC) != layout.THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= layout.HEADER:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end)
        problem, bits, p = _check(header, i, max_records, max_in_log), header.attributes, header.body
        if problem != status.SOUND:
            state[b] = problem
            continue
        max_in_log -= header.count
        found = _read_record(data, p, end, header.count, bits, i, max_bytes)
        problem, key, value = found.state, found.key, found.value
        key_at, value_at = value.position + key.before, value.position + key.total + value.before
        if problem == status.SOUND and (found.offset_delta + 2**31) >> 32:
            problem = np.int64(status.COLUMN_OFFSET)
        if problem == status.SOUND and (
            min(key_at, value_at) < value.position
            or max(key.length, 0) > end - key_at
            or max(value.length, 0) > end - value_at
        ):
            problem = np.int64(status.PAYLOAD)
        state[b] = problem
        if problem == status.SOUND:
            timestamps[b] = header.max_time if bits & layout.APPEND else header.anchor - found.age
            offsets[b] = get_i64(data, at) + found.offset_delta
            key_lengths[b], key_starts[b] = key.length, key_at
            value_lengths[b], value_starts[b] = value.length, value_at
