"""Vector intrinsics equal the same functions in plain Python, for full groups of eight and for shorter ones."""

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

from kfbench.kernels import COMPILED, interpreted
from kfbench.kernels.simd import intrinsics
from kfbench.research.columnar.kernels import bit_packing, simd_int64

pytestmark = pytest.mark.skipif(
    not COMPILED, reason="NUMBA_DISABLE_JIT is set: the twins would be compared with themselves"
)
NUMBERS = [*range(1, 18), 63, 64]  # full groups of eight, and every possible remainder
EDGES = np.array([0, 1, -1, 2**63 - 1, -(2**63), 7, 7, -(2**31), 2**31 - 1])
Given = Iterator[tuple[Any, ...]]


def compiled(intrinsic: Any) -> Any:
    return numba.njit(lambda *given: intrinsic(*given))


def drawn(number: int, rng: np.random.Generator) -> np.ndarray:
    """Return random int64[number + 2]; about a third are edge values."""
    values = rng.integers(-(2**40), 2**40, number + 2)
    at = rng.random(number + 2) < 0.3
    values[at] = rng.choice(EDGES, at.sum())
    return values


def lengths_of(number: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(np.array([-1, 0, 1, 5, 300, 2**31 - 1], np.int32), number + 2)


def starts_of(lengths: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    starts = np.cumsum(np.maximum(np.append([9], lengths[:-1].astype(np.int64)), 0))
    if rng.random() < 0.5:
        starts[rng.integers(len(starts))] += 1
    return starts


# Kernels pass int64 and uint64. A Python int would compile another version.
def spans(number: int, rng: np.random.Generator) -> Given:
    offsets = np.arange(number + 2) + 41
    if rng.random() < 0.5:
        offsets[rng.integers(number + 2)] += 1
    yield drawn(number, rng), offsets, np.uint64(1), np.int64(number), np.int64(42)


def spans_of_steps(number: int, rng: np.random.Generator) -> Given:
    if number > 1:
        yield drawn(number, rng), np.int64(number)


def gaps(number: int, rng: np.random.Generator) -> Given:
    lengths = lengths_of(number, rng)
    yield lengths, starts_of(lengths, number, rng), np.uint64(1), np.int64(number)


def counts(number: int, rng: np.random.Generator) -> Given:
    for shift in (0, 1, 40, 63):
        yield drawn(number, rng), np.int64(number), np.int64(rng.integers(-5, 5)), np.uint64(shift)


def marks(number: int, rng: np.random.Generator) -> Given:
    for shift in (0, 31, 63):
        yield drawn(number, rng), np.uint64(2), np.int64(number), np.uint64(shift)


def equals(number: int, rng: np.random.Generator) -> Given:
    yield drawn(number, rng), np.uint64(2), np.int64(number), np.int64(rng.choice(EDGES))


@pytest.mark.parametrize(
    ("intrinsic", "twin", "given"),
    [
        (simd_int64.span_of, interpreted.span_of, spans),
        (simd_int64.span_of_steps, interpreted.span_of_steps, spans_of_steps),
        (simd_int64.gaps_of, interpreted.gaps_of, gaps),
        (simd_int64.count_wide, interpreted.count_wide, counts),
        (simd_int64.count_wide_steps, interpreted.count_wide_steps, counts),
        (simd_int64.marks_of, interpreted.marks_of, marks),
        (simd_int64.equals_of, interpreted.equals_of, equals),
    ],
    ids=["span", "span of steps", "gaps", "count", "count of steps", "marks", "equals"],
)
@np.errstate(over="ignore")
def test_what_is_known_of_all(
    intrinsic: Any, twin: Callable[..., Any], given: Callable[[int, np.random.Generator], Given]
) -> None:
    rng, seen, taking = np.random.default_rng(3), set(), compiled(intrinsic)
    for number in NUMBERS:
        for _ in range(20):
            for arguments in given(number, rng):
                found = taking(*arguments)
                assert found == twin(*arguments), arguments
                seen.add(found)
    assert len(seen) > 2


def taken_codes(number: int, rng: np.random.Generator) -> Given:
    yield np.full(number + 8, -7), lengths_of(number, rng), np.uint64(1), np.int64(number)


def taken_ages(number: int, rng: np.random.Generator) -> Given:
    yield np.full(number + 8, -7), drawn(number, rng), np.uint64(1), np.int64(number), np.int64(41)


def lowered(number: int, rng: np.random.Generator) -> Given:
    yield np.append(drawn(number, rng), np.zeros(7, np.int64)), np.int64(number), np.int64(-5)


@pytest.mark.parametrize(
    ("name", "given"),
    [("take_codes", taken_codes), ("take_ages", taken_ages), ("lower", lowered), ("lower_steps", lowered)],
)
@np.errstate(over="ignore")
def test_what_is_written(name: str, given: Callable[[int, np.random.Generator], Given]) -> None:
    rng, writing, twin = np.random.default_rng(4), compiled(getattr(simd_int64, name)), getattr(interpreted, name)
    for number in NUMBERS:
        for _ in range(20):
            for out, *arguments in given(number, rng):
                expected = out.copy()
                assert writing(out, *arguments) == twin(expected, *arguments)
                assert out.tolist() == expected.tolist()


def packed(number: int, width: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return data, start position, number of values, bit width and bit mask.

    The last 8-byte read ends where the data ends.
    """
    last = (number - 1 | 7) * width >> 3
    data = rng.integers(0, 256, 3 + last + 8, np.uint8)
    data[3:][rng.random(last + 8) < 0.3] = 0
    return data, np.int64(3), np.int64(number), np.uint64(width), np.uint64((1 << width) - 1)


WIDTHS = [(1, range(1, 9)), (2, range(1, 15)), (4, range(1, 29)), (8, range(1, 57))]


@pytest.mark.parametrize(("words", "widths"), WIDTHS)
@np.errstate(over="ignore")
def test_packed_values_are_spread_and_summed(words: int, widths: range) -> None:
    rng = np.random.default_rng(5)
    spread, sum_ = (compiled(getattr(bit_packing, f"{name}{words}")) for name in ("spread", "sum"))
    for number in NUMBERS:
        for width in widths:
            data, *where = packed(number, width, rng)
            start, sign = rng.integers(-(2**62), 2**62), rng.choice([-1, 1])
            outs = np.full((2, number + 9), -7)
            for to, out in zip((spread, interpreted.spread8), outs, strict=True):
                to(data, *where, start, sign, out, np.uint64(1))
            assert outs[0].tolist() == outs[1].tolist(), (number, width)
            for first in {0, number // 2, number}:
                given = data, where[0], np.int64(first), *where[1:]
                assert sum_(*given) == interpreted.sum8(*given), (number, width, first)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@np.errstate(over="ignore")
def test_what_is_put_into_columns(kind: type[Any]) -> None:
    rng = np.random.default_rng(6)
    room, to, line, starts, run, lengths = 8, np.uint64(1), *map(
        compiled, (simd_int64.put_line, simd_int64.put_starts, simd_int64.run_on, simd_int64.put_lengths)
    )  # fmt: skip
    for number in NUMBERS:
        n = np.int64(number)
        for _ in range(20):
            codes = rng.integers(0, 2**31 if rng.random() < 0.5 else 3, number + room + 2)
            given = lengths_of(number + room, rng)
            bounds = rng.integers(-(2**40), 2**40, 2) if kind == np.int64 else rng.integers(-(2**20), 2**20, 2)
            for make, twin, arguments in (
                (line, interpreted.put_line, (to, n, *bounds)),
                (starts, interpreted.put_starts, (given, to, n, bounds[0])),
                (run, interpreted.run_on, (to, n, bounds[0])),
                (lengths, interpreted.put_lengths, (to, codes, n)),
            ):
                outs = np.tile(rng.integers(-9, 9, 1 + number + room).astype(kind), (2, 1))
                assert make(outs[0], *arguments) == twin(interpreted.Array(outs[1]), *arguments), (twin, number)
                assert outs[0].tolist() == outs[1].tolist(), (twin, number)


@pytest.mark.parametrize("size", [8, 16, 32])
def test_what_differs_in_items(size: int) -> None:
    rng, name = np.random.default_rng(5), f"differ{size}"
    differing, twin = compiled(getattr(bit_packing, name)), getattr(interpreted, name)
    for number in NUMBERS:
        data = rng.integers(0, 3, 400, np.uint8)
        starts = rng.integers(0, 400 - 2 * size, 2 * number + 1)
        outs = np.full((2, 2 * size), 7, np.uint8)
        for out, of in zip(outs, (differing, twin), strict=True):
            of(data, starts, np.uint64(1), np.uint64(2), np.int64(number), np.int64(3), np.int64(size), out)
        assert outs[0].tolist() == outs[1].tolist()
        assert outs[0, 3:].any() == (number > 1)


@pytest.mark.parametrize("number", [*NUMBERS, 65, 127, 128, 129])
def test_digits_are_packed(number: int) -> None:
    rng, packing = np.random.default_rng(6), compiled(bit_packing.pack_digits)
    room = -(-number // 64) * 64
    for among in (b"0123456789abcdef", bytes(range(256))):
        for place in range(number):
            text = rng.choice(np.frombuffer(b"0123456789abcdef", np.uint8), room)
            text[place] = rng.choice(np.frombuffer(among, np.uint8))
            text[number:] = 0xFF
            outs = np.full((2, 1 + room // 2), 7, np.uint8)
            given = text, np.int64(number)
            found = packing(*given, outs[0], np.int64(1))
            assert found == interpreted.pack_digits(*given, outs[1], np.int64(1))
            assert found == (chr(text[place]) in "0123456789abcdef")
            assert outs[0].tolist() == outs[1].tolist()
            if found:
                digits = bytes(text[:number]).decode() + "0" * (number % 2)
                assert bytes(outs[0, 1 : 1 + len(digits) // 2]).hex() == digits


def test_the_bits_of_a_word_are_counted() -> None:
    counting = compiled(intrinsics.bit_count)
    for value in (0, 1, 2**63, 2**64 - 1, 0x0F0F << 40):
        assert counting(np.uint64(value)) == interpreted.bit_count(np.uint64(value)) == value.bit_count()


def test_the_lowest_one_of_a_word_is_found() -> None:
    ending, rng = compiled(intrinsics.trailing_zeros), np.random.default_rng(9)
    for word in map(int, rng.integers(1, 2**63, 50)):
        lowest = min(k for k in range(64) if word >> k & 1)
        assert ending(np.uint64(word)) == interpreted.trailing_zeros(np.uint64(word)) == lowest
