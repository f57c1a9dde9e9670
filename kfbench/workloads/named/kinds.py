"""The kinds of records in a named workload, as one number per record.

0 is a plain record, which the tables [key] and [value] of the workload's file describe. 1, 2, … are the records of the
[[other]] tables. TOMBSTONE is the record with a null value after a delete. MARKER is the marker of a transaction.
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

# Numbers of streams of random draws. Keys have the numbers from 0 on, one per kind of record. Values have the numbers
# from STREAMS on, headers from HEADERS on. LENGTHS or FILLED is added for draws of lengths or of payload.
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
    """Return the number of the stream of random draws for the keys or values of a kind of record.

    Kinds that use the same TOML table as plain records (kind 0) also use the stream of plain records.
    """
    return column * STREAMS + (0 if model.parts[kind][column] is model.parts[0][column] else kind)


def shares_main(model: Model, kind: int, column: Column) -> bool:
    """Return True if the keys or values of this kind are generated from the same TOML tables as those of plain records.

    Values depend on keys. So for values, both the key table and the value table must be the same.
    """
    mine, main = model.parts[kind], model.parts[0]
    return mine[KEY] is main[KEY] and mine[column] is main[column]


def kinds_alike(model: Model, kind: int, column: Column) -> NDArray[np.bool_]:
    """Find the kinds whose keys or values are generated in the same way as those of `kind`: bool[256], by kind."""
    found = np.zeros(256, np.bool_)
    found[kind] = True
    if kind == PLAIN:
        found[1 : len(model.parts)] = [shares_main(model, k, column) for k in range(1, len(model.parts))]
        found[TOMBSTONE] = column == KEY
    return found


def pick_shares(shares: tuple[float, ...], seed: int, purpose: int, first: int, out: Kinds) -> None:
    """Draw a number for each record: k with the probability shares[k - 1], or 0 with the rest. Fill `out` with them.

    Args:
        purpose: the number of a stream of random draws.
        first: the number of the first record in the workload.
    """
    draws.pick(seed, purpose, first, _shares_table(shares), out)


@lru_cache(maxsize=64)
def _shares_table(shares: tuple[float, ...]) -> Kinds:
    """Return a table of 65,536 equally likely entries: uint8[65_536].

    The number k fills the share shares[k - 1] of the table. The rest is 0.
    """
    ends = np.rint(np.cumsum(shares) * QUANTILES).astype(np.int64)
    table = np.zeros(QUANTILES, np.uint8)
    for k, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True), start=1):
        table[first:end] = k
    table.flags.writeable = False
    return table
