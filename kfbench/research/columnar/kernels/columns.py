"""The layout of bit-packed int64 columns, and kernels that read all values of a column or a single one.

A column stores its kind, its width and its residuals. The residual is the part of a value that the kind does not
predict. The kind PATCHED packs only the low bits of the residuals, and stores the high bits of the few wide ones apart.
In columns of ages and offsets, which have a trend, its residuals are those of the steps from value to value.
The table in `columnar.format` has all kinds. `column_writing` chooses the kind and writes the column. All arithmetic
is modulo 2**64.

Each function that reads returns the state first (see `status`), then the next position. Common parameters:

    data uint8[]: the log
    p: position in `data` where the column, or a part of it, begins
    end: position in `data` where its batch ends
    n: number of values, at least 2
    width: bits per packed value, 0 to 56 or 64
    start, sign: a value v is read as start + sign * v; sign is 1 or -1
    has_trend: True for ages and offsets, False for lengths and counts
    r: index in x of the first value
    i: index of the single value to read
    x int64[]: output or scratch, with room for GROUP more values; the content after the values is undefined
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import get_u8, leading_zeros, load_le64
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, get_uvarlong, get_varlong
from kfbench.layouts import NULL_LENGTH as NULL
from kfbench.research.columnar.kernels.bit_packing import spread1, spread2, spread4, spread8, sum1, sum2, sum4, sum8
from kfbench.research.columnar.kernels.simd_int64 import put_lengths, put_line, run_on

BITS, BASED, PATCHED = range(3)  # kinds
INT32_MAX = 2**31 - 1
MAX_BITS, WORD, WORD_CODE = 56, 64, 63  # a width above MAX_BITS becomes WORD, whose code is WORD_CODE
SHORT_BITS = 31  # most bits of a residual in columns of lengths and counts
ALL_ALIKE = BASED << 6  # the descriptor of a column that repeats one value other than 0
GROUP = 8  # values packed at a time
ZERO = np.int64(0)
U0, U1, U3, U7 = (np.uint64(value) for value in (0, 1, 3, 7))


class ColumnHead(NamedTuple):
    """The head of a column: all parameters that are stored before its packed values. All fields are int64."""

    state: int
    kind: int
    width: int
    first: int  # value 0, if steps are packed
    base: int
    packed: int  # number of packed values, or steps
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
def unpack(data, p, n, width, start, sign, x, r):
    """Unpack n >= 1 values: x[r + k] = start + sign * value k.

    Args: see the module docstring; all packed values lie in `data`.
    """
    first = np.uint64(r)
    if width == 0:
        put_line(x, first, n, start, ZERO)
        return
    whole = np.int64(0 if width == WORD else n)
    while whole > 0 and group_end(p, whole, width) > len(data):  # eight groups at most
        whole = (whole - 1) & -GROUP
    bits = np.uint64(width)
    mask = (U1 << bits) - U1
    if width <= 8:
        spread1(data, p, whole, bits, mask, start, sign, x, first)
    elif width <= 14:
        spread2(data, p, whole, bits, mask, start, sign, x, first)
    elif width <= 28:
        spread4(data, p, whole, bits, mask, start, sign, x, first)
    else:
        spread8(data, p, whole, bits, mask, start, sign, x, first)
    for i in range(whole, n):
        x[first + np.uint64(i)] = start + sign * packed_int64(data, p, i, width)


@leaf
def is_padded(data, p, n, width):
    """Return whether the unused bits after the n values packed at p are 0. All bytes must lie in `data`."""
    used = (n * width) & 7
    return used == 0 or get_u8(data, p + packed_bytes(n, width) - 1) >> used == 0


@leaf
def _no_column(state, p):
    return ColumnHead(np.int64(state), ZERO, ZERO, ZERO, ZERO, ZERO, np.int64(p))


@leaf
def read_head(data, p, end, n, has_trend):
    """Read the ColumnHead at p. Its state is SOUND only if all packed values lie before `end`."""
    if p >= end:
        return _no_column(status.COLUMN, p)
    descriptor = np.int64(get_u8(data, p))
    kind, code = descriptor >> 6, descriptor & 63
    p += 1
    if kind > PATCHED or (code > MAX_BITS and code != WORD_CODE):
        return _no_column(status.COLUMN, p)
    width = np.int64(WORD) if code == WORD_CODE else code
    first, base, m = ZERO, ZERO, n
    if kind == PATCHED and has_trend:
        first, p = get_varlong(data, p, end)
        m -= 1
    if kind != BITS:
        base, p = get_varlong(data, p, end)
    if p > end or packed_bytes(m, width) > end - p:
        return _no_column(status.COLUMN, p)
    if not has_trend and (width > SHORT_BITS or base < 0 or base > INT32_MAX):
        return _no_column(status.COLUMN_LENGTH, p)
    state = np.int64(status.SOUND if is_padded(data, p, m, width) else status.PADDING)
    return ColumnHead(state, kind, width, first, base, m, p)


@part
def read(data, p, end, n, has_trend, start, sign, x, r):
    """Read the column at p: x[r + k] = start + sign * value k. Return the state and the next position.

    Args: see the module docstring.
    """
    head = read_head(data, p, end, n, has_trend)
    state, p, to, base, reached = head.state, head.position, np.uint64(r), sign * head.base, start + sign * head.first
    if state != status.SOUND:
        return state, p
    if head.packed < n:
        x[to] = reached
        to += U1
    else:
        base += start
    unpack(data, p, head.packed, head.width, base, sign, x, to)
    p += packed_bytes(head.packed, head.width)
    if head.kind == PATCHED:
        state, p = _add_patches(data, p, end, head, has_trend, sign, x, to)
    if head.packed < n:
        run_on(x, to, head.packed, reached)
    return state, p


@leaf
def read_short(data, p, end, n, x):
    """Read the column of lengths or counts at p into x[:n]. Return the state and the next position."""
    return read(data, p, end, n, False, ZERO, np.int64(1), x, 0)


@leaf
def read_patches(data, p, end, n):
    """Read the begin of the Patches at p, which belong to n packed values. There may be none."""
    number, p = get_uvarint(data, p, end)
    index_bits = bits_of(np.uint64(n - 1))
    size = packed_bytes(number, index_bits)
    if p > end or number > n or size > end - p:
        return Patches(np.int64(status.PATCHES), ZERO, np.int64(p), index_bits, np.int64(p))
    if not is_padded(data, p, number, index_bits):
        return Patches(np.int64(status.PADDING), ZERO, np.int64(p), index_bits, np.int64(p))
    return Patches(np.int64(status.SOUND), number, p, index_bits, p + size)


@leaf
def read_patch(data, patches, k, p, end, head, has_trend, before):
    """Read patch k of a column.

    Args:
        data, end, has_trend: see the module docstring
        patches: from `read_patches`
        p: position of the bits of patch k
        head: the ColumnHead
        before: index in the previous patch; -1 for the first patch
    """
    index = np.int64(packed_value(data, patches.indexes, k, patches.index_bits))
    high, p = get_uvarlong(data, p, end)
    most_bits = WORD if has_trend else SHORT_BITS
    if p > end or index <= before or index >= head.packed or high == U0 or bits_of(high) + head.width > most_bits:
        return Patch(np.int64(status.PATCHES), p, index, high)
    return Patch(np.int64(status.SOUND), p, index, high)


@leaf
def _add_patches(data, p, end, head, has_trend, sign, x, first):
    """Add the patches at p, times `sign`, to the packed values. Return the state and the next position.

    Args: see the module docstring; head: the ColumnHead; first uint64: index in x of the first packed value.
    """
    patches = read_patches(data, p, end, head.packed)
    state, p, index = patches.state, patches.position, np.int64(-1)
    for k in range(patches.number):
        state, p, index, high = read_patch(data, patches, k, p, end, head, has_trend, index)
        if state != status.SOUND:
            break
        x[first + np.uint64(index)] += sign * np.int64(high << np.uint64(head.width))
    return state, p


# The functions below read columns of lengths. They store codes: 0 for a null, else length + 1. A null has length -1.


@leaf
def check_code(code, max_bytes):
    """Return the state of the code of a length, which may have at most `max_bytes`."""
    if code < 0 or code > INT32_MAX:
        return status.COLUMN_LENGTH
    return status.LIMIT_FIELD if code - 1 > max_bytes else status.SOUND


@leaf
def read_length(data, p, end, has_column, max_bytes):
    """Read the key or value length in a batch of one record. Return the state, the next position and the length."""
    if not has_column:
        return status.SOUND, p, np.int64(NULL)
    code, p = get_uvarint(data, p, end)
    return status.COLUMN if p > end else check_code(code, max_bytes), p, code - 1


@part
def read_lengths(data, p, end, n, max_bytes, x, lengths, to):
    """Read a column of lengths into lengths[to:to + n]. Return the state, the next position and the sum of the lengths.

    Args:
        data, p, end, n: see the module docstring
        max_bytes: largest length allowed
        x: scratch, which may be `lengths`
        lengths int64[] or int32[]: has room for GROUP more
        to uint64: index of the first length
    """
    state, p = read_short(data, p, end, n, x)
    if state != status.SOUND:
        return state, p, ZERO
    greatest, total = put_lengths(lengths, to, x, n)
    return check_code(greatest, max_bytes), p, total


# The functions below read a single value, and the sums that are needed to find it.


class LengthAround(NamedTuple):
    """One length of a column, and sums of the lengths before and around it. All fields are int64."""

    state: int
    position: int  # the position after the column
    length: int
    before: int  # sum of the lengths before it
    total: int  # sum of all lengths


class PatchedAround(NamedTuple):
    """Sums over the patches of a column: how much they add to packed value i and to others. All fields are int64."""

    state: int
    position: int  # the position after the patches
    current: int  # added to value i
    before: int  # added to the values before i
    total: int  # added to all values
    zeros_before: int  # patched values before i whose packed bits are 0
    zeros: int  # patched values whose packed bits are 0


class Sums(NamedTuple):
    """Sums and counts over the packed values of a column, int64 each."""

    before: int  # sum of the values before value i
    nonzero_before: int  # how many of these are not 0
    total: int  # sum of all values
    nonzero: int


@leaf
def _sum(data, p, first, n, width):
    """Compute the Sums of the first `first` packed values and of all n values. All their bytes must lie in `data`."""
    before = nonzero_before = total = nonzero = ZERO
    if width == 0:
        return Sums(before, nonzero_before, total, nonzero)
    if width < WORD and group_end(p, n, width) <= len(data):
        bits = np.uint64(width)
        mask = (U1 << bits) - U1
        if width <= 8:
            return Sums(*sum1(data, p, first, n, bits, mask))
        if width <= 14:
            return Sums(*sum2(data, p, first, n, bits, mask))
        if width <= 28:
            return Sums(*sum4(data, p, first, n, bits, mask))
        return Sums(*sum8(data, p, first, n, bits, mask))
    for i in range(n):
        if i == first:
            before, nonzero_before = total, nonzero
        value = packed_int64(data, p, i, width)
        total, nonzero = total + value, nonzero + (1 if value else 0)
    if first == n:
        before, nonzero_before = total, nonzero
    return Sums(before, nonzero_before, total, nonzero)


@leaf
def _patched_around(data, p, end, i, head, has_trend):
    """Add up the patches at position p. Return the PatchedAround for packed value i."""
    current = before = total = zeros_before = zeros = ZERO
    patches = read_patches(data, p, end, head.packed)
    state, p, index = patches.state, patches.position, np.int64(-1)
    for k in range(patches.number):
        state, p, index, high = read_patch(data, patches, k, p, end, head, has_trend, index)
        if state != status.SOUND:
            break
        bits = packed_value(data, head.position, index, head.width)
        added, was_zero = np.int64(high << np.uint64(head.width)), np.int64(1 if bits == U0 else 0)
        total, zeros = total + added, zeros + was_zero
        if index < i:
            before, zeros_before = before + added, zeros_before + was_zero
        elif index == i:
            current = added
    return PatchedAround(np.int64(state), p, current, before, total, zeros_before, zeros)


@part
def read_at(data, p, end, n, i):
    """Read value i of the column of ages or offsets at p. Return the state, the next position and the value."""
    head = read_head(data, p, end, n, True)
    state, start, width = head.state, head.position, head.width
    if state != status.SOUND:
        return state, start, ZERO
    p = start + packed_bytes(head.packed, width)
    if head.kind == PATCHED:
        patched = _patched_around(data, p, end, i, head, True)
        before = _sum(data, start, i, i, width).before + patched.before
        return patched.state, patched.position, head.first + head.base * i + before
    return state, p, head.base + (packed_int64(data, start, i, width) if width else ZERO)


@part
def _read_around(data, p, end, n, i, with_total, max_bytes):
    """Read length i of a column of any kind, and the sums around it. Args: as in `read_around`."""
    head = read_head(data, p, end, n, False)
    state, width, base, start = head.state, head.width, head.base, head.position
    if state != status.SOUND:
        return LengthAround(state, start, ZERO, ZERO, ZERO)
    p = start + packed_bytes(n, width)
    patched = PatchedAround(state, p, ZERO, ZERO, ZERO, ZERO, ZERO)
    if head.kind == PATCHED:
        patched = _patched_around(data, p, end, i, head, False)
        state = patched.state
    code = base + patched.current
    if width:
        code += np.int64(packed_value(data, start, i, width))
    # A sum of lengths is the sum of the codes, minus 1 for each code but 0.
    sums = _sum(data, start, i, n if with_total else i, width)
    before = sums.before + patched.before + base * i - (i if base else sums.nonzero_before + patched.zeros_before)
    total = sums.total + patched.total + base * n - (n if base else sums.nonzero + patched.zeros)
    if state == status.SOUND:
        state = np.int64(check_code(code, max_bytes))
    return LengthAround(state, patched.position, code - 1, before, total)


@leaf
def read_around(data, p, end, n, i, with_total, max_bytes):
    """Read length i of a column of n lengths, and the sum of the lengths before it. Return the LengthAround.

    Args:
        data, p, end, n, i: see the module docstring
        with_total: whether the sum of all lengths is needed; without it `total` is undefined
        max_bytes: largest length allowed
    """
    if p < end and get_u8(data, p) == ALL_ALIKE:  # the common case, without a call
        code, p = get_varlong(data, p + 1, end)
        length = max(code - 1, 0)
        return LengthAround(np.int64(check_code(code, max_bytes)), p, code - 1, length * i, length * n)
    return _read_around(data, p, end, n, i, with_total, max_bytes)
