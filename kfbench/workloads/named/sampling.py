"""Generate any consecutive records of a named workload's endless sequence (see the laws in `base.workload`).

Random draws depend only on record numbers (`kernels/workload/draws.py`). Blocks of 65,536 records are generated as a
whole, then cut.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.workloads.base.workload import BLOCK_RECORDS, Sample, block_slices, check_slice
from kfbench.workloads.grid import PRODUCER_ID
from kfbench.workloads.named.arrivals import MAX_US, block_us
from kfbench.workloads.named.batching import CompactionSurvivors, Transactions
from kfbench.workloads.named.block import Block, Columns, HeaderFields, repeat
from kfbench.workloads.named.contents import records_of
from kfbench.workloads.named.distributions import require
from kfbench.workloads.named.tables import Model

ROWS: Final = 2_048  # batches per step; their header fields stay in the processor's cache until all are written


def sample(model: Model, *, records: int, seed: int, start: int = 0) -> Sample:
    """Return the records with the numbers start to start + records - 1. They may begin and end inside a batch.

    Raises InvalidConfig for negative arguments, and if times or offsets would be above 2**62.
    """
    check_slice(records, seed, start)
    _check_reach(model, records, start)
    _keep_freed_memory()
    columns = Columns.empty(model, records)
    bounds, fields, done = [np.zeros(1, np.int64)], [], 0
    for number, first, count in block_slices(start, records):
        # A whole block is written into its final place, because new arrays cost as much as filling them.
        part = columns.cut(done, count)
        whole = part if count == BLOCK_RECORDS else Columns.empty(model, BLOCK_RECORDS)
        batches = Block(model, seed, number).fill(whole)
        if whole is not part:
            part.put(whole.cut(first, count))
        cut = batches.cut(first, count)
        bounds.append(cut.bounds[1:] + done)
        fields.append(cut.fields)
        done += count
    shapes, kinds = columns.shapes(model), columns.kinds
    names = fields[0] if fields else ()
    return Sample(
        shapes=shapes,
        bounds=np.concatenate(bounds),
        batch_fields=_batch_fields(model, {name: _joined([each[name] for each in fields]) for name in names}),
        payload=lambda: records_of(model, shapes, kinds, seed, start),
    )


def _check_reach(model: Model, records: int, start: int) -> None:
    """Raise InvalidConfig if times in µs or offsets would be above MAX_US (2**62)."""
    blocks = -(-(start + records) // BLOCK_RECORDS)
    lapse_us = blocks * block_us(model.arrival)
    each = model.batching.block_offsets if isinstance(model.batching, CompactionSurvivors) else BLOCK_RECORDS
    for what, reached in (("microseconds", lapse_us), ("offsets", blocks * each)):
        require(
            reached <= MAX_US,
            f"records {records} from start {start} on take {reached:.3g} {what}, but {MAX_US:.3g} are possible",
        )


def _batch_fields(model: Model, found: HeaderFields) -> BatchFields:
    """Return the header fields of all batches. found: the fields that differ between batches, by name."""
    if not found:
        return NO_FIELDS
    row = NO_FIELDS.rows.copy()
    if model.producer.idempotent:
        row["producer_id"], row["producer_epoch"] = PRODUCER_ID, 0
    row["is_transactional"] = isinstance(model.batching, Transactions)
    row["timestamp_type"] = model.time.append_time
    rows = np.empty(len(next(iter(found.values()))), row.dtype)
    alike = np.empty(min(len(rows), ROWS), row.dtype)
    repeat(row, alike)
    for first in range(0, len(rows), ROWS):
        part = rows[first : first + ROWS]
        part.view(np.uint8)[:] = alike.view(np.uint8)[: part.nbytes]
        for name, column in found.items():
            part[name] = column[first : first + ROWS]
    return BatchFields.trusted(rows)


def _joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Make glibc (the C library) keep up to 64 MiB of freed memory for the process. Do this once per process.

    A block needs arrays of half a megabyte. By default glibc returns the memory of a freed array to the system. Then
    the page faults of the next arrays take a third of the whole time. After a larger array was freed (here of 32 MiB),
    glibc keeps up to twice its size (mallopt(3), M_MMAP_THRESHOLD).
    """
    np.empty((32 << 20) - 8_192, np.uint8)
