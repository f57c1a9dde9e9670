"""Estimate the size of batches under a codec, from a sample of stretches. A stretch is a run of consecutive batches.

The size without a codec is known for all batches. It is multiplied by the compression ratio of the sample (a ratio
estimate over clusters: Cochran, Sampling Techniques, 6.4 and 9A).
"""

from math import sqrt
from typing import NamedTuple, Self


class Estimate(NamedTuple):
    """The estimated size under a codec, and its standard error.

    The sample consists of stretches of consecutive batches.

    Args:
        size_bytes: None: nothing was sampled.
        error_bytes: 0: everything was compressed, so the size is exact. None: only one stretch was sampled, so there is
            no standard error.
    """

    size_bytes: int | None
    error_bytes: int | None


class Drawn(NamedTuple):
    """Sums over the sample, which consists of stretches of consecutive batches.

    Args:
        stretches: number of stretches.
        plain: bytes without a codec.
        coded: bytes with the codec.
        plain_squares, products, coded_squares: sums of plain * plain, plain * coded and coded * coded over the
            stretches.
    """

    stretches: int = 0
    plain: int = 0
    coded: int = 0
    plain_squares: int = 0
    products: int = 0
    coded_squares: int = 0

    @classmethod
    def of(cls, plain: int, coded: int) -> Self:
        return cls(1, plain, coded, plain * plain, plain * coded, coded * coded)

    def plus(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(self, other, strict=True)))

    def estimate(self, plain_bytes: int) -> Estimate:
        """Estimate the size under the codec of batches that take `plain_bytes` without it, and the standard error."""
        if self.plain == plain_bytes:
            return Estimate(self.coded, 0)
        if not self.plain:
            return Estimate(None, None)
        ratio = self.coded / self.plain
        size_bytes = round(plain_bytes * ratio)
        if self.stretches < 2:
            return Estimate(size_bytes, None)
        squares = self.coded_squares - 2 * ratio * self.products + ratio * ratio * self.plain_squares
        drawn = self.plain / plain_bytes
        variance = squares / (self.stretches - 1) * self.stretches * (1 - drawn) / drawn**2
        return Estimate(size_bytes, round(sqrt(max(variance, 0.0))))


class SampleSums(NamedTuple):
    """Sums over the stretches that a hash drew, and over those that are always drawn.

    A stretch that is always drawn stands for itself alone. Otherwise small topics would weigh too much in the ratio.
    """

    drawn: Drawn = Drawn()
    certain: Drawn = Drawn()

    @classmethod
    def of(cls, stretch: Drawn, is_certain: bool) -> Self:
        return cls(certain=stretch) if is_certain else cls(drawn=stretch)

    @property
    def both(self) -> Drawn:
        return self.drawn.plus(self.certain)

    def plus(self, other: Self) -> Self:
        return type(self)(self.drawn.plus(other.drawn), self.certain.plus(other.certain))

    def estimate(self, plain_bytes: int) -> Estimate:
        """Estimate the bytes that `plain_bytes` take under the codec, and the standard error."""
        both = self.both
        if both.plain == plain_bytes or not self.drawn.stretches:
            return both.estimate(plain_bytes)
        size_bytes, error_bytes = self.drawn.estimate(plain_bytes - self.certain.plain)
        return Estimate(None if size_bytes is None else size_bytes + self.certain.coded, error_bytes)
