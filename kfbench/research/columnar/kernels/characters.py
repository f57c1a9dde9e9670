"""Compare characters and pack hex digits, many at a time. Callers must check bounds: these functions do not."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.emitting import ARRAY, I8, I16, I64, INT64X8, VOID, emitted, i64, looping, u64
from kfbench.research.columnar.kernels.lanes import reduced, splat

CHARACTERS = 64  # number of hex digits that are packed at a time


def _differ(size: int) -> Any:
    vector = ir.VectorType(I8, size)

    @emitted(VOID, ARRAY, ARRAY, u64, u64, i64, i64, i64, ARRAY)
    def differ(builder, data, starts, first, stride, number, one, two, out):
        """Write the bits that differ between items, at two places of `size` bytes each.

        Args:
            data uint8[], starts int64[]: item i begins at data[starts[i]]
            first, stride, number: the items are every `stride`-th of `starts` from `first` on
            one, two: offsets of the places from the begin of an item, and in `out`
            out uint8[]: output
        """
        places = one, two

        def loaded(k):
            begin = starts.load(k, I64, align=8)
            return [data.load(builder.add(begin, place), vector) for place in places]

        firsts, zeros = loaded(first), ir.Constant(vector, [0] * size)
        slots = [cgutils.alloca_once_value(builder, zeros) for _ in places]
        cursor, left = cgutils.alloca_once_value(builder, first), cgutils.alloca_once_value(builder, number)
        with looping(builder, lambda: builder.icmp_signed(">", builder.load(left), I64(1))):
            builder.store(builder.sub(builder.load(left), I64(1)), left)
            builder.store(builder.add(builder.load(cursor), stride), cursor)
            for slot, value, other in zip(slots, firsts, loaded(builder.load(cursor)), strict=True):
                builder.store(builder.or_(builder.load(slot), builder.xor(value, other)), slot)
        for slot, place in zip(slots, places, strict=True):
            out.store(place, builder.load(slot))

    return differ


differ8, differ16, differ32 = map(_differ, (8, 16, 32))


@emitted(types.boolean, ARRAY, i64, ARRAY, i64)
def pack_digits(builder, characters, number, out, at):
    """Pack `number` hex digit characters, two per byte. After an odd number, the last half byte is 0.

    Return whether all characters are hex digits. Characters are read and written in whole groups of CHARACTERS.
    """
    octets, pairs = ir.VectorType(I8, CHARACTERS), ir.VectorType(I16, CHARACTERS // 2)

    def all_of(value, kind=octets):
        return ir.Constant(kind, [value] * kind.count)

    strays = cgutils.alloca_once_value(builder, all_of(0))
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
        here = builder.load(done)
        values = characters.load(here, octets)
        left = builder.sub(number, here)
        left = builder.select(builder.icmp_signed("<", left, I64(CHARACTERS)), left, I64(CHARACTERS))
        wanted = splat(builder, builder.trunc(left, I8), CHARACTERS)
        inside = builder.icmp_unsigned("<", ir.Constant(octets, list(range(CHARACTERS))), wanted)
        values = builder.select(inside, values, all_of(ord("0")))
        digits, letters = (builder.sub(values, all_of(ord(first))) for first in "0a")
        is_digit = builder.icmp_unsigned("<", digits, all_of(10))
        is_hex = builder.or_(is_digit, builder.icmp_unsigned("<", letters, all_of(6)))
        values = builder.select(is_digit, digits, builder.add(letters, all_of(10)))
        stray = builder.sext(builder.not_(is_hex), octets)
        builder.store(builder.or_(builder.load(strays), stray), strays)
        values = builder.bitcast(values, pairs)
        values = builder.or_(builder.shl(values, all_of(4, pairs)), builder.lshr(values, all_of(8, pairs)))
        packed = builder.trunc(values, ir.VectorType(I8, CHARACTERS // 2))
        out.store(builder.add(at, builder.lshr(here, I64(1))), packed)
        builder.store(builder.add(here, I64(CHARACTERS)), done)
    found = reduced(builder, "or", builder.bitcast(builder.load(strays), INT64X8))
    return builder.icmp_unsigned("==", found, I64(0))


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
