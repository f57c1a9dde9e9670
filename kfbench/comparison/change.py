"""The change of a ratio between two independent measurements, and a verdict such as "slower" on it."""

from functools import lru_cache
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final, Literal

from kfbench.measure.cpu import CONFIDENCE, PairedRatio

Verdict = Literal["slower", "faster", "within", "unclear"]
OUTSIDE: Final = 1 - CONFIDENCE  # the probability that the true value lies outside an interval


def change(before: PairedRatio, after: PairedRatio) -> PairedRatio:
    """Return after / before, with its interval. The errors are independent, so it follows from both intervals.

    The logarithm of after / before is a difference. Its distance to its lower limit is the square root of a² + b²: a is
    the distance of `after` to its lower limit, b of `before` to its upper limit. The upper limit follows in the same
    way from the other two limits. Source: Zou and Donner, Construction of confidence limits about effect measures: a
    general approach, Statistics in Medicine 27 (2008) 1693.
    """
    moved = log(after.median / before.median)
    down = hypot(log(after.median / after.low), log(before.high / before.median))
    up = hypot(log(after.high / after.median), log(before.median / before.low))
    return PairedRatio(exp(moved), exp(moved - down), exp(moved + up))


def together(found: PairedRatio, number: int) -> PairedRatio:
    """Widen an interval so that `number` intervals hold together with the probability CONFIDENCE.

    The method is Bonferroni's, with normal tails.
    """
    factor = _quantile(number) / _quantile(1)
    low, high = (found.median * (end / found.median) ** factor for end in (found.low, found.high))
    return PairedRatio(found.median, low, high)


@lru_cache(maxsize=64)
def _quantile(number: int) -> float:
    return NormalDist().inv_cdf(1 - OUTSIDE / 2 / number)


def verdict(found: PairedRatio, threshold: float) -> Verdict:
    """Give a verdict on an interval. threshold: 0.03 for 3 %.

    "slower" or "faster": the whole interval is beyond the threshold. "within": the whole interval is inside. "unclear":
    neither.
    """
    least, most = 1 / (1 + threshold), 1 + threshold
    if found.low > most:
        return "slower"
    if found.high < least:
        return "faster"
    return "within" if found.low >= least and found.high <= most else "unclear"
