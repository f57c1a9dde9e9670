"""Eight at a time and what is left behind a mask: each intrinsic beside its twin, which takes them one by one."""

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

from kfbench.kernels import COMPILED, _twins, octets

pytestmark = pytest.mark.skipif(
    not COMPILED, reason="NUMBA_DISABLE_JIT is set: the twins would be compared with themselves"
)
NUMBERS = [*range(1, 18), 63, 64]  # whole eights, and every rest
EDGES = np.array([0, 1, -1, 2**63 - 1, -(2**63), 7, 7, -(2**31), 2**31 - 1])
Given = Iterator[tuple[Any, ...]]


def compiled(intrinsic: Any) -> Any:
    return numba.njit(lambda *given: intrinsic(*given))


def drawn(number: int, rng: np.random.Generator) -> np.ndarray:
    """int64[number + 2], edges among them, behind which nothing lies."""
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


# int64 and uint64 are what kernels have; Python's int would be another type.
def spans(number: int, rng: np.random.Generator) -> Given:
    offsets = np.arange(number + 2) + 41
    if rng.random() < 0.5:
        offsets[rng.integers(number + 2)] += 1
    yield drawn(number, rng), offsets, np.uint64(1), np.int64(number), np.int64(42)


def trends(number: int, rng: np.random.Generator) -> Given:
    if number > 1:
        yield drawn(number, rng), np.int64(number), np.int64(rng.integers(-9, 9))


def gaps(number: int, rng: np.random.Generator) -> Given:
    lengths = lengths_of(number, rng)
    yield lengths, starts_of(lengths, number, rng), np.uint64(1), np.int64(number)


def counts(number: int, rng: np.random.Generator) -> Given:
    for shift in (0, 1, 40, 63):
        yield drawn(number, rng), np.int64(number), np.int64(rng.integers(-5, 5)), np.uint64(shift)


def marks(number: int, rng: np.random.Generator) -> Given:
    for shift in (0, 31, 63):
        yield drawn(number, rng), np.uint64(2), np.int64(number), np.uint64(shift)


@pytest.mark.parametrize(
    ("intrinsic", "twin", "given"),
    [
        (octets.span_of, _twins.span_of, spans),
        (octets.trend_of, _twins.trend_of, trends),
        (octets.gaps_of, _twins.gaps_of, gaps),
        (octets.count_wide, _twins.count_wide, counts),
        (octets.count_wide_steps, _twins.count_wide_steps, counts),
        (octets.marks_of, _twins.marks_of, marks),
    ],
    ids=["span", "trend", "gaps", "count", "count of steps", "marks"],
)  # fmt: skip
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


def test_lengths_are_taken_with_what_is_known_of_them() -> None:
    rng = np.random.default_rng(4)
    taking = compiled(octets.take_lengths)
    for number in NUMBERS:
        for _ in range(20):
            lengths = lengths_of(number, rng)
            outs = np.full((2, number + 8), -7)
            found = taking(outs[0], lengths, np.uint64(1), np.int64(number))
            assert found == _twins.take_lengths(outs[1], lengths, np.uint64(1), np.int64(number))
            assert outs[0].tolist() == outs[1].tolist()
            assert outs[0, :number].tolist() == lengths[1 : number + 1].tolist()
