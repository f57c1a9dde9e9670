"""Draw random lengths, time gaps and keys from a TOML table, such as `{ dist = "lognormal", mean = 212, sigma = 0.9 }`.

A draw is one of 65,536 equally likely quantiles. Quantile i is at the probability (i + 0.5) / 65,536. So a draw is one
table look-up, without powers and logarithms. This has a price: the mean of a generalised Pareto tail of shape 0.35 is
0.04 % too low, and no value beyond the quantile at 1 - 1/131,072 is ever drawn. Gaps are rounded to 20 significant bits
(`coarse`), so they are the same on every processor.

Lengths are whole numbers. The parameter `whole` chooses how a continuous length is rounded: "round" (the default,
without bias), "floor" (down) or "ceil" (up). A workload rounds like the source of its numbers: mutilate rounds ETC's
key lengths to the nearest number and its value lengths down; db_bench's mixgraph rounds up.

Source of generalised extreme value and generalised Pareto: Atikoglu et al., "Workload analysis of a large-scale
key-value store" (SIGMETRICS 2012). Its shape parameter k is c = -k in scipy's `genextreme` and c = k in `genpareto`.

Keys are drawn as ids, ordered by popularity: id 0 is the most popular key. Zipf's law is P(id) = (id + 1)^-skew / sum.
It is drawn with Walker's alias table ("An efficient method for generating discrete random variables", ACM TOMS 1977)
over groups of keys. Each of the most popular keys is a group alone. Other neighbouring keys share a group while their
probabilities differ by at most 0.05 %. All keys of a group are drawn with the same probability, so the error of a
probability is at most 0.05 %. A million keys make 15,000 groups. A table of 15,000 groups stays in a core's cache; a
table of a million keys would not.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import read_only
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload import draws

Floats = NDArray[np.float64]
Q = TypeVar("Q", np.float64, np.int32)
QUANTILES: Final = 65_536
MAX_LENGTH: Final = 2**31 - 1
KEY_IDS: Final = 1_000  # the number of the stream of random draws for `KeyDistribution.ids`
MAX_CARDINALITY: Final = 2**40
SHARE_BITS: Final = 22  # significant bits, so that shares are the same on every processor
ALIKE: Final = 1 / 2_000  # the largest relative difference of probabilities in a group


def require(holds: bool, what: str) -> None:
    """Raise InvalidConfig with the message `what` unless `holds` is True. msgspec adds the path of the TOML key."""
    if not holds:
        raise InvalidConfig(what)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, tuple):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, float | int):
        yield value


def coarse(values: Floats, bits: int = 20) -> Floats:
    """Round values to `bits` significant bits, so that they are the same on almost every processor.

    Logarithms and powers of NumPy and the C library differ between processors in the last of 53 bits. After rounding to
    20 bits, about one of 10,000 tables still has a different value (one of its 65,536).
    """
    fraction, exponent = np.frexp(values)
    found: Floats = np.ldexp(np.rint(np.ldexp(fraction, bits)), exponent - bits)
    return found


class _Distribution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="dist"):
    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            require(all(map(math.isfinite, _numbers(getattr(self, name)))), f"{name}: not a finite number")
        self.check()

    def check(self) -> None:
        """Raise InvalidConfig, with the parameter's name, for invalid parameters."""

    def at(self, p: Floats) -> Floats:
        """Return the value of the distribution at each probability p: float64[n]. 0 < p < 1."""
        raise NotImplementedError

    def quantiles(self, count: int) -> Floats:
        """Return `count` equally likely values, ascending. Value i is the quantile at (i + 0.5) / count."""
        return self.at((np.arange(count) + 0.5) / count)

    def whole_quantiles(self, count: int) -> Floats:
        return np.rint(self.quantiles(count))


class FixedValue(_Distribution, tag="fixed", frozen=True, kw_only=True):
    """A constant: every draw is `value`."""

    value: float

    def at(self, p: Floats) -> Floats:
        return np.full(len(p), float(self.value))


class Uniform(_Distribution, tag="uniform", frozen=True, kw_only=True):
    """The uniform distribution from `low` to `high`. Each whole length from low to high is equally likely."""

    low: float
    high: float

    def check(self) -> None:
        require(self.low <= self.high, f"low: {self.low} is above high, {self.high}")

    def at(self, p: Floats) -> Floats:
        return self.low + (self.high - self.low) * p

    def whole_quantiles(self, count: int) -> Floats:
        low, high = math.ceil(self.low), math.floor(self.high)
        p = (np.arange(count) + 0.5) / count
        return np.floor(low + (high - low + 1) * p)


class _Continuous(_Distribution, frozen=True, kw_only=True):
    """A continuous distribution with optional limits.

    Args:
        whole: how a length is rounded to a whole number.
        low: values below it become `low`.
        cap: values above it become `cap`.
    """

    whole: Literal["round", "floor", "ceil"] = "round"
    low: float | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low is not None and self.cap is not None:
            require(self.low <= self.cap, f"low: {self.low} is above cap, {self.cap}")

    def quantiles(self, count: int) -> Floats:
        return self._within(coarse(super().quantiles(count)))

    def whole_quantiles(self, count: int) -> Floats:
        to_whole = {"round": np.rint, "floor": np.floor, "ceil": np.ceil}[self.whole]
        return self._within(to_whole(self._within(super().quantiles(count))))

    def _within(self, values: Floats) -> Floats:
        low = -np.inf if self.low is None else self.low
        return np.clip(values, low, np.inf if self.cap is None else self.cap)


class Lognormal(_Continuous, tag="lognormal", frozen=True, kw_only=True):
    """The lognormal distribution. sigma: the standard deviation of the values' natural logarithm.

    Either `mean` (of the values before the limits low and cap) or `median` must be given.
    """

    sigma: float
    mean: float | None = None
    median: float | None = None

    def check(self) -> None:
        require(self.sigma > 0, f"sigma: {self.sigma} is not above 0")
        require((self.mean is None) != (self.median is None), "mean: either mean or median is wanted")
        require((self.mean or self.median or 0) > 0, "mean: not above 0")

    def at(self, p: Floats) -> Floats:
        median = self.median if self.mean is None else self.mean * math.exp(-(self.sigma**2) / 2)
        found: Floats = median * np.exp(self.sigma * np.array([*map(NormalDist().inv_cdf, p.tolist())]))
        return found


class GeneralisedPareto(_Continuous, tag="generalised-pareto", frozen=True, kw_only=True):
    """The generalised Pareto distribution. Its quantile at p is theta + sigma · ((1 - p)^-k - 1) / k.

    With k = 0, it is theta plus an exponential distribution of mean sigma.
    """

    sigma: float
    k: float
    theta: float = 0.0

    def check(self) -> None:
        require(self.sigma > 0, f"sigma: {self.sigma} is not above 0")
        require(self.k < 1, f"k: {self.k} is not below 1, so there is no mean")

    def at(self, p: Floats) -> Floats:
        log = np.log1p(-p)
        return self.theta + self.sigma * (np.expm1(-self.k * log) / self.k if self.k else -log)


class GeneralisedExtremeValue(_Continuous, tag="generalised-extreme-value", frozen=True, kw_only=True):
    """The generalised extreme value distribution. Its quantile at p is mu + sigma · ((-ln p)^-k - 1) / k.

    With k = 0, it is Gumbel's distribution.
    """

    mu: float
    sigma: float
    k: float

    def check(self) -> None:
        require(self.sigma > 0, f"sigma: {self.sigma} is not above 0")
        require(self.k < 1, f"k: {self.k} is not below 1, so there is no mean")

    def at(self, p: Floats) -> Floats:
        log = np.log(-np.log(p))
        return self.mu + self.sigma * (np.expm1(-self.k * log) / self.k if self.k else -log)


class Empirical(_Continuous, tag="empirical", frozen=True, kw_only=True):
    """A distribution through measured quantiles.

    Between two points, the logarithm of the value is linear in the probability. If the value is 0 at one of the points,
    the value itself is linear. (This is an assumption.) Outside the points, the nearest segment continues.

    points: ascending pairs of probability and value, such as [[.05, 19], [.5, 39], [.95, 80]].
    """

    points: tuple[tuple[float, float], ...]

    def check(self) -> None:
        require(len(self.points) > 1, "points: at least two are wanted")
        for (p, value), (next_p, next_value) in zip(self.points, self.points[1:], strict=False):
            require(0 <= p < next_p <= 1, f"points: {p}, {next_p}: not rising probabilities from 0 to 1")
            require(0 <= value <= next_value, f"points: {value}, {next_value}: not rising values from 0 on")

    def at(self, p: Floats) -> Floats:
        known, values = np.array(self.points, np.float64).T
        i = np.clip(np.searchsorted(known, p, side="right") - 1, 0, len(known) - 2)
        share = (p - known[i]) / (known[i + 1] - known[i])
        low, high = values[i], values[i + 1]
        ratio = np.divide(high, low, out=np.ones(len(p)), where=low > 0)
        found: Floats = np.where(low > 0, low * ratio**share, np.maximum(low + (high - low) * share, 0))
        return found


class WeightedChoice(_Distribution, tag="choice", frozen=True, kw_only=True):
    """A choice of one of `values`. Its probability is proportional to its weight; without weights, all are equal."""

    values: tuple[float, ...]
    weights: tuple[float, ...] | None = None

    def check(self) -> None:
        require(len(self.values) > 0, "values: empty")
        _check_weights(self.weights, len(self.values))

    def at(self, p: Floats) -> Floats:
        weights = np.ones(len(self.values)) if self.weights is None else np.array(self.weights, np.float64)
        until = np.cumsum(weights)
        found: Floats = np.array(self.values, np.float64)[np.searchsorted(until[:-1], p * until[-1], side="right")]
        return found


class Mixture(_Distribution, tag="mixture", frozen=True, kw_only=True):
    """A mixture: each draw is from one of several distributions, for example a discrete part and a tail.

    weights: numbers that are proportional to the probability of each part.
    """

    weights: tuple[float, ...]
    parts: "tuple[Distribution, ...]"

    def check(self) -> None:
        require(len(self.parts) > 0, "parts: empty")
        _check_weights(self.weights, len(self.parts))

    def _shares(self, count: int) -> list[int]:
        until = np.cumsum(np.array(self.weights, np.float64))
        shares: list[int] = np.diff(np.rint(until / until[-1] * count), prepend=0).astype(int).tolist()
        return shares

    def quantiles(self, count: int) -> Floats:
        pairs = zip(self.parts, self._shares(count), strict=True)
        return np.sort(np.concatenate([part.quantiles(share) for part, share in pairs]))

    def whole_quantiles(self, count: int) -> Floats:
        pairs = zip(self.parts, self._shares(count), strict=True)
        return np.sort(np.concatenate([part.whole_quantiles(share) for part, share in pairs]))


def _check_weights(weights: tuple[float, ...] | None, count: int) -> None:
    if weights is not None:
        require(len(weights) == count, f"weights: {len(weights)} for {count}")
        require(min(weights) >= 0 and sum(weights) > 0, "weights: one is negative, or none is above 0")


Distribution = (
    FixedValue
    | Uniform
    | Lognormal
    | GeneralisedPareto
    | GeneralisedExtremeValue
    | Empirical
    | WeightedChoice
    | Mixture
)


@lru_cache(maxsize=64)
def table(d: Distribution) -> Floats:
    """Return equally likely values for `draw`: float64[65_536], ascending, read-only.

    Raises InvalidConfig if a value is too large for float64.
    """
    found = d.quantiles(QUANTILES)
    require(bool(np.isfinite(found).all()), f"{d}: a value is too large for float64")
    return read_only(found)


@lru_cache(maxsize=64)
def lengths_table(d: Distribution) -> NDArray[np.int32]:
    """Return equally likely lengths for `draw`: int32[65_536], ascending, read-only.

    Raises InvalidConfig for a length below 0 or above 2**31 - 1.
    """
    found = d.whole_quantiles(QUANTILES)
    if not (found[0] >= 0 and found[-1] <= MAX_LENGTH):
        raise InvalidConfig(f"{d}: lengths from {found[0]:g} to {found[-1]:g}, but 0 to {MAX_LENGTH} are possible")
    return read_only(found.astype(np.int32))


def mean(d: Distribution) -> float:
    """Return the exact mean of the values that are drawn."""
    return math.fsum(table(d).tolist()) / QUANTILES


def mean_length(d: Distribution) -> float:
    """Return the exact mean of the lengths that are drawn."""
    return float(lengths_table(d).mean())


def draw(quantiles: NDArray[Q], seed: int, purpose: int, start: int, records: int) -> NDArray[Q]:
    """Draw one value for each record from number `start` on, in the type of the quantiles: [records].

    quantiles: [65_536] equally likely values, such as `table` and `lengths_table` return. purpose: the number of a
    stream of random draws. Different streams are independent.
    """
    out = np.empty(records, quantiles.dtype)
    draws.pick(seed, purpose, start, quantiles, out)
    return out


@dataclass(frozen=True, kw_only=True)
class KeyDistribution:
    """The rule that gives each record a key id. Raises InvalidConfig for invalid or contradicting fields."""

    cardinality: int | None = None  # the number of keys; None: each record has its own key
    skew: float = 0.0  # Zipf's exponent; 0: all keys are equally likely
    in_turn: bool = False  # keys take turns, as when devices report in rounds

    def __post_init__(self) -> None:
        if self.cardinality is not None and not 1 <= self.cardinality <= MAX_CARDINALITY:
            raise InvalidConfig(f"cardinality: {self.cardinality} is not within 1 to {MAX_CARDINALITY}")
        if not 0 <= self.skew <= 10:
            raise InvalidConfig(f"skew: {self.skew} is not within 0 to 10")
        if self.skew and (self.in_turn or self.cardinality is None):
            raise InvalidConfig("skew: keys in turn, or one key per record, have no skew")

    def ids(self, seed: int, start: int, records: int) -> NDArray[np.int64]:
        """Return the key id of each record from number `start` on: int64[records].

        Ids are from 0 to cardinality - 1. If cardinality is None, the id is the number of the record.
        """
        if self.cardinality is None:
            return np.arange(start, start + records)
        if self.in_turn:
            return np.arange(start, start + records) % self.cardinality
        groups = zipf(self.cardinality, self.skew)
        out = np.empty(records, np.int64)
        draws.grouped(seed, KEY_IDS, start, groups.bits, groups.table, groups.firsts, groups.widths * 2.0**-53, out)
        return out


@dataclass(frozen=True, kw_only=True)
class KeyGroups:
    """Groups of neighbouring key ids. All arrays except `table` have one item per group."""

    firsts: NDArray[np.int64]  # the first id of the group
    widths: NDArray[np.float64]  # the number of ids in the group
    shares: NDArray[np.float64]  # the probability of the group; shares add up to 1
    table: NDArray[np.uint64]  # the alias table of the shares, for `draws.grouped`

    @property
    def bits(self) -> int:
        return len(self.table).bit_length() - 1


@lru_cache(maxsize=16)
def zipf(cardinality: int, skew: float) -> KeyGroups:
    """Group the keys of Zipf's law and return the groups with their probabilities.

    For groups of several keys, an integral replaces the sum of the keys' probabilities. Its error is below 10**-6.
    """
    if skew:
        alone = min(math.ceil(2 * skew / ALIKE), cardinality)
        steps = math.ceil(math.log(cardinality / alone) / ALIKE * skew)
        beyond = np.ceil(coarse(np.geomspace(alone, cardinality, steps + 1)[:-1]))
        beyond = np.append(np.clip(beyond, alone, cardinality), cardinality)
        edges = np.unique(np.concatenate([np.arange(alone), beyond])).astype(np.int64)
    else:
        edges = np.array([0, cardinality])
    widths = np.diff(edges).astype(np.float64)
    low = edges[:-1] + 0.5
    span = np.log1p(widths / low)
    wide = low ** (1 - skew) * (np.expm1((1 - skew) * span) / (1 - skew) if skew != 1 else span)
    shares = coarse(np.where(widths > 1, wide, (edges[:-1] + 1.0) ** -skew), SHARE_BITS)
    shares /= math.fsum(shares)
    return KeyGroups(firsts=edges[:-1], widths=widths, shares=shares, table=alias_table(shares))


def alias_table(shares: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the alias table for `draws.grouped`: uint64[cells], with the threshold in the upper 32 bits of an entry.

    The number of cells is a power of two, at least the number of shares and at least 2, so that a bit shift chooses a
    cell. Cells after the last share start empty. Cells above the average give their excess to cells below the average,
    in order. Two running sums, of excess and of lack, show which cell gives to which cell (Hübschle-Schneider and
    Sanders, "Parallel weighted random sampling", 2019).

    shares: float64[n], probabilities with the sum 1.
    """
    cells = 1 << max((len(shares) - 1).bit_length(), 1)
    keep, other = np.zeros(cells), np.arange(cells)
    keep[: len(shares)] = shares * cells
    above, below = np.flatnonzero(keep > 1), np.flatnonzero(keep <= 1)
    if len(above):
        excess, lack = np.cumsum(keep[above] - 1), np.cumsum(1 - keep[below])
        before = np.concatenate([[0.0], lack[:-1]])
        other[below] = above[np.minimum(np.searchsorted(excess, before, side="right"), len(above) - 1)]
        # A cell above the average gives until it is below the average. Then the next cell above gives it the rest.
        last = np.minimum(np.searchsorted(lack, excess), len(lack) - 1)
        keep[above[:-1]] = (1 + excess - lack[last])[:-1]
        other[above[:-1]] = above[1:]
    threshold = np.clip(np.rint(keep * 2.0**32), 0, 2**32 - 1).astype(np.uint64)
    return threshold << np.uint64(32) | other.astype(np.uint64)
