"""Which key a record has: ids by popularity, 0 the most popular.

Zipf's law as it is written, P(id) = (id + 1)^-skew / sum, over every key there is: drawn with Walker's alias table
("An efficient method for generating discrete random variables", ACM TOMS 1977) in one look-up, whatever the skew. The
table's shares are whole multiples of 2**-32 of a cell, so a probability is off by less than 2**-32 / cardinality for
each cell that a key has.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.errors import InvalidConfig
from kfbench.kernels import draws

KEY_IDS: Final = 1_000  # the stream of `Keys.ids`
MAX_CARDINALITY: Final = 2**22  # its table takes 32 MiB, and 256 MiB while it is made


@dataclass(frozen=True, kw_only=True)
class Keys:
    """cardinality: how many keys; None: each record has its own. skew: Zipf's exponent, 0: all alike.

    in_turn: one key after another, as a round of devices reports or as a benchmark deals out its keys.
    Raises InvalidConfig.
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
        """int64[records], each from 0 to cardinality - 1: the keys of the records start, start + 1, …"""
        if self.cardinality is None:
            return np.arange(start, start + records)
        if self.in_turn:
            return np.arange(start, start + records) % self.cardinality
        table = alias_table(self.cardinality, self.skew)
        out = np.empty(records, np.int64)
        draws.alias(seed, KEY_IDS, start, len(table).bit_length() - 1, table, out)
        return out


def probabilities(cardinality: int, skew: float) -> NDArray[np.float64]:
    """float64[cardinality], falling, of sum 1."""
    share = np.arange(1, cardinality + 1, dtype=np.float64) ** -skew
    share /= share[::-1].sum()  # the smallest first: they would be lost behind the large
    return share


@lru_cache(maxsize=4)
def alias_table(cardinality: int, skew: float) -> NDArray[np.uint64]:
    """uint64[a power of two, at least 2 and at least cardinality], as `draws.alias` reads it.

    Cells above the average hand their excess to those below it, in order. Who hands to whom follows from the two
    running sums, so no loop over keys is needed (Hübschle-Schneider and Sanders, "Parallel weighted random sampling",
    2019). Cells beyond the last key have nothing of their own: their number makes the choice of a cell a shift.
    """
    cells = 1 << max((cardinality - 1).bit_length(), 1)
    share = np.zeros(cells)
    share[:cardinality] = probabilities(cardinality, skew) * cells
    above = np.flatnonzero(share > 1)
    below = np.flatnonzero(share <= 1)
    keep, other = share, np.arange(cells)
    if len(above):
        excess, lack = np.cumsum(share[above] - 1), np.cumsum(1 - share[below])
        before = np.concatenate([[0.0], lack[:-1]])
        other[below] = above[np.minimum(np.searchsorted(excess, before, side="right"), len(above) - 1)]
        # A cell above the average hands out until it has less than it needs, and takes the rest from the next one.
        last = np.minimum(np.searchsorted(lack, excess, side="left"), len(lack) - 1)
        keep[above[:-1]] = (1 + excess - lack[last])[:-1]
        other[above[:-1]] = above[1:]
    threshold = np.clip(np.rint(keep * 2.0**32), 0, 2**32 - 1).astype(np.uint64)
    table = threshold << np.uint64(32) | other.astype(np.uint64)
    table.flags.writeable = False
    return table
