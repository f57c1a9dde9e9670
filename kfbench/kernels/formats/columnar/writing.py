"""Columnar batches written, or their bytes counted: columns of all records, then their keys, values and headers."""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats.batch_header import attributes_of
from kfbench.kernels.formats.columnar import choosing
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
    count_extensions,
    has_producer,
    header_bytes,
    outline,
    put_header,
)
from kfbench.kernels.formats.columnar.choosing import CODES, LENGTHS, Bounds
from kfbench.kernels.formats.columnar.column_writing import (
    FULL,
    fill_lengths,
    fill_placed_lengths,
    write,
    write_lengths,
    write_values,
)
from kfbench.kernels.formats.columnar.header_values import Scratch
from kfbench.kernels.formats.columnar.header_writing import HeaderSizes, headers_of, put_columns, put_payload
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

# Bytes of a batch without its payload, at most: a column is never larger than its values above one base.
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
SUMMED_FROM = 512  # bytes that are summed while they are copied; fewer are summed with the rest of the batch
FIXED_PART_BYTES = np.array([layouts.COLUMNAR_HEADER[name].itemsize for name in layouts.COLUMNAR_HEADER.names])
PRODUCER_PART = PARTS.index("batch_header.producer")


class Field(NamedTuple):
    """The keys or the values of all records."""

    lengths: np.ndarray  # int32[records], -1 of a null
    data: np.ndarray  # uint8[]
    starts: np.ndarray  # int64[records]


class WrittenLengths(NamedTuple):
    """A column of lengths as it was written."""

    position: int  # behind it, FULL where there is no room
    bits: int  # of the attributes
    total_bytes: int
    is_run: bool  # the items lie one behind the other


class WrittenColumns(NamedTuple):
    """The columns of one batch but for headers, as they were written."""

    bits: int  # of the attributes
    keys: WrittenLengths
    values: WrittenLengths  # its position is behind all columns


class Sum(NamedTuple):
    """The checksum of a batch while its payload is copied."""

    crc: int
    position: int  # up to which it is summed, NEVER if a codec is still to come


@leaf
def _fill_offsets(x, offsets, first, n, base_offset):
    for i in range(np.uint64(n)):
        x[i] = offsets[first + i] - base_offset


@leaf
def _put_lengths(out, at, field, first, n, bit, x, plans):
    """Write the column of n >= 2 lengths, unless all are null. Return WrittenLengths.

    Args:
        out uint8[], at: written from there on; FULL if there is no room even for what comes before
        field, first: a Field and the first record
        bit: of the attributes
        x int64[n + GROUP], plans int64[BUCKETS]: scratch
    """
    none, bits = np.int64(0), np.int64(bit)
    if at == FULL:
        return WrittenLengths(at, none, none, True)
    is_run, found = fill_placed_lengths(x, field.lengths, field.starts, first, n)
    if found.nulls == n:
        return WrittenLengths(at, none, found.total_bytes, is_run)
    if found.nulls:
        bits |= bits << 1
    return WrittenLengths(write_lengths(out, at, x, n, found, plans), bits, found.total_bytes, is_run)


@leaf
def _put_times(out, at, columns, first, batch, x, plans):
    """Write the columns of ages and offsets of n >= 2 records. Return the next position, or FULL.

    Args:
        out uint8[], at: written from there on
        columns, first: the columns of the records and the first record
        batch: the Outline of the batch
        x int64[n + GROUP], plans int64[BUCKETS]: scratch
    """
    n = batch.count
    if batch.greatest_age:
        take_ages(x, columns[0], first, n, batch.latest)
        # Over more than half of all times the greatest age is a negative int64, and the least is not 0.
        if batch.greatest_age > 0:
            bounds = Bounds(np.int64(0), batch.greatest_age, batch.sum_of_ages)
            at = write(out, at, x, n, bounds, choosing.AGES, plans)
        else:
            at = write_values(out, at, x, n, choosing.AGES, plans)
    if batch.has_holes and at != FULL:
        _fill_offsets(x, columns[1], first, n, batch.base_offset)
        at = write_values(out, at, x, n, choosing.OFFSETS, plans)
    return at


@leaf
def _put_length(out, at, length, bit):
    """Write the length of the only record, unless it is null. Return WrittenLengths. bit: of the attributes."""
    if length < 0:
        return WrittenLengths(at, np.int64(0), np.int64(0), True)
    if 5 > len(out) - at and uvarint_bytes(np.uint64(length)) > len(out) - at:
        return WrittenLengths(np.int64(FULL), np.int64(bit), length, True)
    return WrittenLengths(put_uvarint(out, at, np.uint64(length)), np.int64(bit), length, True)


@leaf
def _put_only_record(out, at, offsets, keys, values, first, batch):
    """Write the columns of a batch of one record, whose age is 0. Return WrittenColumns; see `_put_columns`."""
    bits, none = np.int64(OFFSETS if batch.has_holes else 0), np.int64(0)
    if batch.has_holes:
        delta = offsets[first] - batch.base_offset
        at = put_varint(out, at, delta) if varint_bytes(delta) <= len(out) - at else np.int64(FULL)
    key_column = value_column = WrittenLengths(at, none, none, True)
    if at != FULL:
        key_column = _put_length(out, at, np.int64(keys.lengths[first]), KEYS)
        value_column = key_column
        if key_column.position != FULL:
            value_column = _put_length(out, key_column.position, np.int64(values.lengths[first]), VALUES)
    return WrittenColumns(bits | key_column.bits | value_column.bits, key_column, value_column)


@leaf
def _put_columns(out, at, columns, keys, values, first, batch, room):
    """Write the columns of any batch but for headers. Return WrittenColumns.

    Args:
        out uint8[], at: written from there on
        columns, keys, values: the columns of the records, and the Fields among them
        first, batch: the first record, and the Outline of the batch
        room: a Scratch
    """
    if batch.count == 1:
        return _put_only_record(out, at, columns[1], keys, values, first, batch)
    bits, none = np.int64((AGES if batch.greatest_age else 0) | (OFFSETS if batch.has_holes else 0)), np.int64(0)
    if batch.count == 0:
        nothing = WrittenLengths(at, none, none, True)
        return WrittenColumns(bits, nothing, nothing)
    at = _put_times(out, at, columns, first, batch, room.x, room.plans)
    key_column = _put_lengths(out, at, keys, first, batch.count, KEYS, room.x, room.plans)
    value_column = _put_lengths(out, key_column.position, values, first, batch.count, VALUES, room.x, room.plans)
    return WrittenColumns(bits | key_column.bits | value_column.bits, key_column, value_column)


@leaf
def _put_run(out, at, data, start, total, done):
    """Copy `total` bytes. Return the next position and the Sum. done: the Sum so far."""
    if total < SUMMED_FROM or done.position == NEVER:
        return put_bytes(out, at, data, start, total), done
    crc, position = crc32c_copy(done.crc, out, done.position, at, data, start, total)
    return at + total, Sum(crc, position)


@leaf
def _put_items(out, at, field, first, end, column, done):
    """Copy the keys or values of the records `first` up to `end`. Return the next position and the Sum.

    Args:
        out uint8[], at: written from there on
        field: a Field
        column: the WrittenLengths of its column
        done: the Sum so far
    """
    if column.total_bytes == 0:
        return at, done
    start = field.starts[first]
    # The first of a run may be a null, whose start may be anywhere.
    if column.is_run and start >= 0 and column.total_bytes <= len(field.data) - start:
        return _put_run(out, at, field.data, start, column.total_bytes, done)
    for i in range(first, end):
        at = put_bytes(out, at, field.data, field.starts[i], np.int64(field.lengths[i]))
    return at, done


WITH_HEADERS = False  # each variant of `_encode` has its own


def _encode(columns, bounds, fields, codec, scratch, out, positions, bodies):
    """Write batches one after another. Return OK and 0, or why a batch cannot be written and its number.

    With a codec, payloads are still plain, and length and checksum are not set.

    Args:
        columns: the columns of the records
        bounds int64[batches + 1]: of the records of each batch
        fields BATCH_FIELDS[batches or 1]
        codec: its number, 0 for none
        scratch: the arrays of a Scratch
        out uint8[]: written
        positions int64[batches + 1], bodies int64[batches]: filled with where batches and their payloads begin
    """
    room, headers = Scratch(*scratch), headers_of(columns)
    keys, values = Field(columns[2], columns[7], columns[8]), Field(columns[3], columns[9], columns[10])
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        batch = outline(columns[0], columns[1], first, end, row)
        if batch.is_too_far:
            return OFFSET_TOO_FAR, b
        extensions = count_extensions(row, batch)
        if header_bytes(row, batch, extensions) > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        at = put_header(out, at, row, batch, extensions)
        found = _put_columns(out, at, columns, keys, values, first, batch, room)
        at, bits = found.values.position, found.bits
        header_sizes = HeaderSizes(at, np.int64(0), np.int64(0), False)
        if WITH_HEADERS and headers.bounds[first] != headers.bounds[end] and at != FULL:
            bits |= HEADERS
            header_sizes = put_columns(out, at, headers, first, batch.count, room)
            at = header_sizes.position
        header_total = header_sizes.key_bytes + header_sizes.value_bytes
        total = found.keys.total_bytes + found.values.total_bytes + header_total
        if at == FULL or total > len(out) - at:
            return OUT_TOO_SMALL, b
        bits |= attributes_of(row, codec, 0, batch.count)
        bits |= (PRODUCER if has_producer(row) else 0) | (EXTENSIONS if extensions else 0)
        put_i16(out, start + ATTRIBUTES, np.int16((bits ^ 0x8000) - 0x8000))  # an i16 of the same bits
        bodies[b] = at
        if at + total - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        sealed = codec == 0 or batch.count == 0
        done = Sum(CRC32C_START, start + ATTRIBUTES if sealed else NEVER)
        at, done = _put_items(out, at, keys, first, end, found.keys, done)
        at, done = _put_items(out, at, values, first, end, found.values, done)
        if WITH_HEADERS and header_sizes.is_staged:
            at, done = _put_run(out, at, room.staged, np.int64(0), header_total, done)
        elif WITH_HEADERS and bits & HEADERS:
            at = put_payload(out, at, headers, first, batch.count)
        if sealed:
            seal(out, start, at, CRC, crc32c_finish(done.crc, out, done.position, at))
    positions[len(bounds) - 1] = at
    return OK, 0


encode = variant(_encode, "encode", WITH_HEADERS=False)
encode_with_headers = variant(_encode, "encode_with_headers", WITH_HEADERS=True)


@leaf
def _lengths_bytes(lengths, first, n, x, plans):
    """Return the bytes of the column of n >= 1 lengths, and the bytes of their items."""
    if n == 1:
        length = np.int64(lengths[first])
        return uvarint_bytes(np.uint64(length)) if length >= 0 else np.int64(0), max(length, 0)
    found = fill_lengths(x, lengths, first, ONE, n)
    if found.nulls == n:
        return np.int64(0), found.total_bytes
    least_bytes = uvarint_bytes(np.uint64(found.least)) if found.nulls else np.int64(0)
    plan = choosing.choose(x, n, found.bounds, CODES if found.nulls else LENGTHS, plans)
    return least_bytes + plan.size_bytes, found.total_bytes


@leaf
def _times_bytes(columns, first, batch, x, plans):
    """Return the bytes of the columns of ages and of offsets."""
    n, ages, offsets = batch.count, np.int64(0), np.int64(0)
    if n > 1 and batch.greatest_age:
        take_ages(x, columns[0], first, n, batch.latest)
        ages = choosing.size_of(x, n, choosing.AGES, plans)
    if n > 1 and batch.has_holes:
        _fill_offsets(x, columns[1], first, n, batch.base_offset)
        offsets = choosing.size_of(x, n, choosing.OFFSETS, plans)
    elif n and batch.has_holes:
        offsets = varint_bytes(columns[1][first] - batch.base_offset)
    return ages, offsets


@kernel
def sizes(columns, bounds, fields, header_sizes, x, plans, out, parts):
    """Compute the uncompressed bytes of each batch without writing it.

    Args:
        columns: the columns of the shapes
        bounds, fields: as in `_encode`
        header_sizes int64[3 * batches]: as `header_writing.sizes` fills it, or empty
        x int64[records of the largest batch + GROUP], plans int64[BUCKETS]: scratch
        out int64[batches]: filled
        parts int64[len(PARTS)]: the bytes of each part are added; or empty
    """
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        batch = outline(columns[0], columns[1], first, end, row)
        extensions = count_extensions(row, batch)
        ages, offsets = _times_bytes(columns, first, batch, x, plans)
        keys = values = key_bytes = value_bytes = np.int64(0)
        if batch.count:
            keys, key_bytes = _lengths_bytes(columns[2], first, batch.count, x, plans)
            values, value_bytes = _lengths_bytes(columns[3], first, batch.count, x, plans)
        headers = header_keys = header_values = np.int64(0)
        if len(header_sizes):
            headers, header_keys, header_values = (
                header_sizes[3 * b], header_sizes[3 * b + 1], header_sizes[3 * b + 2]
            )  # fmt: skip
        out[b] = (
            header_bytes(row, batch, extensions) + ages + offsets + keys + values + headers + key_bytes + value_bytes
            + header_keys + header_values
        )  # fmt: skip
        if len(parts) == 0:
            continue
        for k in range(len(FIXED_PART_BYTES)):
            parts[k] += FIXED_PART_BYTES[k]
        rest = parts[PRODUCER_PART:]
        rest[0] += PRODUCER_BYTES if has_producer(row) else 0
        rest[1] += uvarint_bytes(np.uint64(batch.count))
        rest[2] += uvarint_bytes(delta_code(batch.last_delta, True)) if batch.has_holes else 0
        rest[3] += 1 + EXTENSION_BYTES * extensions if extensions else 0
        for k, size in enumerate(
            (ages, offsets, keys, values, headers, key_bytes, value_bytes, header_keys, header_values)
        ):
            rest[4 + k] += size
