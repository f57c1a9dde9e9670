"""Stratified draws: divide a table into equal parts and draw one entry of each, in random order."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest

from kfbench.kernels.workload.strata import evenly

TABLE = np.arange(65_536, dtype=np.float64)


def drawn(count: int, block: int = 0, seed: int = 1) -> NDArray[np.float64]:
    out = np.empty(count)
    evenly(seed, 7, block, TABLE, out)
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
