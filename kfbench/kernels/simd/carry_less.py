"""CPU instructions for checksums: SSE4.2's CRC steps and carry-less multiplication.

These functions check no bounds and have no portable version. Hosts without these instructions use tables (`wire.crc`).

A lane is 16 bytes, two 8-byte words. To fold a lane is to multiply it so that it can be added to bytes further on,
without a change of the checksum. Constants for a number of bits move a lane forward by that many bits.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kfbench.kernels.simd.emitting import ARRAY, I8, I32, I64, INT64X8, call, emitted, i64, looping, u64

PAIR = ir.VectorType(I64, 2)
MULTIPLIERS = {PAIR: "llvm.x86.pclmulqdq", INT64X8: "llvm.x86.pclmulqdq.512"}
VECTOR_BYTES = 64  # bytes in a vector of AVX-512: four lanes


@emitted(u64, u64, u64)
def crc32c_word(builder, crc, word):
    """Add 8 bytes to the CRC-32C `crc` (SSE4.2). Return the new checksum."""
    return call(builder, "llvm.x86.sse42.crc32.64.64", I64, crc, word)


@emitted(u64, u64, types.uint8)
def crc32c_byte(builder, crc, byte):
    """Add one byte to the CRC-32C `crc` (SSE4.2). Return the new checksum."""
    return builder.zext(call(builder, "llvm.x86.sse42.crc32.32.8", I32, builder.trunc(crc, I32), byte), I64)


def _multiply(builder: Any, a: Any, b: Any, which: int) -> Any:
    """Return the carry-less products of the low (which=0) or high (which=0x11) words of each lane."""
    return call(builder, MULTIPLIERS[a.type], a.type, a, b, I8(which))


def _forward(builder: Any, lanes: Any, constants: Any, data: Any) -> Any:
    """Move lanes forward by the constants and add `data` (xor). Return the new lanes."""
    low, high = (_multiply(builder, lanes, constants, which) for which in (0, 0x11))
    return builder.xor(builder.xor(low, high), data)


@emitted(u64, u64, u64)
def carryless_low(builder, a, b):
    """Return the low 64 bits of the carry-less product (PCLMUL)."""
    zero = ir.Constant(PAIR, [0, 0])
    pair = [builder.insert_element(zero, value, I32(0)) for value in (a, b)]
    return builder.extract_element(_multiply(builder, *pair, 0), I32(0))


def _pair(builder: Any, first: Any, second: Any) -> Any:
    """Return a vector of two int64s."""
    return builder.insert_element(builder.insert_element(ir.Constant(PAIR, [0, 0]), first, I32(0)), second, I32(1))


class _Folding:
    """Loops that fold the blocks of a buffer into one value, built from functions that emit LLVM IR.

    has_left(at, n): whether n blocks are left from `at` on
    load(at, k): block k from `at` on
    forward(value, n, data): the value moved forward by n blocks, with data added
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
        """Fold four blocks at a time into four variables while four blocks are left. Return them folded into one."""
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
        """Fold one block at a time into the variable `slot` while a block is left."""
        builder = self.builder
        with looping(builder, lambda: self.has_left(builder.load(cursor), 1)):
            at = builder.load(cursor)
            builder.store(self.forward(builder.load(slot), 1, self.load(at, 0)), slot)
            builder.store(builder.add(at, I64(self.block_bytes)), cursor)


def fold_lanes(constants: dict[int, tuple[int, int]]) -> Any:
    """Build the intrinsic `fold`. constants: two multipliers each for moves by 128, 256, 384 and 512 bits."""
    forward_by = {bits: ir.Constant(PAIR, pair) for bits, pair in constants.items()}

    @emitted(types.UniTuple(u64, 2), ARRAY, i64, i64, u64, u64, u64)
    def fold(builder, buffer, position, end, low, high, spill):
        """Fold a lane over buffer[position:end], whole blocks of 16 bytes. Return its two words at the end.

        From 112 bytes on, four lanes run in parallel in vector registers.

        Args:
            buffer uint8[], position, end: the blocks
            low, high: the two 8-byte words of the lane, in memory order
            spill: a word that is added (xor) to the first word of the buffer
        """

        def load(at: Any, k: int) -> Any:
            return buffer.load(builder.add(at, I64(16 * k)), PAIR)

        def load_with_spill(at: Any, k: int) -> Any:
            data = builder.xor(load(at, k), builder.load(spilt))
            builder.store(ir.Constant(PAIR, [0, 0]), spilt)
            return data

        def forward(lane: Any, blocks: int, data: Any) -> Any:
            return _forward(builder, lane, forward_by[128 * blocks], data)

        def has_left(at: Any, blocks: int) -> Any:
            return builder.icmp_signed("<=", builder.add(at, I64(16 * blocks)), end)

        cursor = cgutils.alloca_once_value(builder, position)
        lane = cgutils.alloca_once_value(builder, _pair(builder, low, high))
        spilt = cgutils.alloca_once_value(builder, _pair(builder, spill, I64(0)))  # set to 0 after it is added
        with builder.if_then(has_left(position, 7)):
            lanes = [lane, *(cgutils.alloca_once(builder, PAIR) for _ in range(3))]
            builder.store(load_with_spill(position, 0), lanes[1])
            for k in (1, 2):
                builder.store(load(position, k), lanes[k + 1])
            builder.store(builder.add(position, I64(48)), cursor)
            builder.store(_Folding(builder, 16, has_left, load, forward).by_fours(lanes, cursor), lane)
        _Folding(builder, 16, has_left, load_with_spill, forward).one_by_one(lane, cursor)
        whole = builder.load(lane)
        return [builder.extract_element(whole, I32(k)) for k in (0, 1)]

    return fold


def _emit_wide_fold(builder: Any, constants: Callable[[int], tuple[int, int]], data: Any, start: Any, size: Any,
                    crc: Any, target: Any, at: Any) -> list[Any]:  # fmt: skip
    """Emit the loops of `fold_wide` as LLVM IR. target: the array for a copy of the data, or None."""
    zeros = ir.Constant(INT64X8, [0] * 8)

    def load(done: Any, k: int) -> Any:
        here = builder.add(done, I64(VECTOR_BYTES * k))
        vector = data.load(builder.add(start, here), INT64X8)
        if target is not None:
            target.store(builder.add(at, here), vector)
        return vector

    def forward(vector: Any, vectors: int, added: Any) -> Any:
        return _forward(builder, vector, ir.Constant(INT64X8, 4 * constants(8 * VECTOR_BYTES * vectors)), added)

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
    to_the_fourth = ir.Constant(INT64X8, [*constants(384), *constants(256), *constants(128), 0, 0])
    moved = _forward(builder, lanes, to_the_fourth, zeros)
    words = [builder.extract_element(lanes, I32(k)) for k in (6, 7)]
    for k in range(6):
        words[k % 2] = builder.xor(words[k % 2], builder.extract_element(moved, I32(k)))
    return [*words, builder.load(cursor)]


def fold_wide(constants: Callable[[int], tuple[int, int]], copies: bool) -> Any:
    """Return an intrinsic that folds data[start : start + size], at least VECTOR_BYTES, in whole vectors of AVX-512.

    The intrinsic returns the low and the high word of a lane, and the number of bytes that are done. Started from 0,
    the lane gives the same checksum as all the vectors started from `crc`. From 512 bytes on, four vectors run in
    parallel.

    constants(bits): constants that move a lane forward by that many bits
    copies: whether each vector is also stored to target[at:] while it is in a register
    """
    result = types.Tuple((u64, u64, i64))

    @emitted(result, ARRAY, i64, i64, u64)
    def fold(builder, data, start, size, crc):
        return _emit_wide_fold(builder, constants, data, start, size, crc, None, None)

    @emitted(result, ARRAY, i64, i64, u64, ARRAY, i64)
    def fold_copy(builder, data, start, size, crc, target, at):
        return _emit_wide_fold(builder, constants, data, start, size, crc, target, at)

    return fold_copy if copies else fold
