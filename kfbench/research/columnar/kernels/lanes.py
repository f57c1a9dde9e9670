"""Emit LLVM IR for loops over eight int64s at a time. `bit_packing` and `simd_int64` are built from these parts.

LLVM by itself would take 32 values at a time and the rest one by one. In a batch of 50 records, the rest is a third.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from kfbench.kernels.simd.emitting import I32, I64, INT64X8, ArrayOperand, call, looping

LANES = 8  # values in a vector
LANE_NUMBERS = ir.Constant(INT64X8, list(range(LANES)))
LANE_ZEROS, LANE_ONES = (ir.Constant(INT64X8, [value] * LANES) for value in (0, 1))
NEUTRAL = {"add": 0, "or": 0, "smin": 2**63 - 1, "smax": -(2**63), "umin": -1, "umax": 0}


def splat(builder: Any, value: Any, lanes: int = LANES) -> Any:
    """Return a vector with the value in every lane."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def reduced(builder: Any, name: str, values: Any) -> Any:
    """Reduce the int64s of a vector to one by the LLVM operation `name`."""
    return call(builder, f"llvm.vector.reduce.{name}.v{values.type.count}i64", I64, values)


def combined(builder: Any, name: str, left: Any, right: Any) -> Any:
    """Combine two vectors lane by lane by the LLVM operation `name`."""
    if name in ("add", "or"):
        return builder.add(left, right) if name == "add" else builder.or_(left, right)
    return call(builder, f"llvm.{name}.v{LANES}i64", INT64X8, left, right)


def by_eights(builder: Any, number: Any, body: Callable[[Any, Any], None]) -> None:
    """Emit a loop over `number` values, eight per step.

    body(k, None) emits the code for the eight values from index k on. body(k, mask) emits it for fewer than eight.
    """
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<=", builder.add(builder.load(done), I64(LANES)), number)):
        here = builder.load(done)
        body(here, None)
        builder.store(builder.add(here, I64(LANES)), done)
    here = builder.load(done)
    with builder.if_then(builder.icmp_signed("<", here, number)):
        body(here, builder.icmp_unsigned("<", LANE_NUMBERS, splat(builder, builder.sub(number, here))))


def by_whole_eights(builder: Any, number: Any, body: Callable[[Any], None]) -> None:
    """Emit a loop over `number` values. body(k) emits code for eight values from index k on, even if fewer remain."""
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
        body(builder.load(done))
        builder.store(builder.add(builder.load(done), I64(LANES)), done)


def load8(array: ArrayOperand, position: Any, mask: Any = None) -> Any:
    """Load eight integers of an array as a vector of int64s. Those outside the mask are not read and become 0."""
    builder, bits = array.builder, array.bits
    vector = ir.VectorType(ir.IntType(bits), LANES)
    pointer = array.pointer(position, vector)
    if mask is None:
        values = builder.load(pointer, align=bits // 8)
    else:
        zeros = ir.Constant(vector, [0] * LANES)
        values = call(builder, f"llvm.masked.load.v{LANES}i{bits}.p0", vector, pointer, mask, zeros)
    return values if bits == 64 else builder.sext(values, INT64X8)


def store8(array: ArrayOperand, position: Any, values: Any) -> None:
    """Store the low bits of eight int64s into an array of integers."""
    builder, bits = array.builder, array.bits
    vector = ir.VectorType(ir.IntType(bits), LANES)
    pointer = array.pointer(position, vector)
    builder.store(values if bits == 64 else builder.trunc(values, vector), pointer, align=bits // 8)


class Reductions:
    """Running reductions over all values of a loop, such as sum or maximum. Each has one LLVM operation."""

    def __init__(self, builder: Any, *names: str) -> None:
        self.builder, self.names = builder, names
        self.slots = [
            cgutils.alloca_once_value(builder, ir.Constant(INT64X8, [NEUTRAL[name]] * LANES)) for name in names
        ]

    def take(self, k: int, values: Any, mask: Any) -> None:
        """Include the values inside the mask in reduction k."""
        builder, name, slot = self.builder, self.names[k], self.slots[k]
        if mask is not None:
            values = builder.select(mask, values, ir.Constant(INT64X8, [NEUTRAL[name]] * LANES))
        builder.store(combined(builder, name, builder.load(slot), values), slot)

    def results(self) -> list[Any]:
        return [
            reduced(self.builder, name, self.builder.load(slot))
            for name, slot in zip(self.names, self.slots, strict=True)
        ]


class Line:
    """A vector of start + k * step for eight successive values of k, at first 0 to 7."""

    def __init__(self, builder: Any, start: Any, step: Any) -> None:
        first = builder.add(splat(builder, start), builder.mul(LANE_NUMBERS, splat(builder, step)))
        self.builder, self.slot = builder, cgutils.alloca_once_value(builder, first)
        self.rise = splat(builder, builder.mul(step, I64(LANES)))

    def here(self) -> Any:
        return self.builder.load(self.slot)

    def advance(self) -> None:
        """Increase each k by eight."""
        self.builder.store(self.builder.add(self.here(), self.rise), self.slot)


def running(builder: Any, values: Any) -> Any:
    """Return a vector of running sums: in each lane, the sum of this lane and all lanes before it."""
    for distance in (1, 2, 4):
        lanes = [*range(LANES, LANES + distance), *range(LANES - distance)]  # zeros, then the lanes before
        moved = builder.shuffle_vector(values, LANE_ZEROS, ir.Constant(ir.VectorType(I32, LANES), lanes))
        values = builder.add(values, moved)
    return values


def last(builder: Any, values: Any) -> Any:
    """Return a vector with the value of the last lane in every lane."""
    return builder.shuffle_vector(values, values, ir.Constant(ir.VectorType(I32, LANES), [LANES - 1] * LANES))
