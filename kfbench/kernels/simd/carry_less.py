"""Instructions for checksums, as LLVM IR: SSE4.2's CRC steps and carry-less multiplication.

Nothing here checks a bound, and nothing has a twin. Where these instructions are missing, tables take their place.
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
    """Return the checksum after 8 more bytes (SSE4.2)."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(I64, [I64, I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.64.64"), args)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def crc32c_byte(typingctx, crc, byte):
    """Return the checksum after 1 more byte (SSE4.2)."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(I32, [I32, I8])
        step = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse42.crc32.32.8")
        return builder.zext(builder.call(step, [builder.trunc(args[0], I32), args[1]]), I64)

    return types.uint64(types.uint64, types.uint8), codegen


def _multiply(builder: Any, a: Any, b: Any, which: int) -> Any:
    """Return the carry-less products of each lane's low (which=0) or high (0x11) words."""
    kind = ir.FunctionType(a.type, [a.type, a.type, I8])
    multiplier = cgutils.get_or_insert_function(builder.module, kind, MULTIPLIERS[a.type])
    return builder.call(multiplier, [a, b, I8(which)])


def _forward(builder: Any, lanes: Any, by: Any, data: Any) -> Any:
    """Return the lanes moved forward by the constants `by`, with the data there added."""
    low, high = (_multiply(builder, lanes, by, which) for which in (0, 0x11))
    return builder.xor(builder.xor(low, high), data)


@intrinsic
def carryless_low(typingctx, a, b):
    """Return the low 64 bits of the carry-less product (PCLMUL)."""

    def codegen(context, builder, signature, args):
        zero = ir.Constant(PAIR, [0, 0])
        pair = [builder.insert_element(zero, value, I32(0)) for value in args]
        return builder.extract_element(_multiply(builder, *pair, 0), I32(0))

    return types.uint64(types.uint64, types.uint64), codegen


def _pair(builder: Any, first: Any, second: Any) -> Any:
    """Return a vector of two int64s."""
    return builder.insert_element(builder.insert_element(ir.Constant(PAIR, [0, 0]), first, I32(0)), second, I32(1))


class _Folding:
    """Loops that fold blocks of a buffer, by functions that emit IR.

    has_left(at, n): whether n blocks are left from `at` on. load(at, k): block k from `at` on. forward(value, n, data):
    the value moved forward by n blocks, with data added.
    """

    def __init__(
        self,
        builder: Any,
        block_bytes: int,
        has_left: Callable[[Any, int], Any],
        load: Callable[[Any, int], Any],
        forward: Callable[[Any, int, Any], Any],
    ) -> None:
        self.builder, self.block_bytes = builder, block_bytes
        self.has_left, self.load, self.forward = has_left, load, forward

    def by_fours(self, slots: list[Any], cursor: Any) -> Any:
        """Fold into four slots side by side while four blocks are left. Return the four folded into one."""
        builder = self.builder
        with looping(builder, lambda: self.has_left(builder.load(cursor), 4)):
            at = builder.load(cursor)
            for k, slot in enumerate(slots):
                builder.store(self.forward(builder.load(slot), 4, self.load(at, k)), slot)
            builder.store(builder.add(at, I64(4 * self.block_bytes)), cursor)
        folded = builder.load(slots[3])
        for k in range(3):
            folded = self.forward(builder.load(slots[k]), 3 - k, folded)
        return folded

    def one_by_one(self, slot: Any, cursor: Any) -> None:
        """Fold into one slot while a block is left."""
        builder = self.builder
        with looping(builder, lambda: self.has_left(builder.load(cursor), 1)):
            at = builder.load(cursor)
            builder.store(self.forward(builder.load(slot), 1, self.load(at, 0)), slot)
            builder.store(builder.add(at, I64(self.block_bytes)), cursor)


def fold_lanes(constants: dict[int, tuple[int, int]]) -> Callable[..., Any]:
    """Return an intrinsic that folds a lane over buffer[position:end], whole blocks of 16, by carry-less multiply.

    constants[bits] move a lane of 16 bytes forward by that many bits (128, 256, 384, 512). The intrinsic takes the
    words of the lane, low and high, as they lie in memory, and a spill that it adds to the first word of the buffer. It
    returns the words at the end. From 112 bytes on four lanes run side by side in vector registers.
    """
    forward_by = {bits: ir.Constant(PAIR, pair) for bits, pair in constants.items()}

    @intrinsic
    def fold(typingctx, buffer, position, end, low, high, spill):
        def codegen(context, builder, signature, args):
            array, start, stop, low, high, spill = args

            def load(at: Any, k: int) -> Any:
                pointer = pointer_to(context, builder, signature.args[0], array, builder.add(at, I64(16 * k)))
                return builder.load(builder.bitcast(pointer, PAIR.as_pointer()), align=1)

            def load_with_spill(at: Any, k: int) -> Any:
                data = builder.xor(load(at, k), builder.load(spilt))
                builder.store(ir.Constant(PAIR, [0, 0]), spilt)
                return data

            def forward(lane: Any, blocks: int, data: Any) -> Any:
                return _forward(builder, lane, forward_by[128 * blocks], data)

            def has_left(at: Any, blocks: int) -> Any:
                return builder.icmp_signed("<=", builder.add(at, I64(16 * blocks)), stop)

            cursor = cgutils.alloca_once_value(builder, start)
            lane = cgutils.alloca_once_value(builder, _pair(builder, low, high))
            spilt = cgutils.alloca_once_value(builder, _pair(builder, spill, I64(0)))  # until it is added, once
            with builder.if_then(has_left(start, 7)):
                lanes = [lane, *(cgutils.alloca_once(builder, PAIR) for _ in range(3))]
                builder.store(load_with_spill(start, 0), lanes[1])
                for k in (1, 2):
                    builder.store(load(start, k), lanes[k + 1])
                builder.store(builder.add(start, I64(48)), cursor)
                builder.store(_Folding(builder, 16, has_left, load, forward).by_fours(lanes, cursor), lane)
            _Folding(builder, 16, has_left, load_with_spill, forward).one_by_one(lane, cursor)
            whole = builder.load(lane)
            words = [builder.extract_element(whole, I32(k)) for k in (0, 1)]
            return context.make_tuple(builder, signature.return_type, words)

        u64, i64 = types.uint64, types.int64
        return types.UniTuple(u64, 2)(buffer, i64, i64, u64, u64, u64), codegen

    return fold


def fold_wide(constants: Callable[[int], tuple[int, int]], copies: bool) -> Callable[..., Any]:
    """Return an intrinsic that folds data[start : start + size], VECTOR_BYTES or more, in whole vectors of AVX-512.

    constants(bits) move a lane forward by that many bits. The intrinsic returns the words of a lane, low and high, and
    the number of bytes that are done. The lane has the checksum, started from 0, that all the vectors have started from
    `crc`. copies: each vector is also stored to target[at:], while a register has it. From 512 bytes on four vectors
    run side by side.
    """

    def codegen(context, builder, signature, args):
        start, size, crc = args[1:4]
        zeros = ir.Constant(OCTET, [0] * 8)

        def pointer(number: int, position: Any) -> Any:
            where = pointer_to(context, builder, signature.args[number], args[number], position)
            return builder.bitcast(where, OCTET.as_pointer())

        def load(done: Any, k: int) -> Any:
            here = builder.add(done, I64(VECTOR_BYTES * k))
            vector = builder.load(pointer(0, builder.add(start, here)), align=1)
            if copies:
                builder.store(vector, pointer(4, builder.add(args[5], here)), align=1)
            return vector

        def forward(vector: Any, vectors: int, data: Any) -> Any:
            by = ir.Constant(OCTET, 4 * constants(8 * VECTOR_BYTES * vectors))
            return _forward(builder, vector, by, data)

        def has_left(done: Any, vectors: int) -> Any:
            return builder.icmp_signed("<=", builder.add(done, I64(VECTOR_BYTES * vectors)), size)

        folding = _Folding(builder, VECTOR_BYTES, has_left, load, forward)
        first = builder.xor(load(I64(0), 0), builder.insert_element(zeros, crc, I32(0)))
        last = cgutils.alloca_once_value(builder, first)
        cursor = cgutils.alloca_once_value(builder, I64(VECTOR_BYTES))
        with builder.if_then(has_left(I64(0), 8)):
            vectors = [cgutils.alloca_once_value(builder, first)]
            vectors += [cgutils.alloca_once_value(builder, load(I64(0), k)) for k in (1, 2, 3)]
            builder.store(I64(4 * VECTOR_BYTES), cursor)
            builder.store(folding.by_fours(vectors, cursor), last)
        folding.one_by_one(last, cursor)
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
