"""How a record codes its lengths, counts and offset deltas: zig-zag as Kafka does, or unsigned (v3, bit 9).

`unsigned` is a literal wherever speed matters: the compiler drops the other half. Unsigned, a nullable length is
stored plus one, and an offset delta as the two's complement of an int32.
"""

import numpy as np

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


@leaf
def delta_code(delta, unsigned):
    """An offset delta as the uint64 that is then written in groups of seven bits."""
    return np.uint64(delta) & ALL32 if unsigned else zigzag(delta)


@leaf
def count_bytes(count, unsigned):
    """The bytes of a length or count that is never null. Comparisons: compilers turn them into vectors."""
    if unsigned:
        return 1 + (count > 0x7F) + (count > 0x3FFF) + (count > 0x1FFFFF) + (count > 0xFFFFFFF)
    return 1 + (count > 0x3F) + (count > 0x1FFF) + (count > 0xFFFFF) + (count > 0x7FFFFFF)


@leaf
def length_bytes(length, unsigned):
    """The bytes of a length that may be null (-1)."""
    return count_bytes(length + 1, True) if unsigned else count_bytes(length, False)


@leaf
def put_count(out, at, count, unsigned):
    return put_uvarint(out, at, np.uint64(count) if unsigned else zigzag(count))


@leaf
def put_length(out, at, length, unsigned):
    return put_uvarint(out, at, np.uint64(length + 1) if unsigned else zigzag(length))


@leaf
def put_field(out, at, data, start, length, unsigned):
    """A nullable length and its bytes."""
    if length < 0:
        put_u8(out, at, np.uint8(0 if unsigned else 1))
        return at + 1
    return put_bytes(out, put_length(out, at, length, unsigned), data, start, length)


@leaf
def get_count(data, at, end, unsigned):
    """(a length or count that is never null, next position); a negative one is for the caller to refuse."""
    return get_uvarint(data, at, end) if unsigned else get_varint(data, at, end)


@leaf
def get_length(data, at, end, unsigned):
    """(a nullable length, next position); any negative one is null to Kafka."""
    if unsigned:
        value, at = get_uvarint(data, at, end)
        return value - 1 if at <= end else np.int64(0), at  # 0 past the end, as get_varint has it
    return get_varint(data, at, end)


@leaf
def get_delta(data, at, end, unsigned):
    """(an offset delta, next position)."""
    if unsigned:
        value, at = get_uvarint(data, at, end)
        return (value ^ 2**31) - 2**31, at
    return get_varint(data, at, end)


@leaf
def skip(data, at, end, unsigned):
    """(the number as `get_count` gives it, next position, whether it is in its shortest form)."""
    if unsigned:
        value, after = get_uvarint(data, at, end)
        return value, after, is_shortest_uvarint(data, at, after, value)
    value, after = get_varint(data, at, end)
    return value, after, is_shortest(data, at, after, value)


@leaf
def header_bytes(bounds, key_lengths, value_lengths, i, shared, unsigned):
    """What the headers of record i take after its first `shared`, their count included."""
    first, end = np.int64(bounds[i]) + shared, np.int64(bounds[i + 1])
    size = count_bytes(end - first, unsigned)
    for h in range(np.uint64(first), np.uint64(end)):
        name, content = np.int64(key_lengths[h]), np.int64(value_lengths[h])
        size += count_bytes(name, unsigned) + name + length_bytes(content, unsigned) + max(content, 0)
    return size
