"""Kernels of the columnar batch: columns of all records first, outside the codec, then keys, values and headers."""

import numpy as np

from kfbench import layouts
from kfbench.kernels import columnar_headers, control, status
from kfbench.kernels import columns as packed
from kfbench.kernels._jit import kernel, leaf, part, variant
from kfbench.kernels.batch_header import attributes_of
from kfbench.kernels.columns import FULL
from kfbench.kernels.crc import crc32c
from kfbench.kernels.intrinsics import (
    get_i8,
    get_i16,
    get_i32,
    get_i64,
    get_u8,
    get_u32,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
)
from kfbench.kernels.lengths import delta_code, get_delta
from kfbench.kernels.sealing import (
    AFTER_LENGTH,
    BATCH_TOO_LARGE,
    INT32_MAX,
    LENGTH,
    OFFSET_TOO_FAR,
    OK,
    OUT_TOO_SMALL,
    seal,
)
from kfbench.kernels.sequence import last_sequence
from kfbench.kernels.shared_headers import same_bytes
from kfbench.kernels.varint import (
    get_uvarint,
    get_varlong,
    put_bytes,
    put_uvarint,
    put_varint,
    uvarint_bytes,
    varint_bytes,
)

_LAYOUT, _PRODUCER = layouts.COLUMNAR_HEADER, layouts.COLUMNAR_PRODUCER
EPOCH, MAGIC, CRC, ATTRIBUTES, MAX_TIME = (
    layouts.position(_LAYOUT, name)
    for name in ("partition_leader_epoch", "magic", "crc", "attributes", "max_timestamp_ms")
)
HEADER, PRODUCER_BYTES, THIS_MAGIC = _LAYOUT.itemsize, _PRODUCER.itemsize, 4
PRODUCER_EPOCH_AT, SEQUENCE_AT = (layouts.position(_PRODUCER, name) for name in ("producer_epoch", "base_sequence"))
CODEC_MASK, LAST_CODEC = layouts.CODEC_MASK, 4
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
EXTENSION_BYTES = 2 + 8  # but for BY_ROWS_TAG, which no encoder writes
UNUSED_BITS = 64 - layouts.TIMESTAMP_BITS
NULL, NO_TIMESTAMP, UNSET = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP, layouts.UNSET
ONE = np.uint64(1)
ALL_ALIKE = packed.BASED << 6  # the descriptor of a column of one value
BY_ROW, BY_POSITION = columnar_headers.BY_ROW, columnar_headers.BY_POSITION

# No batch is larger than this and its payload: a column is never larger than its values over one base.
MAX_COLUMN_OVERHEAD = 5 + 1 + 10
MAX_BATCH_OVERHEAD = HEADER + PRODUCER_BYTES + 5 + 5 + 1 + 4 * EXTENSION_BYTES + 4 * MAX_COLUMN_OVERHEAD
MAX_RECORD_OVERHEAD = 8 + 8 + 4 + 4 + 4
# At worst one record of two has it at a position of its own: a key length, a form and a column of two.
MAX_HEADER_OVERHEAD = 5 + 1 + 5 + 1 + 10 + 8

PARTS = (
    *(f"batch_header.{name}" for name in _LAYOUT.names),
    "batch_header.producer",
    "batch_header.count",
    "batch_header.last_offset_delta",
    "batch_header.extensions",
    "timestamp_age",
    "offset_delta",
    "key_length",
    "value_length",
    "header_columns",
    "key",
    "value",
    "header_key",
    "header_value",
)
FIXED_PART_BYTES = np.array([_LAYOUT[name].itemsize for name in _LAYOUT.names])
PRODUCER_PART = PARTS.index("batch_header.producer")
COLUMN_PARTS_AT = PARTS.index("timestamp_age")


# Writing


@leaf
def _outline(timestamps, offsets, first, end, row):
    """(base offset, last offset delta, base time, its default, max time, latest create time, greatest and sum of ages,
    whether an offset is not where it would be without holes, bits beyond 32 where a delta has any)."""
    base_offset, last_offset = row.base_offset, row.last_offset
    base_time, max_time = row.base_timestamp_ms, row.max_timestamp_ms
    default, latest = np.int64(NO_TIMESTAMP), np.int64(NO_TIMESTAMP)
    if base_offset == UNSET:
        base_offset = offsets[first] if first < end else np.int64(0)
    if last_offset == UNSET:
        last_offset = offsets[end - ONE] if first < end else base_offset
    last_delta = last_offset - base_offset
    earliest, strays, far, sum_of_times = latest, np.int64(0), last_delta + 2**31, np.int64(0)
    if first < end:
        default = earliest = latest = timestamps[first]
        expected = base_offset
        for i in range(first, end):
            time, offset = timestamps[i], offsets[i]
            latest, earliest = max(latest, time), min(earliest, time)
            sum_of_times += time
            strays |= offset ^ expected
            far |= offset - base_offset + 2**31
            expected += 1
        strays |= last_offset ^ (expected - 1)
    if row.delete_horizon_ms >= 0:
        default = row.delete_horizon_ms
    if base_time == UNSET:
        base_time = default
    if max_time == UNSET:
        max_time = row.append_time_ms if row.timestamp_type else latest
    has_holes = strays != 0 or first == end
    ages = latest - earliest, latest * np.int64(end - first) - sum_of_times
    return base_offset, last_delta, base_time, default, max_time, latest, ages, has_holes, far >> 32


@leaf
def _is_wide(time_ms):
    """Whether 48 bits are too few."""
    return (time_ms << UNUSED_BITS) >> UNUSED_BITS != time_ms


@leaf
def _extensions(row, count, base_time, default, max_time, latest):
    """How many a batch has."""
    number = (np.int64(1) if base_time != default else np.int64(0)) + (1 if row.delete_horizon_ms >= 0 else 0)
    return number + (1 if count and latest != max_time else 0) + (1 if _is_wide(max_time) else 0)


@leaf
def _has_producer(row):
    return row.producer_id != -1 or row.producer_epoch != -1 or row.base_sequence != -1


@leaf
def _header_bytes(row, count, last_delta, has_holes, extensions):
    size = HEADER + uvarint_bytes(np.uint64(count)) + (PRODUCER_BYTES if _has_producer(row) else 0)
    if has_holes:
        size += uvarint_bytes(delta_code(last_delta, True))
    return size + (1 + EXTENSION_BYTES * extensions if extensions else 0)


@leaf
def _put_extension(out, at, tag, value):
    put_u8(out, at, np.uint8(tag))
    put_u8(out, at + 1, np.uint8(8))
    put_i64(out, at + 2, value)
    return at + EXTENSION_BYTES


@leaf
def _put_header(out, at, row, base_offset, count, last_delta, base_time, default, max_time, latest, has_holes,
                extensions):  # fmt: skip
    """Everything but length, checksum and attributes; gives where the columns begin."""
    put_i64(out, at, base_offset)
    put_i32(out, at + EPOCH, row.partition_leader_epoch)
    put_u8(out, at + MAGIC, np.uint8(THIS_MAGIC))
    wide = _is_wide(max_time)
    field = np.int64(0) if wide else max_time
    put_i16(out, at + MAX_TIME, np.int16(field >> 32))
    put_i32(out, at + MAX_TIME + 2, np.int32(((field & 0xFFFFFFFF) ^ 2**31) - 2**31))
    at += HEADER
    if _has_producer(row):
        put_i64(out, at, row.producer_id)
        put_i16(out, at + PRODUCER_EPOCH_AT, row.producer_epoch)
        put_i32(out, at + SEQUENCE_AT, row.base_sequence)
        at += PRODUCER_BYTES
    at = put_uvarint(out, at, np.uint64(count))
    if has_holes:
        at = put_uvarint(out, at, delta_code(last_delta, True))
    if extensions:
        put_u8(out, at, np.uint8(extensions))
        at += 1
        if base_time != default:
            at = _put_extension(out, at, BASE_TAG, base_time)
        if row.delete_horizon_ms >= 0:
            at = _put_extension(out, at, HORIZON_TAG, row.delete_horizon_ms)
        if count and latest != max_time:
            at = _put_extension(out, at, ANCHOR_TAG, latest)
        if wide:
            at = _put_extension(out, at, WIDE_TAG, max_time)
    return at


@leaf
def _fill_ages(x, timestamps, first, n, latest):
    for i in range(np.uint64(n)):
        x[i] = latest - timestamps[first + i]


@leaf
def _fill_offsets(x, offsets, first, n, base_offset):
    for i in range(np.uint64(n)):
        x[i] = offsets[first + i] - base_offset


@leaf
def _put_lengths(out, at, lengths, first, n, bit, x, histogram):
    """Writes the column of the lengths of n >= 2 records, if any is not null; (next position, bits, their sum)."""
    nulls, least, total, low, high, code_total = packed.fill_lengths(x, lengths, first, ONE, n)
    if nulls == n:
        return at, 0, total
    if nulls:
        bit |= bit << 1
        if uvarint_bytes(np.uint64(least)) > len(out) - at:
            return np.int64(FULL), bit, total
        at = put_uvarint(out, at, np.uint64(least))
    return packed.write(out, at, x, n, low, high, code_total, False, histogram), bit, total


@leaf
def _put_length(out, at, length, bit):
    """Of the only record; (next position, bits)."""
    if length < 0:
        return at, 0
    if 5 > len(out) - at and uvarint_bytes(np.uint64(length)) > len(out) - at:
        return np.int64(FULL), bit
    return put_uvarint(out, at, np.uint64(length)), bit


@leaf
def _put_columns(out, at, columns, first, n, base_offset, latest, ages, has_holes, x, histogram):
    """(next position or FULL, attribute bits, bytes of keys, of values) of n >= 1 records."""
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    oldest, total = ages
    bits = (AGES if oldest else 0) | (OFFSETS if has_holes else 0)
    if n == 1:
        if has_holes:
            delta = offsets[first] - base_offset
            if varint_bytes(delta) > len(out) - at:
                return np.int64(FULL), bits, np.int64(0), np.int64(0)
            at = put_varint(out, at, delta)
        key_length, value_length = np.int64(key_lengths[first]), np.int64(value_lengths[first])
        at, bit = _put_length(out, at, key_length, KEYS)
        bits |= bit
        if at != FULL:
            at, bit = _put_length(out, at, value_length, VALUES)
            bits |= bit
        return at, bits, max(key_length, 0), max(value_length, 0)
    if oldest:
        _fill_ages(x, timestamps, first, n, latest)
        # Over more than half of all times the greatest age is a negative int64, and the least is not 0.
        at = (
            packed.write(out, at, x, n, np.int64(0), oldest, total, True, histogram)
            if oldest > 0
            else packed.write_all(out, at, x, n, True, histogram)
        )
    if has_holes and at != FULL:
        _fill_offsets(x, offsets, first, n, base_offset)
        at = packed.write_all(out, at, x, n, True, histogram)
    key_bytes = value_bytes = np.int64(0)
    if at != FULL:
        at, bit, key_bytes = _put_lengths(out, at, key_lengths, first, n, KEYS, x, histogram)
        bits |= bit
    if at != FULL:
        at, bit, value_bytes = _put_lengths(out, at, value_lengths, first, n, VALUES, x, histogram)
        bits |= bit
    return at, bits, key_bytes, value_bytes


@leaf
def _put_all(out, at, data, starts, lengths, first, end, total):
    """Copies items of `total` bytes one after another, or all at once where they lie so; gives the next position."""
    if end - first == ONE:
        return put_bytes(out, at, data, starts[first], total)
    strays = np.int64(0)
    for i in range(first + ONE, end):
        strays |= starts[i] - starts[i - ONE] - max(np.int64(lengths[i - ONE]), 0)
    if total == 0:
        return at
    if strays == 0 and starts[first] >= 0 and total <= len(data) - starts[first]:  # a null's start may be anywhere
        return put_bytes(out, at, data, starts[first], total)
    for i in range(first, end):
        at = put_bytes(out, at, data, starts[i], np.int64(lengths[i]))
    return at


WITH_HEADERS = False  # a variant's own


def _encode(columns, bounds, fields, codec, scratch, header_sizes, out, positions, bodies):
    """Writes batches one after another; with a codec their payload is still plain, and length and checksum unset.

    scratch: as `columnar_headers` has it; header_sizes int64[3 * batches]: what its `sizes` filled, or none. Fills
    positions int64[batches + 1] and bodies int64[batches] (where the payload begins). Gives (problem, batch): OK, or
    why that batch cannot be written.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    keys, key_starts, values, value_starts = columns[7:11]
    x, histogram = scratch[:2]
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        count = np.int64(end - first)
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, default, max_time, latest, ages, has_holes, far = _outline(
            timestamps, offsets, first, end, row
        )
        if far:
            return OFFSET_TOO_FAR, b
        extensions = _extensions(row, count, base_time, default, max_time, latest)
        if _header_bytes(row, count, last_delta, has_holes, extensions) > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        at = _put_header(
            out, at, row, base_offset, count, last_delta, base_time, default, max_time, latest, has_holes, extensions
        )
        bits, key_bytes, value_bytes, total = (
            np.int64(OFFSETS if has_holes else 0),
            np.int64(0),
            np.int64(0),
            np.int64(0),
        )
        if count:
            at, bits, key_bytes, value_bytes = _put_columns(
                out, at, columns, first, count, base_offset, latest, ages, has_holes, x, histogram
            )
            total = key_bytes + value_bytes
            has_headers = WITH_HEADERS and header_bounds[first] != header_bounds[end]
            if has_headers:
                if at == FULL or header_sizes[3 * b] > len(out) - at:
                    return OUT_TOO_SMALL, b
                bits |= HEADERS
                at = columnar_headers.put_columns(out, at, columns, first, count, scratch)
                total += header_sizes[3 * b + 1] + header_sizes[3 * b + 2]
            if at == FULL or total > len(out) - at:
                return OUT_TOO_SMALL, b
        bits |= attributes_of(row, codec, 0, count)
        bits |= (PRODUCER if _has_producer(row) else 0) | (EXTENSIONS if extensions else 0)
        put_i16(out, start + ATTRIBUTES, np.int16((bits ^ 0x8000) - 0x8000))  # an i16 of the same bits
        bodies[b] = at
        if at + total - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        at = _put_all(out, at, keys, key_starts, key_lengths, first, end, key_bytes)
        at = _put_all(out, at, values, value_starts, value_lengths, first, end, value_bytes)
        if WITH_HEADERS and bits & HEADERS:
            at = columnar_headers.put_payload(out, at, columns, first, count, scratch)
        if codec == 0 or count == 0:
            seal(out, start, at, CRC, crc32c(out, start + ATTRIBUTES, at))
    positions[len(bounds) - 1] = at
    return OK, 0


encode = variant(_encode, "encode", WITH_HEADERS=False)
encode_with_headers = variant(_encode, "encode_with_headers", WITH_HEADERS=True)


@leaf
def _lengths_bytes(lengths, first, n, x, histogram):
    """(bytes of the column, their sum) of n >= 1 records."""
    if n == 1:
        length = np.int64(lengths[first])
        return uvarint_bytes(np.uint64(length)) if length >= 0 else np.int64(0), max(length, 0)
    nulls, least, total, low, high, code_total = packed.fill_lengths(x, lengths, first, ONE, n)
    if nulls == n:
        return np.int64(0), total
    size = packed.choose(x, n, low, high, code_total, False, histogram)[0]
    return (uvarint_bytes(np.uint64(least)) if nulls else 0) + size, total


@kernel
def sizes(columns, bounds, fields, header_sizes, x, histogram, out, parts):
    """The uncompressed bytes of each batch, int64[batches], without writing it; adds to parts int64[len(PARTS)].

    header_sizes int64[3 * batches]: what the headers of each batch take (`columnar_headers.sizes`), or none.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        count = np.int64(end - first)
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, default, max_time, latest, ages_of, has_holes, _ = _outline(
            timestamps, offsets, first, end, row
        )
        extensions = _extensions(row, count, base_time, default, max_time, latest)
        total = _header_bytes(row, count, last_delta, has_holes, extensions)
        ages = holes = keys = values = key_total = value_total = np.int64(0)
        if count > 1 and ages_of[0]:
            _fill_ages(x, timestamps, first, count, latest)
            ages = packed.size_of(x, count, True, histogram)
        if count > 1 and has_holes:
            _fill_offsets(x, offsets, first, count, base_offset)
            holes = packed.size_of(x, count, True, histogram)
        elif count and has_holes:
            holes = varint_bytes(offsets[first] - base_offset)
        if count:
            keys, key_total = _lengths_bytes(key_lengths, first, count, x, histogram)
            values, value_total = _lengths_bytes(value_lengths, first, count, x, histogram)
        header_columns = header_keys = header_values = np.int64(0)
        if len(header_sizes):
            header_columns, header_keys, header_values = (
                header_sizes[3 * b],
                header_sizes[3 * b + 1],
                header_sizes[3 * b + 2],
            )
        out[b] = (
            total + ages + holes + keys + values + header_columns + key_total + value_total + header_keys
            + header_values
        )  # fmt: skip
        if len(parts):
            for k in range(len(FIXED_PART_BYTES)):
                parts[k] += FIXED_PART_BYTES[k]
            more = parts[PRODUCER_PART:]
            more[0] += PRODUCER_BYTES if _has_producer(row) else 0
            more[1] += uvarint_bytes(np.uint64(count))
            more[2] += uvarint_bytes(delta_code(last_delta, True)) if has_holes else 0
            more[3] += 1 + EXTENSION_BYTES * extensions if extensions else 0
            for k, size in enumerate(
                (ages, holes, keys, values, header_columns, key_total, value_total, header_keys, header_values)
            ):
                more[4 + k] += size


# Reading


@leaf
def crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


@part
def _read_extensions(data, p, end, max_time):
    """(state, base time or UNSET, delete horizon or UNSET, anchor, max time, whether by rows, next position)."""
    base_time = horizon = anchor = np.int64(UNSET)
    by_rows = False
    number, p = get_uvarint(data, p, end)
    state, last = status.SOUND if number else status.EXTENSIONS, np.int64(-1)
    for _ in range(number):
        tag, p = get_uvarint(data, p, end)
        size, p = get_uvarint(data, p, end)
        if p > end or size > end - p or tag <= last or tag > BY_ROWS_TAG or size != (0 if tag == BY_ROWS_TAG else 8):
            state = status.EXTENSIONS
            break
        last = tag
        if tag == BY_ROWS_TAG:
            by_rows = True
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
    return state, base_time, horizon, anchor, max_time, by_rows, p


@leaf
def read_header(data, at, end):
    """(state, attributes, count, last offset delta, base time or UNSET, delete horizon or UNSET, max time, anchor,
    whether by rows, where the columns begin) of a batch of HEADER bytes at least."""
    bits = np.int64(get_i16(data, at + ATTRIBUTES)) & 0xFFFF
    max_time = np.int64(get_i16(data, at + MAX_TIME)) << 32 | np.int64(get_u32(data, at + MAX_TIME + 2))
    p = at + HEADER + (PRODUCER_BYTES if bits & PRODUCER else 0)
    count, p = get_uvarint(data, p, end)
    last_delta = count - 1
    if bits & OFFSETS:
        last_delta, p = get_delta(data, p, end, True)
    state, by_rows = status.SOUND, False
    base_time = horizon = np.int64(UNSET)
    anchor = max_time
    has_horizon = False
    if bits & EXTENSIONS:
        state, base_time, horizon, anchor, max_time, by_rows, p = _read_extensions(data, p, end, max_time)
        has_horizon = horizon != UNSET
        if has_horizon and base_time != UNSET:
            state = status.EXTENSIONS
        if anchor == UNSET:
            anchor = max_time
    if p > end:
        state = status.BATCH_HEADER
    elif has_horizon != (bits & HORIZON != 0):
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
    return state, bits, count, last_delta, base_time, horizon, max_time, anchor, by_rows, p


@kernel
def survey(data, positions, most_records, most_in_all, counts, state):
    """Reads each batch header; checks the CRC where it is damaged, or claims more records than it has bytes.

    positions int64[batches + 1]. Fills counts int64 and state int8 (see `status`). Gives (records that are claimed, the
    largest batch's, whether any batch has log append time, has headers).
    """
    records, largest, append, headers = np.int64(0), np.int64(0), False, False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        counts[b] = 0
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= HEADER:
            state[b] = status.SIZE
            continue
        problem, bits, count, _, _, _, _, _, _, _ = read_header(data, at, end)
        if problem == status.SOUND:
            if count > most_records:
                problem = status.LIMIT_RECORDS
            elif count > most_in_all - records:
                problem = status.LIMIT_LOG_RECORDS
        if (problem != status.SOUND or count > end - at) and not crc_holds(data, at, end):
            problem = status.CRC
        state[b] = problem
        if problem == status.SOUND:
            counts[b] = count
            records += count
            largest = max(largest, count)
            append |= bits & APPEND != 0
            headers |= bits & HEADERS != 0
    return records, largest, append, headers


@leaf
def _read_length(data, p, end, is_there, most_bytes):
    """(state, next position, length) of the only record."""
    if not is_there:
        return status.SOUND, p, np.int64(NULL)
    length, p = get_uvarint(data, p, end)
    if p > end:
        return status.COLUMN, p, length
    if length > INT32_MAX:
        return status.COLUMN_LENGTH, p, length
    return status.LIMIT_FIELD if length > most_bytes else status.SOUND, p, length


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
        for i in range(to, to + np.uint64(n)):
            lengths[i] = length
        return status.SOUND, p, length * n
    state, p, total = packed.read_lengths(data, p, end, n, nulls, most_bytes, x)
    if state == status.SOUND:
        for i in range(np.uint64(n)):
            lengths[to + i] = x[i]
    return state, p, total


@leaf
def _read_columns(data, p, end, n, bits, base_offset, anchor, most_bytes, x, columns, r):
    """Reads ages, offsets and lengths of n >= 1 records into rows r and up.

    (state, next position, key bytes, value bytes). Times are the producer's, in `created`.
    """
    _, created, offsets, key_lengths, _, value_lengths, _ = columns
    none, to = np.int64(0), np.uint64(r)
    if n == 1:
        age, delta = np.int64(0), np.int64(0)
        if bits & AGES:
            age, p = get_varlong(data, p, end)
        if bits & OFFSETS:
            delta, p = get_varlong(data, p, end)
        if (delta + 2**31) >> 32:
            return status.COLUMN_OFFSET, p, none, none
        created[to], offsets[to] = anchor - age, base_offset + delta
        state, p, key_length = _read_length(data, p, end, bits & KEYS != 0, most_bytes)
        if state != status.SOUND:
            return state, p, none, none
        state, p, value_length = _read_length(data, p, end, bits & VALUES != 0, most_bytes)
        key_lengths[to], value_lengths[to] = key_length, value_length
        if p > end:
            state = status.COLUMN
        return state, p, max(key_length, 0), max(value_length, 0)
    until = to + np.uint64(n)
    if bits & AGES:
        state, p = packed.read(data, p, end, n, created, r)
        if state != status.SOUND:
            return state, p, none, none
        for i in range(to, until):
            created[i] = anchor - created[i]
    else:
        for i in range(to, until):
            created[i] = anchor
    if bits & OFFSETS:
        state, p = packed.read(data, p, end, n, offsets, r)
        if state != status.SOUND:
            return state, p, none, none
        far = none
        for i in range(to, until):
            far |= offsets[i] + 2**31
            offsets[i] += base_offset
        if far >> 32:
            return status.COLUMN_OFFSET, p, none, none
    else:
        for i in range(np.uint64(n)):
            offsets[to + i] = base_offset + np.int64(i)
    key_bytes = value_bytes = none
    if bits & KEYS:
        state, p, key_bytes = _read_lengths(data, p, end, n, bits & NULL_KEYS != 0, most_bytes, x, key_lengths, to)
        if state != status.SOUND:
            return state, p, none, none
    else:
        for i in range(to, until):
            key_lengths[i] = NULL
    if bits & VALUES:
        state, p, value_bytes = _read_lengths(
            data, p, end, n, bits & NULL_VALUES != 0, most_bytes, x, value_lengths, to
        )
        if state != status.SOUND:
            return state, p, none, none
    else:
        for i in range(to, until):
            value_lengths[i] = NULL
    return status.SOUND, p, key_bytes, value_bytes


@leaf
def _place(columns, r, n, at, key_bytes, by_rows):
    """Fills the starts of n records whose payload begins at `at`."""
    _, _, _, key_lengths, key_starts, value_lengths, value_starts = columns
    key_at, value_at = at, at + key_bytes
    if by_rows:
        for i in range(np.uint64(r), np.uint64(r + n)):
            value_at = key_at + max(np.int64(key_lengths[i]), 0)
            key_starts[i], value_starts[i] = key_at, value_at
            key_at = value_at + max(np.int64(value_lengths[i]), 0)
    else:
        for i in range(np.uint64(r), np.uint64(r + n)):
            key_starts[i], value_starts[i] = key_at, value_at
            key_at += max(np.int64(key_lengths[i]), 0)
            value_at += max(np.int64(value_lengths[i]), 0)


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
        for i in range(np.uint64(n)):
            header_bounds[to + i + ONE] = before + number * np.int64(i + ONE)
        return status.SOUND, p
    if mode != BY_ROW:
        return status.HEADER_COLUMNS, p
    state, p = packed.read(data, p, end, n, x, 0)
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
def index(data, positions, counts, limits, two_clocks, with_payload, x, state, columns, header_bounds, bodies, totals,
          codecs, bounds):  # fmt: skip
    """Reads the columns of each sound batch; no byte of payload is moved, and a codec's is not looked at.

    counts as `survey` filled them; limits: (bytes a field, headers a batch, headers in all). two_clocks: timestamps and
    created are two arrays. with_payload: starts of keys and values too, where the payload is plain and no header is
    there; `place` fills the others. columns: as in `formats._index`. Fills header_bounds int64[records + 1], bodies
    int64 (where the payload begins, or the header columns), totals int64 (bytes of keys and values), codecs
    int8 (0 where nothing is to be decompressed) and bounds int64[batches + 1]. A batch that breaks a promise gets its
    state and no record. Gives the bytes that were read.
    """
    most_bytes, most_headers, most_headers_in_all = limits
    timestamps, created = columns[:2]
    r, plain_bytes = np.int64(0), np.int64(0)
    bounds[0] = header_bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        codecs[b] = totals[b] = bodies[b] = 0
        if state[b] != status.SOUND:
            continue
        at, end, count = positions[b], positions[b + 1], counts[b]
        if not crc_holds(data, at, end):
            state[b] = status.CRC
            continue
        _, bits, _, _, _, _, max_time, anchor, by_rows, p = read_header(data, at, end)
        problem, key_bytes, value_bytes = status.SOUND, np.int64(0), np.int64(0)
        if count:  # then, if it is sound, header columns or payload
            problem, p, key_bytes, value_bytes = _read_columns(
                data, p, end, count, bits, get_i64(data, at), anchor, most_bytes, x, columns, r
            )
        body = p
        if problem == status.SOUND:
            if bits & HEADERS:
                most = min(most_headers, most_headers_in_all - header_bounds[r])
                problem, p = _read_header_counts(data, p, end, count, most, x, header_bounds, r)
            else:
                headers_before = header_bounds[r]
                for i in range(np.uint64(r), np.uint64(r + count)):
                    header_bounds[i + ONE] = headers_before
        if problem == status.SOUND:
            if p < end and count:
                codecs[b] = bits & CODEC_MASK
            if codecs[b] == 0 and bits & HEADERS == 0:
                if p + key_bytes + value_bytes != end:
                    problem = status.PAYLOAD
                elif with_payload:
                    _place(columns, r, count, p, key_bytes, by_rows)
                    if bits & CONTROL and not _controls_hold(data, columns, r, count):
                        problem = status.CONTROL_RECORD
        state[b] = problem
        if problem == status.SOUND:
            if bits & APPEND:
                for i in range(np.uint64(r), np.uint64(r + count)):
                    timestamps[i] = max_time
            elif two_clocks:
                for i in range(np.uint64(r), np.uint64(r + count)):
                    timestamps[i] = created[i]
            bodies[b], totals[b] = body, key_bytes + value_bytes
            plain_bytes += p - at
            r += count
            bounds[b + 1] = r
    return plain_bytes


@kernel
def place(data, positions, source, starts, ends, bounds, totals, header_totals, state, columns):
    """Finds the keys and values of the batches that `index` has left: source[starts[b]:ends[b]] is their plain payload.

    totals, header_totals int64: what lengths of keys and values, and of headers, add up to in each batch. A batch that
    breaks a promise gets its state.
    """
    _, _, _, key_lengths, _, _, _ = columns
    for b in range(len(state)):
        r, n = bounds[b], bounds[b + 1] - bounds[b]
        if n == 0 or state[b] != status.SOUND:
            continue
        _, bits, _, _, _, _, _, _, by_rows, _ = read_header(data, positions[b], positions[b + 1])
        if ends[b] - starts[b] != totals[b] + header_totals[b]:
            state[b] = status.PAYLOAD
            continue
        key_bytes = np.int64(0)
        for i in range(np.uint64(r), np.uint64(r + n)):
            key_bytes += max(np.int64(key_lengths[i]), 0)
        _place(columns, r, n, starts[b], key_bytes, by_rows)
        if bits & CONTROL and not _controls_hold(source, columns, r, n):
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
        _, bits, count, last_delta, base_time, horizon, max_time, _, _, _ = read_header(data, at, end)
        if base_time == UNSET:
            base_time = np.int64(NO_TIMESTAMP)
            if horizon != UNSET:
                base_time = horizon
            elif count:
                base_time = created[bounds[i]]
        row.position, row.size_bytes, row.magic = at, end - at, THIS_MAGIC
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), get_i16(data, at + ATTRIBUTES), bits & CODEC_MASK
        row.timestamp_type = 1 if bits & APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = count, base_time, max_time
        row.append_time_ms = max_time if bits & APPEND else np.int64(NO_TIMESTAMP)
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        first = np.int64(-1)
        row.producer_id, row.producer_epoch = first, first
        if bits & PRODUCER:
            row.producer_id = get_i64(data, at + HEADER)
            row.producer_epoch = get_i16(data, at + HEADER + PRODUCER_EPOCH_AT)
            first = np.int64(get_i32(data, at + HEADER + SEQUENCE_AT))
        row.base_sequence = first
        row.last_sequence = last_sequence(first, last_delta)
        row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
        row.delete_horizon_ms = horizon if bits & HORIZON else np.int64(NO_TIMESTAMP)
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


@leaf
def _read_around(data, p, end, n, nulls, i, with_total, x):
    """As `columns.read_around`."""
    if not nulls and p < end and get_u8(data, p) == ALL_ALIKE:  # without a call
        length, p = get_varlong(data, p + 1, end)
        state = status.SOUND if length >= 0 and length <= INT32_MAX else status.COLUMN_LENGTH
        return state, p, length, length * i, length * n
    return packed.read_around(data, p, end, n, nulls, i, with_total, x)


@kernel
def fetch(data, positions, indices, x, state, columns):
    """Record indices[b] of each batch, as one row b of the columns, which have no created times; no checksum is
    checked. x int64[records of the largest batch] is scratch. A batch that breaks a promise, has a codec or headers
    gets its state.
    """
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= HEADER:
            state[b] = status.SIZE
            continue
        problem, bits, n, _, _, _, max_time, anchor, by_rows, p = read_header(data, at, end)
        if problem == status.SOUND and (i < 0 or i >= n):
            problem = status.NO_SUCH_RECORD
        if problem == status.SOUND and bits & (CODEC_MASK | HEADERS):
            problem = status.NOT_FETCHED
        if problem == status.SOUND and n > len(x):
            problem = status.LIMIT_RECORDS
        if problem != status.SOUND:
            state[b] = problem
            continue
        age, delta, key_length, value_length = np.int64(0), i, np.int64(NULL), np.int64(NULL)
        key_before = key_total = value_before = np.int64(0)
        if n == 1:
            if bits & AGES:
                age, p = get_varlong(data, p, end)
            if bits & OFFSETS:
                delta, p = get_varlong(data, p, end)
            if bits & KEYS:
                key_length, p = get_uvarint(data, p, end)
            if bits & VALUES:
                value_length, p = get_uvarint(data, p, end)
            key_total = max(key_length, 0)
        else:
            if bits & AGES:
                problem, p, age = packed.read_at(data, p, end, n, i, x)
            if bits & OFFSETS and problem == status.SOUND:
                problem, p, delta = packed.read_at(data, p, end, n, i, x)
            if bits & KEYS and problem == status.SOUND:
                problem, p, key_length, key_before, key_total = _read_around(
                    data, p, end, n, bits & NULL_KEYS != 0, i, not by_rows, x
                )
            if bits & VALUES and problem == status.SOUND:
                problem, p, value_length, value_before, _ = _read_around(
                    data, p, end, n, bits & NULL_VALUES != 0, i, False, x
                )
        if by_rows:
            key_at = p + key_before + value_before
            value_at = key_at + max(key_length, 0)
        else:
            key_at, value_at = p + key_before, p + key_total + value_before
        if problem == status.SOUND and (
            p > end or max(key_length, 0) > end - key_at or max(value_length, 0) > end - value_at
        ):
            problem = status.PAYLOAD
        if problem != status.SOUND:
            state[b] = problem
            continue
        timestamps[b] = max_time if bits & APPEND else anchor - age
        offsets[b] = get_i64(data, at) + delta
        key_lengths[b], key_starts[b] = key_length, key_at
        value_lengths[b], value_starts[b] = value_length, value_at
