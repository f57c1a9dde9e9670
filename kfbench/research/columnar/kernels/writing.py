"""Kernels that write columnar batches or compute their sizes: columns of all records, then the payload.

Functions that write return the next position, or FULL if there is no room. Common parameters:

    out uint8[], at: output, and the position in it to write at
    columns: the RecordColumns; kernels take a tuple of its arrays
    first uint64: index of the first record
    batch: the ColumnarOutline of the batch
    keys, values: the Fields
    room: the Scratch
    x int64[records + GROUP], plans int64[BUCKETS]: scratch
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.batch_header import attributes_of
from kfbench.kernels.jit import leaf, variant
from kfbench.kernels.simd.intrinsics import put_i16
from kfbench.kernels.wire import sealing
from kfbench.kernels.wire.crc import CRC32C_START, crc32c_copy, crc32c_finish
from kfbench.kernels.wire.lengths import RecordColumns, ShapeColumns, delta_code
from kfbench.kernels.wire.sealing import FULL, OK, RunningCrc
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, put_varint, uvarint_bytes, varint_bytes
from kfbench.research.columnar.kernels import batch_header as layout
from kfbench.research.columnar.kernels.batch_header import header_bytes, outline
from kfbench.research.columnar.kernels.column_writing import (
    Bounds,
    bounds_of,
    choose,
    fill_codes,
    write,
    write_values,
)
from kfbench.research.columnar.kernels.columns import ZERO
from kfbench.research.columnar.kernels.header_writing import (
    HeaderSizes,
    Scratch,
    headers_of,
    put_columns,
    put_payload,
)
from kfbench.research.columnar.kernels.simd_int64 import gaps_of, take_ages

# Upper bounds for the bytes of a batch without its payload. No column takes more than its values packed above one base.
MAX_COLUMN_OVERHEAD = 5 + 1 + 10
MAX_BATCH_OVERHEAD = layout.HEADER + layout.PRODUCER_BYTES + 5 + 5 + 4 * layout.TIME_BYTES + 4 * MAX_COLUMN_OVERHEAD
MAX_RECORD_OVERHEAD = 8 + 8 + 4 + 4 + 4

PARTS = (
    *(f"batch_header.{name}" for name in layout.LAYOUT.names),
    "batch_header.producer",
    "batch_header.count",
    "batch_header.last_offset_delta",
    "batch_header.timestamps",
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
SUMMED_FROM = 512  # from this size in bytes on, the checksum of a payload is computed while it is copied
FIXED_PART_BYTES = np.array([layout.LAYOUT[name].itemsize for name in layout.LAYOUT.names])
PRODUCER_PART = PARTS.index("batch_header.producer")


class Field(NamedTuple):
    """The keys or the values of all records."""

    lengths: np.ndarray  # int32[records], -1 for a null
    data: np.ndarray  # uint8[]
    starts: np.ndarray  # int64[records]


class WrittenLengths(NamedTuple):
    """The result of writing a column of key or value lengths."""

    position: int  # the position after the column, or FULL
    bits: int  # bits to set in the attributes of the batch
    total_bytes: int  # sum of the lengths
    is_run: bool  # whether the items are contiguous


class WrittenColumns(NamedTuple):
    """The result of writing the columns of one batch, except header columns."""

    bits: int  # attributes bits to set
    keys: WrittenLengths
    values: WrittenLengths  # its position is after all columns


@leaf
def _fill_offsets(x, offsets, first, n, base_offset):
    for i in range(np.uint64(n)):
        x[i] = offsets[first + i] - base_offset


@leaf
def _put_lengths(out, at, field, first, n, bit, x, plans):
    """Write the column of n >= 2 key or value lengths. Write nothing if all are null. Return the WrittenLengths.

    Args:
        out, at, first, x, plans: see the module docstring; `at` may be FULL
        field: the Field
        n: number of records
        bit: attribute bit which says that the batch has this column
    """
    if at == FULL:
        return WrittenLengths(at, ZERO, ZERO, True)
    codes, total_bytes = fill_codes(x, field.lengths, first, n)
    if codes.high == 0:
        return WrittenLengths(at, ZERO, ZERO, True)
    is_run = gaps_of(field.lengths, field.starts, first, n - 1) == 0
    return WrittenLengths(write(out, at, x, n, codes, False, plans), np.int64(bit), total_bytes, is_run)


@leaf
def _put_times(out, at, columns, first, batch, x, plans):
    """Write the columns of ages and offsets of n >= 2 records. Return the next position, or FULL.

    Args: see the module docstring.
    """
    n = batch.count
    if batch.greatest_age:
        take_ages(x, columns.timestamps_ms, first, n, batch.latest)
        # If timestamps span more than 2**63, the greatest age wraps to a negative int64, and 0 is not the least age.
        if batch.greatest_age > 0:
            bounds = Bounds(ZERO, batch.greatest_age, batch.sum_of_ages)
            at = write(out, at, x, n, bounds, True, plans)
        else:
            at = write_values(out, at, x, n, True, plans)
    if batch.has_holes and at != FULL:
        _fill_offsets(x, columns.offsets, first, n, batch.base_offset)
        at = write_values(out, at, x, n, True, plans)
    return at


@leaf
def _put_length(out, at, length, bit):
    """Write the key or value length of a batch's only record, unless it is null. Return the WrittenLengths."""
    if length < 0:
        return WrittenLengths(at, ZERO, ZERO, True)
    code = np.uint64(length + 1)
    if len(out) - at < 5 and uvarint_bytes(code) > len(out) - at:
        return WrittenLengths(np.int64(FULL), np.int64(bit), length, True)
    return WrittenLengths(put_uvarint(out, at, code), np.int64(bit), length, True)


@leaf
def _put_only_record(out, at, offsets, keys, values, first, batch):
    """Write the columns of a batch of one record, whose age is 0. Return the WrittenColumns.

    Args: see the module docstring; offsets int64[]: of all records.
    """
    bits = np.int64(layout.OFFSETS if batch.has_holes else 0)
    if batch.has_holes:
        delta = offsets[first] - batch.base_offset
        at = put_varint(out, at, delta) if varint_bytes(delta) <= len(out) - at else np.int64(FULL)
    key_column = value_column = WrittenLengths(at, ZERO, ZERO, True)
    if at != FULL:
        key_column = _put_length(out, at, np.int64(keys.lengths[first]), layout.KEYS)
        value_column = key_column
        if key_column.position != FULL:
            value_column = _put_length(out, key_column.position, np.int64(values.lengths[first]), layout.VALUES)
    return WrittenColumns(bits | key_column.bits | value_column.bits, key_column, value_column)


@leaf
def _put_columns(out, at, columns, keys, values, first, batch, room):
    """Write the columns of a batch with any number of records, except header columns. Return the WrittenColumns.

    Args: see the module docstring.
    """
    if batch.count == 1:
        return _put_only_record(out, at, columns.offsets, keys, values, first, batch)
    bits = np.int64((layout.AGES if batch.greatest_age else 0) | (layout.OFFSETS if batch.has_holes else 0))
    if batch.count == 0:
        nothing = WrittenLengths(at, ZERO, ZERO, True)
        return WrittenColumns(bits, nothing, nothing)
    at = _put_times(out, at, columns, first, batch, room.x, room.plans)
    key_column = _put_lengths(out, at, keys, first, batch.count, layout.KEYS, room.x, room.plans)
    value_column = _put_lengths(out, key_column.position, values, first, batch.count, layout.VALUES, room.x, room.plans)
    return WrittenColumns(bits | key_column.bits | value_column.bits, key_column, value_column)


@leaf
def _put_run(out, at, data, start, total, running):
    """Copy data[start : start + total] to out[at:]. Return the next position and the updated RunningCrc."""
    if total < SUMMED_FROM or running.summed == sealing.NEVER:
        return put_bytes(out, at, data, start, total), running
    crc, position = crc32c_copy(running.value, out, running.summed, at, data, start, total)
    return at + total, RunningCrc(crc, position)


@leaf
def _put_items(out, at, field, first, end, column, running):
    """Copy the keys or values of the records `first` up to `end`. Return the next position and the updated RunningCrc.

    Args:
        out, at, first: see the module docstring
        field: the Field
        end uint64: bound of the records
        column: the WrittenLengths of its column
        running: the RunningCrc so far
    """
    if column.total_bytes == 0:
        return at, running
    start = field.starts[first]
    # The first of several contiguous items may be a null. The start of a null may be any number.
    if column.is_run and start >= 0 and column.total_bytes <= len(field.data) - start:
        return _put_run(out, at, field.data, start, column.total_bytes, running)
    for i in range(first, end):
        at = put_bytes(out, at, field.data, field.starts[i], np.int64(field.lengths[i]))
    return at, running


WITH_HEADERS = False  # replaced in the variants of `_encode` and `_sizes`


def _encode(columns, bounds, fields, codec, scratch, out, positions, bodies):
    """Write batches one after another. Return OK and 0, or the problem and the number of the batch that has it.

    With a codec, the caller compresses the payloads, and sets length and checksum.

    Args:
        columns: see the module docstring
        bounds int64[batches + 1]: bounds of the records of each batch
        fields BATCH_FIELDS[batches or 1]: a single row holds for all batches
        codec: number of the codec, 0 for none
        scratch: the arrays of a Scratch
        out uint8[]: output
        positions int64[batches + 1], bodies int64[batches]: filled with the positions of batches and of their payloads
    """
    given, room = RecordColumns(*columns), Scratch(*scratch)
    headers = headers_of(given)
    keys = Field(given.key_lengths, given.key_data, given.key_starts)
    values = Field(given.value_lengths, given.value_data, given.value_starts)
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        batch = outline(given.timestamps_ms, given.offsets, first, end, row)
        if batch.is_too_far:
            return sealing.OFFSET_TOO_FAR, b
        optional = layout.optional_bits(row, batch)
        if header_bytes(batch, optional) > len(out) - at:
            return sealing.OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        at = layout.put_header(out, at, row, batch, optional)
        found = _put_columns(out, at, given, keys, values, first, batch, room)
        at, bits = found.values.position, found.bits
        header_sizes = HeaderSizes(at, ZERO, ZERO, False)
        if WITH_HEADERS and headers.bounds[first] != headers.bounds[end] and at != FULL:
            bits |= layout.HEADERS
            header_sizes = put_columns(out, at, headers, first, batch.count, room)
            at = header_sizes.position
        header_total = header_sizes.key_bytes + header_sizes.value_bytes
        total = found.keys.total_bytes + found.values.total_bytes + header_total
        if at == FULL or total > len(out) - at:
            return sealing.OUT_TOO_SMALL, b
        bits |= attributes_of(row, codec, 0, batch.count) | optional
        put_i16(out, start + layout.ATTRIBUTES, np.int16((bits ^ 0x8000) - 0x8000))  # an i16 of the same bits
        bodies[b] = at
        if at + total - start - sealing.AFTER_LENGTH > sealing.INT32_MAX:
            return sealing.BATCH_TOO_LARGE, b
        sealed = codec == 0 or batch.count == 0
        running = RunningCrc(CRC32C_START, start + layout.ATTRIBUTES if sealed else sealing.NEVER)
        at, running = _put_items(out, at, keys, first, end, found.keys, running)
        at, running = _put_items(out, at, values, first, end, found.values, running)
        if WITH_HEADERS and header_sizes.is_staged:
            at, running = _put_run(out, at, room.staged, ZERO, header_total, running)
        elif WITH_HEADERS and bits & layout.HEADERS:
            at = put_payload(out, at, headers, first, batch.count)
        if sealed:
            sealing.seal(out, start, at, layout.CRC, crc32c_finish(running.value, out, running.summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


encode = variant(_encode, "encode", WITH_HEADERS=False)
encode_with_headers = variant(_encode, "encode_with_headers", WITH_HEADERS=True)


@leaf
def _lengths_bytes(lengths, first, n, x, plans):
    """Return the size in bytes of the column of n >= 1 key or value lengths, and the sum of the lengths."""
    if n == 1:
        length = np.int64(lengths[first])
        return uvarint_bytes(np.uint64(length + 1)) if length >= 0 else ZERO, max(length, 0)
    codes, total_bytes = fill_codes(x, lengths, first, n)
    if codes.high == 0:
        return ZERO, ZERO
    return choose(x, n, codes, False, plans).size_bytes, total_bytes


@leaf
def _times_bytes(columns, first, batch, x, plans):
    """Return the size in bytes of the column of ages, and of the column of offsets."""
    n, ages, offsets = batch.count, ZERO, ZERO
    if n > 1 and batch.greatest_age:
        take_ages(x, columns.timestamps_ms, first, n, batch.latest)
        ages = choose(x, n, bounds_of(x, n), True, plans).size_bytes
    if n > 1 and batch.has_holes:
        _fill_offsets(x, columns.offsets, first, n, batch.base_offset)
        offsets = choose(x, n, bounds_of(x, n), True, plans).size_bytes
    elif n and batch.has_holes:
        offsets = varint_bytes(columns.offsets[first] - batch.base_offset)
    return ages, offsets


def _sizes(columns, bounds, fields, scratch, room, out, parts):
    """Compute the uncompressed size of each batch without writing it.

    Args:
        columns: the arrays of the ShapeColumns, or of the RecordColumns if they have headers
        bounds, fields, scratch: as in `_encode`
        room uint8[]: scratch for the header columns of one batch
        out int64[batches]: filled with sizes in bytes
        parts int64[len(PARTS)]: the size in bytes of each part of all batches is added; may be empty
    """
    shapes, arrays = ShapeColumns(*columns[:7]), Scratch(*scratch)
    x, plans = arrays.x, arrays.plans
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        batch = outline(shapes.timestamps_ms, shapes.offsets, first, end, row)
        optional = layout.optional_bits(row, batch)
        ages, offsets = _times_bytes(shapes, first, batch, x, plans)
        keys = values = key_bytes = value_bytes = ZERO
        if batch.count:
            keys, key_bytes = _lengths_bytes(shapes.key_lengths, first, batch.count, x, plans)
            values, value_bytes = _lengths_bytes(shapes.value_lengths, first, batch.count, x, plans)
        headers = HeaderSizes(ZERO, ZERO, ZERO, False)
        if WITH_HEADERS:
            given = headers_of(RecordColumns(*columns))
            if given.bounds[first] != given.bounds[end]:
                headers = put_columns(room, ZERO, given, first, batch.count, arrays)
        out[b] = (
            header_bytes(batch, optional) + ages + offsets + keys + values + headers.position + key_bytes + value_bytes
            + headers.key_bytes + headers.value_bytes
        )  # fmt: skip
        if len(parts) == 0:
            continue
        for k in range(len(FIXED_PART_BYTES)):
            parts[k] += FIXED_PART_BYTES[k]
        rest = parts[PRODUCER_PART:]
        rest[0] += layout.PRODUCER_BYTES if optional & layout.PRODUCER else 0
        rest[1] += uvarint_bytes(np.uint64(batch.count))
        rest[2] += uvarint_bytes(delta_code(batch.last_delta, True)) if batch.has_holes else 0
        rest[3] += layout.times_bytes(optional)
        for k, size in enumerate(
            (ages, offsets, keys, values, headers.position, key_bytes, value_bytes, headers.key_bytes,
             headers.value_bytes)
        ):  # fmt: skip
            rest[4 + k] += size


sizes = variant(_sizes, "sizes", WITH_HEADERS=False)
sizes_with_headers = variant(_sizes, "sizes_with_headers", WITH_HEADERS=True)
