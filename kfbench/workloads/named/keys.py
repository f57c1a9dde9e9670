"""Keys of records, as ids by popularity: 0 is the most popular.

Zipf's law, P(id) = (id + 1)^-skew / sum, is drawn with Walker's alias table ("An efficient method for generating
discrete random variables", ACM TOMS 1977) over groups of keys. The most popular keys have a group each. Other
neighbours share a group while their probabilities are within .05 % of each other; within it they are equally likely, so
none is off by more. A million keys take 15,000 groups. These stay in a core's cache; a table of all keys would not.
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

KEY_IDS: Final = 1_000  # the stream of `Keys.ids`
MAX_CARDINALITY: Final = 2**40
SHARE_BITS: Final = 22  # significant bits: the same shares on every processor, exact to 2**-22
ALIKE: Final = 1 / 2_000  # the probabilities of a group differ by less


@dataclass(frozen=True, kw_only=True)
class Keys:
    """A choice of keys. Raises InvalidConfig.

    cardinality: the number of keys, None for a key per record. skew: Zipf's exponent, 0 for equally likely keys.
    in_turn: one key after another, as devices report in rounds or a benchmark deals out keys.
    """

    cardinality: int | None = None
    skew: float = 0.0
    in_turn: bool = False

    def __post_init__(self) -> None:
        if self.cardinality is not None and not 1 <= self.cardinality <= MAX_CARDINALITY:
            raise InvalidConfig(f"cardinality: {self.cardinality} is not within 1 to {MAX_CARDINALITY}")
        if not 0 <= self.skew <= 10:
            raise InvalidConfig(f"skew: {self.skew} is not within 0 to 10")
        if self.skew and (self.in_turn or self.cardinality is None):
            raise InvalidConfig("skew: keys in turn, or one a record, have none")

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
class Groups:
    """Groups of neighbouring ids. All arrays but `table` are [groups].

    firsts: the first id of each. widths: its number of ids. shares: its probability; they add up to 1. table: the
    shares as `draws.grouped` reads them.
    """

    firsts: NDArray[np.int64]
    widths: NDArray[np.float64]
    shares: NDArray[np.float64]
    table: NDArray[np.uint64]

    @property
    def bits(self) -> int:
        return len(self.table).bit_length() - 1


@lru_cache(maxsize=16)
def zipf(cardinality: int, skew: float) -> Groups:
    """Group the keys of Zipf's law. Shares are exact to 10**-6: a wide group's sum is taken as an integral."""
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
    return Groups(firsts=edges[:-1], widths=widths, shares=shares, table=alias_table(shares))


def alias_table(shares: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the alias table of shares float64[n], as `draws.grouped` reads it: uint64[the next power of two ≥ 2].

    Cells above the average hand their excess to those below it, in order. The two running sums say which hands to
    which, without a loop (Hübschle-Schneider and Sanders, "Parallel weighted random sampling", 2019). Cells beyond the
    last share start empty: a power of two makes the choice of a cell a shift.
    """
    cells = 1 << max((len(shares) - 1).bit_length(), 1)
    keep, other = np.zeros(cells), np.arange(cells)
    keep[: len(shares)] = shares * cells
    above, below = np.flatnonzero(keep > 1), np.flatnonzero(keep <= 1)
    if len(above):
        excess, lack = np.cumsum(keep[above] - 1), np.cumsum(1 - keep[below])
        before = np.concatenate([[0.0], lack[:-1]])
        other[below] = above[np.minimum(np.searchsorted(excess, before, side="right"), len(above) - 1)]
        # A cell above the average hands out until it has less than it needs, and takes the rest from the next one.
        last = np.minimum(np.searchsorted(lack, excess), len(lack) - 1)
        keep[above[:-1]] = (1 + excess - lack[last])[:-1]
        other[above[:-1]] = above[1:]
    threshold = np.clip(np.rint(keep * 2.0**32), 0, 2**32 - 1).astype(np.uint64)
    return threshold << np.uint64(32) | other.astype(np.uint64)
