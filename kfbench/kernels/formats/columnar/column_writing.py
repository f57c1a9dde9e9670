"""Kernels that write a column of int64 values in the form that `choosing` plans. In columns of lengths, -1 means null.

Functions that write return the next position, or FULL if there is no room. Common parameters:

    out uint8[], at: output, and the position in it to write at
    x int64[]: the values are x[:n], with room for GROUP more; all of x is overwritten
    n: number of values, at least 2
    scratch int64[BUCKETS]: scratch
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import choosing, quotients
from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.choosing import U8, Bounds, bounds_of
from kfbench.kernels.formats.columnar.columns import U0, U1, ZERO, are_steps, bits_of, packed_bytes
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import join4, join8
from kfbench.kernels.simd.bit_stream import flush, push
from kfbench.kernels.simd.intrinsics import put_le64, put_u8, trailing_zeros
from kfbench.kernels.simd.simd_int64 import gaps_of, lower, lower_steps, marks_of, take_lengths
from kfbench.kernels.wire.varint import put_uvarint, put_varint, uvarint_bytes

FULL = -1  # returned instead of a position if there is no room
U2, U4, U64 = (np.uint64(value) for value in (2, 4, 64))


class LengthColumn(NamedTuple):
    """Description of the lengths that were copied to x. All fields but `bounds` are int64.

    If any length is null, x has codes instead: 0 for null, else length - least + 1.
    """

    nulls: int
    least: int  # the smallest length that is not null
    total_bytes: int
    bounds: Bounds  # least, greatest and sum of the values in x


@leaf
def pack(out, at, x, n, width):
    """Pack the low `width` bits of each value x[:n]. Up to 16 bytes of `out` after them may be overwritten."""
    bits = np.uint64(width)
    mask = (U1 << bits) - U1
    end = at + packed_bytes(n, width)
    word, fill = U0, U0
    if width == packed.WORD:
        for i in range(np.uint64(n)):
            put_le64(out, at, np.uint64(x[i]))
            at += 8
    elif width and end + 16 > len(out):
        for i in range(np.uint64(n)):
            at, word, fill = push(out, at, word, fill, np.uint64(x[i]) & mask, bits)
        flush(out, at, word, fill)
    elif width:
        for i in range(np.uint64(n), np.uint64(n) + U8):
            x[i] = 0
        if width <= 8:  # eight values take `width` bytes
            for i in range(U0, np.uint64(n), U8):
                put_le64(out, at, join8(x, i, bits, mask))
                at += width
            return end
        if width <= 14:  # eight values take less than two words
            half = bits << U2
            for i in range(U0, np.uint64(n), U8):
                low, high = join4(x, i, bits, mask), join4(x, i + U4, bits, mask)
                put_le64(out, at, low | high << half)
                put_le64(out, at + 8, high >> (U64 - half))
                at += width
            return end
        elif width <= 28:
            for i in range(U0, np.uint64(n), U2):
                pair = np.uint64(x[i]) & mask | (np.uint64(x[i + U1]) & mask) << bits
                at, word, fill = push(out, at, word, fill, pair, bits << U1)
        else:
            for i in range(np.uint64(n)):
                at, word, fill = push(out, at, word, fill, np.uint64(x[i]) & mask, bits)
        put_le64(out, at, word)
    return end


@leaf
def _put_dictionary(out, at, x, n, plan, known):
    """Write the distinct values of a dictionary column, then the index of each value among them."""
    choosing.find_distinct(x, n, known)
    for i in range(np.uint64(n)):
        k = ZERO
        while known[np.uint64(k)] != x[i]:
            k += 1
        x[i] = k
    lower(known, plan.number, plan.base, ZERO)
    put_u8(out, at, np.uint8(plan.number))
    at = pack(out, at + 1, known, plan.number, plan.width)
    return pack(out, at, x, n, bits_of(np.uint64(plan.number - 1)))


@leaf
def _put_patches(out, at, x, n, width, number):
    """Write the patches: first the index of each residual wider than `width`, then the bits of each above `width`."""
    shift, index_bits = np.uint64(width), np.uint64(bits_of(np.uint64(n - 1)))
    at = put_uvarint(out, at, np.uint64(number))
    word, fill = U0, U0
    for i in range(U0, np.uint64(n), U64):
        marks = marks_of(x, i, min(np.int64(U64), n - np.int64(i)), shift)
        while marks:
            at, word, fill = push(out, at, word, fill, i + np.uint64(trailing_zeros(marks)), index_bits)
            marks &= marks - U1
    at = flush(out, at, word, fill)
    for i in range(U0, np.uint64(n), U64):
        marks = marks_of(x, i, min(np.int64(U64), n - np.int64(i)), shift)
        while marks:
            at = put_uvarint(out, at, np.uint64(x[i + np.uint64(trailing_zeros(marks))]) >> shift)
            marks &= marks - U1
    return at


@part
def put(out, at, x, n, plan, sign, scratch):
    """Write the column x[:n] as `plan` says. `out` must have room for it.

    Args:
        out, at, x, n, scratch: see the module docstring
        plan: the ColumnPlan
        sign: -1 for ages, else 1
    """
    kind, width = plan.kind, plan.width
    code = np.uint8(width if width <= packed.MAX_BITS else packed.WORD_CODE)
    if kind < packed.EXTENDED:
        put_u8(out, at, np.uint8(np.int64(code) | kind << 6))
        at += 1
    else:
        put_u8(out, at, np.uint8(packed.EXTENDED << 6 | (kind - packed.EXTENDED)))
        put_u8(out, at + 1, code)
        at += 2
    m, is_delta = n, are_steps(kind)
    if is_delta:
        at = put_varint(out, at, plan.first)
        m = n - 1
    if kind != packed.BITS:
        at = put_varint(out, at, plan.base)
    if kind == packed.SLOPED:
        at = put_varint(out, at, plan.slope)
    if kind == packed.DICTIONARY:
        return _put_dictionary(out, at, x, n, plan, scratch)
    if width == 0 and kind < packed.PATCHED:  # the column has no packed bytes
        return at
    if is_delta:
        lower_steps(x, m, plan.base, sign)
    elif kind != packed.BITS:
        lower(x, n, plan.base, plan.slope)
    at = pack(out, at, x, m, width)
    if kind == packed.RICE or kind == packed.RICE_DELTA:
        return quotients.put(out, at, x, m, np.uint64(width))
    return _put_patches(out, at, x, m, width, plan.number) if kind >= packed.PATCHED else at


@part
def _write(out, at, x, n, bounds, content, scratch):
    """Write x[:n] in the form that `choose` plans. Args: as in `write`."""
    plan = choosing.choose(x, n, bounds, content, scratch)
    if plan.size_bytes > len(out) - at:
        return np.int64(FULL)
    return put(out, at, x, n, plan, np.int64(-1 if content == choosing.AGES else 1), scratch)


@leaf
def write(out, at, x, n, bounds, content, scratch):
    """Write x[:n] in its smallest form.

    Args:
        out, at, x, n, scratch: see the module docstring
        bounds: the Bounds of x[:n]
        content: CODES, LENGTHS, OFFSETS or AGES
    """
    if content >= choosing.OFFSETS or bounds.low != bounds.high:
        return _write(out, at, x, n, bounds, content, scratch)
    plan = choosing.choose_even(bounds, n)  # the common case of equal lengths, without a call
    if plan.size_bytes > len(out) - at:
        return np.int64(FULL)
    put_u8(out, at, np.uint8(plan.kind << 6 | plan.width))
    if plan.kind == packed.BASED:
        return put_varint(out, at + 1, plan.base)
    return pack(out, at + 1, x, n, plan.width)


@leaf
def write_lengths(out, at, x, n, lengths, scratch):
    """Write the column of x[:n]. `fill_lengths` has filled x and returned `lengths`."""
    if lengths.nulls:
        if uvarint_bytes(np.uint64(lengths.least)) > len(out) - at:
            return np.int64(FULL)
        at = put_uvarint(out, at, np.uint64(lengths.least))
    return write(out, at, x, n, lengths.bounds, choosing.CODES if lengths.nulls else choosing.LENGTHS, scratch)


@leaf
def write_values(out, at, x, n, content, scratch):
    """Compute the Bounds of x[:n] and write the column in its smallest form."""
    return write(out, at, x, n, bounds_of(x, n), content, scratch)


@leaf
def _all_null(n):
    return LengthColumn(n, ZERO, ZERO, Bounds(ZERO, ZERO, ZERO))


@leaf
def _take_codes(x, n, nulls, least, greatest, sum_of_lengths):
    """Turn the lengths in x[:n], some of them null, into codes: 0 for null, else length - least + 1.

    Return the LengthColumn.
    """
    shift = 1 - least
    for i in range(np.uint64(n)):
        x[i] = x[i] + shift if x[i] != packed.NULL else ZERO
    total_bytes = sum_of_lengths + nulls  # in sum_of_lengths, each null counts as -1
    bounds = Bounds(ZERO, greatest + shift, total_bytes + shift * (n - nulls))
    return LengthColumn(nulls, least, total_bytes, bounds)


@leaf
def fill_lengths(x, lengths, first, stride, n):
    """Copy every `stride`-th of `lengths` from index `first` on to x[:n]. Return the LengthColumn."""
    length = np.int64(lengths[first])
    least_any = greatest = length
    total = ZERO
    for i in range(np.uint64(n)):
        length = np.int64(lengths[first + i * stride])
        x[i] = length
        least_any, greatest, total = min(least_any, length), max(greatest, length), total + length
    if least_any != packed.NULL:
        return LengthColumn(ZERO, least_any, total, Bounds(least_any, greatest, total))
    if greatest == packed.NULL:
        for i in range(np.uint64(n)):
            x[i] = 0
        return _all_null(n)
    nulls, least = ZERO, np.int64(packed.INT32_MAX)
    for i in range(np.uint64(n)):
        nulls += x[i] == packed.NULL
        least = min(least, x[i] if x[i] != packed.NULL else np.int64(packed.INT32_MAX))
    return _take_codes(x, n, nulls, least, greatest, total)


@leaf
def fill_placed_lengths(x, lengths, starts, first, n):
    """Copy n lengths from index `first` on to x[:n]. Return whether the items are contiguous, and the LengthColumn.

    Items are contiguous if each starts at the end of the previous one. If all lengths are null, x is undefined.
    """
    nulls, least, greatest, total = take_lengths(x, lengths, first, n)
    if nulls == n:
        return True, _all_null(n)
    is_run = gaps_of(lengths, starts, first, n - 1) == 0
    if nulls == 0:
        return is_run, LengthColumn(nulls, least, total, Bounds(least, greatest, total))
    return is_run, _take_codes(x, n, nulls, least, greatest, total)
