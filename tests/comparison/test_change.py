import numpy as np
import pytest

from kfbench.comparison.agreement import change, together, verdict
from kfbench.measure.cpu import PairedRatio, paired_ratio


def test_the_change_is_the_quotient_and_equal_errors_add_up_as_squares() -> None:
    found = change(PairedRatio(0.8, 0.8 / 1.03, 0.8 * 1.03), PairedRatio(1.2, 1.2 / 1.04, 1.2 * 1.04))
    assert found.median == pytest.approx(1.5)
    width = np.log(found.high / found.median)
    assert width == pytest.approx(np.hypot(np.log(1.03), np.log(1.04)))
    assert np.log(found.median / found.low) == pytest.approx(width)


def test_the_lower_end_is_of_the_later_ones_lower_and_the_earlier_ones_upper() -> None:
    exact = PairedRatio(1.0, 1.0, 1.0)
    assert change(exact, PairedRatio(1.0, 0.9, 1.3)) == pytest.approx((1.0, 0.9, 1.3))
    assert change(PairedRatio(1.0, 0.9, 1.3), exact) == pytest.approx((1.0, 1 / 1.3, 1 / 0.9))


def test_intervals_hold_an_unchanged_ratio_about_95_times_in_100() -> None:
    """Measure the same call twice with 19 rounds each, 2,000 times.

    About 95 % of the intervals contain the ratio 1, as stated.
    """
    rounds = np.random.default_rng(3).normal(1.2, 0.03, (2_000, 2, 19))
    pairs = [[paired_ratio(each, np.ones(19)) for each in both] for both in rounds]
    changes = [change(before, after) for before, after in pairs]
    assert 0.94 <= np.mean([found.low <= 1 <= found.high for found in changes]) <= 0.99


def test_intervals_that_hold_together_are_wider_in_one_proportion() -> None:
    found = PairedRatio(1.1, 1.0, 1.3)
    assert together(found, 1) == pytest.approx(found)
    wide = together(found, 1_000)  # a normal quantile of 4.06 instead of 1.96
    assert np.log(1.1 / wide.low) / np.log(1.1 / 1.0) == pytest.approx(4.0556 / 1.96, rel=1e-3)
    assert np.log(wide.high / 1.1) / np.log(1.3 / 1.1) == pytest.approx(4.0556 / 1.96, rel=1e-3)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1.031, 1.5), "slower"),
        ((1.029, 1.5), "unclear"),
        ((0.98, 1.02), "within"),
        ((0.5, 0.97), "faster"),
        ((0.5, 0.972), "unclear"),
        ((0.5, 1.5), "unclear"),
    ],
)
def test_the_whole_interval_counts(interval: tuple[float, float], expected: str) -> None:
    assert verdict(PairedRatio(1.0, *interval), 0.03) == expected
