"""Generate the bytes of keys, values and headers from the entropies and shares that a fingerprint has by position."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64, freeze
from kfbench.kernels.workload import fingerprinted
from kfbench.workloads.base.workload import Filled
from kfbench.workloads.fingerprinted.parts import BytePosition

MOST_WORDS: Final = 32
WORD_POSITIONS: Final = 8
NEAR: Final = 0.1  # neighbouring positions whose shares differ by less change together
# Varied text uses the first symbols, constant text all, those at the beginning more often.
_SYMBOLS: Final = bytes(
    dict.fromkeys(b'0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.,:/" {}' + bytes(range(256)))
)
_LETTERS: Final = b' etaoinshrdlucmfwypvbgk":,_-{}0123456789'
PLAIN: Final = (BytePosition(entropy_bits=4.0, same=0.06),) * WORD_POSITIONS
"""Hexadecimal digits: the text of header values, and of keys and values without positions."""


def _table() -> Bytes:
    share = 1 / np.arange(2, len(_LETTERS) + 2)
    until = np.rint(np.cumsum(share) / share.sum() * 256).astype(int)
    constant = np.frombuffer(_LETTERS, np.uint8)[np.searchsorted(until, np.arange(256), side="right")]
    table = np.concatenate([np.frombuffer(_SYMBOLS, np.uint8), constant])
    freeze(table)
    return table


TABLE: Final = _table()


@dataclass(frozen=True)
class Profile:
    """The arguments of the kernel `fill` for one column; see there."""

    words: Int64
    bits: NDArray[np.float64]
    changes: NDArray[np.float64]
    symbols: NDArray[np.float64]
    shares: NDArray[np.float64]

    def fill(self, seed: int, purpose: int, first: int, lengths: Int32, ids: Int64 | None = None) -> Filled:
        """Generate the items of the records from number `first` on. ids: items with one id are equal."""
        sizes = np.maximum(lengths, 0).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        out = np.empty(int(sizes.sum()), np.uint8)
        ids = np.zeros(0, np.int64) if ids is None else ids.astype(np.int64)
        lengths = lengths.astype(np.int32)
        columns = (self.words, self.bits, self.changes, self.symbols, self.shares)
        freeze(ids, lengths, starts, *columns)
        states = np.zeros(self.changes.shape, np.uint64)
        fingerprinted.fill(seed, purpose, first, ids, lengths, starts, *columns, TABLE, states, out)
        return Filled(out, starts)


def profile(
    positions: tuple[BytePosition, ...], freshness: float = 1.0, spread: float = 1.0, has_long_runs: bool = False
) -> Profile:
    """Return the profile of a column.

    freshness: -1 to 2. At 1, bytes of a word are independent. Towards 0, a word has no more entropy than its most
    varied byte. Below 0, this share of words after the known positions is constant. Above 1, bytes there vary more.
    has_long_runs: words that are constant are neighbours.
    spread: multiplies the entropy of bytes that vary, up to 8 bits. Larger: worse for entropy coders alone.
    """
    positions = positions or PLAIN
    entropy = np.minimum(spread * np.array([each.entropy_bits for each in positions]), 8.0)
    same = np.array([each.same for each in positions])
    words = np.zeros(len(positions), np.int64)
    begin = 0
    for i in range(1, len(positions)):
        is_full = i - begin >= WORD_POSITIONS and words[i - 1] < MOST_WORDS - 1
        is_other = abs(same[i] - same[begin]) >= NEAR and words[i - 1] < MOST_WORDS - 1
        words[i] = words[i - 1] + (is_full or is_other)
        begin = i if words[i] != words[i - 1] else begin
    count = int(words[-1]) + 1
    symbols = 2**entropy
    fresh = np.minimum(1.0, (1 - same) / np.maximum(1 - 1 / symbols, 1e-9))
    changes = np.array([fresh[words == word].max() for word in range(count)])
    least = np.array([entropy[words == word].max() for word in range(count)])
    most = np.array([entropy[words == word].sum() for word in range(count)])
    excess = min(max(freshness - 1, 0.0), 1.0)
    theta = min(max(freshness, 0.0), 1.0)
    bits = np.where(theta == 1, 64.0, least + theta * (most - least))
    later = 2 ** (entropy + (8 - entropy) * excess)
    return Profile(
        words,
        bits,
        np.concatenate([changes, changes + (1 - changes) * excess]),
        np.minimum(np.concatenate([symbols, later]), 256.0),
        np.array([max(-freshness, 0.0), float(has_long_runs)]),
    )
