"""The layout of bit-packed int64 columns, and kernels that read all values of a column.

A column stores its kind, its width and its residuals. The residual is the part of a value that the kind does not
predict. The table in formats/columnar.py has all kinds. `choosing` chooses the kind, `column_writing` writes the
column, and `column_values` reads single values. All arithmetic is modulo 2**64.

Each function that reads returns the state first (see `status`), then the next position. Common parameters, also of
`column_values`:

    data uint8[]: the log
    p: position in `data` where the column, or a part of it, begins
    end: position in `data` where its batch ends
    n: number of values, at least 2
    width: bits per packed value, 0 to 56 or 64
    start, step: int64 each
    sign: -1 for ages, which fall where timestamps rise; else 1
    r: index in x of the first value
    x int64[]: output or scratch, with room for GROUP more values; the content after the values is undefined
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import spread1, spread2, spread4, spread8
from kfbench.kernels.simd.intrinsics import get_u8, leading_zeros, load_le64
from kfbench.kernels.simd.simd_int64 import put_lengths, put_line, run_on
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, get_uvarlong, get_varlong
from kfbench.layouts import NULL_LENGTH as NULL

BITS, BASED, SLOPED, DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, DICTIONARY = range(9)  # kinds
INT32_MAX = 2**31 - 1
EXTENDED = 3  # this kind and later ones store their number in bits 0-5 of the descriptor, the width in the next byte
MAX_BITS, WORD, WORD_CODE = 56, 64, 63  # a width above MAX_BITS becomes WORD, whose code is WORD_CODE
ALL_ALIKE = BASED << 6  # the descriptor of a column that repeats one value other than 0
GROUP = 8  # values packed at a time
ZERO = np.int64(0)
U0, U1, U3, U7, U31 = (np.uint64(value) for value in (0, 1, 3, 7, 31))


class ColumnHead(NamedTuple):
    """The head of a column: all parameters that are stored before its packed values. All fields are int64."""

    state: int
    kind: int
    width: int
    first: int  # value 0, if the kind packs the steps between successive values
    base: int
    slope: int
    packed: int  # number of packed values; in a dictionary the number of distinct values
    position: int  # where the packed values begin


class Patches(NamedTuple):
    """The patches of a column: for a few values, the bits above the packed width. All fields are int64."""

    state: int
    number: int
    indexes: int  # position of the packed indexes of the patched values
    index_bits: int
    position: int  # where the high bits begin, one uvarint per patch


class Patch(NamedTuple):
    """One patch: the high bits of a value that is wider than the packed width of its column."""

    state: int  # int64
    position: int  # where the next patch begins, int64
    index: int  # index of the patched value in the column, int64
    high: int  # the bits above the width, uint64


@leaf
def bits_of(value):
    """Return the bit length of a uint64."""
    return np.int64(64) - leading_zeros(value) if value != U0 else np.int64(0)


@leaf
def packed_bytes(n, width):
    return (n * width + 7) >> 3


@leaf
def packed_value(data, p, i, width):
    """Return packed value i as a uint64. The values begin at p, have at most 56 bits each, and all lie in `data`."""
    bit = np.uint64(i) * np.uint64(width)
    at = p + np.int64(bit >> U3)
    shift = bit & U7
    word = U0
    if at + 8 <= len(data):
        word = load_le64(data, at)
    else:
        for k in range((np.int64(shift) + width + 7) >> 3):
            word |= np.uint64(get_u8(data, at + k)) << np.uint64(8 * k)
    return (word >> shift) & ((U1 << np.uint64(width)) - U1)


@leaf
def packed_int64(data, p, i, width):
    """Return packed value i of any width except 0 as an int64. The values begin at p."""
    return np.int64(load_le64(data, p + 8 * i) if width == WORD else packed_value(data, p, i, width))


@leaf
def group_end(p, n, width):
    """Return the position after the last byte that `unpack` reads for n values packed at p.

    It reads 8 bytes for each value of the last group of eight, so this may be after the last packed byte.
    """
    return p + ((((n - 1) | 7) * width) >> 3) + 8


@leaf
def unpack(data, p, n, width, start, step, sign, x, r):
    """Unpack n >= 1 values: x[r + k] = start + k * step + sign * value k.

    Args: see the module docstring; all packed values lie in `data`.
    """
    first = np.uint64(r)
    if width == 0:
        put_line(x, first, n, start, step)
        return
    whole = np.int64(0 if width == WORD else n)
    while whole > 0 and group_end(p, whole, width) > len(data):  # eight groups at most
        whole = (whole - 1) & -GROUP
    bits = np.uint64(width)
    mask = (U1 << bits) - U1
    if width <= 8:
        spread1(data, p, whole, bits, mask, start, step, sign, x, first)
    elif width <= 14:
        spread2(data, p, whole, bits, mask, start, step, sign, x, first)
    elif width <= 28:
        spread4(data, p, whole, bits, mask, start, step, sign, x, first)
    else:
        spread8(data, p, whole, bits, mask, start, step, sign, x, first)
    for i in range(whole, n):
        x[first + np.uint64(i)] = start + i * step + sign * packed_int64(data, p, i, width)


@leaf
def is_padded(data, p, n, width):
    """Return whether the unused bits after the n values packed at p are 0. All bytes must lie in `data`."""
    used = (n * width) & 7
    return used == 0 or get_u8(data, p + packed_bytes(n, width) - 1) >> used == 0


@leaf
def are_steps(kind):
    """Return whether columns of this kind pack the steps between successive values."""
    return kind == DELTA or kind == PATCHED_DELTA or kind == RICE_DELTA


@leaf
def _no_column(p):
    return ColumnHead(np.int64(status.COLUMN), ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, np.int64(p))


@leaf
def read_head(data, p, end, n):
    """Read the ColumnHead at p. Its state is SOUND only if all packed values lie before `end`."""
    if p >= end:
        return _no_column(p)
    descriptor = np.int64(get_u8(data, p))
    kind, code = descriptor >> 6, descriptor & 63
    p += 1
    if kind == EXTENDED:
        if code > DICTIONARY - EXTENDED or p >= end:
            return _no_column(p)
        kind, code = kind + code, np.int64(get_u8(data, p))
        p += 1
    width = np.int64(WORD) if code == WORD_CODE else code
    if (code > MAX_BITS and code != WORD_CODE) or (width == WORD and PATCHED <= kind < DICTIONARY):
        return _no_column(p)
    first, base, slope, packed = ZERO, ZERO, ZERO, n
    if are_steps(kind):
        first, p = get_varlong(data, p, end)
        packed -= 1
    if kind != BITS:
        base, p = get_varlong(data, p, end)
    if kind == SLOPED:
        slope, p = get_varlong(data, p, end)
    if kind == DICTIONARY:
        if p >= end or get_u8(data, p) < 2:
            return _no_column(p)
        packed, p = np.int64(get_u8(data, p)), p + 1
    if p > end or packed_bytes(packed, width) > end - p:
        return _no_column(p)
    state = np.int64(status.SOUND if is_padded(data, p, packed, width) else status.PADDING)
    return ColumnHead(state, kind, width, first, base, slope, packed, p)


@leaf
def check_indexes(data, p, end, n, number):
    """Check size and padding of n packed indexes into `number` items. Return the state, the bit width and the end."""
    width = bits_of(np.uint64(number - 1))
    size = packed_bytes(n, width)
    if size > end - p:
        return status.COLUMN, width, p
    return status.SOUND if is_padded(data, p, n, width) else status.PADDING, width, p + size


@leaf
def _read_dictionary(data, end, n, head, start, sign, x, r):
    """Read a dictionary column: x[r + k] = start + sign * value k. Return the state and the next position.

    Args: see the module docstring; head: the ColumnHead.
    """
    at = head.position + packed_bytes(head.packed, head.width)
    state, index_width, next_position = check_indexes(data, at, end, n, head.packed)
    if state != status.SOUND:
        return state, next_position
    unpack(data, at, n, index_width, ZERO, ZERO, np.int64(1), x, r)
    for i in range(np.uint64(r), np.uint64(r + n)):
        if x[i] >= head.packed:
            return status.COLUMN, next_position
        x[i] = start + sign * packed_int64(data, head.position, x[i], head.width) if head.width else start
    return status.SOUND, next_position


@part
def read(data, p, end, n, start, sign, x, r):
    """Read the column at p: x[r + k] = start + sign * value k. Return the state and the next position.

    Args: see the module docstring.
    """
    head = read_head(data, p, end, n)
    kind, width = head.kind, head.width
    if head.state != status.SOUND:
        return head.state, head.position
    state, to, reached = head.state, np.uint64(r), start + sign * head.first
    start += sign * head.base
    if kind == DICTIONARY:
        return _read_dictionary(data, end, n, head, start, sign, x, r)
    is_delta = are_steps(kind)
    if is_delta:
        start, sign = head.base, np.int64(1)
        x[to] = reached
        to += U1
    unpack(data, head.position, head.packed, width, start, sign * head.slope, sign, x, to)
    p = head.position + packed_bytes(head.packed, width)
    if kind == RICE or kind == RICE_DELTA:
        state, p = quotients.add(data, p, end, head.packed, np.uint64(width), sign, x, to)
    elif kind >= PATCHED:
        state, p = _add_patches(data, p, end, head.packed, width, sign, x, to)
    if is_delta:
        run_on(x, to, head.packed, reached)
    return state, p


@leaf
def read_patches(data, p, end, n):
    """Read the begin of the Patches at p, which belong to n packed values."""
    number, p = get_uvarint(data, p, end)
    index_bits = bits_of(np.uint64(n - 1))
    size = packed_bytes(number, index_bits)
    if p > end or number < 1 or number > n or size > end - p:
        return Patches(np.int64(status.PATCHES), ZERO, np.int64(p), index_bits, np.int64(p))
    if not is_padded(data, p, number, index_bits):
        return Patches(np.int64(status.PADDING), ZERO, np.int64(p), index_bits, np.int64(p))
    return Patches(np.int64(status.SOUND), number, p, index_bits, p + size)


@leaf
def read_patch(data, patches, k, p, end, n, width, before):
    """Read patch k of a column.

    Args:
        data, end, width: see the module docstring
        patches: from `read_patches`
        p: position of the bits of patch k
        n: number of packed values
        before: index in the previous patch; -1 for the first patch
    """
    index = np.int64(packed_value(data, patches.indexes, k, patches.index_bits))
    high, p = get_uvarlong(data, p, end)
    if p > end or index <= before or index >= n or high == U0 or bits_of(high) + width > 64:
        return Patch(np.int64(status.PATCHES), p, index, high)
    return Patch(np.int64(status.SOUND), p, index, high)


@leaf
def _add_patches(data, p, end, n, width, sign, x, first):
    """Add the patches at p, times `sign`, to n values. Return the state and the next position.

    Args: see the module docstring; n: number of packed values; first uint64: index in x of the first of them.
    """
    patches = read_patches(data, p, end, n)
    state, p, index = patches.state, patches.position, np.int64(-1)
    for k in range(patches.number):
        state, p, index, high = read_patch(data, patches, k, p, end, n, width, index)
        if state != status.SOUND:
            break
        x[first + np.uint64(index)] += sign * np.int64(high << np.uint64(width))
    return state, p


# The functions below read columns of lengths. The length of a null is -1. A column with nulls stores codes: 0 for a
# null, else length - least length + 1.


@leaf
def read_length(data, p, end, has_column, max_bytes):
    """Read the key or value length in a batch of one record. Return the state, the next position and the length."""
    if not has_column:
        return status.SOUND, p, np.int64(NULL)
    length, p = get_uvarint(data, p, end)
    if p > end:
        return status.COLUMN, p, length
    if length > INT32_MAX:
        return status.COLUMN_LENGTH, p, length
    return status.LIMIT_FIELD if length > max_bytes else status.SOUND, p, length


@part
def read_lengths(data, p, end, n, has_nulls, max_bytes, x, lengths, to):
    """Read a column of lengths into lengths[to:to + n]. Return the state, the next position and the sum of the lengths.

    Args:
        data, p, end, n: see the module docstring
        has_nulls: whether the column stores codes
        max_bytes: largest length allowed
        x: scratch, which may be `lengths`
        lengths int64[] or int32[]: has room for GROUP more
        to uint64: index of the first length
    """
    shift = ZERO
    if has_nulls:
        shift, p = get_uvarint(data, p, end)
        if shift > INT32_MAX:
            return status.COLUMN_LENGTH, p, ZERO
        shift -= 1
    state, p = read(data, p, end, n, ZERO, np.int64(1), x, 0)
    if state != status.SOUND:
        return state, p, ZERO
    greatest, total = put_lengths(lengths, to, x, n, shift, np.int64(NULL if has_nulls else 0))
    high = np.int64(greatest)
    if greatest >> U31 or (high and high + shift > INT32_MAX):  # as a uint64, a negative length is the greatest
        return status.COLUMN_LENGTH, p, ZERO
    return status.LIMIT_FIELD if high and high + shift > max_bytes else status.SOUND, p, total
