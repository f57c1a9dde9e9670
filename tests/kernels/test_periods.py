"""Arrival times under a rate that repeats with a period (such as a day) equal exact fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kfbench.kernels.workload import periods

LENGTHS = st.lists(st.integers(0, 1_000), min_size=8, max_size=8)
WAITS = st.lists(st.integers(0, 4_000), max_size=12).map(sorted)


@given(LENGTHS, WAITS, st.integers(0, 63), st.integers(0, 2**50), st.integers(0, 2**51))
def test_times(lengths: list[int], eighths: list[int], first: int, since: int, room: int) -> None:
    """Arrival times equal exact fractions, rounded down to integers.

    Waiting times are multiples of an eighth of a cell (a part of the period), so that floating-point sums are exact.
    """
    starts, period = np.cumsum([0, *lengths]), sum(lengths)
    last = since + room
    expected = []
    for eighth in eighths:
        whole, rest = divmod(first + eighth, 8)
        turns, cell = divmod(whole, 8)
        expected.append(min(int(since + turns * period + starts[cell] + Fraction(rest * lengths[cell], 8)), last))
    out = np.empty(len(eighths), np.int64)
    periods.times(
        np.array(eighths, np.float64), 0.125, first / 8, starts[:-1].astype(np.float64), np.array(lengths, np.float64),
        float(period), float(since), last, out,
    )  # fmt: skip
    assert out.tolist() == expected


def test_rounded_times_never_fall() -> None:
    out = np.empty(3, np.int64)
    waited = np.array([0.5, 0.75, 1.0])
    periods.times(waited, 1.0, 0.0, np.array([0.0, 5.0]), np.array([20.0, 7.0]), 27.0, 100.0, 10**9, out)
    assert out.tolist() == [110, 115, 115]
