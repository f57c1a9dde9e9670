"""Columnar batches written, or their bytes counted: columns of all records, then their keys, values and headers."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats.batch_header import attributes_of
from kfbench.kernels.formats.columnar import choosing, record_headers
from kfbench.kernels.formats.columnar.batch_header import (
    AGES,
    ATTRIBUTES,
    CRC,
    EXTENSION_BYTES,
    EXTENSIONS,
    HEADER,
    HEADERS,
    KEYS,
    OFFSETS,
    ONE,
    PRODUCER,
    PRODUCER_BYTES,
    VALUES,
    extensions_of,
    has_producer,
    header_bytes,
    outline,
    put_header,
)
from kfbench.kernels.formats.columnar.choosing import CODES, FULL, LENGTHS
from kfbench.kernels.jit import kernel, leaf, variant
from kfbench.kernels.simd.intrinsics import put_i16
from kfbench.kernels.simd.simd_int64 import take_ages
from kfbench.kernels.wire.crc import CRC32C_START, crc32c_copy, crc32c_finish
from kfbench.kernels.wire.lengths import delta_code
from kfbench.kernels.wire.sealing import (
    AFTER_LENGTH,
    BATCH_TOO_LARGE,
    INT32_MAX,
    NEVER,
    OFFSET_TOO_FAR,
    OK,
    OUT_TOO_SMALL,
    seal,
)
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, put_varint, uvarint_bytes, varint_bytes

# No batch is larger than this and its payload: a column is never larger than its values over one base.
MAX_COLUMN_OVERHEAD = 5 + 1 + 10
MAX_BATCH_OVERHEAD = HEADER + PRODUCER_BYTES + 5 + 5 + 1 + 4 * EXTENSION_BYTES + 4 * MAX_COLUMN_OVERHEAD
MAX_RECORD_OVERHEAD = 8 + 8 + 4 + 4 + 4

PARTS = (
    *(f"batch_header.{name}" for name in layouts.COLUMNAR_HEADER.names),
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
SUMMED_FROM = 512  # bytes that are copied and summed at once: below that, the checksum had better have all it can
FIXED_PART_BYTES = np.array([layouts.COLUMNAR_HEADER[name].itemsize for name in layouts.COLUMNAR_HEADER.names])
PRODUCER_PART = PARTS.index("batch_header.producer")


@leaf
def _fill_offsets(x, offsets, first, n, base_offset):
    for i in range(np.uint64(n)):
        x[i] = offsets[first + i] - base_offset


@leaf
def _put_lengths(out, at, lengths, starts, first, n, bit, x, highs):
    """Writes the column of the lengths of n >= 2 records, if any is not null.

    (next position, bits, their sum, whether what they are of lies one behind the other)."""
    is_run, nulls, least, total, low, high, code_total = choosing.fill_placed_lengths(x, lengths, starts, first, n)
    if nulls == n:
        return at, 0, total, is_run
    if nulls:
        bit |= bit << 1
        if uvarint_bytes(np.uint64(least)) > len(out) - at:
            return np.int64(FULL), bit, total, is_run
        at = put_uvarint(out, at, np.uint64(least))
    return choosing.write(out, at, x, n, low, high, code_total, CODES if nulls else LENGTHS, highs), bit, total, is_run


@leaf
def _put_length(out, at, length, bit):
    """Of the only record; (next position, bits)."""
    if length < 0:
        return at, 0
    if 5 > len(out) - at and uvarint_bytes(np.uint64(length)) > len(out) - at:
        return np.int64(FULL), bit
    return put_uvarint(out, at, np.uint64(length)), bit


@leaf
def _put_columns(out, at, columns, first, n, base_offset, latest, ages, has_holes, x, highs):
    """(next position or FULL, attribute bits, bytes of keys, of values, whether each lie one behind the other) of
    n >= 1 records."""
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    oldest, total = ages
    bits = (AGES if oldest else 0) | (OFFSETS if has_holes else 0)
    if n == 1:
        if has_holes:
            delta = offsets[first] - base_offset
            if varint_bytes(delta) > len(out) - at:
                return np.int64(FULL), bits, np.int64(0), np.int64(0), True, True
            at = put_varint(out, at, delta)
        key_length, value_length = np.int64(key_lengths[first]), np.int64(value_lengths[first])
        at, bit = _put_length(out, at, key_length, KEYS)
        bits |= bit
        if at != FULL:
            at, bit = _put_length(out, at, value_length, VALUES)
            bits |= bit
        return at, bits, max(key_length, 0), max(value_length, 0), True, True
    if oldest:
        take_ages(x, timestamps, first, n, latest)
        # Over more than half of all times the greatest age is a negative int64, and the least is not 0.
        at = (
            choosing.write(out, at, x, n, np.int64(0), oldest, total, choosing.AGES, highs)
            if oldest > 0
            else choosing.write_all(out, at, x, n, choosing.AGES, highs)
        )
    if has_holes and at != FULL:
        _fill_offsets(x, offsets, first, n, base_offset)
        at = choosing.write_all(out, at, x, n, choosing.OFFSETS, highs)
    key_bytes = value_bytes = np.int64(0)
    key_run = value_run = True
    if at != FULL:
        at, bit, key_bytes, key_run = _put_lengths(out, at, key_lengths, columns[8], first, n, KEYS, x, highs)
        bits |= bit
    if at != FULL:
        at, bit, value_bytes, value_run = _put_lengths(out, at, value_lengths, columns[10], first, n, VALUES, x, highs)
        bits |= bit
    return at, bits, key_bytes, value_bytes, key_run, value_run


@leaf
def _put_run(out, at, data, start, total, crc, summed):
    """Copies `total` bytes; (next position, and of the checksum what `crc32c_copy` says)."""
    if total < SUMMED_FROM or summed == NEVER:
        return put_bytes(out, at, data, start, total), crc, summed
    crc, summed = crc32c_copy(crc, out, summed, at, data, start, total)
    return at + total, crc, summed


@leaf
def _put_all(out, at, data, starts, lengths, first, end, total, is_run, crc, summed):
    """Copies items of `total` bytes one after another, all at once where they are a run.

    (next position, and of the checksum what `crc32c_copy` says)."""
    if total == 0:
        return at, crc, summed
    start = starts[first]
    # The first of a run may be a null, whose start may be anywhere.
    if is_run and start >= 0 and total <= len(data) - start:
        return _put_run(out, at, data, start, total, crc, summed)
    for i in range(first, end):
        at = put_bytes(out, at, data, starts[i], np.int64(lengths[i]))
    return at, crc, summed


WITH_HEADERS = False  # a variant's own


def _encode(columns, bounds, fields, codec, scratch, out, positions, bodies):
    """Writes batches one after another; with a codec their payload is still plain, and length and checksum unset.

    scratch: as `record_headers` has it. Fills positions int64[batches + 1] and bodies int64[batches] (where the payload
    begins). Gives (problem, batch): OK, or why that batch cannot be written.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    keys, key_starts, values, value_starts = columns[7:11]
    x, highs = scratch[:2]
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        count = np.int64(end - first)
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, default, max_time, latest, ages, has_holes, far = outline(
            timestamps, offsets, first, end, row
        )
        if far:
            return OFFSET_TOO_FAR, b
        extensions = extensions_of(row, count, base_time, default, max_time, latest, ages)
        if header_bytes(row, count, last_delta, has_holes, extensions) > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        at = put_header(
            out, at, row, base_offset, count, last_delta, base_time, default, max_time, latest, ages, has_holes,
            extensions,
        )  # fmt: skip
        bits = np.int64(OFFSETS if has_holes else 0)
        key_bytes = value_bytes = total = staged_bytes = np.int64(0)
        key_run = value_run = True
        if count:
            at, bits, key_bytes, value_bytes, key_run, value_run = _put_columns(
                out, at, columns, first, count, base_offset, latest, ages, has_holes, x, highs
            )
            total = key_bytes + value_bytes
            has_headers = WITH_HEADERS and header_bounds[first] != header_bounds[end]
            if has_headers and at != FULL:
                bits |= HEADERS
                at, name_bytes, content_bytes, is_staged = record_headers.put_columns(
                    out, at, columns, first, count, scratch
                )
                total += name_bytes + content_bytes
                staged_bytes = name_bytes + content_bytes if is_staged else np.int64(0)
            if at == FULL or total > len(out) - at:
                return OUT_TOO_SMALL, b
        bits |= attributes_of(row, codec, 0, count)
        bits |= (PRODUCER if has_producer(row) else 0) | (EXTENSIONS if extensions else 0)
        put_i16(out, start + ATTRIBUTES, np.int16((bits ^ 0x8000) - 0x8000))  # an i16 of the same bits
        bodies[b] = at
        if at + total - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        sealed = codec == 0 or count == 0
        crc, summed = CRC32C_START, start + ATTRIBUTES if sealed else NEVER
        at, crc, summed = _put_all(out, at, keys, key_starts, key_lengths, first, end, key_bytes, key_run, crc, summed)
        at, crc, summed = _put_all(
            out, at, values, value_starts, value_lengths, first, end, value_bytes, value_run, crc, summed
        )
        if WITH_HEADERS and staged_bytes:
            at, crc, summed = _put_run(out, at, scratch[7], np.int64(0), staged_bytes, crc, summed)
        elif WITH_HEADERS and bits & HEADERS:
            at = record_headers.put_payload(out, at, columns, first, count)
        if sealed:
            seal(out, start, at, CRC, crc32c_finish(crc, out, summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


encode = variant(_encode, "encode", WITH_HEADERS=False)
encode_with_headers = variant(_encode, "encode_with_headers", WITH_HEADERS=True)


@leaf
def _lengths_bytes(lengths, first, n, x, highs):
    """(bytes of the column, their sum) of n >= 1 records."""
    if n == 1:
        length = np.int64(lengths[first])
        return uvarint_bytes(np.uint64(length)) if length >= 0 else np.int64(0), max(length, 0)
    nulls, least, total, low, high, code_total = choosing.fill_lengths(x, lengths, first, ONE, n)
    if nulls == n:
        return np.int64(0), total
    size = choosing.choose(x, n, low, high, code_total, CODES if nulls else LENGTHS, highs)[0]
    return (uvarint_bytes(np.uint64(least)) if nulls else 0) + size, total


@kernel
def sizes(columns, bounds, fields, header_sizes, x, highs, out, parts):
    """The uncompressed bytes of each batch, int64[batches], without writing it; adds to parts int64[len(PARTS)].

    header_sizes int64[3 * batches]: what the headers of each batch take (`record_headers.sizes`), or none.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        count = np.int64(end - first)
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, default, max_time, latest, ages_of, has_holes, _ = outline(
            timestamps, offsets, first, end, row
        )
        extensions = extensions_of(row, count, base_time, default, max_time, latest, ages_of)
        total = header_bytes(row, count, last_delta, has_holes, extensions)
        ages = holes = keys = values = key_total = value_total = np.int64(0)
        if count > 1 and ages_of[0]:
            take_ages(x, timestamps, first, count, latest)
            ages = choosing.size_of(x, count, choosing.AGES, highs)
        if count > 1 and has_holes:
            _fill_offsets(x, offsets, first, count, base_offset)
            holes = choosing.size_of(x, count, choosing.OFFSETS, highs)
        elif count and has_holes:
            holes = varint_bytes(offsets[first] - base_offset)
        if count:
            keys, key_total = _lengths_bytes(key_lengths, first, count, x, highs)
            values, value_total = _lengths_bytes(value_lengths, first, count, x, highs)
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
            more[0] += PRODUCER_BYTES if has_producer(row) else 0
            more[1] += uvarint_bytes(np.uint64(count))
            more[2] += uvarint_bytes(delta_code(last_delta, True)) if has_holes else 0
            more[3] += 1 + EXTENSION_BYTES * extensions if extensions else 0
            for k, size in enumerate(
                (ages, holes, keys, values, header_columns, key_total, value_total, header_keys, header_values)
            ):
                more[4 + k] += size
