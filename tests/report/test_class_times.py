"""The CPU time ratio of a class: the mean of its workloads, and an interval with the stated coverage."""

import numpy as np
import pytest

from kfbench.measure.cpu import paired_ratio
from kfbench.report.data.class_times import joined
from kfbench.tables import Interval

ROUNDS = 19


def test_one_workload_is_its_own_class() -> None:
    own = Interval(median=1.1, low=1.05, high=1.2)
    found = joined([own])
    assert (found.mean.median, found.mean.low, found.mean.high) == pytest.approx((1.1, 1.05, 1.2))
    assert found.ends == (1.1, 1.1)


def test_several_are_a_geometric_mean_with_half_widths_in_quadrature() -> None:
    found = joined([Interval(median=1.0, low=0.9, high=1.1), Interval(median=1.21, low=1.21, high=1.21 * 1.1)])
    assert found.mean.median == pytest.approx(1.1) and found.ends == (1.0, 1.21)
    assert np.log(1.1 / found.mean.low) == pytest.approx(-np.log(0.9) / 2)
    assert np.log(found.mean.high / 1.1) == pytest.approx(np.log(1.1) * np.sqrt(2) / 2)


def test_rounds_of_two_workloads_are_no_pairs() -> None:
    """Rounds of different workloads are not paired.

    Sorting the rounds of each workload leaves the class's result unchanged.
    """
    random = np.random.default_rng(1)
    one, other = (np.exp(random.normal(0, 0.05, ROUNDS)) for _ in range(2))
    ones = np.ones(ROUNDS)
    found = joined([_interval(one), _interval(other)])
    assert joined([_interval(np.sort(one)), _interval(np.sort(other)[::-1])]) == found
    assert found.mean.median == pytest.approx(np.sqrt(np.median(one) * np.median(other)))
    assert paired_ratio(np.sqrt(np.sort(one) * np.sort(other)), ones) != paired_ratio(np.sqrt(one * other), ones)


@pytest.mark.parametrize("workloads", [2, 5])
def test_the_interval_holds_the_mean_as_often_as_it_says(workloads: int) -> None:
    """About 95 % of the intervals of 1,000 simulated classes contain the true mean 1 (standard error 0.7 %)."""
    random = np.random.default_rng(workloads)
    spreads = np.linspace(0.02, 0.08, workloads)
    held = 0
    for _ in range(1_000):
        ratios = [_interval(np.exp(random.normal(0, spread, ROUNDS))) for spread in spreads]
        held += joined(ratios).mean.holds(1.0)
    assert 0.93 <= held / 1_000 <= 0.985


def _interval(ratios: np.ndarray) -> Interval:
    median, low, high = paired_ratio(ratios, np.ones(len(ratios)))
    return Interval(median=median, low=low, high=high)
