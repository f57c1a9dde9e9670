"""Generate any consecutive records of a named workload's endless sequence (see the laws in `workloads.base`).

Random draws depend only on record numbers (`kernels/workload/draws.py`). Blocks of 65,536 records are generated as a
whole, then cut. Payload (keys, values and headers) is generated from text templates.
"""

from functools import lru_cache
from typing import Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.layouts import NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.workloads.base import BLOCK_RECORDS, Sample, TextColumn, block_slices, check_slice
from kfbench.workloads.grid import PRODUCER_ID
from kfbench.workloads.named.arrivals import MAX_US, block_us
from kfbench.workloads.named.batching import CompactionSurvivors, Transactions
from kfbench.workloads.named.block import (
    ABORTS,
    FILLED,
    HEADERS,
    KEY,
    MARKER,
    MARKER_LAYOUTS,
    MARKERS,
    TOMBSTONE,
    VALUE,
    BlockColumns,
    Column,
    HeaderFields,
    Kinds,
    RecordBlock,
    generators,
    pick_shares,
)
from kfbench.workloads.named.distributions import KeyDistribution, require
from kfbench.workloads.named.file import KeyTable, WorkloadModel

NO_BYTES: Final = np.zeros(0, np.uint8)


def sample(model: WorkloadModel, *, records: int, seed: int, start: int = 0) -> Sample:
    """Return the records with the numbers start to start + records - 1. They may begin and end inside a batch.

    Raises InvalidConfig for negative arguments, and if times or offsets would be above 2**62.
    """
    check_slice(records, seed, start)
    _check_reach(model, records, start)
    _keep_freed_memory()
    columns = BlockColumns.empty(model, records)
    bounds, fields, done = [np.zeros(1, np.int64)], [], 0
    for number, first, count in block_slices(start, records):
        # A whole block is written into its final place, because new arrays cost as much as filling them.
        part = columns.cut(done, count)
        whole = part if count == BLOCK_RECORDS else BlockColumns.empty(model, BLOCK_RECORDS)
        batches = RecordBlock(model, seed, number).fill(whole)
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
        batch_fields=_batch_fields(model, {name: np.concatenate([each[name] for each in fields]) for name in names}),
        payload=lambda: _records_of(model, shapes, kinds, seed, start),
    )


def _check_reach(model: WorkloadModel, records: int, start: int) -> None:
    """Raise InvalidConfig if times in µs or offsets would be above MAX_US (2**62)."""
    blocks = -(-(start + records) // BLOCK_RECORDS)
    lapse_us = blocks * block_us(model.arrival)
    each = model.batching.block_offsets if isinstance(model.batching, CompactionSurvivors) else BLOCK_RECORDS
    for what, reached in (("microseconds", lapse_us), ("offsets", blocks * each)):
        require(
            reached <= MAX_US,
            f"records {records} from start {start} on take {reached:.3g} {what}, but {MAX_US:.3g} are possible",
        )


def _batch_fields(model: WorkloadModel, found: HeaderFields) -> BatchFields:
    """Return the header fields of all batches. found: the fields that differ between batches, by name."""
    if not found:
        return NO_FIELDS
    row = NO_FIELDS.rows.copy()
    if model.producer.idempotent:
        row["producer_id"], row["producer_epoch"] = PRODUCER_ID, 0
    row["is_transactional"] = isinstance(model.batching, Transactions)
    row["timestamp_type"] = model.time.append_time
    rows = np.tile(row, len(next(iter(found.values()))))
    for name, column in found.items():
        rows[name] = column
    return BatchFields.trusted(rows)


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """Make glibc (the C library) keep up to 64 MiB of freed memory for the process. Do this once per process.

    A block needs arrays of half a megabyte. By default glibc returns the memory of a freed array to the system. Then
    the page faults of the next arrays take a third of the whole time. After a larger array was freed (here of 32 MiB),
    glibc keeps up to twice its size (mallopt(3), M_MMAP_THRESHOLD).
    """
    np.empty((32 << 20) - 8_192, np.uint8)


def _records_of(model: WorkloadModel, shapes: Shapes, kinds: Kinds | None, seed: int, start: int) -> Records:
    """Generate the payload for records with known shapes (lengths, times, offsets).

    Args:
        kinds: the kind of each record; None if all records are plain.
        start: the number of the first record in the workload.
    """
    numbers = np.arange(start, start + len(shapes))
    ids = _key_ids(model, model.key, seed, numbers, kinds)
    key_data, key_starts = _fill_column(model, KEY, seed, shapes, kinds, numbers, ids)
    value_data, value_starts = _fill_column(model, VALUE, seed, shapes, kinds, numbers, ids)
    names = [each.name.encode() for each in model.header]
    name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    contents, content_starts = [NO_BYTES], np.empty((len(shapes), len(names)), np.int64)
    lengths = shapes.header_value_lengths.reshape(content_starts.shape)
    size = 0
    for h, header in enumerate(model.header):
        data, starts = header.parsed.fill(
            seed, FILLED + HEADERS + h, numbers, lengths[:, h], keys=ids, timestamps_ms=shapes.timestamps_ms
        )
        content_starts[:, h] = starts + size
        contents.append(data)
        size += len(data)
    return Records(
        shapes=shapes,
        key_data=key_data,
        key_starts=key_starts,
        value_data=value_data,
        value_starts=value_starts,
        header_key_data=np.frombuffer(b"".join(names), np.uint8),
        header_key_starts=np.tile(name_ends - [len(name) for name in names], len(shapes)).astype(np.int64),
        header_value_data=np.concatenate(contents),
        header_value_starts=content_starts.reshape(-1),
    )


def _key_ids(model: WorkloadModel, key: KeyTable | None, seed: int, numbers: Int64, kinds: Kinds | None) -> Int64:
    """Return the key ids of consecutive records: int64[records]. A tombstone has the key of the record before it.

    numbers: int64[records], the numbers of the records in the workload.
    """
    if not len(numbers):
        return numbers
    distribution, first = KeyDistribution() if key is None else key.distribution, int(numbers[0])
    ids = distribution.ids(seed, first, len(numbers))
    if kinds is not None and model.has_tombstones:
        after = np.flatnonzero(kinds == TOMBSTONE)
        if len(after):
            before = ids[after - 1]
            if after[0] == 0:
                before[0] = distribution.ids(seed, first - 1, 1)[0]
            ids[after] = before
    return ids


def _fill_column(
    model: WorkloadModel, column: Column, seed: int, shapes: Shapes, kinds: Kinds | None, numbers: Int64, ids: Int64
) -> TextColumn:
    """Generate all keys or all values of the records. Kinds of records with different tables are generated in turn.

    Args:
        column: KEY or VALUE.
        numbers: int64[records], the numbers of the records in the workload.
        ids: int64[records], their key ids.
    """
    lengths = shapes.key_lengths if column == KEY else shapes.value_lengths
    data_by_kind, starts, size = [NO_BYTES], np.zeros(len(shapes), np.int64), 0
    for key, part, stream, is_mine in generators(model, column):
        if part is None:
            continue
        own_ids = ids if key is model.key else _key_ids(model, key, seed, numbers, None)
        mine = None if kinds is None else is_mine[kinds]
        data, found = part.parsed.fill(
            seed, FILLED + stream, own_ids if column == KEY else numbers,
            lengths if mine is None else np.where(mine, lengths, np.int32(NULL_LENGTH)), keys=own_ids,
            timestamps_ms=None if column == KEY else shapes.timestamps_ms,
        )  # fmt: skip
        if mine is None:
            return TextColumn(data, found)
        np.copyto(starts, found + size, where=mine)
        data_by_kind.append(data)
        size += len(data)
    if isinstance(model.batching, Transactions) and kinds is not None:
        marker = np.flatnonzero(kinds == MARKER)
        abort = np.zeros(len(marker), np.int64)
        if column == KEY and len(numbers):
            drawn = np.empty(len(numbers), np.uint8)
            pick_shares((model.batching.abort_share,), seed, ABORTS, int(numbers[0]), drawn)
            abort = drawn[marker].astype(np.int64)
        starts[marker] = size + abort * MARKER_LAYOUTS[column].itemsize
        data_by_kind.append(np.frombuffer(MARKERS[column], np.uint8))
    return TextColumn(np.concatenate(data_by_kind), starts)
