"""Divide records into batches by a TOML table: by number, by a producer's limits of time and size, or by transactions.

A batch never crosses the end of a block of 65,536 records, so the last batch of a block may be smaller. The batches of
a block depend only on the seed and the block's number. So every slice of the block has the same batches.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from kfbench.arrays import Int32, Int64, read_only
from kfbench.batches import BatchFields
from kfbench.kernels.workload import waits
from kfbench.kernels.workload.linger import linger
from kfbench.layouts import NO_SEQUENCE, UNSET
from kfbench.records import Shapes
from kfbench.workloads.base import BLOCK_RECORDS, Sample
from kfbench.workloads.named.distributions import (
    QUANTILES,
    Distribution,
    coarse,
    draw,
    lengths_table,
    mean_length,
    require,
)

BATCHES: Final = 100  # the stream of random draws for batch sizes, and for gaps between records that survive compaction
SPARE_DEVIATIONS: Final = 8
LAST_SEQUENCE: Final = 2**31 - 1

Records = Annotated[int, Meta(ge=1, le=BLOCK_RECORDS)]
BatchBytes = Annotated[int, Meta(ge=0, lt=2**31)]


class _Batching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model"):
    pass


class FixedSizes(_Batching, frozen=True, kw_only=True, tag="fixed"):
    """Batches of `records` records each."""

    records: Records


class RandomSizes(_Batching, frozen=True, kw_only=True, tag="drawn"):
    """Batches with a random number of records, such as an upload or a database transaction that is sent at once.

    The tombstone (null value) that follows a delete is not counted. It is always in the batch of the delete.
    """

    records: Distribution

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class Linger(_Batching, frozen=True, kw_only=True, tag="linger"):
    """Batches of a producer's accumulator for one partition (`kernels/workload/linger.py`).

    A batch takes the records that arrive within linger.ms of its first record, up to batch.size bytes. With Poisson
    arrivals of rate r it has 1 + Poisson(r · linger) records, unless the size is the limit. Kafka's default of
    batch.size is 16,384 bytes. The default of linger.ms is 5 ms since Kafka 4.0, and was 0 ms before.
    """

    linger_ms: Annotated[float, Meta(ge=0, le=86_400_000)]
    batch_size_bytes: BatchBytes = 16_384


class Transactions(_Batching, frozen=True, kw_only=True, tag="transactions"):
    """Pairs of batches: a batch of data, then the marker of its transaction, a control batch of one record.

    Every transaction has a new producer epoch and sequences from 0, as in Kafka with transaction.version 2 (KIP-890).
    After the largest epoch, a new producer id is used.

    Args:
        records: the number of records in a transaction.
        abort_share: the share of transactions that are aborted.
    """

    records: Distribution
    abort_share: Annotated[float, Meta(ge=0, le=1)] = 0.0

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class CompactionSurvivors(_Batching, frozen=True, kw_only=True, tag="survivors"):
    """Batches after log compaction: each had `of_records` records before, and has only the surviving records now.

    Each record survives with probability `survival`, so offsets have holes of geometric length. Empty batches are
    removed. Other batches store the offsets of their first and last record before compaction, like Kafka's
    `MemoryRecords.filterTo`.

    A batch with a tombstone has a delete horizon (KIP-534): the time of its first cleaning plus `delete_retention_ms`
    (Kafka's delete.retention.ms). The first cleaning is `cleaned_after_ms` after the last record of the batch. (A real
    cleaner rewrites many batches at the same time.) With `delete_retention_ms` = None, batches have no delete horizon,
    like a log that no cleaner since Kafka 3.1 has rewritten.

    Survivors are independent of each other. This is realistic far from the end of a log with Zipf keys: a record
    survives if no later record has its key, so the survivors are rare keys. Each key survives once.
    """

    of_records: Records
    survival: Annotated[float, Meta(gt=0, le=1)]
    delete_retention_ms: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    cleaned_after_ms: Annotated[int, Meta(ge=0, lt=2**53)] = 0

    @property
    def block_offsets(self) -> int:
        """The number of offsets reserved for a block of 65,536 surviving records, a multiple of `of_records`.

        It is the mean number that is needed plus 8 standard deviations.
        """
        spread = SPARE_DEVIATIONS * ((1 - self.survival) * BLOCK_RECORDS) ** 0.5
        return (int((BLOCK_RECORDS + spread) / self.survival) // self.of_records + 2) * self.of_records

    def offsets(self, seed: int, block: int) -> Int64:
        gaps = draw(_geometric(self.survival), seed, BATCHES, block * BLOCK_RECORDS, BLOCK_RECORDS)
        offsets = np.empty(BLOCK_RECORDS, np.int64)
        waits.follow(gaps, block * self.block_offsets - 1, offsets)
        return offsets


Batching = FixedSizes | RandomSizes | Linger | Transactions | CompactionSurvivors


def _check_sizes(records: Distribution) -> None:
    least, most = lengths_table(records)[[0, -1]].tolist()
    require(least >= 1 and most <= BLOCK_RECORDS, f"records: {least} to {most}, but 1 to {BLOCK_RECORDS} are possible")


@lru_cache(maxsize=16)
def _geometric(survival: float) -> Int32:
    """Return 65,536 equally likely distances (in offsets) from one surviving record to the next: int32[65_536]."""
    p = (np.arange(QUANTILES) + 0.5) / QUANTILES
    gaps = np.ones(QUANTILES) if survival == 1 else np.ceil(coarse(np.log1p(-p) / np.log1p(-survival)))
    return read_only(gaps.astype(np.int32))


def random_ends(records: Distribution, seed: int, block: int, extra: int, units: int) -> Int64:
    """Draw batch sizes and add `extra` to each. Return the ends of the batches that end before `units`: int64[any].

    units: the number of records to divide into batches.
    """
    size = mean_length(records) + extra
    drawn = int(units / size * 1.05) + 64
    while True:
        ends = np.cumsum(draw(lengths_table(records), seed, BATCHES, block * BLOCK_RECORDS, drawn), dtype=np.int64)
        if extra:
            ends += np.arange(1, drawn + 1) * extra
        if ends[-1] >= units:
            found: Int64 = ends[: np.searchsorted(ends, units)]
            return found
        drawn *= 2


def plan_batches(batching: Batching, seed: int, block: int, starts: Int64 | None, offsets: Int64) -> Int64 | None:
    """Return the batches of a block of 65,536 records: the index of each batch's first record, then 65,536.

    With transactions, every second batch is the commit or abort marker of the transaction before it. Return None for
    `Linger`, whose batches depend on the records (see `linger_batches`).

    Args:
        starts: int64[n], the indexes of the records that count for batch sizes (all but tombstones); None: all records.
        offsets: int64[65_536], the offset of each record, on which the batches of `CompactionSurvivors` depend.
    """
    units = BLOCK_RECORDS if starts is None else len(starts)
    match batching:
        case FixedSizes(records=size):
            inner = np.arange(size, units, size)
        case RandomSizes(records=sizes):
            inner = random_ends(sizes, seed, block, 0, units)
        case Transactions(records=sizes):
            ends = np.append(random_ends(sizes, seed, block, 1, units - 1), units)  # the last transaction has data too
            inner = np.stack([ends - 1, ends], axis=1).reshape(-1)[:-1]
        case CompactionSurvivors(of_records=size):
            batch = offsets // size
            inner, starts = np.flatnonzero(batch[1:] != batch[:-1]) + 1, None
        case _:
            return None
    bounds = np.empty(len(inner) + 2, np.int64)
    bounds[0], bounds[-1] = 0, BLOCK_RECORDS
    bounds[1:-1] = inner if starts is None else starts[inner]
    return bounds


def linger_batches(batching: Linger, times_us: Int64, shapes: Shapes) -> Int64:
    """Return the batches that a producer makes from a block's records, as `plan_batches` does.

    times_us: int64[65_536], the arrival time of each record in µs since the workload's start.
    """
    linger_us = round(batching.linger_ms * 1000)
    bounds = np.empty(len(shapes) + 1, np.int64)
    batches = linger(times_us, shapes.columns, linger_us, batching.batch_size_bytes, 1.0, bounds)
    return bounds[: batches + 1]


def rebatch(sample: Sample, batch_size: int, start: int) -> Sample:
    """Divide a sample's records into batches of `batch_size` records, counted from the start of each block of 65,536.

    A control record stays alone in its batch. The base offset and last offset of a batch are those of its records. Its
    base sequence is the sequence of its first record. Its other header fields are copied from the old batch of its
    first record.

    start: the number of the sample's first record in the workload.
    """
    starts, ends = sample.bounds[:-1], sample.bounds[1:]
    rows = np.broadcast_to(sample.batch_fields.over(len(starts)), len(starts))
    begins = (np.arange(len(sample.shapes) + 1) + start) % BLOCK_RECORDS % batch_size == 0
    begins[starts[rows["is_control"]]] = begins[ends[rows["is_control"]]] = True
    begins[[0, -1]] = True
    bounds = np.flatnonzero(begins)
    own = np.searchsorted(starts, bounds[:-1], side="right") - 1
    fields = rows[own]
    has_sequence = fields["base_sequence"] != NO_SEQUENCE
    sequence = (fields["base_sequence"].astype(np.int64) + bounds[:-1] - starts[own]) & LAST_SEQUENCE
    fields["base_sequence"] = np.where(has_sequence, sequence, NO_SEQUENCE)
    fields["base_offset"] = fields["last_offset"] = UNSET
    batch_fields = BatchFields.trusted(fields)
    return replace(sample, bounds=bounds, batch_fields=batch_fields, payload=lambda: sample.records)
