"""Write and read lengths, counts and offset deltas of records: zig-zag varints as in Kafka, or unsigned varints.

v3 uses the unsigned form if bit 9 of the batch attributes is set; the argument `unsigned` says so. In this form a
length that may be null is stored plus one, and an offset delta as the two's complement of an int32. Where speed
matters, `unsigned` is a literal True or False, so that the compiler drops the other branch. Readers return the value
and the next position, which is end + 1 if the bytes are cut short.
"""

import numpy as np

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
def header_list_bytes(key_lengths, value_lengths, start, end, unsigned):
    """Return how many bytes a header list takes: its count and the headers start to end - 1 (int64)."""
    size = count_bytes(end - start, unsigned)
    for h in range(np.uint64(start), np.uint64(end)):
        key_length, value_length = np.int64(key_lengths[h]), np.int64(value_lengths[h])
        size += count_bytes(key_length, unsigned) + key_length
        size += length_bytes(value_length, unsigned) + max(value_length, 0)
    return size


@leaf
def header_bytes(bounds, key_lengths, value_lengths, i, shared, unsigned):
    """Return how many bytes the header list of record i takes without its first `shared` headers."""
    return header_list_bytes(
        key_lengths, value_lengths, np.int64(bounds[i]) + shared, np.int64(bounds[i + 1]), unsigned
    )


@leaf
def put_header_list(out, at, columns, start, end, unsigned):
    """Write a header list: its count and the headers start to end - 1 (int64). columns: the arrays of `Records`."""
    key_lengths, value_lengths = columns[5], columns[6]
    keys, key_starts, values, value_starts = columns[11:15]
    at = put_count(out, at, end - start, unsigned)
    for h in range(np.uint64(start), np.uint64(end)):
        key_length = np.int64(key_lengths[h])
        at = put_bytes(out, put_count(out, at, key_length, unsigned), keys, key_starts[h], key_length)
        at = put_field(out, at, values, value_starts[h], np.int64(value_lengths[h]), unsigned)
    return at
