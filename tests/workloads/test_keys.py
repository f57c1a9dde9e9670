"""The popularity of keys follows Zipf's law."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from kfbench.workloads.named.distributions import ALIKE, KeyDistribution, zipf

SEED, MANY = 11, 2**22


def shares_of(table: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the probability of each cell of the alias table.

    It is the cell's own share plus the shares that other cells give to it.
    """
    keep = (table >> np.uint64(32)).astype(np.float64) / 2**32
    other = (table & np.uint64(0xFFFFFFFF)).astype(np.int64)
    shares = keep + np.bincount(other, weights=1 - keep, minlength=len(table))
    return shares / len(table)


@pytest.mark.sampled
@pytest.mark.parametrize("skew", [0.0, 0.01, 0.5, 0.99, 1.0, 1.2, 2.68, 10.0])
@pytest.mark.parametrize("cardinality", [1, 2, 3, 1_000, 4_096, 100_003, 1_000_000])
def test_the_groups_have_the_law_in_them(cardinality: int, skew: float) -> None:
    groups = zipf(cardinality, skew)
    assert np.array_equal(groups.firsts, np.cumsum(groups.widths) - groups.widths)
    assert groups.widths.sum() == cardinality and len(groups.firsts) <= (2**17 if skew > 3 else 2**16)
    law = np.arange(1, cardinality + 1) ** -skew
    law /= math.fsum(law)
    of_groups = np.add.reduceat(law, groups.firsts)
    assert np.allclose(groups.shares, of_groups, rtol=1e-6, atol=0)
    assert np.allclose(np.repeat(groups.shares / groups.widths, groups.widths.astype(int)), law, rtol=ALIKE, atol=0)
    drawn = shares_of(groups.table)
    assert np.allclose(drawn[: len(of_groups)], of_groups, rtol=1e-6, atol=2.0**-32 / len(drawn))
    assert drawn[len(of_groups) :].sum() == 0


def test_more_keys_than_a_table_of_all_could_hold() -> None:
    """The share of the first million of 2**40 keys equals a formula.

    The n-th harmonic number is about ln n + Euler's constant + 1/2n.
    """
    few, all_keys = (math.log(n) + np.euler_gamma + 1 / (2 * n) for n in (1_000_000, 2**40))
    groups = zipf(2**40, 1.0)
    until = int(np.searchsorted(groups.firsts, 1_000_000))
    beyond = (groups.firsts[until] - 1_000_000) / groups.widths[until - 1] * groups.shares[until - 1]
    assert groups.shares[:until].sum() - beyond == pytest.approx(few / all_keys, rel=1e-6)
    ids = KeyDistribution(cardinality=2**40, skew=1.0).ids(SEED, 0, MANY)
    assert np.mean(ids < 1_000_000) == pytest.approx(few / all_keys, rel=0.002)
    assert 2**39 < ids.max() < 2**40


def test_without_a_cardinality_each_record_has_its_own_and_in_turn_they_come_round() -> None:
    assert KeyDistribution().ids(1, 5, 3).tolist() == [5, 6, 7]
    assert KeyDistribution(cardinality=3, in_turn=True).ids(1, 5, 5).tolist() == [2, 0, 1, 2, 0]
