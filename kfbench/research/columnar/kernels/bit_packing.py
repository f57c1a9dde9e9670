"""Pack and unpack bit-packed integers and hex digits, and compare characters, many at a time.

Callers must check bounds: these functions do not.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.emitting import (
    ARRAY,
    I8,
    I16,
    I32,
    I64,
    INT64X8,
    VOID,
    emitted,
    i64,
    looping,
    u64,
)
from kfbench.research.columnar.kernels.lanes import (
    LANE_ZEROS,
    LANES,
    Line,
    Reductions,
    by_eights,
    by_whole_eights,
    reduced,
    splat,
    store8,
)


def _joiner(lanes: int) -> Any:
    vector = ir.VectorType(I64, lanes)

    @emitted(u64, ARRAY, u64, u64, u64)
    def join(builder, values, position, width, mask):
        """Join int64s from values[position] on into one word: value k is masked and shifted left by k * width bits.

        Scalar code is a third as fast: LLVM takes the loop apart before it looks for vectors.
        """
        bits = values.load(position, vector, align=8)
        shifts = builder.mul(splat(builder, width, lanes), ir.Constant(vector, list(range(lanes))))
        bits = builder.shl(builder.and_(bits, splat(builder, mask, lanes)), shifts)
        return reduced(builder, "or", bits)

    return join


join4, join8 = _joiner(4), _joiner(8)


class _PackedCursor:
    """A cursor over bit-packed values. It emits LLVM IR that reads eight values at a time.

    Offsets and shifts are the same for each group of eight, so compilers keep them in registers.
    """

    def __init__(self, builder: Any, data: Any, position: Any, width: Any, mask: Any, loads: int) -> None:
        self.builder, self.data, self.width, self.loads = builder, data, width, loads
        self.masks, self.cursor = splat(builder, mask), cgutils.alloca_once_value(builder, position)

    def here(self) -> Any:
        """Return the next eight values as a vector. Eight values are extracted from `loads` 8-byte words."""
        builder, at = self.builder, self.builder.load(self.cursor)
        values = shifts = ir.Constant(INT64X8, [0] * LANES)
        for k in range(LANES):
            bit = builder.mul(self.width, I64(k))
            if k % (LANES // self.loads) == 0:
                byte = builder.lshr(bit, I64(3))
                word = self.data.load(builder.add(at, byte), I64)
            values = builder.insert_element(values, word, I32(k))
            shifts = builder.insert_element(shifts, builder.sub(bit, builder.shl(byte, I64(3))), I32(k))
        return builder.and_(builder.lshr(values, shifts), self.masks)

    def advance(self) -> None:
        """Move the cursor forward by eight values, which take `width` bytes."""
        self.builder.store(self.builder.add(self.builder.load(self.cursor), self.width), self.cursor)


def _spreader(loads: int) -> Any:
    @emitted(VOID, ARRAY, i64, i64, u64, u64, i64, i64, ARRAY, u64)
    def spread(builder, data, position, number, width, mask, start, sign, out, to):
        """Unpack values: out[to + k] = start + sign * value k.

        Args:
            data uint8[], position: the packed values; 8 bytes are read from the first byte of each value on
            number, width, mask: number of values, bits per value, a word with the lowest `width` bits set
            start, sign: int64 each; the sign is 1 or -1
            out int64[], to: output, written in whole groups of eight
        """
        packed = _PackedCursor(builder, data, position, width, mask, loads)
        # To multiply by -1, flip all bits and add 1, both by `flips`.
        flips, starts = splat(builder, builder.ashr(sign, I64(63))), splat(builder, start)

        def body(here):
            values = builder.sub(builder.xor(packed.here(), flips), flips)
            store8(out, builder.add(to, here), builder.add(values, starts))
            packed.advance()

        by_whole_eights(builder, number, body)

    return spread


# The digit in the name is the number of 8-byte words that are loaded for eight values: 1 for values of up to 8 bits,
# 2 up to 14 bits, 4 up to 28 bits, 8 above.
spread1, spread2, spread4, spread8 = map(_spreader, (1, 2, 4, 8))


def _summer(loads: int) -> Any:
    @emitted(types.UniTuple(i64, 4), ARRAY, i64, i64, i64, u64, u64)
    def sum_lanes(builder, data, position, first, number, width, mask):
        """Sum packed values and count those that are not 0: first over the first `first` values, then over all.

        Args:
            data, position, number, width, mask: as in `spread`
            first: number of values in the first two results
        """
        packed, firsts = _PackedCursor(builder, data, position, width, mask, loads), splat(builder, first)
        found, numbers = Reductions(builder, *["add"] * 4), Line(builder, I64(0), I64(1))

        def body(here, inside):
            values = packed.here()
            marks = builder.zext(builder.icmp_unsigned("!=", values, LANE_ZEROS), INT64X8)
            before = builder.icmp_signed("<", numbers.here(), firsts)
            for k, taken in enumerate((values, marks)):
                found.take(k, taken, before)
                found.take(k + 2, taken, inside)
            numbers.advance()
            packed.advance()

        by_eights(builder, number, body)
        return found.results()

    return sum_lanes


sum1, sum2, sum4, sum8 = map(_summer, (1, 2, 4, 8))


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
