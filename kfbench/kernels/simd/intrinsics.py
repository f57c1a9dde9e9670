"""CPU operations that Numba does not offer. Callers must check bounds: these functions do not."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from kfbench.kernels.jit import COMPILED
from kfbench.kernels.simd.emitting import ARRAY, I1, I32, I64, VOID, call, emitted, i64, u64


def _loader(bits: int, result: Any, swap: bool) -> Any:
    @emitted(result, ARRAY, i64)
    def load(builder, buffer, position):
        value = buffer.load(position, ir.IntType(bits))
        return builder.bswap(value) if swap else value

    return load


def _storer(bits: int, value_type: Any, swap: bool = True) -> Any:
    @emitted(VOID, ARRAY, i64, value_type)
    def store(builder, buffer, position, value):
        buffer.store(position, builder.bswap(value) if swap and bits > 8 else value)

    return store


load_le64 = _loader(64, u64, swap=False)
get_i64 = _loader(64, i64, swap=True)
get_i32 = _loader(32, types.int32, swap=True)
get_u32 = _loader(32, types.uint32, swap=True)
get_i16 = _loader(16, types.int16, swap=True)
get_i8 = _loader(8, types.int8, swap=False)
get_u8 = _loader(8, types.uint8, swap=False)
put_le64 = _storer(64, u64, swap=False)
put_i64 = _storer(64, i64)
put_i32 = _storer(32, types.int32)
put_i16 = _storer(16, types.int16)
put_u8 = _storer(8, types.uint8)


@emitted(VOID, ARRAY, i64, ARRAY, i64, i64)
def move(builder, target, at, source, start, count):
    """Copy `count` bytes with memcpy. It reaches 74 GB/s at 1 KiB; a slice assignment reaches 4.3 GB/s."""
    cgutils.raw_memcpy(builder, target.pointer(at), source.pointer(start), count, 1)


@emitted(VOID, ARRAY, i64, ARRAY, i64)
def move32(builder, target, at, source, start):
    """Copy 32 bytes in one move. Both arrays must have 32 bytes from there on."""
    to, origin = target.pointer(at), source.pointer(start)
    vector = ir.VectorType(I64, 4).as_pointer()
    value = builder.load(builder.bitcast(origin, vector), align=1)
    builder.store(value, builder.bitcast(to, vector), align=1)


@emitted(i64, u64)
def leading_zeros(builder, value):
    """Return the number of zero bits above the highest set bit. The value is not 0."""
    return builder.ctlz(value, ir.Constant(I1, 1))


@emitted(i64, u64)
def trailing_zeros(builder, value):
    """Return the number of zero bits below the lowest set bit. The value is not 0."""
    return builder.cttz(value, ir.Constant(I1, 1))


@emitted(i64, u64)
def bit_count(builder, value):
    """Return the number of set bits."""
    return builder.ctpop(value)


@emitted(VOID, ARRAY, i64)
def prefetch(builder, buffer, position):
    """Start to load the cache line of the byte at `position`. A position outside the buffer is allowed."""
    to_read, all_caches, is_data = I32(0), I32(3), I32(1)
    call(builder, "llvm.prefetch.p0", ir.VoidType(), buffer.pointer(position), to_read, all_caches, is_data)


if not COMPILED:
    from kfbench.kernels.interpreted import *  # noqa: F403
