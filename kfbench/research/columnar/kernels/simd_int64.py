"""Statistics and transformations of int64 and int32 columns, eight values at a time.

Callers must check bounds: these functions do not. Intrinsics return plain tuples, which Numba builds without a class.
Common operands:

    number int64: number of values
    first uint64: index of the first value
"""

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.emitting import ARRAY, I8, I64, INT64X8, VOID, emitted, i64, u64
from kfbench.research.columnar.kernels.lanes import (
    LANE_NUMBERS,
    LANE_ONES,
    LANE_ZEROS,
    Line,
    Reductions,
    by_eights,
    by_whole_eights,
    combined,
    last,
    load8,
    running,
    splat,
    store8,
)


def _steps(builder: Any, values: Any, at: Any, mask: Any) -> Any:
    """Return, for eight values, the difference from each value to the next one in the array."""
    return builder.sub(load8(values, builder.add(at, I64(1)), mask), load8(values, at, mask))


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


@emitted(types.UniTuple(i64, 2), ARRAY, i64)
def span_of_steps(builder, values, number):
    """Return the least and the greatest step from one of `number` >= 2 values to the next."""
    found = Reductions(builder, "smin", "smax")

    def body(here, mask):
        steps = _steps(builder, values, here, mask)
        for k in (0, 1):
            found.take(k, steps, mask)

    by_eights(builder, builder.sub(number, I64(1)), body)
    return found.results()


@emitted(types.UniTuple(i64, 4), ARRAY, ARRAY, u64, i64)
def take_codes(builder, out, lengths, first, number):
    """Fill out[:number] with the code of each length: 0 for a null, else length + 1. `out` has room for 8 more.

    Return the number of nulls, and the least, the greatest and the sum of the codes.
    """
    found = Reductions(builder, "add", "smin", "smax", "add")

    def body(here, mask):
        codes = builder.add(load8(lengths, builder.add(first, here), mask), LANE_ONES)
        store8(out, here, codes)
        found.take(0, builder.zext(builder.icmp_signed("==", codes, LANE_ZEROS), INT64X8), mask)
        for k in (1, 2, 3):
            found.take(k, codes, mask)

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


def _wide_counter(of_steps: bool) -> Any:
    @emitted(i64, ARRAY, i64, i64, u64)
    def count(builder, values, number, base, shift):
        found = Reductions(builder, "add")
        bases, shifts = splat(builder, base), splat(builder, shift)

        def body(here, mask):
            taken = _steps(builder, values, here, mask) if of_steps else load8(values, here, mask)
            high = builder.lshr(builder.sub(taken, bases), shifts)
            found.take(0, builder.zext(builder.icmp_unsigned("!=", high, LANE_ZEROS), INT64X8), mask)

        by_eights(builder, number, body)
        return found.results()[0]

    return count


# A residual is a value, or the step to the next value, minus `base`, as a uint64. Both count the residuals that have
# bits from `shift` on.
count_wide, count_wide_steps = _wide_counter(False), _wide_counter(True)


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


# The intrinsics below read and write whole groups of eight. Arrays have room for 8 more than `number` values; the
# content there is undefined afterwards.


@emitted(VOID, ARRAY, i64, i64)
def lower(builder, values, number, base):
    """Subtract `base` from each value."""
    bases = splat(builder, base)
    by_whole_eights(builder, number, lambda here: store8(values, here, builder.sub(load8(values, here), bases)))


@emitted(VOID, ARRAY, i64, i64)
def lower_steps(builder, values, number, base):
    """Replace each value by the step to the next value, minus `base`. One more value is read."""
    bases = splat(builder, base)

    def body(here):
        store8(values, here, builder.sub(_steps(builder, values, here, None), bases))

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


@emitted(types.UniTuple(i64, 2), ARRAY, u64, ARRAY, i64)
def put_lengths(builder, out, to, codes, number):
    """Set out[to + k] = codes[k] - 1 for `number` codes, none of which is below 0. out may be codes.

    Return the greatest code, and the sum of the lengths, where a null counts as 0.
    """
    found = Reductions(builder, "smax", "add")

    def body(here, inside):
        codes_here = load8(codes, here)
        lengths = builder.sub(codes_here, LANE_ONES)
        store8(out, builder.add(to, here), lengths)
        found.take(0, codes_here, inside)
        found.take(1, combined(builder, "smax", lengths, LANE_ZEROS), inside)

    by_eights(builder, number, body)
    return found.results()


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
