"""Kernels that choose the kind of a column of int64 values and write it. docs/columnar.md has the rules.

The encoder takes the kind of the fewest bytes. All arithmetic is modulo 2**64. Functions that write return the next
position, or FULL if there is no room. Common parameters:

    out uint8[], at: output, and the position in it to write at
    x int64[]: the values are x[:n], with room for GROUP more; functions that write overwrite all of x
    n: number of values, at least 2
    has_trend: whether the values may rise or fall evenly: offsets and ages, in contrast to lengths and counts
    scratch int64[BUCKETS]: scratch
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import put_le64, put_u8, trailing_zeros
from kfbench.kernels.wire.sealing import FULL
from kfbench.kernels.wire.varint import put_uvarint, put_varint, uvarint_bytes, varint_bytes
from kfbench.research.columnar.kernels import columns as packed
from kfbench.research.columnar.kernels.bit_packing import join4, join8
from kfbench.research.columnar.kernels.columns import U0, U1, U7, ZERO, bits_of, packed_bytes
from kfbench.research.columnar.kernels.simd_int64 import (
    count_wide,
    count_wide_steps,
    lower,
    lower_steps,
    marks_of,
    span_of_steps,
    take_codes,
)

BUCKETS = 65 + 7  # one per width, and 7 more because each byte of an uvarint holds 7 bits
U2, U4, U8, U64 = (np.uint64(value) for value in (2, 4, 8, 64))


class Bounds(NamedTuple):
    """The least value, the greatest value and the sum of all values. All fields are int64."""

    low: int
    high: int
    total: int


class ColumnPlan(NamedTuple):
    """The kind and the parameters with which a column is written. All fields are int64."""

    size_bytes: int
    kind: int
    width: int  # bits per packed value
    base: int
    first: int  # value 0, if the kind packs the steps between successive values
    patches: int


class Residuals(NamedTuple):
    """Description of the residuals: the values, or the steps between them, minus the least one.

    Residuals are packed as uint64. All fields are int64.
    """

    number: int
    base: int  # the least value or step
    first: int  # 0 for values; value 0 for steps
    bits: int  # bit length of the largest residual
    total: int  # sum of the residuals
    head_bytes: int  # size of the column head


@leaf
def width_of(value):
    """Return the number of bits with which a uint64 is packed: its bit length, or 64 above 56."""
    bits = bits_of(value)
    return bits if bits <= packed.MAX_BITS else np.int64(packed.WORD)


@leaf
def _with_patches(x, residuals, has_trend, plan, wide):
    """Return a ColumnPlan with patches if it takes fewer bytes than `plan`, else `plan`.

    A residual wider than the packed width becomes a patch. Patches are tried if the largest residual has 4 bits more
    than the mean, or 3 bits more among fewer than 16 residuals, because an outlier raises the mean of few residuals
    more. Widths are tried from the widest down, because few residuals are wide. Wide residuals are counted again for
    each width: a histogram would need the bit length of each residual.
    """
    n, base, first, top = residuals.number, residuals.base, residuals.first, residuals.bits
    has_sum = top + bits_of(np.uint64(n)) <= 63  # the sum of the residuals certainly fits an int64
    more_bits = np.int64(3 if n < 16 else 4)
    if has_sum and not (top >= more_bits and residuals.total >> (top - more_bits) < n):
        return plan
    index_bits = bits_of(np.uint64(n - 1))
    for k in range(U1, U8):
        wide[np.uint64(top) + k] = 0
    for below in range(top):
        bits = np.uint64(top - below)
        number = count_wide_steps(x, n, base, bits - U1) if has_trend else count_wide(x, n, base, bits - U1)
        # If the packed width falls by one bit, a patch that had 0, 7, 14 ... bits takes one byte more.
        wide[bits] = number + wide[bits + U7]
        patch_bytes = uvarint_bytes(np.uint64(number)) + packed_bytes(number, index_bits) + wide[bits]
        size = residuals.head_bytes + patch_bytes
        if size >= plan.size_bytes:  # smaller widths have even more bytes of patches
            break
        width = np.int64(bits) - 1
        size += packed_bytes(n, width)
        if size < plan.size_bytes and width <= packed.MAX_BITS:
            plan = ColumnPlan(size, np.int64(packed.PATCHED), width, base, first, number)
    return plan


@leaf
def bounds_of(x, n):
    low = high = x[0]
    total = ZERO
    for i in range(np.uint64(n)):
        value = x[i]
        low, high, total = min(low, value), max(high, value), total + value
    return Bounds(low, high, total)


@leaf
def choose_even(bounds, n):
    """Return the ColumnPlan of the kind BITS or BASED, whichever takes fewer bytes. Only the Bounds are needed."""
    width = width_of(np.uint64(bounds.high - bounds.low))
    size = 1 + varint_bytes(bounds.low) + packed_bytes(n, width)
    if bounds.low >= 0:
        bits_width = width_of(np.uint64(bounds.high))
        bits_size = 1 + packed_bytes(n, bits_width)
        if bits_size <= size:
            return ColumnPlan(bits_size, np.int64(packed.BITS), bits_width, ZERO, ZERO, ZERO)
    return ColumnPlan(size, np.int64(packed.BASED), width, bounds.low, ZERO, ZERO)


@part
def choose(x, n, bounds, has_trend, scratch):
    """Return the smallest ColumnPlan for x[:n]. bounds: the Bounds of x[:n]."""
    plan = choose_even(bounds, n)
    low, bits = bounds.low, bits_of(np.uint64(bounds.high - bounds.low))
    if not has_trend:
        residuals = Residuals(n, low, ZERO, bits, bounds.total - low * n, 1 + varint_bytes(low))
        return _with_patches(x, residuals, has_trend, plan, scratch)
    first, last = x[0], x[n - 1]
    low, high = span_of_steps(x, n)
    bits, head_bytes = bits_of(np.uint64(high - low)), 1 + varint_bytes(first) + varint_bytes(low)
    width = width_of(np.uint64(high - low))
    size = head_bytes + packed_bytes(n - 1, width) + 1
    if size < plan.size_bytes:
        plan = ColumnPlan(size, np.int64(packed.PATCHED), width, low, first, ZERO)
    residuals = Residuals(n - 1, low, first, bits, last - first - low * (n - 1), head_bytes)
    return _with_patches(x, residuals, has_trend, plan, scratch)


# A stream of bits, lowest bit of each byte first. Bits are collected in a uint64, the word.


@leaf
def push(out, at, word, fill, value, width):
    """Append the `width` bits (1 to 63) of `value` to a word that has `fill` bits. Write the word if it is full.

    Return the new position in `out`, the new word and the number of its bits.
    """
    word |= value << fill
    fill += width
    if fill >= U64:
        put_le64(out, at, word)
        at += 8
        fill -= U64
        word = value >> (width - fill)
    return at, word, fill


@leaf
def flush(out, at, word, fill):
    """Write the bytes of the last word, which has `fill` bits. Return the next position."""
    rest = np.int64(fill)
    while rest > 0:
        put_u8(out, at, np.uint8(word & np.uint64(0xFF)))
        word >>= np.uint64(8)
        at += 1
        rest -= 8
    return at


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
def _put_patches(out, at, x, n, width, number):
    """Write the patches: first the index of each residual wider than `width`, then the bits of each above `width`."""
    shift, index_bits = np.uint64(width), np.uint64(bits_of(np.uint64(n - 1)))
    at = put_uvarint(out, at, np.uint64(number))
    if number == 0:
        return at
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
def put(out, at, x, n, plan, has_trend):
    """Write the column x[:n] as `plan` says. `out` must have room for it."""
    kind, width, are_steps = plan.kind, plan.width, has_trend and plan.kind == packed.PATCHED
    code = width if width <= packed.MAX_BITS else np.int64(packed.WORD_CODE)
    put_u8(out, at, np.uint8(code | kind << 6))
    at += 1
    if are_steps:
        at = put_varint(out, at, plan.first)
        n -= 1
    if kind != packed.BITS:
        at = put_varint(out, at, plan.base)
    if width == 0 and plan.patches == 0:  # the column has no packed bytes
        return put_uvarint(out, at, U0) if kind == packed.PATCHED else at
    if are_steps:
        lower_steps(x, n, plan.base)
    elif kind != packed.BITS:
        lower(x, n, plan.base)
    at = pack(out, at, x, n, width)
    return _put_patches(out, at, x, n, width, plan.patches) if kind == packed.PATCHED else at


@part
def _write(out, at, x, n, bounds, has_trend, scratch):
    """Write x[:n] in the form that `choose` plans. Args: as in `write`."""
    plan = choose(x, n, bounds, has_trend, scratch)
    if plan.size_bytes > len(out) - at:
        return np.int64(FULL)
    return put(out, at, x, n, plan, has_trend)


@leaf
def write(out, at, x, n, bounds, has_trend, scratch):
    """Write x[:n] in its smallest form. Args: see the module docstring; bounds: the Bounds of x[:n]."""
    if has_trend or bounds.low != bounds.high:
        return _write(out, at, x, n, bounds, has_trend, scratch)
    plan = choose_even(bounds, n)  # the common case of equal lengths, without a call
    if plan.size_bytes > len(out) - at:
        return np.int64(FULL)
    put_u8(out, at, np.uint8(plan.kind << 6 | plan.width))
    if plan.kind == packed.BASED:
        return put_varint(out, at + 1, plan.base)
    return pack(out, at + 1, x, n, plan.width)


@leaf
def write_values(out, at, x, n, has_trend, scratch):
    """Compute the Bounds of x[:n] and write the column in its smallest form."""
    return write(out, at, x, n, bounds_of(x, n), has_trend, scratch)


@leaf
def fill_codes(x, lengths, first, n):
    """Copy the codes of n lengths (0 for a null, else length + 1) from index `first` on to x[:n].

    Return the Bounds of the codes, whose greatest is 0 if all are null, and the sum of the lengths.
    """
    nulls, low, high, total = take_codes(x, lengths, first, n)
    return Bounds(low, high, total), total - (n - nulls)
