"""Kinds of records in a named workload: one number per record.

0 is a plain record, and 1, 2, … are the records of [[other]]. TOMBSTONE is a tombstone after a delete, MARKER the
marker of a transaction.
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

# Streams of draws. Keys have the streams from 0 on, one per kind of record, then come values, then headers. Each of
# these streams is used twice: for lengths (+ LENGTHS) and for payload (+ FILLED).
LAGS, KINDS, NULLS, ABORTS = range(10, 14)
STREAMS: Final = 1_000
HEADERS: Final = 2 * STREAMS
LENGTHS, FILLED = 10_000, 20_000

# The layouts of a marker's key and value. The key is a commit or an abort; the value has the coordinator's epoch 0.
MARKER_LAYOUTS: Final = (CONTROL_KEY, END_TRANSACTION_MARKER)
MARKERS: Final = (
    np.array([(0, CONTROL_COMMIT), (0, CONTROL_ABORT)], CONTROL_KEY).tobytes(),
    np.array([(0, 0)], END_TRANSACTION_MARKER).tobytes(),
)


def stream_of(model: Model, kind: int, column: Column) -> int:
    """Return the stream of draws of a kind's keys or values. Kinds with the table of kind 0 share its stream."""
    return column * STREAMS + (0 if model.parts[kind][column] is model.parts[0][column] else kind)


def shares_main(model: Model, kind: int, column: Column) -> bool:
    """Return True if the keys or values of this kind and of plain records (kind 0) are made from the same tables.

    Values depend on keys. So for values, both kinds must have the same [key] and the same [value].
    """
    mine, main = model.parts[kind], model.parts[0]
    return mine[KEY] is main[KEY] and mine[column] is main[column]


def kinds_alike(model: Model, kind: int, column: Column) -> NDArray[np.bool_]:
    """Return bool[256], True for the kinds whose keys or values are made in the same way as those of `kind`."""
    found = np.zeros(256, np.bool_)
    found[kind] = True
    if kind == PLAIN:
        found[1 : len(model.parts)] = [shares_main(model, k, column) for k in range(1, len(model.parts))]
        found[TOMBSTONE] = column == KEY
    return found


def pick_shares(shares: tuple[float, ...], seed: int, purpose: int, first: int, out: Kinds) -> None:
    """Fill `out` with the number of the share that each record falls into: 1, 2, …, or 0 for none."""
    draws.pick(seed, purpose, first, _shares_table(shares), out)


@lru_cache(maxsize=64)
def _shares_table(shares: tuple[float, ...]) -> Kinds:
    """Return uint8[65_536] with the number of a share in its part of the table, and 0 in the rest."""
    ends = np.rint(np.cumsum(shares) * QUANTILES).astype(np.int64)
    table = np.zeros(QUANTILES, np.uint8)
    for k, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True), start=1):
        table[first:end] = k
    table.flags.writeable = False
    return table
