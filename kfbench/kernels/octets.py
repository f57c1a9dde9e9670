"""Eight int64s at a time, as LLVM IR: packed values spread and joined, and what is known of all records of a batch.

LLVM would take 32 at a time, and what is left one by one: of the 50 records of a batch, that is a third. Nothing here
checks a bound: callers do.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kfbench.kernels._jit import COMPILED
from kfbench.kernels.intrinsics import I1, I8, I16, I32, I64, OCTET, looping, pointer_to

LANES = 8  # values a vector holds


def _lanes(context: Any, builder: Any, array_type: Any, array: Any, position: Any, width: Any, loads: int) -> Any:
    """The 8 values of `width` bits from the byte at `position` on, with what lies above each.

    loads: how many words they are taken from. Offsets and shifts do not change from one group to the next, and
    compilers keep them.
    """
    values = shifts = ir.Constant(OCTET, [0] * LANES)
    for k in range(LANES):
        bit = builder.mul(width, I64(k))
        if k % (LANES // loads) == 0:
            byte = builder.lshr(bit, I64(3))
            pointer = pointer_to(context, builder, array_type, array, builder.add(position, byte))
            word = builder.load(builder.bitcast(pointer, I64.as_pointer()), align=1)
        values = builder.insert_element(values, word, I32(k))
        shifts = builder.insert_element(shifts, builder.sub(bit, builder.shl(byte, I64(3))), I32(k))
    return builder.lshr(values, shifts)


def _splat(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(OCTET, ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


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


LANE_NUMBERS, LANE_ZEROS = (ir.Constant(OCTET, values) for values in (list(range(LANES)), [0] * LANES))
NEUTRAL = {"add": 0, "or": 0, "smin": 2**63 - 1, "smax": -(2**63), "umin": -1, "umax": 0}


def _by_octets(builder: Any, number: Any, body: Callable[[Any, Any], None]) -> None:
    """body(k, None) of each 8 numbers from k on, then body(k, mask) of those that are left."""
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<=", builder.add(builder.load(done), I64(LANES)), number)):
        here = builder.load(done)
        body(here, None)
        builder.store(builder.add(here, I64(LANES)), done)
    here = builder.load(done)
    with builder.if_then(builder.icmp_signed("<", here, number)):
        body(here, builder.icmp_unsigned("<", LANE_NUMBERS, _splat(builder, builder.sub(number, here))))


def _by_whole_octets(builder: Any, number: Any, body: Callable[[Any], None]) -> None:
    """body(k) of each 8 numbers from k on, the last 8 too where less are left."""
    done = cgutils.alloca_once_value(builder, I64(0))
    with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
        body(builder.load(done))
        builder.store(builder.add(builder.load(done), I64(LANES)), done)


def _octet(context: Any, builder: Any, array_type: Any, array: Any, position: Any, mask: Any) -> Any:
    """8 integers of an array as int64s, those outside the mask 0 and not read."""
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


def _put_octet(context: Any, builder: Any, array_type: Any, array: Any, position: Any, values: Any) -> None:
    """The low bits of 8 int64s into an array of integers."""
    bits = array_type.dtype.bitwidth
    vector = ir.VectorType(ir.IntType(bits), LANES)
    pointer = builder.bitcast(pointer_to(context, builder, array_type, array, position), vector.as_pointer())
    builder.store(values if bits == 64 else builder.trunc(values, vector), pointer, align=bits // 8)


class _Reductions:
    """What is known of all values at the end, by the names that LLVM has for it."""

    def __init__(self, builder: Any, *names: str) -> None:
        self.builder, self.names = builder, names
        self.slots = [cgutils.alloca_once_value(builder, ir.Constant(OCTET, [NEUTRAL[name]] * LANES)) for name in names]

    def take(self, k: int, values: Any, mask: Any) -> None:
        builder, name, slot = self.builder, self.names[k], self.slots[k]
        if mask is not None:
            values = builder.select(mask, values, ir.Constant(OCTET, [NEUTRAL[name]] * LANES))
        builder.store(_combined(builder, name, builder.load(slot), values), slot)

    def results(self) -> list[Any]:
        kind, found = ir.FunctionType(I64, [OCTET]), []
        for name, slot in zip(self.names, self.slots, strict=True):
            reduce = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.vector.reduce.{name}.v{LANES}i64")
            found.append(self.builder.call(reduce, [self.builder.load(slot)]))
        return found


def _combined(builder: Any, name: str, left: Any, right: Any) -> Any:
    if name in ("add", "or"):
        return builder.add(left, right) if name == "add" else builder.or_(left, right)
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(OCTET, [OCTET, OCTET]), f"llvm.{name}.v{LANES}i64"
    )
    return builder.call(function, [left, right])


def _line(builder: Any, start: Any, step: Any) -> tuple[Any, Any]:
    """Where start + k * step is kept for the 8 k that are at hand, at first 0 to 7; what leads to the next 8."""
    line = builder.add(_splat(builder, start), builder.mul(LANE_NUMBERS, _splat(builder, step)))
    return cgutils.alloca_once_value(builder, line), _splat(builder, builder.mul(step, I64(LANES)))


def _running(builder: Any, values: Any) -> Any:
    """Each lane and all before it added up."""
    for far in (1, 2, 4):
        lanes = [*range(LANES, LANES + far), *range(LANES - far)]  # zeros, then the lanes before
        moved = builder.shuffle_vector(values, LANE_ZEROS, ir.Constant(ir.VectorType(I32, LANES), lanes))
        values = builder.add(values, moved)
    return values


def _last(builder: Any, values: Any) -> Any:
    """The last lane in all."""
    return builder.shuffle_vector(values, values, ir.Constant(ir.VectorType(I32, LANES), [LANES - 1] * LANES))


@intrinsic
def span_of(typingctx, times, offsets, first, number, expected):
    """(latest, earliest, sum of the times, bits by which an offset is not one more than that before it; the first
    `expected`) of the `number` >= 1 records from `first` on."""

    def codegen(context, builder, signature, args):
        times, offsets, first, number, expected = args
        found = _Reductions(builder, "smax", "smin", "add", "or")

        def body(here, mask):
            at = builder.add(first, here)
            values = _octet(context, builder, signature.args[0], times, at, mask)
            for k in range(3):
                found.take(k, values, mask)
            due = builder.add(_splat(builder, builder.add(expected, here)), LANE_NUMBERS)
            values = _octet(context, builder, signature.args[1], offsets, at, mask)
            found.take(3, builder.xor(values, due), mask)

        _by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.UniTuple(i64, 4)(times, offsets, u64, i64, i64), codegen


@intrinsic
def trend_of(typingctx, values, number, slope):
    """(least, greatest of values[i] - i * slope, least, greatest step to the next) of values[:number], 2 or more; the
    last is left out of the first two."""

    def codegen(context, builder, signature, args):
        array, number, slope = args
        found = _Reductions(builder, "smin", "smax", "smin", "smax")
        line = cgutils.alloca_once_value(builder, builder.mul(LANE_NUMBERS, _splat(builder, slope)))
        rise = _splat(builder, builder.mul(slope, I64(LANES)))

        def body(here, mask):
            values = _octet(context, builder, signature.args[0], array, here, mask)
            behind = _octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), mask)
            above, step = builder.sub(values, builder.load(line)), builder.sub(behind, values)
            for k, each in enumerate((above, above, step, step)):
                found.take(k, each, mask)
            builder.store(builder.add(builder.load(line), rise), line)

        _by_octets(builder, builder.sub(number, I64(1)), body)
        return context.make_tuple(builder, signature.return_type, found.results())

    i64 = types.int64
    return types.UniTuple(i64, 4)(values, i64, i64), codegen


@intrinsic
def take_lengths(typingctx, out, lengths, first, number):
    """Fills out[:number], number >= 1, which has room for 8 more; (how many are null, the least of the others if there
    are any, the greatest, the sum, in which a null is -1)."""

    def codegen(context, builder, signature, args):
        target, lengths, first, number = args
        found = _Reductions(builder, "add", "umin", "smax", "add")

        def body(here, mask):
            values = _octet(context, builder, signature.args[1], lengths, builder.add(first, here), mask)
            pointer = pointer_to(context, builder, signature.args[0], target, here)
            builder.store(values, builder.bitcast(pointer, OCTET.as_pointer()), align=8)
            found.take(0, builder.lshr(values, ir.Constant(OCTET, [63] * LANES)), mask)
            for k in (1, 2, 3):
                found.take(k, values, mask)

        _by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.UniTuple(i64, 4)(out, lengths, u64, i64), codegen


@intrinsic
def take_ages(typingctx, out, times, first, number, latest):
    """Fills out[:number], which has room for 8 more, with what is between the times from `first` on and the latest."""

    def codegen(context, builder, signature, args):
        target, times, first, number, latest = args
        latests = _splat(builder, latest)

        def body(here, mask):
            values = _octet(context, builder, signature.args[1], times, builder.add(first, here), mask)
            pointer = pointer_to(context, builder, signature.args[0], target, here)
            builder.store(builder.sub(latests, values), builder.bitcast(pointer, OCTET.as_pointer()), align=8)

        _by_octets(builder, number, body)
        return context.get_dummy_value()

    u64, i64 = types.uint64, types.int64
    return types.void(out, times, u64, i64, i64), codegen


def _lowerer(steps: bool) -> Callable[..., Any]:
    @intrinsic
    def lower(typingctx, values, number, base, slope):
        def codegen(context, builder, signature, args):
            array, number, base, slope = args
            line = builder.add(_splat(builder, base), builder.mul(LANE_NUMBERS, _splat(builder, slope)))
            lines, rise = cgutils.alloca_once_value(builder, line), _splat(builder, builder.mul(slope, I64(LANES)))
            done = cgutils.alloca_once_value(builder, I64(0))
            with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
                here = builder.load(done)
                values = _octet(context, builder, signature.args[0], array, here, None)
                if steps:
                    behind = _octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), None)
                    values = builder.sub(behind, values)
                pointer = pointer_to(context, builder, signature.args[0], array, here)
                values = builder.sub(values, builder.load(lines))
                builder.store(values, builder.bitcast(pointer, OCTET.as_pointer()), align=8)
                builder.store(builder.add(builder.load(lines), rise), lines)
                builder.store(builder.add(here, I64(LANES)), done)
            return context.get_dummy_value()

        i64 = types.int64
        return types.void(values, i64, i64, i64), codegen

    return lower


# Takes base + i * slope from each of the first `number` values, or of their steps to the next, which take their place;
# 8 values at a time, the next of all of which are read.
lower, lower_steps = _lowerer(False), _lowerer(True)


@intrinsic
def gaps_of(typingctx, lengths, starts, first, number):
    """Bits by which one of the `number` items from `first` on does not end where the next begins."""

    def codegen(context, builder, signature, args):
        lengths, starts, first, number = args
        found = _Reductions(builder, "or")

        def body(here, mask):
            at = builder.add(first, here)
            sizes = _combined(
                builder, "smax", _octet(context, builder, signature.args[0], lengths, at, mask), LANE_ZEROS
            )
            begins = _octet(context, builder, signature.args[1], starts, at, mask)
            next_begins = _octet(context, builder, signature.args[1], starts, builder.add(at, I64(1)), mask)
            found.take(0, builder.sub(builder.sub(next_begins, begins), sizes), mask)

        _by_octets(builder, number, body)
        return found.results()[0]

    u64, i64 = types.uint64, types.int64
    return i64(lengths, starts, u64, i64), codegen


def _counter(steps: bool) -> Callable[..., Any]:
    @intrinsic
    def count(typingctx, values, number, base, shift):
        def codegen(context, builder, signature, args):
            array, number, base, shift = args
            found = _Reductions(builder, "add")
            bases, shifts = _splat(builder, base), _splat(builder, shift)

            def body(here, mask):
                values = _octet(context, builder, signature.args[0], array, here, mask)
                if steps:
                    behind = _octet(context, builder, signature.args[0], array, builder.add(here, I64(1)), mask)
                    values = builder.sub(behind, values)
                high = builder.lshr(builder.sub(values, bases), shifts)
                found.take(0, builder.zext(builder.icmp_unsigned("!=", high, LANE_ZEROS), OCTET), mask)

            _by_octets(builder, number, body)
            return found.results()[0]

        u64, i64 = types.uint64, types.int64
        return i64(values, i64, i64, u64), codegen

    return count


# How many of the first `number` values, or steps to the next, have bits from `shift` on, as uint64s above `base`.
count_wide, count_wide_steps = _counter(False), _counter(True)


def _marker(marked: Callable[[Any, Any, Any], Any], kind: Any) -> Callable[..., Any]:
    @intrinsic
    def marks_of(typingctx, values, first, number, given):
        def codegen(context, builder, signature, args):
            array, first, number, given = args
            marks, givens = cgutils.alloca_once_value(builder, I64(0)), _splat(builder, given)

            def body(here, mask):
                values = _octet(context, builder, signature.args[0], array, builder.add(first, here), mask)
                found = marked(builder, values, givens)
                if mask is not None:
                    found = builder.and_(found, mask)
                eight = builder.shl(builder.zext(builder.bitcast(found, I8), I64), here)
                builder.store(builder.or_(builder.load(marks), eight), marks)

            _by_octets(builder, number, body)
            return builder.load(marks)

        u64, i64 = types.uint64, types.int64
        return u64(values, u64, i64, kind), codegen

    return marks_of


# Which of the `number` values from `first` on, 64 at most, have bits from `given` on, or are `given`: bit k is that of
# value k.
marks_of = _marker(
    lambda builder, values, shifts: builder.icmp_unsigned("!=", builder.lshr(values, shifts), LANE_ZEROS), types.uint64
)
equals_of = _marker(lambda builder, values, others: builder.icmp_unsigned("==", values, others), types.int64)


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


# Fills out with the bits that are not the same in data of all `number` items, every stride-th from `first` on, 8, 16
# or 32 bytes from `one` and from `two` on behind where an item begins, and in out.
differ8, differ16, differ32 = _differ(8), _differ(16), _differ(32)


CHARACTERS = 64  # packed at a time


@intrinsic
def pack_digits(typingctx, characters, number, out, at):
    """Writes hex digits, two a byte, CHARACTERS at a time with zeros behind the last; whether all of them are some.

    Characters are read as far, too."""

    def codegen(context, builder, signature, args):
        array, number, target, at = args
        octets, pairs = ir.VectorType(I8, CHARACTERS), ir.VectorType(I16, CHARACTERS // 2)

        def all_of(value, kind=octets):
            return ir.Constant(kind, [value] * kind.count)

        def splat(value):
            one = builder.insert_element(ir.Constant(octets, ir.Undefined), value, I32(0))
            return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, CHARACTERS), [0] * CHARACTERS))

        strays = cgutils.alloca_once_value(builder, all_of(0))
        done = cgutils.alloca_once_value(builder, I64(0))
        with looping(builder, lambda: builder.icmp_signed("<", builder.load(done), number)):
            here = builder.load(done)
            pointer = pointer_to(context, builder, signature.args[0], array, here)
            values = builder.load(builder.bitcast(pointer, octets.as_pointer()), align=1)
            left = builder.sub(number, here)
            left = builder.select(builder.icmp_signed("<", left, I64(CHARACTERS)), left, I64(CHARACTERS))
            inside = builder.icmp_unsigned(
                "<", ir.Constant(octets, list(range(CHARACTERS))), splat(builder.trunc(left, I8))
            )
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
        kind = ir.FunctionType(I64, [OCTET])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.or.v{LANES}i64")
        found = builder.call(reduce, [builder.bitcast(builder.load(strays), OCTET)])
        return builder.icmp_unsigned("==", found, I64(0))

    i64 = types.int64
    return types.boolean(characters, i64, out, i64), codegen


# What follows reads and writes whole eights: arrays have room for 8 more than `number`, and what is left there means
# nothing.


def _spreader(loads: int) -> Callable[..., Any]:
    @intrinsic
    def spread(typingctx, data, position, number, width, mask, start, step, sign, out, to):
        def codegen(context, builder, signature, args):
            array, position, number, width, mask, start, step, sign, target, to = args
            masks, flips = _splat(builder, mask), _splat(builder, builder.ashr(sign, I64(63)))
            line, rise = _line(builder, start, step)
            cursor = cgutils.alloca_once_value(builder, position)

            def body(here):
                at = builder.load(cursor)
                values = builder.and_(_lanes(context, builder, signature.args[0], array, at, width, loads), masks)
                values = builder.sub(builder.xor(values, flips), flips)
                values = builder.add(values, builder.load(line))
                _put_octet(context, builder, signature.args[8], target, builder.add(to, here), values)
                builder.store(builder.add(builder.load(line), rise), line)
                builder.store(builder.add(at, width), cursor)

            _by_whole_octets(builder, number, body)
            return context.get_dummy_value()

        u64, i64 = types.uint64, types.int64
        return types.void(data, i64, i64, u64, u64, i64, i64, i64, out, u64), codegen

    return spread


# out[to + k] = start + k * step + sign (1 or -1) * value k, of the `number` values of `width` bits from data[position]
# on, where 8 bytes from the beginning of each of the last 8 must lie. By how many words eight values are taken from: up
# to 8 bits all are in one, up to 14 in two, up to 28 in four.
spread1, spread2, spread4, spread8 = map(_spreader, (1, 2, 4, 8))


def _summer(loads: int) -> Callable[..., Any]:
    @intrinsic
    def sum_lanes(typingctx, data, position, first, number, width, mask):
        def codegen(context, builder, signature, args):
            array, position, first, number, width, mask = args
            masks, firsts = _splat(builder, mask), _splat(builder, first)
            found, (numbers, rise) = _Reductions(builder, *["add"] * 4), _line(builder, I64(0), I64(1))
            cursor = cgutils.alloca_once_value(builder, position)

            def body(here, inside):
                at = builder.load(cursor)
                values = builder.and_(_lanes(context, builder, signature.args[0], array, at, width, loads), masks)
                marks = builder.zext(builder.icmp_unsigned("!=", values, LANE_ZEROS), OCTET)
                before = builder.icmp_signed("<", builder.load(numbers), firsts)
                for k, each in enumerate((values, marks)):
                    found.take(k, each, before)
                    found.take(k + 2, each, inside)
                builder.store(builder.add(builder.load(numbers), rise), numbers)
                builder.store(builder.add(at, width), cursor)

            _by_octets(builder, number, body)
            return context.make_tuple(builder, signature.return_type, found.results())

        u64, i64 = types.uint64, types.int64
        return types.UniTuple(i64, 4)(data, i64, i64, i64, u64, u64), codegen

    return sum_lanes


# (sum, how many are not 0, of the first `first`; the same of all) of the `number` values that `spread` would take.
sum1, sum2, sum4, sum8 = map(_summer, (1, 2, 4, 8))


@intrinsic
def put_line(typingctx, out, to, number, start, step):
    """out[to + k] = start + k * step of `number` values."""

    def codegen(context, builder, signature, args):
        target, to, number, start, step = args
        line, rise = _line(builder, start, step)

        def body(here):
            values = builder.load(line)
            _put_octet(context, builder, signature.args[0], target, builder.add(to, here), values)
            builder.store(builder.add(values, rise), line)

        _by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(out, types.uint64, i64, i64, i64), codegen


@intrinsic
def run_on(typingctx, values, to, number, start):
    """Makes of `number` steps, values[to] on, what they lead to from `start`."""

    def codegen(context, builder, signature, args):
        array, to, number, start = args
        reached = cgutils.alloca_once_value(builder, _splat(builder, start))

        def body(here):
            at = builder.add(to, here)
            sums = _running(builder, _octet(context, builder, signature.args[0], array, at, None))
            ends = builder.add(builder.load(reached), sums)
            _put_octet(context, builder, signature.args[0], array, at, ends)
            builder.store(builder.add(builder.load(reached), _last(builder, sums)), reached)

        _by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    return types.void(values, types.uint64, types.int64, types.int64), codegen


@intrinsic
def put_starts(typingctx, out, lengths, first, number, start):
    """Fills out[first:first + number] with where these items begin, one behind the other from `start` on, nulls
    without a byte."""

    def codegen(context, builder, signature, args):
        target, lengths, first, number, start = args
        reached = cgutils.alloca_once_value(builder, _splat(builder, start))

        def body(here):
            at = builder.add(first, here)
            sizes = _octet(context, builder, signature.args[1], lengths, at, None)
            sizes = _combined(builder, "smax", sizes, LANE_ZEROS)
            sums = _running(builder, sizes)
            begins = builder.add(builder.load(reached), builder.sub(sums, sizes))
            _put_octet(context, builder, signature.args[0], target, at, begins)
            builder.store(builder.add(builder.load(reached), _last(builder, sums)), reached)

        _by_whole_octets(builder, number, body)
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(out, lengths, types.uint64, i64, i64), codegen


@intrinsic
def put_lengths(typingctx, out, to, codes, number, shift, null):
    """out[to + k] = codes[k] + shift, or `null` of a code of 0, of `number` codes: (the greatest code as a uint64, the
    sum of the lengths, a null's 0). out may be codes."""

    def codegen(context, builder, signature, args):
        target, to, codes, number, shift, null = args
        found = _Reductions(builder, "umax", "add")
        shifts, nulls = _splat(builder, shift), _splat(builder, null)

        def body(here, inside):
            values = _octet(context, builder, signature.args[2], codes, here, None)
            is_null = builder.icmp_signed("==", values, LANE_ZEROS)
            lengths = builder.select(is_null, nulls, builder.add(values, shifts))
            _put_octet(context, builder, signature.args[0], target, builder.add(to, here), lengths)
            found.take(0, values, inside)
            found.take(1, _combined(builder, "smax", lengths, LANE_ZEROS), inside)

        _by_octets(builder, number, body)
        return context.make_tuple(builder, signature.return_type, found.results())

    u64, i64 = types.uint64, types.int64
    return types.Tuple((u64, i64))(out, u64, codes, i64, i64, i64), codegen


if not COMPILED:
    from kfbench.kernels._twins import *  # noqa: F403
