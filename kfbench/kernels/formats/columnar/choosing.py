"""Choose how to write a column of int64 values in the fewest bytes. docs/columnar.md has the rules.

A kind is a way of packing, for example packed values (BITS) or packed steps from value to value (DELTA). Patches are
the high bits of the few values that are wider than the packed width. Quotients are high bits in unary code.

All arithmetic is modulo 2**64. Common parameters:

    x int64[]: the values are x[:n], with room for GROUP more
    n: number of values, at least 2
    known, wide, scratch int64[BUCKETS]: scratch
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.formats.columnar.columns import U1, U7, ZERO, bits_of, packed_bytes
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd import simd_int64
from kfbench.kernels.simd.intrinsics import bit_count
from kfbench.kernels.wire.varint import uvarint_bytes, varint_bytes

CODES, LENGTHS, OFFSETS, AGES = range(4)  # contents of a column: the content decides which kinds are tried
BUCKETS = 65 + 7  # one per width, and 7 more because each byte of an uvarint holds 7 bits
MAX_TRIED, MIN_BITS = 16, 4  # a dictionary is tried up to 16 values, from a range of 4 bits on
QUOTIENT_BITS = 2  # quotients are tried where the largest residual has this many bits more than the mean
SAMPLED = 32  # values that are hashed before a dictionary is tried
U8 = np.uint64(8)


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
    slope: int
    number: int  # number of patches, or number of values in the dictionary


class Residuals(NamedTuple):
    """Description of the residuals: the values, or the steps between them, minus the least one.

    Residuals are packed as uint64. All fields are int64.
    """

    number: int
    base: int  # the least value or step
    sign: int  # 0 for values; steps are multiplied by it
    first: int  # 0 for values; value 0 for steps
    bits: int  # bit length of the largest residual
    total: int  # sum of the residuals
    head_bytes: int  # size of the column head in an extended kind


class Packing(NamedTuple):
    """The total size of residuals when packed, and the parameters of that packing. All fields are int64."""

    size_bytes: int
    width: int
    patches: int


@leaf
def width_of(value):
    """Return the number of bits with which a uint64 is packed: its bit length, or 64 above 56."""
    bits = bits_of(value)
    return bits if bits <= packed.MAX_BITS else np.int64(packed.WORD)


@leaf
def _has_sum(residuals):
    """Return whether the sum of the residuals certainly fits an int64, by their number and largest bit length."""
    return residuals.bits + bits_of(np.uint64(residuals.number)) <= 63


@leaf
def _is_uneven(residuals, by_bits):
    """Return whether the largest residual has at least `by_bits` more bits than the mean residual."""
    return residuals.bits >= by_bits and residuals.total >> (residuals.bits - by_bits) < residuals.number


@leaf
def _plan_patches(x, residuals, budget_bytes, wide):
    """Find the bit width with which packing plus patches takes the fewest bytes. Return that Packing.

    It has 0 patches if no width takes less than `budget_bytes`. A residual wider than the width becomes a patch. Widths
    are tried from the widest down, because few residuals are wide. Wide residuals are counted again for each width: a
    histogram would need the bit length of each residual.
    """
    n, base, sign, top = residuals.number, residuals.base, residuals.sign, np.uint64(residuals.bits)
    best = Packing(budget_bytes, ZERO, ZERO)
    index_bits = bits_of(np.uint64(n - 1))
    for k in range(U1, U8):
        wide[top + k] = 0
    for below in range(top):
        bits = top - below
        number = (
            simd_int64.count_wide_steps(x, n, base, bits - U1, sign)
            if sign
            else simd_int64.count_wide(x, n, base, bits - U1, sign)
        )
        # If the packed width falls by one bit, a patch that had 0, 7, 14 ... bits takes one byte more.
        wide[bits] = number + wide[bits + U7]
        patch_bytes = uvarint_bytes(np.uint64(number)) + packed_bytes(number, index_bits) + wide[bits]
        if patch_bytes >= best.size_bytes:  # smaller widths have even more bytes of patches
            break
        width = np.int64(bits) - 1
        size = packed_bytes(n, width) + patch_bytes
        if size < best.size_bytes and width <= packed.MAX_BITS:
            best = Packing(size, width, number)
    return best


@leaf
def _with_patches(x, residuals, kind, plan, wide):
    """Return a ColumnPlan with patches if it takes fewer bytes than `plan`, else `plan`.

    Patches are tried if the largest residual has 4 bits more than the mean, or 3 bits more among fewer than 16
    residuals, because an outlier raises the mean of few residuals more.
    """
    by_bits = np.int64(3 if residuals.number < 16 else 4)
    if not _has_sum(residuals) or _is_uneven(residuals, by_bits):
        found = _plan_patches(x, residuals, plan.size_bytes - residuals.head_bytes, wide)
        if found.patches:
            return ColumnPlan(
                found.size_bytes + residuals.head_bytes, np.int64(kind), found.width, residuals.base, residuals.first,
                ZERO, found.patches,
            )  # fmt: skip
    return plan


@part
def _plan_quotients(x, residuals, budget_bytes):
    """Compute the Packing with quotients in unary code. Its size is `budget_bytes` + 1 if it exceeds `budget_bytes`."""
    n, base, sign = residuals.number, residuals.base, residuals.sign
    too_large = Packing(budget_bytes + 1, ZERO, ZERO)
    width = max(bits_of(np.uint64(residuals.total)) - bits_of(np.uint64(n)), 0)  # bit length of the mean, or one less
    if width and residuals.total < n << width:
        width -= 1
    width = min(width, np.int64(packed.MAX_BITS))  # at larger widths the size is never below 7/8 of that of words
    low_bytes = packed_bytes(n, width)
    if low_bytes + quotients.quotient_bytes(n, ZERO) > budget_bytes:
        return too_large
    shift = np.uint64(width)
    high = simd_int64.sum_high_steps(x, n, base, shift, sign) if sign else simd_int64.sum_high(x, n, base, shift, sign)
    size = low_bytes + quotients.quotient_bytes(n, high)
    return Packing(size, width, ZERO) if size <= budget_bytes else too_large


@leaf
def _with_quotients(x, residuals, kind, plan, budget_bytes):
    """Return a ColumnPlan with quotients if it takes at most `budget_bytes`, else `plan`."""
    if _has_sum(residuals) and _is_uneven(residuals, np.int64(QUOTIENT_BITS)):
        found = _plan_quotients(x, residuals, budget_bytes - residuals.head_bytes)
        size = found.size_bytes + residuals.head_bytes
        if size <= budget_bytes:
            return ColumnPlan(size, np.int64(kind), found.width, residuals.base, residuals.first, ZERO, ZERO)
    return plan


@leaf
def find_distinct(x, n, known):
    """Return the number of distinct values in x[:n], or 0 if there are more than MAX_TRIED.

    Fill `known` with the distinct values in order of first appearance.
    """
    number = ZERO
    for i in range(np.uint64(n)):
        k = np.int64(0)
        while k < number and known[np.uint64(k)] != x[i]:
            k += 1
        if k == number:
            if number == MAX_TRIED:
                return ZERO
            known[np.uint64(number)] = x[i]
            number += 1
    return number


@leaf
def _dictionary_bytes(n, base, width, number):
    return 3 + varint_bytes(base) + packed_bytes(number, width) + packed_bytes(n, bits_of(np.uint64(number - 1)))


@leaf
def _with_dictionary(x, n, bounds, plan, known):
    """Return a ColumnPlan with a dictionary if it takes fewer bytes than `plan`, else `plan`.

    It is tried only if the values span at least MIN_BITS bits and a sample has few distinct hashes.
    """
    width = width_of(np.uint64(bounds.high - bounds.low))
    if width < MIN_BITS:
        return plan
    fewest = max(bit_count(simd_int64.hashes_of(x, min(n, np.int64(SAMPLED)))), 2)
    if fewest > MAX_TRIED or _dictionary_bytes(n, bounds.low, width, fewest) >= plan.size_bytes:
        return plan
    number = find_distinct(x, n, known)
    size = _dictionary_bytes(n, bounds.low, width, number)
    if number == 0 or size >= plan.size_bytes:
        return plan
    return ColumnPlan(size, np.int64(packed.DICTIONARY), width, bounds.low, ZERO, ZERO, number)


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
            return ColumnPlan(bits_size, np.int64(packed.BITS), bits_width, ZERO, ZERO, ZERO, ZERO)
    return ColumnPlan(size, np.int64(packed.BASED), width, bounds.low, ZERO, ZERO, ZERO)


@leaf
def _residuals_of(bounds, n):
    bits = bits_of(np.uint64(bounds.high - bounds.low))
    return Residuals(n, bounds.low, ZERO, ZERO, bits, bounds.total - bounds.low * n, 2 + varint_bytes(bounds.low))


@leaf
def _choose_for_lengths(x, n, bounds, content, scratch):
    residuals = _residuals_of(bounds, n)
    plan = _with_patches(x, residuals, packed.PATCHED, choose_even(bounds, n), scratch)
    plan = _with_dictionary(x, n, bounds, plan, scratch)
    if content == LENGTHS:
        plan = _with_quotients(x, residuals, packed.RICE, plan, _seven_eighths(plan.size_bytes))
    return plan


@leaf
def _seven_eighths(size):
    return size - ((size + 7) >> 3)


@leaf
def _choose_for_trends(x, n, bounds, sign, scratch):
    """Return the smallest ColumnPlan for offsets or ages. They often rise or fall evenly.

    Kinds that pack the steps between successive values are therefore tried too.
    """
    plan, first = choose_even(bounds, n), x[0]
    slope = (x[n - 1] - first) // np.int64(n - 1) if n >= 3 else ZERO
    lowest, highest, least, greatest = simd_int64.trend_of(x, n, slope, sign)
    if slope != 0:
        last = x[n - 1] - np.int64(n - 1) * slope
        lowest, highest = min(lowest, last), max(highest, last)
        width = width_of(np.uint64(highest - lowest))
        size = 1 + varint_bytes(lowest) + varint_bytes(slope) + packed_bytes(n, width)
        if size < plan.size_bytes:
            plan = ColumnPlan(size, np.int64(packed.SLOPED), width, lowest, ZERO, slope, ZERO)
    values = _residuals_of(bounds, n)
    steps = Residuals(
        n - 1, least, sign, first, bits_of(np.uint64(greatest - least)), sign * (x[n - 1] - first) - least * (n - 1),
        2 + varint_bytes(first) + varint_bytes(least),
    )  # fmt: skip
    width = width_of(np.uint64(greatest - least))
    size = steps.head_bytes + packed_bytes(n - 1, width)
    if size < plan.size_bytes:
        plan = ColumnPlan(size, np.int64(packed.DELTA), width, least, first, ZERO, ZERO)
    plan = _with_patches(x, values, packed.PATCHED, plan, scratch)
    plan = _with_patches(x, steps, packed.PATCHED_DELTA, plan, scratch)
    budget = _seven_eighths(plan.size_bytes)
    plan = _with_quotients(x, values, packed.RICE, plan, budget)
    if plan.kind == packed.RICE:
        budget = plan.size_bytes - 1
    return _with_quotients(x, steps, packed.RICE_DELTA, plan, budget)


@part
def choose(x, n, bounds, content, scratch):
    """Return the smallest ColumnPlan for x[:n]. content: CODES, LENGTHS, OFFSETS or AGES."""
    if content >= OFFSETS:
        return _choose_for_trends(x, n, bounds, np.int64(-1 if content == AGES else 1), scratch)
    return _choose_for_lengths(x, n, bounds, content, scratch)


@leaf
def size_of(x, n, content, scratch):
    """Return the size in bytes of a column with the values x[:n] in its smallest kind."""
    return choose(x, n, bounds_of(x, n), content, scratch).size_bytes
