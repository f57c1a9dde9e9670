"""How far a ratio moved between two measurements that were made apart, and whether that is more than a threshold.

The intervals are those of kfbench.measure.cpu.paired_ratio, of many arms at once: a percentile bootstrap of a median of
n values ends at two of them, whose ranks follow from n alone. Drawing resamples for each arm of two runs took 18 s.
"""

from functools import lru_cache
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

Verdict = Literal["slower", "faster", "within", "unclear"]
OUTSIDE: Final = 0.05  # of nominal 95 % intervals


class Estimate(NamedTuple):
    """A ratio and its 95 % interval."""

    median: float
    low: float
    high: float


def median(ratios: ArrayLike) -> Estimate:
    """The median of float[n] with its bootstrap interval, as of resamples without end."""
    ordered = np.sort(np.asarray(ratios, np.float64))
    low, high = _ranks(len(ordered))
    return Estimate(float(np.median(ordered)), float(ordered[low]), float(ordered[high]))


@lru_cache(maxsize=64)
def _ranks(n: int) -> tuple[int, int]:
    """Where, among n values in order, the bootstrap of their median ends.

    The median of a resample is at most the value of rank k where more than half of it is, which is binomial (Maritz and
    Jarrett, A note on estimating the variance of the sample median, JASA 73 (1978) 194). Of an even n the outer ones of
    the two middle values count.
    """
    shares = np.arange(1, n + 1) / n  # of the values that are among the first k

    def rank(least: int, share: float) -> int:
        """The first k that holds `least` values or more in that share of the resamples."""
        return int(np.searchsorted(betainc(least, n - least + 1, shares), share))

    return rank((n + 1) // 2, OUTSIDE / 2), rank(n // 2 + 1, 1 - OUTSIDE / 2)


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
    """The interval wide enough that `number` of its like hold together with 95 % (Bonferroni; tails as if normal)."""
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
