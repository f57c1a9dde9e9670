"""How far a ratio moved between two measurements that were made apart, and whether that is more than a threshold."""

from functools import lru_cache
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

from kfbench.measure.cpu import CONFIDENCE

Verdict = Literal["slower", "faster", "within", "unclear"]
OUTSIDE: Final = 1 - CONFIDENCE  # of the intervals


class Estimate(NamedTuple):
    """A ratio and its interval, as kfbench.measure.cpu.paired_ratio gives them."""

    median: float
    low: float
    high: float


def change(before: Estimate, after: Estimate) -> Estimate:
    """after / before, whose errors are independent: the ends come from those of both, without another bootstrap.

    Zou and Donner, Construction of confidence limits about effect measures: a general approach, Statistics in Medicine
    27 (2008) 1693: the limits of a difference (here of logarithms) lie as far from it as the root of the summed squares
    of the distances of both.
    """
    moved = log(after.median / before.median)
    down = hypot(log(after.median / after.low), log(before.high / before.median))
    up = hypot(log(after.high / after.median), log(before.median / before.low))
    return Estimate(exp(moved), exp(moved - down), exp(moved + up))


def together(found: Estimate, number: int) -> Estimate:
    """The interval so wide that `number` of its like hold together with CONFIDENCE (Bonferroni; tails as if normal)."""
    factor = _quantile(number) / _quantile(1)
    low, high = (found.median * (end / found.median) ** factor for end in (found.low, found.high))
    return Estimate(found.median, low, high)


@lru_cache(maxsize=64)
def _quantile(number: int) -> float:
    return NormalDist().inv_cdf(1 - OUTSIDE / 2 / number)


def verdict(found: Estimate, threshold: float) -> Verdict:
    """slower or faster: the whole interval lies beyond the threshold; within: all of it lies inside; else unclear."""
    least, most = 1 / (1 + threshold), 1 + threshold
    if found.low > most:
        return "slower"
    if found.high < least:
        return "faster"
    return "within" if found.low >= least and found.high <= most else "unclear"
