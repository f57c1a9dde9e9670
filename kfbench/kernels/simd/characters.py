"""Vectors of characters: which of them differ, and hex digits packed. Callers check bounds; nothing here does."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.intrinsics import I8, I16, I64, OCTET, looping, pointer_to
from kfbench.kernels.simd.lanes import reduced, splat

CHARACTERS = 64  # packed at a time


def _differ(size: int) -> Callable[..., Any]:
    vector = ir.VectorType(I8, size)

    @intrinsic
    def differ(typingctx, data, starts, first, stride, number, one, two, out):
        def codegen(context, builder, signature, args):
            array, starts, first, stride, number, *places, target = args

            def loaded(k):
                begin = builder.load(pointer_to(context, builder, signature.args[1], starts, k))
                found = []
                for place in places:
                    at = pointer_to(context, builder, signature.args[0], array, builder.add(begin, place))
                    found.append(builder.load(builder.bitcast(at, vector.as_pointer()), align=1))
                return found

            firsts, zeros = loaded(first), ir.Constant(vector, [0] * size)
            slots = [cgutils.alloca_once_value(builder, zeros) for _ in places]
            cursor, left = cgutils.alloca_once_value(builder, first), cgutils.alloca_once_value(builder, number)
            with looping(builder, lambda: builder.icmp_signed(">", builder.load(left), I64(1))):
                builder.store(builder.sub(builder.load(left), I64(1)), left)
                builder.store(builder.add(builder.load(cursor), stride), cursor)
                for slot, value, other in zip(slots, firsts, loaded(builder.load(cursor)), strict=True):
                    builder.store(builder.or_(builder.load(slot), builder.xor(value, other)), slot)
            for slot, place in zip(slots, places, strict=True):
                at = pointer_to(context, builder, signature.args[7], target, place)
                builder.store(builder.load(slot), builder.bitcast(at, vector.as_pointer()), align=1)
            return context.get_dummy_value()

        u64, i64 = types.uint64, types.int64
        return types.void(data, starts, u64, u64, i64, i64, i64, out), codegen

    return differ


# Fill `out` with the bits that differ between `number` items, every stride-th from `first` on, which begin at
# data[starts[item]]. 8, 16 or 32 bytes are compared from `one` and from `two` on, and written there in `out`.
differ8, differ16, differ32 = _differ(8), _differ(16), _differ(32)


@intrinsic
def pack_digits(typingctx, characters, number, out, at):
    """Write hex digits, two per byte, with zeros behind the last. Return whether all characters are hex digits.

    Reads and writes whole groups of CHARACTERS.
    """

    def codegen(context, builder, signature, args):
        array, number, target, at = args
        octets, pairs = ir.VectorType(I8, CHARACTERS), ir.VectorType(I16, CHARACTERS // 2)

        def all_of(value, kind=octets):
            return ir.Constant(kind, [value] * kind.count)

        strays = cgutils.alloca_once_value(builder, all_of(0))
        done = cgutils.alloca_once_value(builder, I64(0))
        with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
            here = builder.load(done)
            pointer = pointer_to(context, builder, signature.args[0], array, here)
            values = builder.load(builder.bitcast(pointer, octets.as_pointer()), align=1)
            left = builder.sub(number, here)
            left = builder.select(builder.icmp_signed("<", left, I64(CHARACTERS)), left, I64(CHARACTERS))
            wanted = splat(builder, builder.trunc(left, I8), CHARACTERS)
            inside = builder.icmp_unsigned("<", ir.Constant(octets, list(range(CHARACTERS))), wanted)
            values = builder.select(inside, values, all_of(ord("0")))
            digits, letters = (builder.sub(values, all_of(ord(first))) for first in "0a")
            is_digit = builder.icmp_unsigned("<", digits, all_of(10))
            is_some = builder.or_(is_digit, builder.icmp_unsigned("<", letters, all_of(6)))
            values = builder.select(is_digit, digits, builder.add(letters, all_of(10)))
            stray = builder.sext(builder.not_(is_some), octets)
            builder.store(builder.or_(builder.load(strays), stray), strays)
            values = builder.bitcast(values, pairs)
            values = builder.or_(builder.shl(values, all_of(4, pairs)), builder.lshr(values, all_of(8, pairs)))
            packed = builder.trunc(values, ir.VectorType(I8, CHARACTERS // 2))
            pointer = pointer_to(
                context, builder, signature.args[2], target, builder.add(at, builder.lshr(here, I64(1)))
            )
            builder.store(packed, builder.bitcast(pointer, packed.type.as_pointer()), align=1)
            builder.store(builder.add(here, I64(CHARACTERS)), done)
        found = reduced(builder, "or", builder.bitcast(builder.load(strays), OCTET))
        return builder.icmp_unsigned("==", found, I64(0))

    i64 = types.int64
    return types.boolean(characters, i64, out, i64), codegen


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
