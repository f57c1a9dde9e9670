"""Statistics and transformations of int64 and int32 columns, eight values at a time.

Callers check bounds; nothing here does. Intrinsics return tuples, which Numba builds without a class.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.intrinsics import I8, I32, I64, OCTET
from kfbench.kernels.simd.lanes import (
    LANE_NUMBERS,
    LANE_ONES,
    LANE_ZEROS,
    LANES,
    Reductions,
    by_octets,
    by_whole_octets,
    combined,
    flipped,
    last,
    line,
    octet,
    put_octet,
    reduced,
    running,
    splat,
)


@intrinsic
def span_of(typingctx, times, offsets, first, number, expected):
    """Return latest, earliest and sum of the times of `number` >= 1 records from `first` on, and offset strays.

    The strays are the bits in which an offset differs from `expected`, `expected` + 1 and so on.
    """

    def codegen(context, builder, signature, args):
        times, offsets, first, number, expected = args
        found = Reductions(builder, "smax", "smin", "add", "or")

        def body(here, mask):
            at = builder.add(first, here)
            values = octet(context, builder, signature.args[0], times, at, mask)
            for k in range(3):
                found.take(k, values, mask)
            due = builder.add(splat(builder, builder.add(expected, here)), LANE_NUMBERS)
            values = octet(context, builder, signature.args[1], offsets, at, mask)
            found.take(3, builder.xor(values, due), mask)

        by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.UniTuple(i64, 4)(times, offsets, u64, i64, i64), codegen


@intrinsic
def trend_of(typingctx, values, number, slope, sign):
    """Return least and greatest of values[i] - i * slope, then of `sign` times the step to the next value.

    values[:number] are looked at, 2 or more; the last is left out of the first two. sign: 1 or -1.
    """

    def codegen(context, builder, signature, args):
        array, number, slope, sign = args
        found = Reductions(builder, "smin", "smax", "smin", "smax")
        lines, rise = line(builder, I64(0), slope)
        flips = splat(builder, builder.ashr(sign, I64(63)))

        def body(here, mask):
            values = octet(context, builder, signature.args[0], array, here, mask)
            behind = octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), mask)
            above, step = builder.sub(values, builder.load(lines)), flipped(builder, builder.sub(behind, values), flips)
            for k, taken in enumerate((above, above, step, step)):
                found.take(k, taken, mask)
            builder.store(builder.add(builder.load(lines), rise), lines)

        by_octets(builder, builder.sub(number, I64(1)), body)
        return context.make_tuple(builder, signature.return_type, found.results())

    i64 = types.int64
    return types.UniTuple(i64, 4)(values, i64, i64, i64), codegen


@intrinsic
def take_lengths(typingctx, out, lengths, first, number):
    """Copy `number` >= 1 lengths into out, which has room for 8 more.

    Return the number of nulls, the least of the others if there are any, the greatest, and the sum, where a null is -1.
    """

    def codegen(context, builder, signature, args):
        target, lengths, first, number = args
        found = Reductions(builder, "add", "umin", "smax", "add")

        def body(here, mask):
            values = octet(context, builder, signature.args[1], lengths, builder.add(first, here), mask)
            put_octet(context, builder, signature.args[0], target, here, values)
            found.take(0, builder.lshr(values, ir.Constant(OCTET, [63] * LANES)), mask)
            for k in (1, 2, 3):
                found.take(k, values, mask)

        by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.UniTuple(i64, 4)(out, lengths, u64, i64), codegen


@intrinsic
def take_ages(typingctx, out, times, first, number, latest):
    """Fill out[:number], which has room for 8 more, with `latest` minus the times from `first` on."""

    def codegen(context, builder, signature, args):
        target, times, first, number, latest = args
        latests = splat(builder, latest)

        def body(here, mask):
            values = octet(context, builder, signature.args[1], times, builder.add(first, here), mask)
            put_octet(context, builder, signature.args[0], target, here, builder.sub(latests, values))

        by_octets(builder, number, body)
        return context.get_dummy_value()

    u64, i64 = types.uint64, types.int64
    return types.void(out, times, u64, i64, i64), codegen


@intrinsic
def gaps_of(typingctx, lengths, starts, first, number):
    """Return the bits in which the end of one of `number` items from `first` on differs from the next one's start."""

    def codegen(context, builder, signature, args):
        lengths, starts, first, number = args
        found = Reductions(builder, "or")

        def body(here, mask):
            at = builder.add(first, here)
            sizes = combined(builder, "smax", octet(context, builder, signature.args[0], lengths, at, mask), LANE_ZEROS)
            begins = octet(context, builder, signature.args[1], starts, at, mask)
            next_begins = octet(context, builder, signature.args[1], starts, builder.add(at, I64(1)), mask)
            found.take(0, builder.sub(builder.sub(next_begins, begins), sizes), mask)

        by_octets(builder, number, body)
        return found.results()[0]

    u64, i64 = types.uint64, types.int64
    return i64(lengths, starts, u64, i64), codegen


def _high_bits(steps: bool, counted: bool) -> Callable[..., Any]:
    @intrinsic
    def find(typingctx, values, number, base, shift, sign):
        def codegen(context, builder, signature, args):
            array, number, base, shift, sign = args
            found = Reductions(builder, "add")
            bases, shifts = splat(builder, base), splat(builder, shift)
            flips = splat(builder, builder.ashr(sign, I64(63)))

            def body(here, mask):
                values = octet(context, builder, signature.args[0], array, here, mask)
                if steps:
                    behind = octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), mask)
                    values = flipped(builder, builder.sub(behind, values), flips)
                high = builder.lshr(builder.sub(values, bases), shifts)
                if counted:
                    high = builder.zext(builder.icmp_unsigned("!=", high, LANE_ZEROS), OCTET)
                found.take(0, high, mask)

            by_octets(builder, number, body)
            return found.results()[0]

        u64, i64 = types.uint64, types.int64
        return i64(values, i64, i64, u64, i64), codegen

    return find


# Look at the first `number` values, or at `sign` times their steps to the next, as uint64s above `base`. Count those
# with bits from `shift` on, or add these bits up. `sign` does nothing to values.
count_wide, count_wide_steps = _high_bits(False, True), _high_bits(True, True)
sum_high, sum_high_steps = _high_bits(False, False), _high_bits(True, False)


@intrinsic
def hashes_of(typingctx, values, number):
    """Return a word with a bit for each of values[:number]: at most as many bits as there are distinct values."""

    def codegen(context, builder, signature, args):
        array, number = args
        found = Reductions(builder, "or")
        sixes, most = (ir.Constant(OCTET, [value] * LANES) for value in (6, 63))

        def body(here, mask):
            values = octet(context, builder, signature.args[0], array, here, mask)
            numbers = builder.and_(builder.xor(values, builder.lshr(values, sixes)), most)
            found.take(0, builder.shl(LANE_ONES, numbers), mask)

        by_octets(builder, number, body)
        return found.results()[0]

    return types.uint64(values, types.int64), codegen


def _marker(marked: Callable[[Any, Any, Any], Any], kind: Any) -> Callable[..., Any]:
    @intrinsic
    def mark(typingctx, values, first, number, given):
        def codegen(context, builder, signature, args):
            array, first, number, given = args
            marks, givens = cgutils.alloca_once_value(builder, I64(0)), splat(builder, given)

            def body(here, mask):
                values = octet(context, builder, signature.args[0], array, builder.add(first, here), mask)
                found = marked(builder, values, givens)
                if mask is not None:
                    found = builder.and_(found, mask)
                eight = builder.shl(builder.zext(builder.bitcast(found, I8), I64), here)
                builder.store(builder.or_(builder.load(marks), eight), marks)

            by_octets(builder, number, body)
            return builder.load(marks)

        u64, i64 = types.uint64, types.int64
        return u64(values, u64, i64, kind), codegen

    return mark


# Return a word whose bit k says of value k, of the `number` from `first` on, 64 at most, that it has bits from `given`
# on, or that it equals `given`.
marks_of = _marker(
    lambda builder, values, shifts: builder.icmp_unsigned("!=", builder.lshr(values, shifts), LANE_ZEROS), types.uint64
)
equals_of = _marker(lambda builder, values, others: builder.icmp_unsigned("==", values, others), types.int64)


@intrinsic
def ones_of(typingctx, values, first, number, shift):
    """Return the unary quotients of `number` values from `first` on, 8 at most: a word of bits, and their number.

    Each quotient is values[k] >> shift zeros and a one. The word means nothing where there are more than 64 bits.
    """

    def codegen(context, builder, signature, args):
        array, first, number, shift = args
        mask = builder.icmp_unsigned("<", LANE_NUMBERS, splat(builder, number))
        values = octet(context, builder, signature.args[0], array, first, mask)
        zeros = builder.lshr(values, splat(builder, shift))
        ends = running(builder, builder.add(zeros, builder.zext(mask, OCTET)))
        places = builder.and_(builder.sub(ends, LANE_ONES), ir.Constant(OCTET, [63] * LANES))
        bits = builder.select(mask, builder.shl(LANE_ONES, places), LANE_ZEROS)
        found = reduced(builder, "or", bits), builder.extract_element(ends, I32(LANES - 1))
        return context.make_tuple(builder, signature.return_type, found)

    u64, i64 = types.uint64, types.int64
    return types.UniTuple(u64, 2)(values, u64, i64, u64), codegen


# The intrinsics below read and write whole groups of eight. Arrays have room for 8 more than `number`; what is left
# there means nothing.


@intrinsic
def lower(typingctx, values, number, base, slope):
    """Subtract base + i * slope from each of the first `number` values."""

    def codegen(context, builder, signature, args):
        array, number, base, slope = args
        lines, rise = line(builder, base, slope)

        def body(here):
            values = octet(context, builder, signature.args[0], array, here, None)
            values = builder.sub(values, builder.load(lines))
            put_octet(context, builder, signature.args[0], array, here, values)
            builder.store(builder.add(builder.load(lines), rise), lines)

        by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(values, i64, i64, i64), codegen


@intrinsic
def lower_steps(typingctx, values, number, base, sign):
    """Replace each of the first `number` values by `sign` times the step to the next, less base.

    The value after each whole group of eight is read.
    """

    def codegen(context, builder, signature, args):
        array, number, base, sign = args
        bases, flips = splat(builder, base), splat(builder, builder.ashr(sign, I64(63)))

        def body(here):
            values = octet(context, builder, signature.args[0], array, here, None)
            behind = octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), None)
            steps = flipped(builder, builder.sub(behind, values), flips)
            put_octet(context, builder, signature.args[0], array, here, builder.sub(steps, bases))

        by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(values, i64, i64, i64), codegen


@intrinsic
def put_line(typingctx, out, to, number, start, step):
    """Set out[to + k] = start + k * step for `number` values."""

    def codegen(context, builder, signature, args):
        target, to, number, start, step = args
        lines, rise = line(builder, start, step)

        def body(here):
            values = builder.load(lines)
            put_octet(context, builder, signature.args[0], target, builder.add(to, here), values)
            builder.store(builder.add(values, rise), lines)

        by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(out, types.uint64, i64, i64, i64), codegen


@intrinsic
def run_on(typingctx, values, to, number, start):
    """Replace `number` steps, values[to] on, by the values that they lead to from `start`."""

    def codegen(context, builder, signature, args):
        array, to, number, start = args
        reached = cgutils.alloca_once_value(builder, splat(builder, start))

        def body(here):
            at = builder.add(to, here)
            sums = running(builder, octet(context, builder, signature.args[0], array, at, None))
            ends = builder.add(builder.load(reached), sums)
            put_octet(context, builder, signature.args[0], array, at, ends)
            builder.store(builder.add(builder.load(reached), last(builder, sums)), reached)

        by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    return types.void(values, types.uint64, types.int64, types.int64), codegen


@intrinsic
def put_starts(typingctx, out, lengths, first, number, start):
    """Fill out[first : first + number] with the starts of items that lie one behind the other from `start` on.

    A null has no byte.
    """

    def codegen(context, builder, signature, args):
        target, lengths, first, number, start = args
        reached = cgutils.alloca_once_value(builder, splat(builder, start))

        def body(here):
            at = builder.add(first, here)
            sizes = octet(context, builder, signature.args[1], lengths, at, None)
            sizes = combined(builder, "smax", sizes, LANE_ZEROS)
            sums = running(builder, sizes)
            begins = builder.add(builder.load(reached), builder.sub(sums, sizes))
            put_octet(context, builder, signature.args[0], target, at, begins)
            builder.store(builder.add(builder.load(reached), last(builder, sums)), reached)

        by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(out, lengths, types.uint64, i64, i64), codegen


@intrinsic
def put_lengths(typingctx, out, to, codes, number, shift, null):
    """Set out[to + k] = codes[k] + shift, or `null` for a code of 0, for `number` codes. out may be codes.

    Return the greatest code as a uint64, and the sum of the lengths, where a null has 0.
    """

    def codegen(context, builder, signature, args):
        target, to, codes, number, shift, null = args
        found = Reductions(builder, "umax", "add")
        shifts, nulls = splat(builder, shift), splat(builder, null)

        def body(here, inside):
            values = octet(context, builder, signature.args[2], codes, here, None)
            is_null = builder.icmp_signed("==", values, LANE_ZEROS)
            lengths = builder.select(is_null, nulls, builder.add(values, shifts))
            put_octet(context, builder, signature.args[0], target, builder.add(to, here), lengths)
            found.take(0, values, inside)
            found.take(1, combined(builder, "smax", lengths, LANE_ZEROS), inside)

        by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.Tuple((u64, i64))(out, u64, codes, i64, i64, i64), codegen


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
