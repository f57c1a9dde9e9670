"""The handful of machine operations that Numba has no name for, as LLVM IR. Nothing here checks a bound: callers do."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels._jit import COMPILED

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
OCTET = ir.VectorType(I64, 8)


def pointer_to(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [position])


def _loader(bits: int, result: Any, swap: bool) -> Callable[..., Any]:
    @intrinsic
    def load(typingctx, buffer, position):
        def codegen(context, builder, signature, args):
            pointer = pointer_to(context, builder, signature.args[0], args[0], args[1])
            value = builder.load(builder.bitcast(pointer, ir.IntType(bits).as_pointer()), align=1)
            return builder.bswap(value) if swap else value

        return result(buffer, types.int64), codegen

    return load


def _storer(bits: int, value_type: Any, swap: bool = True) -> Callable[..., Any]:
    @intrinsic
    def store(typingctx, buffer, position, value):
        def codegen(context, builder, signature, args):
            pointer = pointer_to(context, builder, signature.args[0], args[0], args[1])
            value = builder.bswap(args[2]) if swap and bits > 8 else args[2]
            builder.store(value, builder.bitcast(pointer, ir.IntType(bits).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(buffer, types.int64, value_type), codegen

    return store


load_le64 = _loader(64, types.uint64, swap=False)
get_i64 = _loader(64, types.int64, swap=True)
get_i32 = _loader(32, types.int32, swap=True)
get_u32 = _loader(32, types.uint32, swap=True)
get_i16 = _loader(16, types.int16, swap=True)
get_i8 = _loader(8, types.int8, swap=False)
get_u8 = _loader(8, types.uint8, swap=False)
put_le64 = _storer(64, types.uint64, swap=False)
put_i64 = _storer(64, types.int64)
put_i32 = _storer(32, types.int32)
put_i16 = _storer(16, types.int16)
put_u8 = _storer(8, types.uint8)


@intrinsic
def move(typingctx, target, at, source, start, count):
    """memcpy: 74 GB/s at 1 KiB where a slice assignment reaches 4.3."""

    def codegen(context, builder, signature, args):
        to = pointer_to(context, builder, signature.args[0], args[0], args[1])
        origin = pointer_to(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, to, origin, args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), codegen


@intrinsic
def move32(typingctx, target, at, source, start):
    """One unconditional 32-byte move: both sides must have 32 bytes from there on."""

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(I64, 4).as_pointer()
        to = pointer_to(context, builder, signature.args[0], args[0], args[1])
        origin = pointer_to(context, builder, signature.args[2], args[2], args[3])
        value = builder.load(builder.bitcast(origin, vector), align=1)
        builder.store(value, builder.bitcast(to, vector), align=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), codegen


LANES = 8  # values a vector holds


def _lanes(
    context: Any, builder: Any, array_type: Any, array: Any, position: Any, bit: Any, width: Any, loads: int = LANES
) -> Any:
    """The 8 values of `width` bits from a bit of the byte at `position` on, with what lies above each.

    loads: how many words they are taken from, 8 for up to 56 bits. Offsets and shifts do not change from one whole
    group to the next, and compilers keep them.
    """
    values = shifts = ir.Constant(OCTET, [0] * LANES)
    for k in range(LANES):
        here = builder.add(bit, builder.mul(width, I64(k)))
        if k % (LANES // loads) == 0:
            byte = builder.lshr(here, I64(3))
            pointer = pointer_to(context, builder, array_type, array, builder.add(position, byte))
            word = builder.load(builder.bitcast(pointer, I64.as_pointer()), align=1)
        values = builder.insert_element(values, word, I32(k))
        shifts = builder.insert_element(shifts, builder.sub(here, builder.shl(byte, I64(3))), I32(k))
    return builder.lshr(values, shifts)


def _splat(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(OCTET, ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


def _spreader(loads: int) -> Callable[..., Any]:
    @intrinsic
    def spread(typingctx, data, position, bit, width, mask, base, out, to):
        def codegen(context, builder, signature, args):
            array, at, bit, width, mask, base, target, first = args
            values = _lanes(context, builder, signature.args[0], array, at, bit, width, loads)
            values = builder.add(builder.and_(values, _splat(builder, mask)), _splat(builder, base))
            pointer = builder.gep(context.make_array(signature.args[6])(context, builder, target).data, [first])
            builder.store(values, builder.bitcast(pointer, OCTET.as_pointer()), align=8)
            return context.get_dummy_value()

        u64, i64 = types.uint64, types.int64
        return types.void(data, i64, u64, u64, u64, i64, out, u64), codegen

    return spread


# out[to:to + 8] = base + the 8 values of `width` bits from a bit (0 to 7) of data[position] on, where 8 bytes from the
# beginning of each must lie. Up to 8 bits all are in one word, which is twice as fast.
spread_narrow, spread = _spreader(1), _spreader(LANES)


def _summer(loads: int) -> Callable[..., Any]:
    @intrinsic
    def sum_lanes(typingctx, data, position, number, width, mask):
        def codegen(context, builder, signature, args):
            array, at, number, width, mask = args
            zeros, ones = (ir.Constant(OCTET, [value] * LANES) for value in (0, 1))
            total, nonzero = (cgutils.alloca_once_value(builder, zeros) for _ in range(2))
            cursor, done = cgutils.alloca_once_value(builder, at), cgutils.alloca_once_value(builder, I64(0))
            masks, wanted = _splat(builder, mask), _splat(builder, number)
            with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
                here = builder.load(done)
                values = _lanes(context, builder, signature.args[0], array, builder.load(cursor), I64(0), width, loads)
                numbers = builder.add(_splat(builder, here), ir.Constant(OCTET, list(range(LANES))))
                inside = builder.icmp_signed("<", numbers, wanted)
                values = builder.select(inside, builder.and_(values, masks), zeros)
                builder.store(builder.add(builder.load(total), values), total)
                marks = builder.select(builder.icmp_unsigned("!=", values, zeros), ones, zeros)
                builder.store(builder.add(builder.load(nonzero), marks), nonzero)
                builder.store(builder.add(here, I64(LANES)), done)
                builder.store(builder.add(builder.load(cursor), width), cursor)
            sums = []
            for vector in (builder.load(total), builder.load(nonzero)):
                sum_ = builder.extract_element(vector, I32(0))
                for k in range(1, LANES):
                    sum_ = builder.add(sum_, builder.extract_element(vector, I32(k)))
                sums.append(sum_)
            return context.make_tuple(builder, signature.return_type, sums)

        u64, i64 = types.uint64, types.int64
        return types.UniTuple(i64, 2)(data, i64, i64, u64, u64), codegen

    return sum_lanes


# (sum, how many are not 0) of the first `number` values of `width` bits from data[position] on, where 8 bytes from the
# beginning of each value of the last group of 8 must lie.
sum_narrow, sum_lanes = _summer(1), _summer(LANES)


def _joiner(lanes: int) -> Callable[..., Any]:
    vector = ir.VectorType(I64, lanes)

    @intrinsic
    def join(typingctx, values, position, width, mask):
        """The low bits, those of `mask`, of the int64s values[position : position + lanes], each `width` bits above the
        one before. In scalar code it is a third as fast: LLVM takes the loop apart before it looks for vectors."""

        def codegen(context, builder, signature, args):
            def in_all_lanes(value):
                lane = builder.insert_element(ir.Constant(vector, ir.Undefined), value, I32(0))
                return builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))

            pointer = pointer_to(context, builder, signature.args[0], args[0], args[1])
            bits = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=8)
            shifts = builder.mul(in_all_lanes(args[2]), ir.Constant(vector, list(range(lanes))))
            bits = builder.shl(builder.and_(bits, in_all_lanes(args[3])), shifts)
            kind = ir.FunctionType(I64, [vector])
            reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.or.v{lanes}i64")
            return builder.call(reduce, [bits])

        return types.uint64(values, types.uint64, types.uint64, types.uint64), codegen

    return join


join4, join8 = _joiner(4), _joiner(8)


@intrinsic
def leading_zeros(typingctx, value):
    """Of a uint64 that is not zero."""

    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(I1, 1))

    return types.int64(types.uint64), codegen


class looping:
    """A `while` in IR, as a context manager."""

    def __init__(self, builder: Any, condition: Callable[[], Any]) -> None:
        self.builder, self.condition = builder, condition

    def __enter__(self) -> None:
        self.test, body, self.end = (self.builder.append_basic_block(name) for name in ("while", "do", "done"))
        self.builder.branch(self.test)
        self.builder.position_at_end(self.test)
        self.builder.cbranch(self.condition(), body, self.end)
        self.builder.position_at_end(body)

    def __exit__(self, *_: object) -> None:
        self.builder.branch(self.test)
        self.builder.position_at_end(self.end)


if not COMPILED:
    from kfbench.kernels._twins import *  # noqa: F403
