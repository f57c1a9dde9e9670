"""The change of a ratio between two independent measurements, and its verdict against a threshold."""

from functools import lru_cache
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final, Literal

from kfbench.measure.cpu import CONFIDENCE, PairedRatio

Verdict = Literal["slower", "faster", "within", "unclear"]
OUTSIDE: Final = 1 - CONFIDENCE  # how often the true value lies outside an interval


def change(before: PairedRatio, after: PairedRatio) -> PairedRatio:
    """Return after / before. The errors are independent, so the interval follows from both intervals.

    The limits of a difference (here of logarithms) lie as far from it as the root of the summed squares of the two
    distances. Source: Zou and Donner, Construction of confidence limits about effect measures: a general approach,
    Statistics in Medicine 27 (2008) 1693.
    """
    moved = log(after.median / before.median)
    down = hypot(log(after.median / after.low), log(before.high / before.median))
    up = hypot(log(after.high / after.median), log(before.median / before.low))
    return PairedRatio(exp(moved), exp(moved - down), exp(moved + up))


def together(found: PairedRatio, number: int) -> PairedRatio:
    """Widen an interval so that `number` of them hold together with CONFIDENCE (Bonferroni, normal tails)."""
    factor = _quantile(number) / _quantile(1)
    low, high = (found.median * (end / found.median) ** factor for end in (found.low, found.high))
    return PairedRatio(found.median, low, high)


@lru_cache(maxsize=64)
def _quantile(number: int) -> float:
    return NormalDist().inv_cdf(1 - OUTSIDE / 2 / number)


def verdict(found: PairedRatio, threshold: float) -> Verdict:
    """Judge an interval. threshold: 0.03 for 3 %.

    "slower" or "faster": all of it is beyond the threshold. "within": all of it is inside. "unclear": neither.
    """
    least, most = 1 / (1 + threshold), 1 + threshold
    if found.low > most:
        return "slower"
    if found.high < least:
        return "faster"
    return "within" if found.low >= least and found.high <= most else "unclear"
