"""Bit-packed values, packed and unpacked eight at a time. Callers check bounds; nothing here does."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.intrinsics import I32, I64, OCTET, pointer_to
from kfbench.kernels.simd.lanes import (
    LANE_ZEROS,
    LANES,
    Reductions,
    by_octets,
    by_whole_octets,
    flipped,
    line,
    put_octet,
    reduced,
    splat,
)


def _joiner(lanes: int) -> Callable[..., Any]:
    vector = ir.VectorType(I64, lanes)

    @intrinsic
    def join(typingctx, values, position, width, mask):
        """Return the bits of `mask` of values[position : position + lanes], int64, each `width` bits above the last.

        Scalar code is a third as fast: LLVM takes the loop apart before it looks for vectors.
        """

        def codegen(context, builder, signature, args):
            pointer = pointer_to(context, builder, signature.args[0], args[0], args[1])
            bits = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=8)
            shifts = builder.mul(splat(builder, args[2], lanes), ir.Constant(vector, list(range(lanes))))
            bits = builder.shl(builder.and_(bits, splat(builder, args[3], lanes)), shifts)
            return reduced(builder, "or", bits)

        return types.uint64(values, types.uint64, types.uint64, types.uint64), codegen

    return join


join4, join8 = _joiner(4), _joiner(8)


def _lanes(context: Any, builder: Any, array_type: Any, array: Any, position: Any, width: Any, loads: int) -> Any:
    """Return the 8 values of `width` bits from the byte at `position` on, with the bits above each.

    loads: the number of words that they are taken from. Offsets and shifts are the same for every group, and compilers
    keep them.
    """
    values = shifts = ir.Constant(OCTET, [0] * LANES)
    for k in range(LANES):
        bit = builder.mul(width, I64(k))
        if k % (LANES // loads) == 0:
            byte = builder.lshr(bit, I64(3))
            pointer = pointer_to(context, builder, array_type, array, builder.add(position, byte))
            word = builder.load(builder.bitcast(pointer, I64.as_pointer()), align=1)
        values = builder.insert_element(values, word, I32(k))
        shifts = builder.insert_element(shifts, builder.sub(bit, builder.shl(byte, I64(3))), I32(k))
    return builder.lshr(values, shifts)


def _spreader(loads: int) -> Callable[..., Any]:
    @intrinsic
    def spread(typingctx, data, position, number, width, mask, start, step, sign, out, to):
        def codegen(context, builder, signature, args):
            array, position, number, width, mask, start, step, sign, target, to = args
            masks, flips = splat(builder, mask), splat(builder, builder.ashr(sign, I64(63)))
            lines, rise = line(builder, start, step)
            cursor = cgutils.alloca_once_value(builder, position)

            def body(here):
                at = builder.load(cursor)
                values = builder.and_(_lanes(context, builder, signature.args[0], array, at, width, loads), masks)
                values = builder.add(flipped(builder, values, flips), builder.load(lines))
                put_octet(context, builder, signature.args[8], target, builder.add(to, here), values)
                builder.store(builder.add(builder.load(lines), rise), lines)
                builder.store(builder.add(at, width), cursor)

            by_whole_octets(builder, number, body)
            return context.get_dummy_value()

        u64, i64 = types.uint64, types.int64
        return types.void(data, i64, i64, u64, u64, i64, i64, i64, out, u64), codegen

    return spread


# Unpack `number` values of `width` bits from data[position] on: out[to + k] = start + k * step + sign * value k, sign
# 1 or -1. 8 bytes must lie from the beginning of each of the last 8 values on. The digit is the number of words that
# eight values are taken from: one up to 8 bits, two up to 14, four up to 28.
spread1, spread2, spread4, spread8 = map(_spreader, (1, 2, 4, 8))


def _summer(loads: int) -> Callable[..., Any]:
    @intrinsic
    def sum_lanes(typingctx, data, position, first, number, width, mask):
        def codegen(context, builder, signature, args):
            array, position, first, number, width, mask = args
            masks, firsts = splat(builder, mask), splat(builder, first)
            found, (numbers, rise) = Reductions(builder, *["add"] * 4), line(builder, I64(0), I64(1))
            cursor = cgutils.alloca_once_value(builder, position)

            def body(here, inside):
                at = builder.load(cursor)
                values = builder.and_(_lanes(context, builder, signature.args[0], array, at, width, loads), masks)
                marks = builder.zext(builder.icmp_unsigned("!=", values, LANE_ZEROS), OCTET)
                before = builder.icmp_signed("<", builder.load(numbers), firsts)
                for k, taken in enumerate((values, marks)):
                    found.take(k, taken, before)
                    found.take(k + 2, taken, inside)
                builder.store(builder.add(builder.load(numbers), rise), numbers)
                builder.store(builder.add(at, width), cursor)

            by_octets(builder, number, body)
            return context.make_tuple(builder, signature.return_type, found.results())

        u64, i64 = types.uint64, types.int64
        return types.UniTuple(i64, 4)(data, i64, i64, i64, u64, u64), codegen

    return sum_lanes


# Of the `number` values that `spread` would take, return sum and number of non-zeros of the first `first`, then of all.
sum1, sum2, sum4, sum8 = map(_summer, (1, 2, 4, 8))


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
