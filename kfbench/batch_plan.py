"""Batch plans: arrays that say where each batch begins and ends among the records."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Int64, integers_of
from kfbench.errors import InvalidRecords
from kfbench.kernels.wire import frames

CHUNK_BYTES: Final = 8 << 20  # uncompressed bytes that are in memory at a time before they are compressed
CACHED_BATCHES: Final = 1 << 16  # a plan with more batches is not cached; one with this many takes half a megabyte


def plan(records: int, batch_size: int | ArrayLike) -> Int64:
    """Return the boundaries of batches among `records` records: int64[batches + 1], from 0 to `records`.

    batch_size: the number of records per batch (the last batch may be smaller), or an array of boundaries. Two equal
    neighbouring boundaries are an empty batch. Raises InvalidRecords.
    """
    if isinstance(batch_size, (int, np.integer)):
        size = int(batch_size)
        if size < 1:
            raise InvalidRecords(f"batch_size: {size} is below 1")
        size = min(size, max(records, 1))  # arange would round or overflow with a much larger size
        return _regular(records, size) if records // size < CACHED_BATCHES else _regular.__wrapped__(records, size)
    bounds = integers_of("batch_size", batch_size, np.int64)
    if not frames.are_bounds(bounds, records):
        raise InvalidRecords(f"batch_size: boundaries must rise from 0 to the {records} records")
    return bounds


@lru_cache(maxsize=8)  # a benchmark passes the same numbers in every call
def _regular(records: int, size: int) -> Int64:
    bounds = np.arange(0, records + size if records else 1, size, dtype=np.int64)
    bounds[-1] = records
    bounds.flags.writeable = False
    return bounds


def chunks(sizes: Int64) -> Iterator[tuple[int, int]]:
    """Group neighbouring batches into runs of about CHUNK_BYTES. Yield (first batch, batch after the last) per run.

    sizes: int64[batches], the number of bytes of each batch.
    """
    ends, lo = np.cumsum(sizes), 0
    while lo < len(sizes):
        before = int(ends[lo - 1]) if lo else 0
        hi = max(lo + 1, int(np.searchsorted(ends, before + CHUNK_BYTES, side="right")))
        yield lo, hi
        lo = hi
