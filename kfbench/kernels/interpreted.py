"""Run kernels as plain Python, without compilation, if NUMBA_DISABLE_JIT=1 is set.

Coverage tools and fuzzers then see each branch, and each array index is checked.

Scalars behave as in Numba. int64 and uint64 are NumPy's, so they wrap. Narrower integers become an int, which mixes
with both. An index outside its array raises IndexError, also if it is negative. Compiled code would read other memory.
"""

from collections.abc import Callable
from functools import reduce, wraps
from itertools import pairwise
from operator import or_
from typing import Any, Self

import numpy as np

__all__ = [  # plain Python equivalents of `intrinsics`, `simd_int64`, `bit_packing` and `characters`
    "bit_count", "count_wide", "count_wide_steps", "differ8", "differ16", "differ32", "equals_of", "gaps_of", "get_i8",
    "get_i16", "get_i32", "get_i64", "get_u8", "get_u32", "join4", "join8", "leading_zeros", "load_le64", "lower",
    "lower_steps", "marks_of", "move", "move32", "pack_digits", "prefetch", "put_i16", "put_i32", "put_i64", "put_le64",
    "put_lengths", "put_line", "put_starts", "put_u8", "run_on", "span_of", "span_of_steps", "spread1", "spread2",
    "spread4", "spread8", "sum1", "sum2", "sum4", "sum8", "take_ages", "take_codes", "trailing_zeros",
]  # fmt: skip


def _as_numba(value: Any) -> Any:
    return value if isinstance(value, np.int64 | np.uint64) else value.item()


def _store(place: Any, where: Any, value: Any, kind: np.dtype[Any]) -> None:
    try:
        place[where] = value
    except OverflowError:  # compiled code drops the bits that do not fit
        place[where] = np.uint64(int(value) & 2**64 - 1).astype(kind)


class Row:
    """One row of a structured NumPy array. Its fields are attributes."""

    __slots__ = ("record",)

    def __init__(self, record: np.void) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        return _as_numba(self.record[name])

    def __setattr__(self, name: str, value: Any) -> None:
        _store(self.record, name, value, self.record.dtype[name])


class Array:
    """A NumPy array that raises IndexError for an index below 0 or beyond its end. With two dimensions: for a row."""

    __slots__ = ("array", "bytes", "kind", "read", "size")

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.size, self.kind = array, len(array), array.dtype
        self.bytes = memoryview(array) if array.dtype == np.uint8 else None
        self.read: Callable[[Any], Any] = Array if array.ndim > 1 else Row if array.dtype.names else _as_numba

    @classmethod
    def of(cls, value: Any) -> Self | Any:
        if isinstance(value, np.ndarray):
            return cls(value)
        return tuple(map(cls.of, value)) if isinstance(value, tuple) else value

    def __len__(self) -> int:
        return self.size

    def _checked(self, index: Any) -> Any:
        if not 0 <= index < self.size:
            raise IndexError(f"{index} of {self.size}")
        return index

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Array(self.array[index])
        return self.read(self.array[self._checked(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        _store(self.array, self._checked(index), value, self.kind)

    def view(self, kind: Any) -> "Array":
        return Array(self.array.view(kind))

    def span(self, at: Any, size: int) -> memoryview:
        if size < 0 or not 0 <= at <= self.size - size:
            raise IndexError(f"{size} bytes at {at} of {self.size}")
        assert self.bytes is not None
        return self.bytes[at : at + size]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that its arrays check their indices and it returns plain Python numbers."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            result = function(*map(Array.of, arguments))
        return tuple(map(_plain, result)) if isinstance(result, tuple) else _plain(result)

    return call


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _loader(size: int, kind: type[Any] = int, signed: bool = False, order: Any = "big") -> Callable[..., Any]:
    def load(buffer: Any, position: Any) -> Any:
        return kind(int.from_bytes(Array.of(buffer).span(position, size), order, signed=signed))

    return load


def _storer(size: int, order: Any = "big") -> Callable[..., Any]:
    def store(buffer: Any, position: Any, value: Any) -> None:
        Array.of(buffer).span(position, size)[:] = (int(value) & (1 << 8 * size) - 1).to_bytes(size, order)

    return store


load_le64 = _loader(8, np.uint64, order="little")
get_i64 = _loader(8, np.int64, signed=True)
get_i32 = _loader(4, signed=True)
get_u32 = _loader(4)
get_i16 = _loader(2, signed=True)
get_i8 = _loader(1, signed=True)
get_u8 = _loader(1)
put_i64, put_i32, put_i16, put_u8 = (_storer(size) for size in (8, 4, 2, 1))
put_le64 = _storer(8, "little")


def move(target: Any, at: Any, source: Any, start: Any, count: Any) -> None:
    if count:  # a null item may have any number as its start
        Array.of(target).span(at, count)[:] = Array.of(source).span(start, count)


def move32(target: Any, at: Any, source: Any, start: Any) -> None:
    move(target, at, source, start, 32)


def _lanes(data: Any, position: Any, number: Any, width: Any, mask: Any) -> list[np.int64]:
    """Unpack `number` bit-packed values. The number is rounded up to a multiple of eight."""
    bits = [k * int(width) for k in range(_whole(number))]
    return [np.int64(load_le64(data, position + (bit >> 3)) >> np.uint64(bit & 7) & mask) for bit in bits]


def _whole(number: Any) -> int:
    return -(-int(number) // 8) * 8


def spread8(
    data: Any, position: Any, number: Any, width: Any, mask: Any, start: Any, sign: Any, out: Any, to: Any
) -> None:
    """Unpack bit-packed values: out[to + k] = start + sign * value k. Args: as in `bit_packing`."""
    for k, value in enumerate(_lanes(data, position, number, width, mask)):
        out[to + np.uint64(k)] = start + sign * value


spread1 = spread2 = spread4 = spread8


def sum8(data: Any, position: Any, first: Any, number: Any, width: Any, mask: Any) -> tuple[Any, ...]:
    values = _lanes(data, position, number, width, mask)[:number]
    before = values[:first]
    return _sum(before), np.int64(np.count_nonzero(before)), _sum(values), np.int64(np.count_nonzero(values))


sum1 = sum2 = sum4 = sum8


def _joiner(lanes: int) -> Callable[..., Any]:
    def join(values: Any, position: Any, width: Any, mask: Any) -> Any:
        joined = np.uint64(0)
        for k in range(lanes):
            joined |= (np.uint64(values[position + np.uint64(k)]) & mask) << np.uint64(k) * width
        return joined

    return join


join4, join8 = _joiner(4), _joiner(8)


def prefetch(buffer: Any, position: Any) -> None:
    pass


def leading_zeros(value: Any) -> int:
    return 64 - int(value).bit_length()


def trailing_zeros(value: Any) -> int:
    return (int(value) & -int(value)).bit_length() - 1


def bit_count(value: Any) -> int:
    return int(value).bit_count()


def _octets(array: Any, first: Any, number: Any) -> list[np.int64]:
    return [np.int64(array[first + np.uint64(k)]) for k in range(number)]


def span_of(times: Any, offsets: Any, first: Any, number: Any, expected: Any) -> tuple[Any, ...]:
    values, strays = _octets(times, first, number), np.int64(0)
    for k, offset in enumerate(_octets(offsets, first, number)):
        strays |= offset ^ (expected + np.int64(k))
    return max(values), min(values), _sum(values), strays


def _steps(values: Any, number: Any) -> list[np.int64]:
    """Return `number` steps from one value to the next."""
    return [after - value for value, after in pairwise(_octets(values, np.uint64(0), number + 1))]


def span_of_steps(values: Any, number: Any) -> tuple[Any, ...]:
    steps = _steps(values, number - 1)
    return min(steps), max(steps)


def take_codes(out: Any, lengths: Any, first: Any, number: Any) -> tuple[Any, ...]:
    codes = [length + np.int64(1) for length in _octets(lengths, first, number)]
    for k in range(_whole(number)):
        out[k] = codes[k] if k < number else np.int64(1)
    return sum(np.int64(code == 0) for code in codes), min(codes), max(codes), _sum(codes)


def take_ages(out: Any, times: Any, first: Any, number: Any, latest: Any) -> None:
    values = _octets(times, first, number)
    for k in range(_whole(number)):
        out[k] = latest - (values[k] if k < number else np.int64(0))


def lower(values: Any, number: Any, base: Any) -> None:
    for k in range(_whole(number)):
        values[k] = values[k] - base


def lower_steps(values: Any, number: Any, base: Any) -> None:
    for k in range(_whole(number)):
        values[k] = values[k + 1] - values[k] - base


def gaps_of(lengths: Any, starts: Any, first: Any, number: Any) -> Any:
    gaps, begins = np.int64(0), _octets(starts, first, number + 1)
    for length, (begin, next_begin) in zip(_octets(lengths, first, number), pairwise(begins), strict=True):
        gaps |= next_begin - begin - max(length, np.int64(0))
    return gaps


def _wide(values: list[np.int64], base: Any, shift: Any) -> Any:
    return np.int64(np.count_nonzero([np.uint64(value - base) >> shift for value in values]))


def count_wide(values: Any, number: Any, base: Any, shift: Any) -> Any:
    return _wide(_octets(values, np.uint64(0), number), base, shift)


def count_wide_steps(values: Any, number: Any, base: Any, shift: Any) -> Any:
    return _wide(_steps(values, number), base, shift)


def marks_of(values: Any, first: Any, number: Any, shift: Any) -> Any:
    found = _octets(values, first, number)
    return np.uint64(sum(int(np.uint64(value) >> shift != 0) << k for k, value in enumerate(found)))


def put_line(out: Any, to: Any, number: Any, start: Any, step: Any) -> None:
    for k in range(_whole(number)):
        out[to + np.uint64(k)] = start + np.int64(k) * step


def run_on(values: Any, to: Any, number: Any, start: Any) -> None:
    for k, step in enumerate(_octets(values, to, _whole(number))):
        start = start + step
        values[to + np.uint64(k)] = start


def put_starts(out: Any, lengths: Any, first: Any, number: Any, start: Any) -> None:
    for k, length in enumerate(_octets(lengths, first, _whole(number))):
        out[first + np.uint64(k)] = start
        start = start + max(length, np.int64(0))


def put_lengths(out: Any, to: Any, codes: Any, number: Any) -> tuple[Any, ...]:
    values = _octets(codes, np.uint64(0), _whole(number))
    for k, code in enumerate(values):
        out[to + np.uint64(k)] = code - np.int64(1)
    lengths = [max(code - np.int64(1), np.int64(0)) for code in values[:number]]
    return max(values[:number]), _sum(lengths)


def equals_of(values: Any, first: Any, number: Any, other: Any) -> Any:
    return np.uint64(sum(int(value == other) << k for k, value in enumerate(_octets(values, first, number))))


def _differ(size: int) -> Callable[..., Any]:
    def differ(data: Any, starts: Any, first: Any, stride: Any, number: Any, one: Any, two: Any, out: Any) -> None:
        """Write the bits that differ between items. Args: as in `characters.differ8`."""
        places = [starts[first + np.uint64(k) * stride] for k in range(number)]
        for at in (one, two):
            items = [Array.of(data).span(place + at, size).tolist() for place in places]
            bits = [reduce(or_, (byte ^ own[0] for byte in own)) for own in zip(*items, strict=True)]
            Array.of(out).span(at, size)[:] = bytes(bits)

    return differ


differ8, differ16, differ32 = map(_differ, (8, 16, 32))


def pack_digits(characters: Any, number: Any, out: Any, at: Any) -> bool:
    room = -(-number // 64) * 64
    found = bytes(Array.of(characters).span(0, room)[:number])
    values = [byte - 48 if 48 <= byte < 58 else byte - 87 & 0xFF for byte in found] + [0] * (room - number)
    packed = [(high << 4 | low) & 0xFF for high, low in zip(values[::2], values[1::2], strict=True)]
    Array.of(out).span(at, room >> 1)[:] = bytes(packed)
    return all(byte in b"0123456789abcdef" for byte in found)


def _sum(values: list[np.int64]) -> np.int64:
    return np.add.reduce(values, dtype=np.int64)
