"""Loops over eight int64s at a time, as LLVM IR: the parts of `bit_packing` and `simd_int64`.

LLVM would take 32 at a time and the rest one by one, which is a third of the 50 records of a batch.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from kfbench.kernels.simd.intrinsics import I1, I32, I64, OCTET, looping, pointer_to

LANES = 8  # values a vector holds
LANE_NUMBERS = ir.Constant(OCTET, list(range(LANES)))
LANE_ZEROS, LANE_ONES = (ir.Constant(OCTET, [value] * LANES) for value in (0, 1))
NEUTRAL = {"add": 0, "or": 0, "smin": 2**63 - 1, "smax": -(2**63), "umin": -1, "umax": 0}


def splat(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """Return a vector with the value in every lane."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def reduced(builder: Any, name: str, values: Any) -> Any:
    """Reduce the int64s of a vector to one by the operation `name` of LLVM."""
    kind = ir.FunctionType(I64, [values.type])
    reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.{name}.v{values.type.count}i64")
    return builder.call(reduce, [values])


def by_octets(builder: Any, number: Any, body: Callable[[Any, Any], None]) -> None:
    """Loop: body(k, None) for each 8 numbers from k on, then body(k, mask) for the rest."""
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<=", builder.add(builder.load(done), I64(LANES)), number)):
        here = builder.load(done)
        body(here, None)
        builder.store(builder.add(here, I64(LANES)), done)
    here = builder.load(done)
    with builder.if_then(builder.icmp_signed("<", here, number)):
        body(here, builder.icmp_unsigned("<", LANE_NUMBERS, splat(builder, builder.sub(number, here))))


def by_whole_octets(builder: Any, number: Any, body: Callable[[Any], None]) -> None:
    """Loop: body(k) for each 8 numbers from k on, also where fewer than 8 are left."""
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
        body(builder.load(done))
        builder.store(builder.add(builder.load(done), I64(LANES)), done)


def octet(context: Any, builder: Any, array_type: Any, array: Any, position: Any, mask: Any) -> Any:
    """Load 8 integers of an array as int64s. Those outside the mask are 0 and not read."""
    bits = array_type.dtype.bitwidth
    vector = ir.VectorType(ir.IntType(bits), LANES)
    pointer = builder.bitcast(pointer_to(context, builder, array_type, array, position), vector.as_pointer())
    if mask is None:
        values = builder.load(pointer, align=bits // 8)
    else:
        kind = ir.FunctionType(vector, [vector.as_pointer(), ir.VectorType(I1, LANES), vector])
        load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{LANES}i{bits}.p0")
        values = builder.call(load, [pointer, mask, ir.Constant(vector, [0] * LANES)])
    return values if bits == 64 else builder.sext(values, OCTET)


def put_octet(context: Any, builder: Any, array_type: Any, array: Any, position: Any, values: Any) -> None:
    """Store the low bits of 8 int64s into an array of integers."""
    bits = array_type.dtype.bitwidth
    vector = ir.VectorType(ir.IntType(bits), LANES)
    pointer = builder.bitcast(pointer_to(context, builder, array_type, array, position), vector.as_pointer())
    builder.store(values if bits == 64 else builder.trunc(values, vector), pointer, align=bits // 8)


class Reductions:
    """Running reductions over all values, each by an operation of LLVM."""

    def __init__(self, builder: Any, *names: str) -> None:
        self.builder, self.names = builder, names
        self.slots = [cgutils.alloca_once_value(builder, ir.Constant(OCTET, [NEUTRAL[name]] * LANES)) for name in names]

    def take(self, k: int, values: Any, mask: Any) -> None:
        builder, name, slot = self.builder, self.names[k], self.slots[k]
        if mask is not None:
            values = builder.select(mask, values, ir.Constant(OCTET, [NEUTRAL[name]] * LANES))
        builder.store(combined(builder, name, builder.load(slot), values), slot)

    def results(self) -> list[Any]:
        return [
            reduced(self.builder, name, self.builder.load(slot))
            for name, slot in zip(self.names, self.slots, strict=True)
        ]


def combined(builder: Any, name: str, left: Any, right: Any) -> Any:
    if name in ("add", "or"):
        return builder.add(left, right) if name == "add" else builder.or_(left, right)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(OCTET, [OCTET, OCTET]), f"llvm.{name}.v{LANES}i64"
    )
    return builder.call(function, [left, right])


def flipped(builder: Any, values: Any, flips: Any) -> Any:
    """Return values negated where `flips` is -1, and as they are where it is 0."""
    return builder.sub(builder.xor(values, flips), flips)


def line(builder: Any, start: Any, step: Any) -> tuple[Any, Any]:
    """Return a variable with start + k * step for k from 0 to 7, and what to add for the next 8."""
    first = builder.add(splat(builder, start), builder.mul(LANE_NUMBERS, splat(builder, step)))
    return cgutils.alloca_once_value(builder, first), splat(builder, builder.mul(step, I64(LANES)))


def running(builder: Any, values: Any) -> Any:
    """Return the sum of each lane and all before it."""
    for far in (1, 2, 4):
        lanes = [*range(LANES, LANES + far), *range(LANES - far)]  # zeros, then the lanes before
        moved = builder.shuffle_vector(values, LANE_ZEROS, ir.Constant(ir.VectorType(I32, LANES), lanes))
        values = builder.add(values, moved)
    return values


def last(builder: Any, values: Any) -> Any:
    """Return a vector with the last lane in every lane."""
    return builder.shuffle_vector(values, values, ir.Constant(ir.VectorType(I32, LANES), [LANES - 1] * LANES))
