"""Compute intervals of CPU time ratios from their rounds a second time: by NumPy, with no code of kfbench.

docs/terms.md and docs/methodology.md define the interval, the spread between arms and the tie.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from math import ceil, exp, hypot, log, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Numbers = dict[tuple[str, ...], dict[str, float | str]]  # a table: key cells of a row -> column -> number or words
SHARE: Final = 0.95
LEAST_ARMS: Final = 20  # kinds with fewer A/A arms share a spread
LEAST_ROUNDS: Final = 9


class Interval(NamedTuple):
    """The median of ratios and the ends of its 95 % interval."""

    median: float
    low: float
    high: float

    def widened(self, spread: float) -> "Interval":
        """Join both half-widths with the spread in quadrature, on a log scale."""
        if not spread or self.low <= 0:
            return self
        below, above = hypot(log(self.median / self.low), spread), hypot(log(self.high / self.median), spread)
        return Interval(self.median, self.median * exp(-below), self.median * exp(above))

    @property
    def missing(self) -> float:
        """The smallest spread that makes the interval hold 1.0."""
        if self.low <= 1 <= self.high:
            return 0.0
        near = self.low if self.median > 1 else self.high
        return sqrt(log(self.median) ** 2 - log(self.median / near) ** 2)


def interval(ratios: Sequence[float] | NDArray[np.float64], spread: float = 0.0) -> Interval:
    """Return the 95 % percentile bootstrap of the median of one ratio per round.

    An odd number of rounds is exact: a resample's median is at most the k-th smallest ratio if more than half of its n
    draws are, each with the chance k / n. An even number is resampled 2,000 times.
    """
    ordered = np.sort(np.asarray(ratios, np.float64))
    rounds, edge = len(ordered), (1 - SHARE) / 2
    if rounds % 2:
        low, high = (ordered[place] for place in _places(rounds))
    else:
        medians = np.median(ordered[np.random.default_rng(0).integers(0, rounds, (2_000, rounds))], axis=1)
        low, high = np.quantile(medians, [edge, 1 - edge])
    return Interval(float(np.median(ordered)), float(low), float(high)).widened(spread)


@cache
def _places(rounds: int) -> tuple[int, int]:
    ranks = np.arange(1, rounds + 1)
    at_most = binom.sf(rounds // 2, rounds, ranks / rounds)
    return int(np.sum(at_most < (1 - SHARE) / 2)), int(np.sum(at_most < (1 + SHARE) / 2))


def spreads(pairs: Iterable[tuple[str, Sequence[float] | NDArray[np.float64]]]) -> dict[str, float]:
    """Return the spread between arms of each kind, from pairs of a kind and the A/A ratios of one arm's rounds."""
    of_kind: dict[str, list[float]] = {}
    for kind, ratios in pairs:
        if len(ratios) >= LEAST_ROUNDS:
            of_kind.setdefault(kind, []).append(interval(ratios).missing)
    small = [each for found in of_kind.values() if len(found) < LEAST_ARMS for each in found]
    return {kind: _spread(found if len(found) >= LEAST_ARMS else small) for kind, found in of_kind.items()}


def _spread(missing: Sequence[float]) -> float:
    """Return what 95 % of the arms need at most, with one arm counted on top; 0 if there are too few arms."""
    rank = ceil((len(missing) + 1) * SHARE)
    return sorted(missing)[rank - 1] if rank <= len(missing) else 0.0


def least_that_hold(intervals: int) -> float:
    """Return the least share of A/A intervals that hold 1.0: fewer are less likely than 5 % if each does by 92 %."""
    return float(binom.ppf(0.05, intervals, 0.92)) / intervals


def mean(ratios: Sequence[Interval]) -> Interval:
    """Return the geometric mean over workloads; half-widths in quadrature, divided by the number of workloads."""
    middle = np.mean([log(each.median) for each in ratios])
    below = hypot(*(log(each.median / each.low) for each in ratios)) / len(ratios)
    above = hypot(*(log(each.high / each.median) for each in ratios)) / len(ratios)
    return Interval(exp(middle), exp(middle - below), exp(middle + above))


def numbers(column: str, value: Any) -> dict[str, float | str]:
    """Return a cell of SQL as columns: a number or [number]; an interval, or the mean of [intervals], as three.

    Words stay. {number, words} is one column of both that are not missing, or two.
    """
    if value is None or isinstance(value, str):
        return {} if value is None else {column: value}
    if isinstance(value, dict):
        number, words = value["number"], value["words"]
        both = {column: words} if number is None else {column: float(number), f"{column} words": words}
        return {name: cell for name, cell in both.items() if cell is not None}
    cells = value if isinstance(value, list | tuple) else [value]
    if isinstance(cells[0], list):
        cells = cells[0] if len(cells[0]) == 1 else mean([Interval(*each) for each in cells])
    return dict(zip((column, f"{column} low", f"{column} high")[: len(cells)], map(float, cells), strict=True))


def add_fronts(table: Numbers, noise: float) -> None:
    """Add whether a format is on the front of bytes and CPU time, to rows of records per batch and format.

    It is if it takes less CPU time than all on the front with fewer bytes, and none with as many bytes takes less.
    Less: intervals are disjoint, and the ratio is below `noise`. A format that loses something is not compared.
    """
    for size in {key[0] for key in table}:
        rows: list[dict[str, Any]] = [row for key, row in table.items() if key[0] == size]
        for operation in ("encode", "decode"):
            front: list[tuple[float, Interval]] = []
            timed = [(row["all bytes × v2"], _time(row, operation), row) for row in rows]
            for bytes_, time, row in sorted(timed, key=lambda each: each[:2]):
                column = f"on the front {operation}"
                if "loses these records" in row:
                    row[column] = "not compared"
                    continue
                beaten = [
                    not _is_less(time, other, noise) if fewer < bytes_ else _is_less(other, time, noise)
                    for fewer, other in front
                ]
                row[column] = "no" if any(beaten) else "yes"
                front += [(bytes_, time)] if not any(beaten) else []


def _time(row: dict[str, Any], operation: str) -> Interval:
    return Interval(*(row[f"{operation} CPU × v2{end}"] for end in ("", " low", " high")))


def _is_less(one: Interval, other: Interval, noise: float) -> bool:
    return one.high < other.low and one.median / other.median < noise
