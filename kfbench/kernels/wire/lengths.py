"""Write and read lengths, counts and offset deltas of records: zig-zag varints as in Kafka, or unsigned varints.

v3 uses the unsigned form if bit 9 of the batch attributes is set; the argument `unsigned` says so. In this form a
length that may be null is stored plus one, and an offset delta as the two's complement of an int32. Where speed
matters, `unsigned` is a literal True or False, so that the compiler drops the other branch. Readers return the value
and the next position, which is end + 1 if the bytes are cut short.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import put_u8
from kfbench.kernels.wire.varint import (
    ALL32,
    get_uvarint,
    get_varint,
    is_shortest,
    is_shortest_uvarint,
    put_bytes,
    put_uvarint,
    zigzag,
)

NULL = layouts.NULL_LENGTH


class ShapeColumns(NamedTuple):
    """The columns of n records with m headers, in the order of the fields of `records.Shapes`.

    Kernels are called with plain tuples, which Numba unpacks twice as fast, and name the columns themselves.
    """

    timestamps_ms: NDArray[np.int64]  # n
    offsets: NDArray[np.int64]  # n
    key_lengths: NDArray[np.int32]  # n
    value_lengths: NDArray[np.int32]  # n
    header_bounds: NDArray[np.int64]  # n + 1
    header_key_lengths: NDArray[np.int32]  # m
    header_value_lengths: NDArray[np.int32]  # m


class RecordColumns(NamedTuple):
    """The columns of `ShapeColumns`, and the bytes of keys, values and headers: item i begins at starts[i] of data."""

    timestamps_ms: NDArray[np.int64]
    offsets: NDArray[np.int64]
    key_lengths: NDArray[np.int32]
    value_lengths: NDArray[np.int32]
    header_bounds: NDArray[np.int64]
    header_key_lengths: NDArray[np.int32]
    header_value_lengths: NDArray[np.int32]
    key_data: NDArray[np.uint8]
    key_starts: NDArray[np.int64]
    value_data: NDArray[np.uint8]
    value_starts: NDArray[np.int64]
    header_key_data: NDArray[np.uint8]
    header_key_starts: NDArray[np.int64]
    header_value_data: NDArray[np.uint8]
    header_value_starts: NDArray[np.int64]


@leaf
def delta_code(delta, unsigned):
    """Return the uint64 that is stored, as a varint, for an offset delta."""
    return np.uint64(delta) & ALL32 if unsigned else zigzag(delta)


@leaf
def count_bytes(count, unsigned):
    """Return how many bytes a length or count takes that is never null. Compilers vectorize its comparisons."""
    if unsigned:
        return 1 + (count > 0x7F) + (count > 0x3FFF) + (count > 0x1FFFFF) + (count > 0xFFFFFFF)
    return 1 + (count > 0x3F) + (count > 0x1FFF) + (count > 0xFFFFF) + (count > 0x7FFFFFF)


@leaf
def small_varint_bytes(code):
    """Return how many bytes an int64 below 2**28 takes as a varint. Compilers vectorize its comparisons."""
    return 1 + (code > 0x7F) + (code > 0x3FFF) + (code > 0x1FFFFF)


@leaf
def length_bytes(length, unsigned):
    """Return how many bytes the field of a length takes. Length -1 means null."""
    return count_bytes(length + 1, True) if unsigned else count_bytes(length, False)


@leaf
def put_count(out, at, count, unsigned):
    return put_uvarint(out, at, np.uint64(count) if unsigned else zigzag(count))


@leaf
def put_length(out, at, length, unsigned):
    return put_uvarint(out, at, np.uint64(length + 1) if unsigned else zigzag(length))


@leaf
def put_field(out, at, data, start, length, unsigned):
    """Write a length and data[start : start + length]. Length -1 means null. Return the next position in `out`."""
    if length < 0:
        put_u8(out, at, np.uint8(0 if unsigned else 1))
        return at + 1
    return put_bytes(out, put_length(out, at, length, unsigned), data, start, length)


@leaf
def get_count(data, at, end, unsigned):
    """Read a length or count that is never null. The caller must refuse a negative result."""
    return get_uvarint(data, at, end) if unsigned else get_varint(data, at, end)


@leaf
def get_length(data, at, end, unsigned):
    """Read a length that may be null. Like Kafka, treat any negative length as null."""
    if unsigned:
        value, at = get_uvarint(data, at, end)
        return value - 1 if at <= end else np.int64(0), at  # past the end the value is 0, as in get_varint
    return get_varint(data, at, end)


@leaf
def get_delta(data, at, end, unsigned):
    """Read an offset delta. Return it and the next position."""
    if unsigned:
        value, at = get_uvarint(data, at, end)
        return (value ^ 2**31) - 2**31, at
    return get_varint(data, at, end)


@leaf
def skip(data, at, end, unsigned):
    """Read a number. Return it, the next position, and whether it is stored in as few bytes as possible."""
    if unsigned:
        value, after = get_uvarint(data, at, end)
        return value, after, is_shortest_uvarint(data, at, after, value)
    value, after = get_varint(data, at, end)
    return value, after, is_shortest(data, at, after, value)


@leaf
def skip_length(data, at, end, unsigned):
    """Read a length that may be null. Return it, the next position, and whether our encoder would write these bytes.

    Our encoder writes as few bytes as possible, and no negative length but -1 (null).
    """
    short = skip(data, at, end, unsigned)[2]
    length, after = get_length(data, at, end, unsigned)
    return length, after, short and length >= NULL


@leaf
def header_list_bytes(columns, start, end, unsigned):
    """Return how many bytes a header list takes: its count and the headers start to end - 1 (int64)."""
    size = count_bytes(end - start, unsigned)
    for h in range(np.uint64(start), np.uint64(end)):
        key_length, value_length = np.int64(columns.header_key_lengths[h]), np.int64(columns.header_value_lengths[h])
        size += count_bytes(key_length, unsigned) + key_length
        size += length_bytes(value_length, unsigned) + max(value_length, 0)
    return size


@leaf
def header_bytes(columns, i, shared, unsigned):
    """Return how many bytes the header list of record i takes without its first `shared` headers."""
    bounds = columns.header_bounds
    return header_list_bytes(columns, np.int64(bounds[i]) + shared, np.int64(bounds[i + 1]), unsigned)


@leaf
def put_header_list(out, at, columns, start, end, unsigned):
    """Write a header list: its count and the headers start to end - 1 (int64). columns: RecordColumns."""
    at = put_count(out, at, end - start, unsigned)
    for h in range(np.uint64(start), np.uint64(end)):
        length, key_start = np.int64(columns.header_key_lengths[h]), columns.header_key_starts[h]
        at = put_bytes(out, put_count(out, at, length, unsigned), columns.header_key_data, key_start, length)
        length, value_start = np.int64(columns.header_value_lengths[h]), columns.header_value_starts[h]
        at = put_field(out, at, columns.header_value_data, value_start, length, unsigned)
    return at
