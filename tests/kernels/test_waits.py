"""Times are running sums of the gaps between records. Pauses between bursts are stretched to fill the given time."""

import numpy as np
import pytest

from kfbench.kernels.workload.waits import add_up, begin, follow, milliseconds, pause, scale


def test_gaps_add_up_to_times_in_the_same_memory() -> None:
    gaps = np.random.default_rng(1).random(1_000)
    expected = np.cumsum(gaps)
    assert add_up(gaps) == expected[-1]
    assert np.array_equal(gaps, expected)
    times = gaps.view(np.int64)
    scale(gaps, 1e6 / expected[-1], 7, times)
    assert times.tolist() == [7 + int(wait * (1e6 / expected[-1])) for wait in expected]
    assert times[-1] in (1_000_006, 1_000_007)


@pytest.mark.parametrize(
    ("end", "starts", "reached"), [(0, [], 0), (1, [0], 3), (4, [0, 3], 4), (5, [0, 3, 4], 9), (99, [0, 3, 4], 9)]
)
def test_stretches_begin_where_the_last_one_ends(end: int, starts: list[int], reached: int) -> None:
    out = np.full(3, -1)
    assert begin(np.array([3, 1, 5], np.int32), end, out) == (len(starts), reached)
    assert out.tolist() == starts + [-1] * (3 - len(starts))


@pytest.mark.parametrize(("length", "stretch"), [(100.0, 2.0), (60.0, 1.0), (40.0, 0.5), (20.0, 1.0), (5.0, 1.0)])
def test_pauses_fill_the_remaining_time(length: float, stretch: float) -> None:
    """Two bursts of eleven records follow pauses of 10 and 30 µs.

    The other 20 gaps take 1 µs each. `pause` scales the pauses by `stretch`.
    """
    gaps, starts, pauses = np.ones(22), np.array([0, 11]), np.array([10.0, 30.0])
    pause(starts, pauses, length, gaps)
    expected = np.ones(22)
    expected[starts] = pauses * stretch
    assert gaps.tolist() == expected.tolist()


def test_microseconds_are_cut_to_milliseconds() -> None:
    times_us = np.array([0, 999, 1_000, 1_999, 2**62])
    out = np.empty(5, np.int64)
    milliseconds(times_us, 70, out)
    assert out.tolist() == [70, 70, 71, 71, 70 + 2**62 // 1000]


def test_each_offset_follows_the_one_before() -> None:
    out = np.empty(4, np.int64)
    follow(np.array([1, 1, 2**31 - 1, 5], np.int32), 2**40 - 1, out)
    assert out.tolist() == [2**40, 2**40 + 1, 2**40 + 2**31, 2**40 + 2**31 + 5]
