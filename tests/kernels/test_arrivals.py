"""Arrival times of a rate that repeats (such as every day) equal exact fractions; draws are one from each part."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from kfbench.kernels.workload.waits import periodic_times, stratified

TABLE = np.arange(65_536, dtype=np.float64)
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
    periodic_times(
        np.array(eighths, np.float64), 0.125, first / 8, starts[:-1].astype(np.float64), np.array(lengths, np.float64),
        float(period), float(since), last, out,
    )  # fmt: skip
    assert out.tolist() == expected


def test_rounded_times_never_fall() -> None:
    out = np.empty(3, np.int64)
    waited = np.array([0.5, 0.75, 1.0])
    periodic_times(waited, 1.0, 0.0, np.array([0.0, 5.0]), np.array([20.0, 7.0]), 27.0, 100.0, 10**9, out)
    assert out.tolist() == [110, 115, 115]


def drawn(count: int, block: int = 0, seed: int = 1) -> NDArray[np.float64]:
    out = np.empty(count)
    stratified(seed, 7, block, TABLE, out)
    return out


def test_each_part_is_drawn_from_once() -> None:
    for count in (1, 2, 3, 1_000, 65_535, 65_536):
        found, first = np.sort(drawn(count)), np.arange(count) * (65_536 / count)
        assert np.all((np.floor(first) <= found) & (found < first + 65_536 / count))


@pytest.mark.compiled_only
def test_all_orders_are_equally_likely() -> None:
    """All six orders of three draws are equally likely. So are all places of the smallest of 100 draws."""
    orders = [tuple(np.argsort(drawn(3, block))) for block in range(6_000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and np.abs(counts - 1_000).max() < 150
    places = [int(drawn(100, block).argmin()) for block in range(2_000)]
    assert kstest((np.array(places) + np.random.default_rng(1).random(2_000)) / 100, "uniform").pvalue > 0.001


@pytest.mark.compiled_only
def test_all_entries_of_a_part_are_equally_likely() -> None:
    assert kstest(drawn(16) / 65_536 * 16 % 1, "uniform").pvalue > 0.001
    assert kstest(np.concatenate([drawn(16, block) for block in range(300)]) % 4_096 / 4_096, "uniform").pvalue > 0.001


def test_blocks_and_seeds_have_different_draws() -> None:
    assert drawn(50, 1).tolist() == drawn(50, 1).tolist()
    assert drawn(50, 1).tolist() != drawn(50, 2).tolist()
    assert drawn(50, 1).tolist() != drawn(50, 1, seed=2).tolist()
