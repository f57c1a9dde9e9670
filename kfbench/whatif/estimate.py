"""Estimate the size of batches under a codec, from a sample of stretches. A stretch is a run of consecutive batches.

The size without a codec is known for all batches. It is multiplied by the compression ratio of the sample (a ratio
estimate over clusters: Cochran, Sampling Techniques, 6.4 and 9A).
"""

from collections.abc import Sequence
from functools import reduce
from math import exp, lgamma, pi, sqrt
from operator import mul
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.polynomial.legendre import leggauss

ONE_SIGMA: Final = 0.8413447460685429  # the share of a normal distribution below its mean plus its standard deviation


class Estimate(NamedTuple):
    """The estimated size under a codec, and its standard error.

    Args:
        size_bytes: None: nothing was sampled.
        error_bytes: 0: everything was compressed, so the size is exact. None: only one stretch was sampled, so there is
            no standard error.
    """

    size_bytes: int | None
    error_bytes: int | None


class StretchSums(NamedTuple):
    """Sums over the sample, which consists of stretches of consecutive batches.

    Args:
        stretches: number of stretches.
        plain: bytes without a codec.
        compressed: bytes with the codec.
        plain_squares, products, compressed_squares: sums of plain * plain, plain * compressed and compressed *
            compressed over the stretches.
    """

    stretches: int = 0
    plain: int = 0
    compressed: int = 0
    plain_squares: int = 0
    products: int = 0
    compressed_squares: int = 0

    @classmethod
    def of(cls, plain: Sequence[int], compressed: Sequence[int]) -> Self:
        """Return the sums over stretches that have so many bytes each."""
        squares = (sum(map(mul, *pair)) for pair in ((plain, plain), (plain, compressed), (compressed, compressed)))
        return cls(len(plain), sum(plain), sum(compressed), *squares)

    def plus(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(self, other, strict=True)))

    def estimate(self, plain_bytes: int) -> Estimate:
        """Estimate the size under the codec of batches that take `plain_bytes` without it, and the standard error."""
        if self.plain == plain_bytes:
            return Estimate(self.compressed, 0)
        if not self.plain:
            return Estimate(None, None)
        size_bytes = round(plain_bytes * self.ratio)
        if self.stretches < 2:
            return Estimate(size_bytes, None)
        return Estimate(size_bytes, round(plain_bytes * sqrt(self.variance(self.plain / plain_bytes))))

    @property
    def ratio(self) -> float:
        return self.compressed / self.plain

    def variance(self, share: float) -> float:
        """Return the variance of the ratio. share: the share of all stretches that was drawn, two or more."""
        ratio = self.ratio
        squares = self.compressed_squares - 2 * ratio * self.products + ratio * ratio * self.plain_squares
        return max(squares, 0.0) / (self.stretches - 1) * self.stretches * (1 - share) / self.plain**2


class SampleSums(NamedTuple):
    """Sums over the stretches that a hash drew, and over those that are always drawn.

    A stretch that is always drawn stands for itself alone. Otherwise small topics would weigh too much in the ratio.
    """

    random: StretchSums = StretchSums()
    certain: StretchSums = StretchSums()

    @property
    def both(self) -> StretchSums:
        return self.random.plus(self.certain)

    def plus(self, other: Self) -> Self:
        return type(self)(self.random.plus(other.random), self.certain.plus(other.certain))

    def estimate(self, plain_bytes: int) -> Estimate:
        """Estimate the bytes that `plain_bytes` take under the codec, and the standard error."""
        both = self.both
        if both.plain == plain_bytes or not self.random.stretches:
            return both.estimate(plain_bytes)
        size_bytes, error_bytes = self.random.estimate(plain_bytes - self.certain.plain)
        return Estimate(None if size_bytes is None else size_bytes + self.certain.compressed, error_bytes)


class Stratum(NamedTuple):
    """A part of the log that has a sample of its own.

    Args:
        size: the bytes at the codec's default level.
        sample: sums over its sample. `StretchSums.plain` has the bytes at the default level.
        share: the share of its stretches that was drawn.
    """

    size: Estimate
    sample: StretchSums
    share: float


def ratio_of(strata: Sequence[Stratum]) -> tuple[float, float | None]:
    """Return the ratio of the bytes of all strata to those at the default level, and its error.

    A stratum of a single stretch is taken to vary as much as all stretches together, and one without a stretch to have
    their ratio. The error is widened by Student's factor, so that it holds the true ratio in about 68 % of all samples,
    also if there are few stretches. None: there is only one.
    """
    every = reduce(StretchSums.plus, (each.sample for each in strata))
    total = max(sum(each.size.size_bytes or 0 for each in strata), 1)
    weights = [(each.size.size_bytes or 0) / total for each in strata]
    ratios = [each.sample.ratio if each.sample.plain else every.ratio for each in strata]
    ratio = sum(weight * own for weight, own in zip(weights, ratios, strict=True))
    variance = freedom = 0.0
    for each, weight, own in zip(strata, weights, ratios, strict=True):
        variance += ((each.size.error_bytes or 0) / total * (own - ratio)) ** 2  # the weight is an estimate, too
        if each.share == 1:
            continue
        has_error = each.sample.stretches > 1
        known = each.sample if has_error else every
        if known.stretches < 2:
            return ratio, None
        of_stratum = weight**2 * known.variance(each.share) * (1 if has_error else known.stretches)
        variance += of_stratum
        freedom += of_stratum**2 / (known.stretches - 1)
    if not freedom:
        return ratio, sqrt(variance)
    return ratio, sqrt(variance) * student_factor(variance**2 / freedom)


def student_factor(freedom: float) -> float:
    """Return the quantile of Student's distribution at ONE_SIGMA. freedom: degrees of freedom, about 1 or more.

    The density is integrated from 0 by Gauss and Legendre's rule. Newton's method starts at 1, below the quantile, and
    never steps over it, because the density falls.
    """
    if freedom > 1000:
        return 1 + 1 / freedom / 2 + freedom**-2 / 4 + freedom**-3 / 16  # Cornish and Fisher's expansion
    nodes, weights = leggauss(24)
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)
    quantile = 1.0
    for _ in range(8):
        points = np.append((1 + nodes) / 2, 1) * quantile
        *density, last = scale * (1 + points**2 / freedom) ** (-(freedom + 1) / 2)
        quantile += float((ONE_SIGMA - 0.5 - weights @ density * quantile / 2) / last)
    return quantile
