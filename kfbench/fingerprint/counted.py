"""Counts and sums by bucket, and counts of a sample of hashes. All add up over chunks, parts and workers.

A bucket is an eighth of an octave: 8, 9, …, 16 to 17, 18 to 19, …, 1,024 to 1,151. Its code is a small integer.
"""

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64

Hashes = NDArray[np.uint64]
MOST_HASHES: Final = 65_536
_DENSE: Final = 1 << 16
_FRACTION_BITS: Final = 49  # of a float64, without the three that number the eighths of an octave
_ONE: Final = 1023 << 3  # the exponent of 1.0, followed by these three bits


def codes_of(numbers: NDArray[Any]) -> Int64:
    """Return the bucket of each number: 0 for 0, 1 for 1, and so on. Negative numbers have negative codes."""
    large = np.abs(numbers.astype(np.float64))
    codes: Int64 = (large.view(np.int64) >> _FRACTION_BITS) - (_ONE - 1)
    codes[large == 0] = 0
    return np.where(numbers < 0, -codes, codes)


class Edges(NamedTuple):
    least: int
    most: int


def edges_of(code: int) -> Edges:
    """Return the least and the largest number of a bucket."""
    if code < 0:
        least, most = edges_of(-code)
        return Edges(-most, -least)
    return Edges(0, 0) if code == 0 else Edges(_first_of(code), _first_of(code + 1) - 1)


def _first_of(code: int) -> int:
    octave, eighth = divmod(code - 1, 8)
    return -(-((8 + eighth) << octave) // 8)


@dataclass(frozen=True)
class Counted:
    """Counts and sums by code. codes: int64[n], ascending. sums: int64[n, 1 + columns], the count first."""

    codes: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))
    sums: Int64 = field(default_factory=lambda: np.zeros((0, 1), np.int64))

    @classmethod
    def of(cls, codes: Int64, *columns: NDArray[Any]) -> Self:
        """Count items by code, and add up their columns. Every column has an item per code, or is the number 0."""
        if not len(codes):
            return cls()
        first = int(codes.min())
        if int(codes.max()) - first < _DENSE:
            names, rows = np.arange(first, int(codes.max()) + 1), codes - first
        else:
            names, rows = np.unique(codes, return_inverse=True)
        sums = np.zeros((1 + len(columns), len(names)), np.int64)
        sums[0] = np.bincount(rows, minlength=len(names))
        for total, column in zip(sums[1:], columns, strict=True):
            if column.ndim:
                np.add.at(total, rows, column.astype(np.int64))
        kept = np.flatnonzero(sums[0])
        return cls(names[kept], sums.T[kept])

    def plus(self, other: Self) -> Self:
        if not len(self.codes) or not len(other.codes):
            return self if len(self.codes) else other
        codes = np.concatenate([self.codes, other.codes])
        return type(self).grouped(codes, np.concatenate([self.sums, other.sums]))

    @classmethod
    def grouped(cls, codes: Int64, sums: Int64) -> Self:
        """Add up the rows of `sums` that have the same code."""
        if not len(codes):
            return cls()
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1))
        return cls(codes[order[starts]], np.add.reduceat(sums[order], starts))


@dataclass(frozen=True)
class HashSample:
    """How often each item of a sample appears. An item is in the sample if its hash has `level` leading zero bits.

    The level is the smallest with at most MOST_HASHES items. So it depends on the items, not on their order.
    """

    level: int = 0
    hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    counts: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, hashes: Hashes, level: int = 0) -> Self:
        """Count hashes. level: begin with this level, because those that are added to have it."""
        found, counts = np.unique(_drawn(hashes, level), return_counts=True)
        return cls(level, found, counts.astype(np.int64))._limited()

    def plus(self, other: Self) -> Self:
        level = max(self.level, other.level)
        hashes = np.concatenate([self.hashes, other.hashes])
        counts = np.concatenate([self.counts, other.counts])
        order = np.argsort(hashes, kind="stable")
        order = order[: np.count_nonzero(_is_drawn(hashes, level))]  # those in the sample are the smallest
        if not len(order):
            return type(self)(level)
        hashes = hashes[order]
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        return type(self)(level, hashes[starts], np.add.reduceat(counts[order], starts))._limited()

    def _limited(self) -> Self:
        level, kept = self.level, len(self.hashes)
        while kept > MOST_HASHES:
            level += 1
            kept = int(np.count_nonzero(_is_drawn(self.hashes, level)))
        return type(self)(level, self.hashes[:kept], self.counts[:kept])

    @property
    def share(self) -> float:
        """The share of all hashes that is drawn."""
        return 2.0**-self.level


def _is_drawn(hashes: Hashes, level: int) -> NDArray[np.bool_]:
    return hashes >> np.uint64(64 - level) == 0 if level else np.ones(len(hashes), np.bool_)


def _drawn(hashes: Hashes, level: int) -> Hashes:
    return hashes[_is_drawn(hashes, level)] if level else hashes
