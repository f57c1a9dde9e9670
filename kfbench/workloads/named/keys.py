"""Draw the key of each record as an id. Ids are ordered by popularity: id 0 is the most popular key.

Zipf's law is P(id) = (id + 1)^-skew / sum. It is drawn with Walker's alias table ("An efficient method for generating
discrete random variables", ACM TOMS 1977) over groups of keys. Each of the most popular keys is a group alone. Other
neighbouring keys share a group while their probabilities differ by at most 0.05 %. All keys of a group are drawn with
the same probability, so the error of a probability is at most 0.05 %. A million keys make 15,000 groups. A table of
15,000 groups stays in a core's cache; a table of a million keys would not.
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

KEY_IDS: Final = 1_000  # the number of the stream of random draws for `KeyDistribution.ids`
MAX_CARDINALITY: Final = 2**40
SHARE_BITS: Final = 22  # significant bits, so that shares are the same on every processor
ALIKE: Final = 1 / 2_000  # the largest relative difference of probabilities in a group


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
