"""Keys of records, as ids by popularity. Id 0 is the most popular key.

Zipf's law is P(id) = (id + 1)^-skew / sum. It is drawn with Walker's alias table ("An efficient method for generating
discrete random variables", ACM TOMS 1977) over groups of keys. Each of the most popular keys is a group. Other
neighbouring keys share a group while their probabilities differ by at most 0.05 %. Keys of a group are equally likely,
so no probability is off by more. A million keys make 15,000 groups. These stay in a core's cache; a table of all keys
would not.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.errors import InvalidConfig
from kfbench.kernels.workload import draws
from kfbench.workloads.named.distributions import coarse

KEY_IDS: Final = 1_000  # the stream of draws of `KeyDistribution.ids`
MAX_CARDINALITY: Final = 2**40
SHARE_BITS: Final = 22  # significant bits, so that shares are the same on every processor
ALIKE: Final = 1 / 2_000  # the probabilities of a group differ by less


@dataclass(frozen=True, kw_only=True)
class KeyDistribution:
    """The distribution of key ids over records. Raises InvalidConfig."""

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
        """Return the key ids of the records start, start + 1, …: int64[records], each from 0 to cardinality - 1."""
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
    """Groups of neighbouring key ids, one item per group except in `table`."""

    firsts: NDArray[np.int64]  # the first id
    widths: NDArray[np.float64]  # the number of ids
    shares: NDArray[np.float64]  # the probability of the group; shares add up to 1
    table: NDArray[np.uint64]  # the alias table of the shares, for `draws.grouped`

    @property
    def bits(self) -> int:
        return len(self.table).bit_length() - 1


@lru_cache(maxsize=16)
def zipf(cardinality: int, skew: float) -> KeyGroups:
    """Group the keys of Zipf's law. Shares are exact to 10**-6, because integrals replace the sums of wide groups."""
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
    """Return the alias table of shares float64[n], for `draws.grouped`: uint64[cells].

    The number of cells is the next power of two, at least 2, so that a shift chooses a cell. Cells after the last share
    start empty. Cells above the average give their excess to cells below it, in order. The two running sums show which
    cell gives to which (Hübschle-Schneider and Sanders, "Parallel weighted random sampling", 2019).
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
