"""Kinds of records in a named workload: a number per record.

0 is a plain record, 1 and on are those of [[other]]. The last two are tombstones after a delete, and markers of
transactions.
"""

from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kfbench.kernels.workload import draws
from kfbench.layouts import CONTROL_ABORT, CONTROL_COMMIT, CONTROL_KEY, END_TRANSACTION_MARKER
from kfbench.workloads.named.distributions import QUANTILES
from kfbench.workloads.named.tables import Model

Kinds = NDArray[np.uint8]  # one per record
PLAIN: Final = 0
TOMBSTONE: Final = 254
MARKER: Final = 255

Column = Literal[0, 1]
KEY: Final = 0
VALUE: Final = 1

# Streams of draws. Keys have those from 0 on, one per kind of record; values and headers follow. Each needs two.
LAGS, KINDS, NULLS, ABORTS = range(10, 14)
STREAMS: Final = 1_000
HEADERS: Final = 2 * STREAMS
LENGTHS, FILLED = 10_000, 20_000

# The layouts of a marker's key and value. The key is a commit or an abort; the value is of the coordinator's epoch 0.
MARKER_LAYOUTS: Final = (CONTROL_KEY, END_TRANSACTION_MARKER)
MARKERS: Final = (
    np.array([(0, CONTROL_COMMIT), (0, CONTROL_ABORT)], CONTROL_KEY).tobytes(),
    np.array([(0, 0)], END_TRANSACTION_MARKER).tobytes(),
)


def stream_of(model: Model, kind: int, column: Column) -> int:
    """Return the stream of draws of a kind's keys or values. Kinds with the first kind's table share its stream."""
    return column * STREAMS + (0 if model.parts[kind][column] is model.parts[0][column] else kind)


def shares_main(model: Model, kind: int, column: Column) -> bool:
    """Return True if keys or values of this kind are made from the same tables as those of plain records (kind 0).

    column: KEY or VALUE. Values depend on keys, too: both kinds must have the same [key] and, for VALUE, the same
    [value].
    """
    mine, main = model.parts[kind], model.parts[0]
    return mine[KEY] is main[KEY] and mine[column] is main[column]


def kinds_alike(model: Model, kind: int, column: Column) -> NDArray[np.bool_]:
    """Return bool[256]: the kinds whose keys or values are made as those of `kind`."""
    found = np.zeros(256, np.bool_)
    found[kind] = True
    if kind == PLAIN:
        found[1 : len(model.parts)] = [shares_main(model, k, column) for k in range(1, len(model.parts))]
        found[TOMBSTONE] = column == KEY
    return found


def pick_shares(shares: tuple[float, ...], seed: int, purpose: int, first: int, out: Kinds) -> None:
    """Fill `out` with the number of the share, from 1, that each record falls into; 0 for none."""
    draws.pick(seed, purpose, first, _shares_table(shares), out)


@lru_cache(maxsize=64)
def _shares_table(shares: tuple[float, ...]) -> Kinds:
    """Return uint8[65_536]: 1 for the first share, and so on; 0 for the rest."""
    ends = np.rint(np.cumsum(shares) * QUANTILES).astype(np.int64)
    table = np.zeros(QUANTILES, np.uint8)
    for k, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True), start=1):
        table[first:end] = k
    table.flags.writeable = False
    return table
