"""Columnar batches read: headers, columns, and where the payload of each record lies.

Parameters of the functions here, unless they say otherwise:

    data uint8[], positions int64[batches + 1]: a log and its batches; p, end: positions in it, `end` of the batch
    n: number of the batch's records; r: row of the first of them
    most_bytes: greatest length allowed
    x int64[records of the largest batch + GROUP]: scratch
    columns: RecordColumns, filled from row r on; kernels take its arrays
    state int8[batches]: see `status`; a batch that breaks a promise gets its number
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats import control
from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.batch_header import (
    AGES,
    APPEND,
    BY_ROWS,
    CODEC_MASK,
    CONTROL,
    HAS_ANCHOR,
    HEADER,
    HEADERS,
    KEYS,
    MAGIC,
    NO_TIMESTAMP,
    NULL,
    NULL_KEYS,
    NULL_VALUES,
    OFFSETS,
    THIS_MAGIC,
    VALUES,
    crc_holds,
    read_header,
)
from kfbench.kernels.formats.columnar.columns import ALL_ALIKE, read_length
from kfbench.kernels.formats.columnar.header_counts import read_header_counts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64, get_u8
from kfbench.kernels.simd.simd_int64 import put_line, put_starts
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_varlong


@kernel
def survey(data, positions, most_records, most_in_all, check_crcs, counts, state):
    """Read each batch header.

    Return the number of records that batches claim, that of the largest batch, whether any batch has log append time,
    and whether any has headers.

    Args:
        most_records, most_in_all: records allowed per batch, and in all
        check_crcs: whether to check the CRC of batches that are damaged or claim more records than they have bytes
        counts int64[batches]: filled with the number of records
    """
    records, largest, append, headers = np.int64(0), np.int64(0), False, False
    for b in range(len(state)):
        if not check_crcs:
            ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        counts[b] = 0
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= HEADER:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end)
        problem, count = header.state, header.count
        if problem == status.SOUND:
            if count > most_records:
                problem = status.LIMIT_RECORDS
            elif count > most_in_all - records:
                problem = status.LIMIT_LOG_RECORDS
        if check_crcs and (problem != status.SOUND or count > end - at) and not crc_holds(data, at, end):
            problem = status.CRC
        state[b] = problem
        if problem == status.SOUND:
            counts[b] = count
            records += count
            largest = max(largest, count)
            append |= header.attributes & APPEND != 0
            headers |= header.attributes & HEADERS != 0
    return records, largest, append, headers


class RecordColumns(NamedTuple):
    """Columns that are filled in, one item per record, with room for GROUP more."""

    timestamps: np.ndarray  # int64[]: a consumer's; `created` where no batch has log append time
    created: np.ndarray  # int64[]: the producer's
    offsets: np.ndarray  # int64[]
    key_lengths: np.ndarray  # int32[], -1 of a null
    key_starts: np.ndarray  # int64[]
    value_lengths: np.ndarray  # int32[], -1 of a null
    value_starts: np.ndarray  # int64[]


class ReadColumns(NamedTuple):
    """The columns of one batch as they were read, int64 each."""

    state: int
    position: int  # behind the columns; of one record it may lie behind the end of the batch
    key_bytes: int
    value_bytes: int


@leaf
def _read_times(data, p, end, n, header, base_offset, created, offsets, r):
    """Read ages and offsets of n >= 1 records. Return the state and the next position.

    Args:
        header, base_offset: of the batch
        created int64[], offsets int64[]: filled from row r on; times are the producer's
    """
    bits, none, to = header.attributes, np.int64(0), np.uint64(r)
    if n == 1:
        age, delta = none, none
        if bits & AGES:
            age, p = get_varlong(data, p, end)
        if bits & OFFSETS:
            delta, p = get_varlong(data, p, end)
        created[to], offsets[to] = header.anchor - age, base_offset + delta
        return status.COLUMN_OFFSET if (delta + 2**31) >> 32 else status.SOUND, p
    if bits & AGES:
        state, p = packed.read(data, p, end, n, header.anchor, np.int64(-1), created, r)
        if state != status.SOUND:
            return state, p
    else:
        put_line(created, to, n, header.anchor, none)
    if not bits & OFFSETS:
        put_line(offsets, to, n, base_offset, np.int64(1))
        return status.SOUND, p
    state, p = packed.read(data, p, end, n, none, np.int64(1), offsets, r)
    if state != status.SOUND:
        return state, p
    far = none
    for i in range(to, to + np.uint64(n)):
        far |= offsets[i] + 2**31
        offsets[i] += base_offset
    return status.COLUMN_OFFSET if far >> 32 else status.SOUND, p


@leaf
def _read_lengths(data, p, end, n, has_column, has_nulls, most_bytes, x, lengths, to):
    """Read the lengths of n >= 2 records into lengths[to:to + n]: nulls if there is no column.

    Return the state, the next position and the bytes of all. The other parameters are those of `columns.read_lengths`.
    """
    if not has_column:
        put_line(lengths, to, n, np.int64(NULL), np.int64(0))
        return status.SOUND, p, np.int64(0)
    if not has_nulls and p < end and get_u8(data, p) == ALL_ALIKE:  # without a call
        length, p = get_varlong(data, p + 1, end)
        if p > end:
            return status.COLUMN, p, length
        if length < 0 or length > INT32_MAX:
            return status.COLUMN_LENGTH, p, length
        if length > most_bytes:
            return status.LIMIT_FIELD, p, length
        put_line(lengths, to, n, length, np.int64(0))
        return status.SOUND, p, length * n
    return packed.read_lengths(data, p, end, n, has_nulls, most_bytes, x, lengths, to)


@leaf
def _read_columns(data, end, n, header, base_offset, most_bytes, x, columns, r):
    """Read ages, offsets and lengths of n >= 1 records. Return ReadColumns. header, base_offset: of the batch."""
    bits, none, to = header.attributes, np.int64(0), np.uint64(r)
    state, p = _read_times(data, header.body, end, n, header, base_offset, columns.created, columns.offsets, r)
    if state != status.SOUND:
        return ReadColumns(np.int64(state), np.int64(p), none, none)
    if n == 1:
        state, p, key_length = read_length(data, p, end, bits & KEYS != 0, most_bytes)
        if state != status.SOUND:
            return ReadColumns(np.int64(state), np.int64(p), none, none)
        state, p, value_length = read_length(data, p, end, bits & VALUES != 0, most_bytes)
        columns.key_lengths[to], columns.value_lengths[to] = key_length, value_length
        if p > end:
            state = status.COLUMN
        return ReadColumns(np.int64(state), np.int64(p), max(key_length, 0), max(value_length, 0))
    state, p, key_bytes = _read_lengths(
        data, p, end, n, bits & KEYS != 0, bits & NULL_KEYS != 0, most_bytes, x, columns.key_lengths, to
    )
    if state != status.SOUND:
        return ReadColumns(np.int64(state), np.int64(p), none, none)
    state, p, value_bytes = _read_lengths(
        data, p, end, n, bits & VALUES != 0, bits & NULL_VALUES != 0, most_bytes, x, columns.value_lengths, to
    )
    return ReadColumns(np.int64(state), np.int64(p), key_bytes, value_bytes)


@leaf
def _place(columns, r, n, at, key_bytes, by_rows):
    """Fill the starts of n records whose payload begins at `at`."""
    key_lengths, key_starts = columns.key_lengths, columns.key_starts
    value_lengths, value_starts = columns.value_lengths, columns.value_starts
    # Of one record it is the same, and a vector would wait for the lengths that have just been stored.
    if by_rows or n == 1:
        for i in range(np.uint64(r), np.uint64(r + n)):
            value_at = at + max(np.int64(key_lengths[i]), 0)
            key_starts[i], value_starts[i] = at, value_at
            at = value_at + max(np.int64(value_lengths[i]), 0)
    else:
        if key_bytes:
            put_starts(key_starts, key_lengths, np.uint64(r), n, at)
        else:
            put_line(key_starts, np.uint64(r), n, at, np.int64(0))
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
def _set_times(columns, header, r, n, two_clocks):
    """Fill the times that readers see of n records from row r on, from their create times."""
    if header.attributes & APPEND:
        put_line(columns.timestamps, np.uint64(r), n, header.max_time, np.int64(0))
        if not header.extensions & HAS_ANCHOR:  # the broker has overwritten the time that ages count from
            put_line(columns.created, np.uint64(r), n, np.int64(NO_TIMESTAMP), np.int64(0))
    elif two_clocks:
        for i in range(np.uint64(r), np.uint64(r + n)):
            columns.timestamps[i] = columns.created[i]


@kernel
def index(data, positions, counts, limits, check_crcs, two_clocks, with_payload, x, state, columns, header_bounds,
          bodies, totals, codecs, bounds):  # fmt: skip
    """Read the columns of each sound batch. Return the number of bytes that were read.

    No byte of payload is moved, and a compressed payload is not looked at. A damaged batch gets no record.

    Args:
        counts int64[batches]: as `survey` filled them
        limits: bytes per field, headers per batch, headers in all
        check_crcs: whether to check checksums
        two_clocks: whether timestamps and created are two arrays
        with_payload: whether to find keys and values too, where the payload is plain and has no headers
        header_bounds int64[records + 1 + GROUP]: filled; empty if no batch has headers
        bodies int64[batches]: filled with where the payload begins, or the header columns
        totals int64[batches]: filled with the bytes of keys and values
        codecs int8[batches]: filled with 0 where nothing is to be decompressed
        bounds int64[batches + 1]: filled with the bounds of each batch's records
    """
    rows = RecordColumns(*columns)
    r, plain_bytes = np.int64(0), np.int64(0)
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
        found = ReadColumns(np.int64(status.SOUND), header.body, np.int64(0), np.int64(0))
        if count:
            found = _read_columns(data, end, count, header, get_i64(data, at), limits[0], x, rows, r)
        problem, p = found.state, found.position
        if problem == status.SOUND:
            problem, p = read_header_counts(data, p, end, count, bits, limits, x, header_bounds, r)
        if problem == status.SOUND:
            if p < end and count:
                codecs[b] = bits & CODEC_MASK
            if codecs[b] == 0 and bits & HEADERS == 0:
                if p + found.key_bytes + found.value_bytes != end:
                    problem = status.PAYLOAD
                elif with_payload:
                    _place(rows, r, count, p, found.key_bytes, header.extensions & BY_ROWS != 0)
                    if bits & CONTROL and not _are_controls_sound(data, rows, r, count):
                        problem = status.CONTROL_RECORD
        state[b] = problem
        if problem == status.SOUND:
            _set_times(rows, header, r, count, two_clocks)
            bodies[b], totals[b] = found.position, found.key_bytes + found.value_bytes
            plain_bytes += p - at
            r += count
            bounds[b + 1] = r
    return plain_bytes


@kernel
def times(data, positions, counts, state, timestamps, offsets, bounds):
    """Read offsets and the times that readers see of each sound batch, and no other column. Check no checksum.

    Args:
        timestamps int64[records + GROUP], offsets int64[records + GROUP]: filled
        counts, bounds: as in `index`
    """
    r = np.int64(0)
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
            if header.attributes & APPEND:
                put_line(timestamps, np.uint64(r), count, header.max_time, np.int64(0))
            r += count
            bounds[b + 1] = r


@kernel
def place(data, positions, source, starts, ends, bounds, totals, header_totals, state, columns):
    """Find the keys and values of the batches that `index` has left.

    Args:
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the plain payload of batch b
        totals, header_totals int64[batches]: bytes of keys and values, and of headers
        columns: those of `index`; the last group of a batch is written into the rows of the next one
        bounds: as in `index`
    """
    rows = RecordColumns(*columns)
    for b in range(len(state)):
        r, n = bounds[b], bounds[b + 1] - bounds[b]
        if n == 0 or state[b] != status.SOUND:
            continue
        header = read_header(data, positions[b], positions[b + 1])
        if ends[b] - starts[b] != totals[b] + header_totals[b]:
            state[b] = status.PAYLOAD
            continue
        key_bytes = np.int64(0)
        for i in range(np.uint64(r), np.uint64(r + n)):
            key_bytes += max(np.int64(rows.key_lengths[i]), 0)
        _place(rows, r, n, starts[b], key_bytes, header.extensions & BY_ROWS != 0)
        if header.attributes & CONTROL and not _are_controls_sound(source, rows, r, n):
            state[b] = status.CONTROL_RECORD
