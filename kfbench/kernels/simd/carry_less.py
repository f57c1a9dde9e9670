"""What checksums ask of the machine: SSE4.2's steps and carry-less multiplication, as LLVM IR.

Nothing here checks a bound, and nothing has a twin: where these instructions are missing, tables take their place.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels.simd.intrinsics import I8, I32, I64, OCTET, looping, pointer_to

PAIR = ir.VectorType(I64, 2)
MULTIPLIERS = {PAIR: "llvm.x86.pclmulqdq", OCTET: "llvm.x86.pclmulqdq.512"}
VECTOR_BYTES = 64  # bytes of a vector of AVX-512: four lanes


@intrinsic
def crc32c_word(typingctx, crc, word):
    """SSE4.2: one step over 8 bytes."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(I64, [I64, I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64"), args)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def crc32c_byte(typingctx, crc, byte):
    """SSE4.2: one step over 1 byte."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(I32, [I32, I8])
        step = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.32.8")
        return builder.zext(builder.call(step, [builder.trunc(args[0], I32), args[1]]), I64)

    return types.uint64(types.uint64, types.uint8), codegen


def _multiply(builder: Any, a: Any, b: Any, which: int) -> Any:
    """Of each lane its low (0) or high (0x11) words."""
    kind = ir.FunctionType(a.type, [a.type, a.type, I8])
    multiplier = cgutils.get_or_insert_function(builder.module, kind, MULTIPLIERS[a.type])
    return builder.call(multiplier, [a, b, I8(which)])


def _forward(builder: Any, lanes: Any, by: Any, data: Any) -> Any:
    """Lanes moved forward over what `by` stands for, and the data that is there."""
    low, high = (_multiply(builder, lanes, by, which) for which in (0, 0x11))
    return builder.xor(builder.xor(low, high), data)


@intrinsic
def carryless_low(typingctx, a, b):
    """PCLMUL: the low 64 bits of the carry-less product."""

    def codegen(context, builder, signature, args):
        zero = ir.Constant(PAIR, [0, 0])
        pair = [builder.insert_element(zero, value, I32(0)) for value in args]
        return builder.extract_element(_multiply(builder, *pair, 0), I32(0))

    return types.uint64(types.uint64, types.uint64), codegen


def fold_lanes(constants: dict[int, tuple[int, int]]) -> Callable[..., Any]:
    """An intrinsic that folds a 16-byte lane over buffer[position:end], whole blocks of 16, by carry-less multiply.

    constants[bits] move a lane forward by that many bits (128, 256, 384, 512). The lane is given as (low, high), its
    words as they lie in memory; `spill` is added to the first word of the buffer. Gives the lane at the end. From 112
    bytes on four lanes run side by side in vector registers.
    """
    forward_by = {bits: ir.Constant(PAIR, pair) for bits, pair in constants.items()}

    @intrinsic
    def fold(typingctx, buffer, position, end, low, high, spill):
        def codegen(context, builder, signature, args):
            array, start, stop, *words = args

            def load(at: Any) -> Any:
                pointer = pointer_to(context, builder, signature.args[0], array, at)
                return builder.load(builder.bitcast(pointer, PAIR.as_pointer()), align=1)

            def forward(lane: Any, bits: int, data: Any) -> Any:
                return _forward(builder, lane, forward_by[bits], data)

            def left(at: Any, size: int) -> Any:
                return builder.icmp_signed("<=", builder.add(at, I64(size)), stop)

            def pair(first: Any, second: Any) -> Any:
                return builder.insert_element(
                    builder.insert_element(ir.Constant(PAIR, [0, 0]), first, I32(0)), second, I32(1)
                )

            cursor = cgutils.alloca_once_value(builder, start)
            lane = cgutils.alloca_once_value(builder, pair(words[0], words[1]))
            rest = cgutils.alloca_once_value(
                builder, pair(words[2], I64(0))
            )  # what is still to be added: the spill, once
            with builder.if_then(left(start, 112)):
                lanes = [lane, *(cgutils.alloca_once(builder, PAIR) for _ in range(3))]
                for k in (1, 2, 3):
                    data = load(builder.add(start, I64(16 * (k - 1))))
                    builder.store(builder.xor(data, builder.load(rest)) if k == 1 else data, lanes[k])
                builder.store(ir.Constant(PAIR, [0, 0]), rest)
                builder.store(builder.add(start, I64(48)), cursor)
                with looping(builder, lambda: left(builder.load(cursor), 64)):
                    at = builder.load(cursor)
                    for k in range(4):
                        data = load(builder.add(at, I64(16 * k)))
                        builder.store(forward(builder.load(lanes[k]), 512, data), lanes[k])
                    builder.store(builder.add(at, I64(64)), cursor)
                sum_ = builder.load(lanes[3])
                for k in range(3):
                    sum_ = forward(builder.load(lanes[k]), 384 - 128 * k, sum_)
                builder.store(sum_, lane)
            with looping(builder, lambda: left(builder.load(cursor), 16)):
                at = builder.load(cursor)
                data = builder.xor(load(at), builder.load(rest))
                builder.store(forward(builder.load(lane), 128, data), lane)
                builder.store(ir.Constant(PAIR, [0, 0]), rest)
                builder.store(builder.add(at, I64(16)), cursor)
            whole = builder.load(lane)
            return context.make_tuple(
                builder, signature.return_type, [builder.extract_element(whole, I32(k)) for k in (0, 1)]
            )

        result = types.UniTuple(types.uint64, 2)
        return result(buffer, types.int64, types.int64, types.uint64, types.uint64, types.uint64), codegen

    return fold


def fold_wide(constants: Callable[[int], tuple[int, int]], copies: bool) -> Callable[..., Any]:
    """An intrinsic that folds data[start : start + size], VECTOR_BYTES or more, in whole vectors of AVX-512.

    constants(bits) move a lane forward by that many bits. Gives (low, high, bytes that are done): the lane that has the
    same checksum, started from 0, as all the vectors have started from `crc`. copies: each vector is stored to
    target[at:], too, while a register has it. From 512 bytes on four vectors run side by side.
    """

    def codegen(context, builder, signature, args):
        start, size, crc = args[1:4]
        zeros = ir.Constant(OCTET, [0] * 8)

        def pointer(number: int, position: Any) -> Any:
            where = pointer_to(context, builder, signature.args[number], args[number], position)
            return builder.bitcast(where, OCTET.as_pointer())

        def taken(done: Any, k: int = 0) -> Any:
            here = builder.add(done, I64(VECTOR_BYTES * k))
            vector = builder.load(pointer(0, builder.add(start, here)), align=1)
            if copies:
                builder.store(vector, pointer(4, builder.add(args[5], here)), align=1)
            return vector

        def forward(vector: Any, vectors: int, data: Any) -> Any:
            by = ir.Constant(OCTET, 4 * constants(8 * VECTOR_BYTES * vectors))
            return _forward(builder, builder.load(vector), by, data)

        def left(done: Any, vectors: int) -> Any:
            return builder.icmp_signed("<=", builder.add(done, I64(VECTOR_BYTES * vectors)), size)

        first = builder.xor(taken(I64(0)), builder.insert_element(zeros, crc, I32(0)))
        last = cgutils.alloca_once_value(builder, first)
        cursor = cgutils.alloca_once_value(builder, I64(VECTOR_BYTES))
        with builder.if_then(left(I64(0), 8)):
            vectors = [cgutils.alloca_once_value(builder, first)]
            vectors += [cgutils.alloca_once_value(builder, taken(I64(0), k)) for k in (1, 2, 3)]
            builder.store(I64(4 * VECTOR_BYTES), cursor)
            with looping(builder, lambda: left(builder.load(cursor), 4)):
                done = builder.load(cursor)
                for k, vector in enumerate(vectors):
                    builder.store(forward(vector, 4, taken(done, k)), vector)
                builder.store(builder.add(done, I64(4 * VECTOR_BYTES)), cursor)
            sum_ = builder.load(vectors[3])
            for k in range(3):
                sum_ = forward(vectors[k], 3 - k, sum_)
            builder.store(sum_, last)
        with looping(builder, lambda: left(builder.load(cursor), 1)):
            done = builder.load(cursor)
            builder.store(forward(last, 1, taken(done)), last)
            builder.store(builder.add(done, I64(VECTOR_BYTES)), cursor)
        lanes = builder.load(last)
        to_the_fourth = ir.Constant(OCTET, [*constants(384), *constants(256), *constants(128), 0, 0])
        moved = _forward(builder, lanes, to_the_fourth, zeros)
        words = [builder.extract_element(lanes, I32(k)) for k in (6, 7)]
        for k in range(6):
            words[k % 2] = builder.xor(words[k % 2], builder.extract_element(moved, I32(k)))
        return context.make_tuple(builder, signature.return_type, [*words, builder.load(cursor)])

    u64, i64 = types.uint64, types.int64
    result = types.Tuple((u64, u64, i64))

    @intrinsic
    def fold(typingctx, data, start, size, crc):
        return result(data, i64, i64, u64), codegen

    @intrinsic
    def fold_copy(typingctx, data, start, size, crc, target, at):
        return result(data, i64, i64, u64, target, i64), codegen

    return fold_copy if copies else fold
