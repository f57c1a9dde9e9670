"""Kafka's variable-length integers: zig-zag, then groups of 7 bits, lowest group first (`ByteUtils`).

Readers return the value and the next position. The position is end + 1 if the bytes end before `end`, or if the number
has more bytes than its type allows.
"""

import numpy as np

from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_u8, leading_zeros, move, move32, prefetch, put_u8

ONE, SEVEN, MORE, LOW7 = np.uint64(1), np.uint64(7), np.uint64(0x80), np.uint64(0x7F)
ALL32 = np.uint64(0xFFFFFFFF)
LINE_BYTES, MOST_AHEAD = 64, 1024  # bytes per cache line, and the most bytes that `put_bytes` prefetches


@leaf
def zigzag(value):
    return np.uint64((value << 1) ^ (value >> 63))


@leaf
def uvarint_bytes(value):
    # ceil(bits / 7) without a division: the constants are exact for 1 to 64 bits.
    return (640 - 9 * leading_zeros(value | ONE)) >> 6


@leaf
def varint_bytes(value):
    return uvarint_bytes(zigzag(value))


@leaf
def put_uvarint(out, at, value):
    while value >= MORE:
        put_u8(out, at, np.uint8(value | MORE))
        value >>= SEVEN
        at += 1
    put_u8(out, at, np.uint8(value))
    return at + 1


@leaf
def put_varint(out, at, value):
    return put_uvarint(out, at, zigzag(value))


@leaf
def put_bytes(out, at, data, start, length):
    """Copy data[start : start + length] to out[at:], nothing if length is -1. Return the next position in `out`.

    No byte outside the buffers is read or written.

    Up to 128 bytes are copied by overlapping vector moves. A call of memcpy costs 3 ns, as much as the rest of a small
    record. A longer item also prefetches what the next item will probably read and write.
    """
    if length <= 32:
        if start + 32 <= len(data) and at + 32 <= len(out):
            if length > 0:  # a null item may have any number as its start
                move32(out, at, data, start)
        else:
            move(out, at, data, start, max(length, 0))
    elif length <= 128:
        move32(out, at, data, start)
        move32(out, at + length - 32, data, start + length - 32)
        if length > 64:
            move32(out, at + 32, data, start + 32)
            move32(out, at + length - 64, data, start + length - 64)
    else:
        for ahead in range(length, length + min(length, MOST_AHEAD), LINE_BYTES):
            prefetch(data, start + ahead)
            prefetch(out, at + ahead)
        move(out, at, data, start, length)
    return at + max(length, 0)


@leaf
def _get(data, at, end, most):
    """Read an unsigned varint of at most `most` bytes as a uint64."""
    if at >= end:
        return np.uint64(0), end + 1
    byte = np.uint64(get_u8(data, at))
    at += 1
    if byte < MORE:
        return byte, at
    value, shift = byte & LOW7, SEVEN
    last = min(end, at + most - 1)
    while at < last:
        byte = np.uint64(get_u8(data, at))
        at += 1
        value |= (byte & LOW7) << shift
        if byte < MORE:
            return value, at
        shift += SEVEN
    return np.uint64(0), end + 1


@leaf
def get_varint(data, at, end):
    """Read a zig-zag varint of at most 5 bytes: an int32, returned as an int64. Like Kafka, drop the bits beyond 32."""
    value, at = _get(data, at, end, 5)
    value &= ALL32
    return np.int64(value >> ONE) ^ -np.int64(value & ONE), at


@leaf
def get_varlong(data, at, end):
    """Read a zig-zag varint of at most 10 bytes: an int64."""
    value, at = _get(data, at, end, 10)
    return np.int64(value >> ONE) ^ -np.int64(value & ONE), at


@leaf
def get_uvarint(data, at, end):
    """Read an unsigned varint of at most 5 bytes: a uint32, returned as an int64. Drop the bits beyond 32."""
    value, at = _get(data, at, end, 5)
    return np.int64(value & ALL32), at


@leaf
def get_uvarlong(data, at, end):
    """Read an unsigned varint of at most 10 bytes: a uint64."""
    return _get(data, at, end, 10)


@leaf
def is_shortest_uvarint(data, start, end, value):
    """Return whether data[start:end] is the shortest unsigned varint of the uint32 `value`, without dropped bits."""
    size = uvarint_bytes(np.uint64(value))
    return size == end - start and not (size == 5 and get_u8(data, end - 1) > 0x0F)


@leaf
def is_shortest(data, start, end, value):
    """Return whether data[start:end] is the zig-zag varint that Kafka writes for `value`. `value` was read there."""
    size = varint_bytes(value)
    last = get_u8(data, end - 1)
    # The last byte of a varint of 5 or 10 bytes may have bits that a reader drops.
    return (
        size == end - start
        and not (size == 5 and last > 0x0F and -(2**31) <= value < 2**31)
        and not (size == 10 and last > 1)
    )
