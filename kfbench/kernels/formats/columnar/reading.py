"""Columnar batches read, all of them: headers, columns, and where the payload of each record is."""

import numpy as np

from kfbench.kernels.formats import control
from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar import record_headers
from kfbench.kernels.formats.columnar.batch_header import (
    AGES,
    APPEND,
    ATTRIBUTES,
    BY_ROWS,
    CODEC_MASK,
    CONTROL,
    CRC,
    EPOCH,
    HAS_ANCHOR,
    HAS_BASE,
    HAS_HORIZON,
    HEADER,
    HEADERS,
    KEYS,
    MAGIC,
    MAX_TIME,
    NO_TIMESTAMP,
    NULL,
    NULL_KEYS,
    NULL_VALUES,
    OFFSETS,
    ONE,
    PRODUCER,
    PRODUCER_EPOCH_AT,
    SEQUENCE_AT,
    THIS_MAGIC,
    TRANSACTIONAL,
    VALUES,
    crc_holds,
    read_header,
)
from kfbench.kernels.formats.columnar.columns import ALL_ALIKE, read_length
from kfbench.kernels.formats.shared_headers import same_bytes
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i16, get_i32, get_i64, get_u8, get_u32
from kfbench.kernels.simd.simd_int64 import put_line, put_starts
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.sealing import INT32_MAX, LENGTH
from kfbench.kernels.wire.sequence import last_sequence
from kfbench.kernels.wire.varint import get_uvarint, get_varlong

BY_RECORD, BY_POSITION = record_headers.BY_RECORD, record_headers.BY_POSITION


@kernel
def survey(data, positions, most_records, most_in_all, check_crcs, counts, state):
    """Reads each batch header; checks the CRC, if at all, where it is damaged or claims more records than it has bytes.

    positions int64[batches + 1]. Fills counts int64 and state int8 (see `status`). Gives (records that are claimed, the
    largest batch's, whether any batch has log append time, has headers).
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


@leaf
def _read_lengths(data, p, end, n, nulls, most_bytes, x, lengths, to):
    """Reads a column of n >= 2 lengths into lengths[to:to + n]; (state, next position, their sum)."""
    if not nulls and p < end and get_u8(data, p) == ALL_ALIKE:  # without a call
        length, p = get_varlong(data, p + 1, end)
        if p > end:
            return status.COLUMN, p, length
        if length < 0 or length > INT32_MAX:
            return status.COLUMN_LENGTH, p, length
        if length > most_bytes:
            return status.LIMIT_FIELD, p, length
        put_line(lengths, to, n, length, np.int64(0))
        return status.SOUND, p, length * n
    return packed.read_lengths(data, p, end, n, nulls, most_bytes, x, lengths, to)


@leaf
def _read_times(data, p, end, n, bits, base_offset, anchor, created, offsets, r):
    """Reads ages and offsets of n >= 1 records into rows r and up; (state, next position).

    Of one record, the position may be behind the end. Times are the producer's.
    """
    none, to = np.int64(0), np.uint64(r)
    if n == 1:
        age, delta = none, none
        if bits & AGES:
            age, p = get_varlong(data, p, end)
        if bits & OFFSETS:
            delta, p = get_varlong(data, p, end)
        created[to], offsets[to] = anchor - age, base_offset + delta
        return status.COLUMN_OFFSET if (delta + 2**31) >> 32 else status.SOUND, p
    if bits & AGES:
        state, p = packed.read(data, p, end, n, anchor, np.int64(-1), created, r)
        if state != status.SOUND:
            return state, p
    else:
        put_line(created, to, n, anchor, none)
    if bits & OFFSETS:
        state, p = packed.read(data, p, end, n, none, np.int64(1), offsets, r)
        if state != status.SOUND:
            return state, p
        far = none
        for i in range(to, to + np.uint64(n)):
            far |= offsets[i] + 2**31
            offsets[i] += base_offset
        if far >> 32:
            return status.COLUMN_OFFSET, p
    else:
        put_line(offsets, to, n, base_offset, np.int64(1))
    return status.SOUND, p


@leaf
def _read_columns(data, p, end, n, bits, base_offset, anchor, most_bytes, x, columns, r):
    """Reads ages, offsets and lengths of n >= 1 records into rows r and up.

    (state, next position, key bytes, value bytes). Times are the producer's, in `created`.
    """
    _, created, offsets, key_lengths, _, value_lengths, _ = columns
    none, to = np.int64(0), np.uint64(r)
    state, p = _read_times(data, p, end, n, bits, base_offset, anchor, created, offsets, r)
    if state != status.SOUND:
        return state, p, none, none
    if n == 1:
        state, p, key_length = read_length(data, p, end, bits & KEYS != 0, most_bytes)
        if state != status.SOUND:
            return state, p, none, none
        state, p, value_length = read_length(data, p, end, bits & VALUES != 0, most_bytes)
        key_lengths[to], value_lengths[to] = key_length, value_length
        if p > end:
            state = status.COLUMN
        return state, p, max(key_length, 0), max(value_length, 0)
    key_bytes = value_bytes = none
    if bits & KEYS:
        state, p, key_bytes = _read_lengths(data, p, end, n, bits & NULL_KEYS != 0, most_bytes, x, key_lengths, to)
        if state != status.SOUND:
            return state, p, none, none
    else:
        put_line(key_lengths, to, n, np.int64(NULL), none)
    if bits & VALUES:
        state, p, value_bytes = _read_lengths(
            data, p, end, n, bits & NULL_VALUES != 0, most_bytes, x, value_lengths, to
        )
        if state != status.SOUND:
            return state, p, none, none
    else:
        put_line(value_lengths, to, n, np.int64(NULL), none)
    return status.SOUND, p, key_bytes, value_bytes


@leaf
def _place(columns, r, n, at, key_bytes, by_rows):
    """Fills the starts of n records whose payload begins at `at`."""
    _, _, _, key_lengths, key_starts, value_lengths, value_starts = columns
    if by_rows or n == 1:  # of one it is the same, and a vector would wait for lengths that have just been stored
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
def _read_header_counts(data, p, end, n, most_headers, x, header_bounds, r):
    """Fills header_bounds[r + 1:r + n + 1]; (state, next position)."""
    to, before = np.uint64(r), header_bounds[r]
    mode = np.int64(0)
    if n > 1:
        if p >= end:
            return status.HEADER_COLUMNS, p
        mode = np.int64(get_u8(data, p))
        p += 1
    if n == 1 or mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        if p > end or number == 0:
            return status.HEADER_COLUMNS, p
        if number > most_headers or number * n > most_headers:
            return status.LIMIT_HEADERS, p
        put_line(header_bounds, to + ONE, n, before + number, number)
        return status.SOUND, p
    if mode != BY_RECORD:
        return status.HEADER_COLUMNS, p
    state, p = packed.read(data, p, end, n, np.int64(0), np.int64(1), x, 0)
    if state != status.SOUND:
        return state, p
    total = np.int64(0)
    for i in range(np.uint64(n)):
        if x[i] < 0 or x[i] > INT32_MAX:
            return status.COLUMN_LENGTH, p
        total += x[i]
        header_bounds[to + i + ONE] = before + total
    if total == 0:
        return status.HEADER_COLUMNS, p
    return status.LIMIT_HEADERS if total > most_headers else status.SOUND, p


@leaf
def _controls_hold(source, columns, r, n):
    _, _, _, key_lengths, key_starts, value_lengths, value_starts = columns
    for i in range(np.uint64(r), np.uint64(r + n)):
        if not control.is_sound(
            source, key_starts[i], np.int64(key_lengths[i]), source, value_starts[i], np.int64(value_lengths[i])
        ):
            return False
    return True


@kernel
def index(data, positions, counts, limits, check_crcs, two_clocks, with_payload, x, state, columns, header_bounds,
          bodies, totals, codecs, bounds):  # fmt: skip
    """Reads the columns of each sound batch; no byte of payload is moved, and a codec's is not looked at.

    counts as `survey` filled them; limits: (bytes a field, headers a batch, headers in all). two_clocks: timestamps and
    created are two arrays. x int64[the largest batch's records] is scratch; it, the columns and header_bounds have room
    for GROUP more. with_payload: starts of keys and values too, where the payload is plain and no header is there;
    `place` fills the others. columns: as in `formats._index`. Fills header_bounds int64[records + 1] (given empty where
    no batch has headers), bodies int64 (where the payload begins, or the header columns), totals int64 (bytes of keys
    and values), codecs int8 (0 where nothing is to be decompressed) and bounds int64[batches + 1]. A batch that breaks
    a promise gets its state and no record. Gives the bytes that were read.
    """
    most_bytes, most_headers, most_headers_in_all = limits
    timestamps, created = columns[:2]
    r, plain_bytes = np.int64(0), np.int64(0)
    bounds[0] = 0
    any_headers = len(header_bounds) > 0
    if any_headers:
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
        bits, p = header.attributes, header.body
        problem, key_bytes, value_bytes = status.SOUND, np.int64(0), np.int64(0)
        if count:  # then, if it is sound, header columns or payload
            problem, p, key_bytes, value_bytes = _read_columns(
                data, p, end, count, bits, get_i64(data, at), header.anchor, most_bytes, x, columns, r
            )
        body = p
        if problem == status.SOUND:
            if bits & HEADERS and not any_headers:  # no room for them: these bytes were others when they were surveyed
                problem = status.HEADER_COLUMNS
            elif bits & HEADERS:
                most = min(most_headers, most_headers_in_all - header_bounds[r])
                problem, p = _read_header_counts(data, p, end, count, most, x, header_bounds, r)
                if problem == status.LIMIT_HEADERS and most < most_headers:
                    problem = status.LIMIT_LOG_HEADERS
            elif any_headers:
                put_line(header_bounds, np.uint64(r) + ONE, count, header_bounds[r], np.int64(0))
        if problem == status.SOUND:
            if p < end and count:
                codecs[b] = bits & CODEC_MASK
            if codecs[b] == 0 and bits & HEADERS == 0:
                if p + key_bytes + value_bytes != end:
                    problem = status.PAYLOAD
                elif with_payload:
                    _place(columns, r, count, p, key_bytes, header.extensions & BY_ROWS != 0)
                    if bits & CONTROL and not _controls_hold(data, columns, r, count):
                        problem = status.CONTROL_RECORD
        state[b] = problem
        if problem == status.SOUND:
            if bits & APPEND:
                put_line(timestamps, np.uint64(r), count, header.max_time, np.int64(0))
                if not header.extensions & HAS_ANCHOR:  # what the ages counted from is not there any more
                    put_line(created, np.uint64(r), count, np.int64(NO_TIMESTAMP), np.int64(0))
            elif two_clocks:
                for i in range(np.uint64(r), np.uint64(r + count)):
                    timestamps[i] = created[i]
            bodies[b], totals[b] = body, key_bytes + value_bytes
            plain_bytes += p - at
            r += count
            bounds[b + 1] = r
    return plain_bytes


@kernel
def times(data, positions, counts, state, timestamps, offsets, bounds):
    """Reads offsets and a consumer's times of each sound batch, and nothing behind their columns; no checksum is
    checked. Arguments as in `index`."""
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND or counts[b] == 0:
            continue
        ask_ahead(data, positions, b)
        at, end, count = positions[b], positions[b + 1], counts[b]
        header = read_header(data, at, end)
        state[b], p = _read_times(
            data, header.body, end, count, header.attributes, get_i64(data, at), header.anchor, timestamps, offsets, r
        )
        if p > end:
            state[b] = status.COLUMN
        if state[b] == status.SOUND:
            if header.attributes & APPEND:
                put_line(timestamps, np.uint64(r), count, header.max_time, np.int64(0))
            r += count
            bounds[b + 1] = r


@kernel
def place(data, positions, source, starts, ends, bounds, totals, header_totals, state, columns):
    """Finds the keys and values of the batches that `index` has left: source[starts[b]:ends[b]] is their plain payload.

    totals, header_totals int64: what lengths of keys and values, and of headers, add up to in each batch; columns with
    the room that `index` had, for a batch's last group is written into the rows of the next one. A batch that breaks a
    promise gets its state.
    """
    _, _, _, key_lengths, _, _, _ = columns
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
            key_bytes += max(np.int64(key_lengths[i]), 0)
        _place(columns, r, n, starts[b], key_bytes, header.extensions & BY_ROWS != 0)
        if header.attributes & CONTROL and not _controls_hold(source, columns, r, n):
            state[b] = status.CONTROL_RECORD


@kernel
def describe(data, positions, starts, ends, bounds, created, sound, rows):
    """Fills one BATCH row for each batch number in `sound`, but for `canonical`.

    starts, ends: the plain payload of each batch; bounds int64[sound batches + 1]; the rest as in `index`, which has
    checked it.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        header = read_header(data, at, end)
        bits, max_time, horizon, base_time = header.attributes, header.max_time, header.horizon, header.base_time
        if header.extensions & HAS_HORIZON:
            base_time = horizon
        elif not header.extensions & HAS_BASE and header.count:
            base_time = created[bounds[i]]
        row.position, row.size_bytes, row.magic = at, end - at, THIS_MAGIC
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), get_i16(data, at + ATTRIBUTES), bits & CODEC_MASK
        row.timestamp_type = 1 if bits & APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + header.last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = header.count, base_time, max_time
        row.append_time_ms = max_time if bits & APPEND else np.int64(NO_TIMESTAMP)
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        first = np.int64(-1)
        row.producer_id, row.producer_epoch = first, first
        if bits & PRODUCER:
            row.producer_id = get_i64(data, at + HEADER)
            row.producer_epoch = get_i16(data, at + HEADER + PRODUCER_EPOCH_AT)
            first = np.int64(get_i32(data, at + HEADER + SEQUENCE_AT))
        row.base_sequence = first
        row.last_sequence = last_sequence(first, header.last_delta)
        row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
        row.delete_horizon_ms = horizon
        row.records_size_bytes = ends[b] - starts[b]


@kernel
def same_prefixes(data, positions, bodies, source, starts, ends, sound, made, made_positions, made_bodies, rows):
    """Sets `canonical` of each row: whether `made`, these batches written anew without a codec, is what was read.

    source[starts[b]:ends[b]] is the plain payload of batch b; lengths and checksums are not compared.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, other = positions[b], made_positions[i]
        prefix, payload = made_bodies[i] - other, made_positions[i + 1] - made_bodies[i]
        same = bodies[b] - at == prefix and ends[b] - starts[b] == payload
        if same:
            same = same_bytes(data, at, made, other, LENGTH)
            same &= same_bytes(data, at + EPOCH, made, other + EPOCH, CRC - EPOCH)
            bits, other_bits = get_i16(data, at + ATTRIBUTES), get_i16(made, other + ATTRIBUTES)
            same &= (bits ^ other_bits) & ~CODEC_MASK == 0 and (rows[i].count > 0 or bits & CODEC_MASK == 0)
            same &= same_bytes(data, at + MAX_TIME, made, other + MAX_TIME, prefix - MAX_TIME)
            same &= same_bytes(source, starts[b], made, made_bodies[i], payload)
        rows[i].canonical = same
