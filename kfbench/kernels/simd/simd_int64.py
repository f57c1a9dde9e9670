"""Statistics and transformations of int64 and int32 columns, eight values at a time.

Callers must check bounds: these functions do not. Intrinsics return plain tuples, which Numba builds without a class.
Common operands:

    number int64: number of values
    first uint64: index of the first value
    sign int64: 1 or -1
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.emitting import ARRAY, I8, I32, I64, INT64X8, VOID, emitted, i64, u64
from kfbench.kernels.simd.lanes import (
    LANE_NUMBERS,
    LANE_ONES,
    LANE_ZEROS,
    LANES,
    Line,
    Reductions,
    by_eights,
    by_whole_eights,
    combined,
    last,
    load8,
    multiplied,
    reduced,
    running,
    signs,
    splat,
    store8,
)


def _steps(builder: Any, values: Any, at: Any, flips: Any, mask: Any) -> Any:
    """Return, for eight values, the difference from each value to the next one in the array, times a sign."""
    current, following = load8(values, at, mask), load8(values, builder.add(at, I64(1)), mask)
    return multiplied(builder, builder.sub(following, current), flips)


@emitted(types.UniTuple(i64, 4), ARRAY, ARRAY, u64, i64, i64)
def span_of(builder, times, offsets, first, number, expected):
    """Return the latest, the earliest and the sum of `number` >= 1 timestamps, and a check of the offsets.

    The offsets should be `expected`, `expected` + 1 and so on. The last result has the bits in which any offset differs
    from this. It is 0 if none differs.
    """
    found = Reductions(builder, "smax", "smin", "add", "or")

    def body(here, mask):
        at = builder.add(first, here)
        values = load8(times, at, mask)
        for k in range(3):
            found.take(k, values, mask)
        due = builder.add(splat(builder, builder.add(expected, here)), LANE_NUMBERS)
        found.take(3, builder.xor(load8(offsets, at, mask), due), mask)

    by_eights(builder, number, body)
    return found.results()


@emitted(types.UniTuple(i64, 4), ARRAY, i64, i64, i64)
def trend_of(builder, values, number, slope, sign):
    """Return the least and greatest of values[i] - i * slope, then the least and greatest of sign * step.

    A step leads from one value to the next. There are 2 values or more. The last one is not part of the first two
    results.
    """
    found = Reductions(builder, "smin", "smax", "smin", "smax")
    line, flips = Line(builder, I64(0), slope), signs(builder, sign)

    def body(here, mask):
        current, following = load8(values, here, mask), load8(values, builder.add(here, I64(1)), mask)
        above = builder.sub(current, line.here())
        step = multiplied(builder, builder.sub(following, current), flips)
        for k, taken in enumerate((above, above, step, step)):
            found.take(k, taken, mask)
        line.advance()

    by_eights(builder, builder.sub(number, I64(1)), body)
    return found.results()


@emitted(types.UniTuple(i64, 4), ARRAY, ARRAY, u64, i64)
def take_lengths(builder, out, lengths, first, number):
    """Copy `number` >= 1 lengths to the begin of `out`, which has room for 8 more.

    Return the number of nulls, the least of the other lengths (if any), the greatest length, and the sum. A null
    counts as -1 in the last two.
    """
    found = Reductions(builder, "add", "umin", "smax", "add")

    def body(here, mask):
        values = load8(lengths, builder.add(first, here), mask)
        store8(out, here, values)
        found.take(0, builder.lshr(values, ir.Constant(INT64X8, [63] * LANES)), mask)
        for k in (1, 2, 3):
            found.take(k, values, mask)

    by_eights(builder, number, body)
    return found.results()


@emitted(VOID, ARRAY, ARRAY, u64, i64, i64)
def take_ages(builder, out, times, first, number, latest):
    """Fill out[:number] with ages: `latest` minus each timestamp. `out` has room for 8 more."""
    latests = splat(builder, latest)

    def body(here, mask):
        store8(out, here, builder.sub(latests, load8(times, builder.add(first, here), mask)))

    by_eights(builder, number, body)


@emitted(i64, ARRAY, ARRAY, u64, i64)
def gaps_of(builder, lengths, starts, first, number):
    """Compare the end of each item with the start of the next. Return the bits that differ, 0 for contiguous items."""
    found = Reductions(builder, "or")

    def body(here, mask):
        at = builder.add(first, here)
        sizes = combined(builder, "smax", load8(lengths, at, mask), LANE_ZEROS)
        begins, next_begins = load8(starts, at, mask), load8(starts, builder.add(at, I64(1)), mask)
        found.take(0, builder.sub(builder.sub(next_begins, begins), sizes), mask)

    by_eights(builder, number, body)
    return found.results()[0]


def _high_bits(of_steps: bool, is_count: bool) -> Any:
    @emitted(i64, ARRAY, i64, i64, u64, i64)
    def find(builder, values, number, base, shift, sign):
        found = Reductions(builder, "add")
        bases, shifts, flips = splat(builder, base), splat(builder, shift), signs(builder, sign)

        def body(here, mask):
            taken = _steps(builder, values, here, flips, mask) if of_steps else load8(values, here, mask)
            high = builder.lshr(builder.sub(taken, bases), shifts)
            if is_count:
                high = builder.zext(builder.icmp_unsigned("!=", high, LANE_ZEROS), INT64X8)
            found.take(0, high, mask)

        by_eights(builder, number, body)
        return found.results()[0]

    return find


# A residual is a value minus `base`, or sign * (step to the next value) minus `base`, as a uint64. `count_wide` counts
# the residuals with bits from `shift` on; `sum_high` adds these bits up. For values, `sign` is ignored.
count_wide, count_wide_steps = _high_bits(False, True), _high_bits(True, True)
sum_high, sum_high_steps = _high_bits(False, False), _high_bits(True, False)


@emitted(u64, ARRAY, i64)
def hashes_of(builder, values, number):
    """Return a uint64 with one bit set for the 6-bit hash of each value: at most one bit per distinct value."""
    found = Reductions(builder, "or")
    sixes, ones = (ir.Constant(INT64X8, [value] * LANES) for value in (6, 63))

    def body(here, mask):
        taken = load8(values, here, mask)
        hashes = builder.and_(builder.xor(taken, builder.lshr(taken, sixes)), ones)
        found.take(0, builder.shl(LANE_ONES, hashes), mask)

    by_eights(builder, number, body)
    return found.results()[0]


def _marker(marked: Callable[[Any, Any, Any], Any], kind: Any) -> Any:
    @emitted(u64, ARRAY, u64, i64, kind)
    def mark(builder, values, first, number, given):
        marks, givens = cgutils.alloca_once_value(builder, I64(0)), splat(builder, given)

        def body(here, mask):
            found = marked(builder, load8(values, builder.add(first, here), mask), givens)
            if mask is not None:
                found = builder.and_(found, mask)
            eight = builder.shl(builder.zext(builder.bitcast(found, I8), I64), here)
            builder.store(builder.or_(builder.load(marks), eight), marks)

        by_eights(builder, number, body)
        return builder.load(marks)

    return mark


# Both return a uint64 with one bit per value, for at most 64 values. `marks_of` sets the bit if value >> given is not
# 0, `equals_of` if the value equals `given`.
marks_of = _marker(
    lambda builder, values, shifts: builder.icmp_unsigned("!=", builder.lshr(values, shifts), LANE_ZEROS), u64
)
equals_of = _marker(lambda builder, values, others: builder.icmp_unsigned("==", values, others), i64)


@emitted(types.UniTuple(u64, 2), ARRAY, u64, i64, u64)
def ones_of(builder, values, first, number, shift):
    """Return the unary code of at most 8 quotients: a word, and its number of bits.

    A quotient is values[k] >> shift. Its code is that many zeros and a one. The word is undefined above 64 bits.
    """
    mask = builder.icmp_unsigned("<", LANE_NUMBERS, splat(builder, number))
    zeros = builder.lshr(load8(values, first, mask), splat(builder, shift))
    ends = running(builder, builder.add(zeros, builder.zext(mask, INT64X8)))
    places = builder.and_(builder.sub(ends, LANE_ONES), ir.Constant(INT64X8, [63] * LANES))
    bits = builder.select(mask, builder.shl(LANE_ONES, places), LANE_ZEROS)
    return [reduced(builder, "or", bits), builder.extract_element(ends, I32(LANES - 1))]


# The intrinsics below read and write whole groups of eight. Arrays have room for 8 more than `number` values; the
# content there is undefined afterwards.


@emitted(VOID, ARRAY, i64, i64, i64)
def lower(builder, values, number, base, slope):
    """Subtract base + i * slope from value i."""
    line = Line(builder, base, slope)

    def body(here):
        store8(values, here, builder.sub(load8(values, here), line.here()))
        line.advance()

    by_whole_eights(builder, number, body)


@emitted(VOID, ARRAY, i64, i64, i64)
def lower_steps(builder, values, number, base, sign):
    """Replace each value by sign * (step to the next value) - base. One more value is read."""
    bases, flips = splat(builder, base), signs(builder, sign)

    def body(here):
        store8(values, here, builder.sub(_steps(builder, values, here, flips, None), bases))

    by_whole_eights(builder, number, body)


@emitted(VOID, ARRAY, u64, i64, i64, i64)
def put_line(builder, out, to, number, start, step):
    """Set out[to + k] = start + k * step for `number` values."""
    line = Line(builder, start, step)

    def body(here):
        store8(out, builder.add(to, here), line.here())
        line.advance()

    by_whole_eights(builder, number, body)


@emitted(VOID, ARRAY, u64, i64, i64)
def run_on(builder, values, to, number, start):
    """Replace `number` steps, from values[to] on, by running sums: `start` plus all steps so far."""
    reached = cgutils.alloca_once_value(builder, splat(builder, start))

    def body(here):
        at = builder.add(to, here)
        sums = running(builder, load8(values, at))
        store8(values, at, builder.add(builder.load(reached), sums))
        builder.store(builder.add(builder.load(reached), last(builder, sums)), reached)

    by_whole_eights(builder, number, body)


@emitted(VOID, ARRAY, ARRAY, u64, i64, i64)
def put_starts(builder, out, lengths, first, number, start):
    """Fill out[first : first + number] with the starts of items without gaps, from `start` on. A null takes 0 bytes."""
    reached = cgutils.alloca_once_value(builder, splat(builder, start))

    def body(here):
        at = builder.add(first, here)
        sizes = combined(builder, "smax", load8(lengths, at), LANE_ZEROS)
        sums = running(builder, sizes)
        store8(out, at, builder.add(builder.load(reached), builder.sub(sums, sizes)))
        builder.store(builder.add(builder.load(reached), last(builder, sums)), reached)

    by_whole_eights(builder, number, body)


@emitted(types.Tuple((u64, i64)), ARRAY, u64, ARRAY, i64, i64, i64)
def put_lengths(builder, out, to, codes, number, shift, null):
    """Set out[to + k] = codes[k] + shift, or `null` for a code of 0, for `number` codes. out may be codes.

    Return the greatest code as a uint64, and the sum of the lengths, where a null counts as 0.
    """
    found = Reductions(builder, "umax", "add")
    shifts, nulls = splat(builder, shift), splat(builder, null)

    def body(here, inside):
        values = load8(codes, here)
        is_null = builder.icmp_signed("==", values, LANE_ZEROS)
        lengths = builder.select(is_null, nulls, builder.add(values, shifts))
        store8(out, builder.add(to, here), lengths)
        found.take(0, values, inside)
        found.take(1, combined(builder, "smax", lengths, LANE_ZEROS), inside)

    by_eights(builder, number, body)
    return found.results()


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
