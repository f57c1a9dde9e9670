"""Batches of records, as data: by number of records, by a producer's time and size limits, or by transactions.

Batches never cross the end of a block of 65,536 records, so the last batch of a block may be smaller. The batches of a
block depend only on the seed and the block's number, so every slice of the block has the same batches.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kfbench.arrays import Int32, Int64
from kfbench.batches import BatchFields
from kfbench.kernels.workload import draws, waits
from kfbench.kernels.workload.linger import linger
from kfbench.layouts import NO_SEQUENCE, UNSET
from kfbench.records import Shapes
from kfbench.workloads.base.workload import BLOCK_RECORDS, Sample
from kfbench.workloads.named.distributions import (
    QUANTILES,
    Distribution,
    coarse,
    draw_lengths,
    lengths_table,
    mean_length,
    require,
)

BATCHES: Final = 100  # the stream of draws of batch sizes, and of gaps between survivors
SPARE_DEVIATIONS: Final = 8
LAST_SEQUENCE: Final = 2**31 - 1

Records = Annotated[int, Meta(ge=1, le=BLOCK_RECORDS)]
BatchBytes = Annotated[int, Meta(ge=0, lt=2**31)]


class _Batching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model"):
    pass


class Fixed(_Batching, frozen=True, kw_only=True, tag="fixed"):
    """Batches of `records` records each."""

    records: Records


class Drawn(_Batching, frozen=True, kw_only=True, tag="drawn"):
    """Batches whose number of records is drawn, such as an upload or a database transaction that is sent at once.

    A tombstone after a delete is not counted. It is always in the batch of the delete.
    """

    records: Distribution

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class Linger(_Batching, frozen=True, kw_only=True, tag="linger"):
    """Batches as a producer's accumulator makes them for one partition (`kernels/workload/linger.py`).

    A batch takes the records that arrive within linger.ms of its first record, up to batch.size. With Poisson arrivals
    of rate r these are 1 + Poisson(r · linger) records, unless the size is the limit. Kafka's defaults are 16,384
    bytes, and 5 ms since 4.0, 0 ms before.
    """

    linger_ms: Annotated[float, Meta(ge=0, le=86_400_000)]
    batch_size_bytes: BatchBytes = 16_384


class Transactions(_Batching, frozen=True, kw_only=True, tag="transactions"):
    """Pairs of batches: one batch of data, then the marker that ends its transaction, a control batch of one record.

    Every transaction has a new epoch and sequences from 0, as with transaction.version 2 (KIP-890). After the last
    epoch comes a new producer id.
    """

    records: Distribution
    abort_share: Annotated[float, Meta(ge=0, le=1)] = 0.0

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class CompactionSurvivors(_Batching, frozen=True, kw_only=True, tag="survivors"):
    """Batches that had `of_records` records before compaction, with the records that survived it.

    Each record survives with probability `survival`, so offsets have holes of geometric length. Empty batches are
    removed. The others keep the offsets of their old first and last record, as `MemoryRecords.filterTo` does.

    A batch with a tombstone has a delete horizon (KIP-534): the time of its first cleaning plus `delete_retention_ms`
    (delete.retention.ms). The first cleaning is `cleaned_after_ms` after the last record of the batch. (A real cleaner
    rewrites many batches at the same time.) Without `delete_retention_ms`, no cleaner since Kafka 3.1 rewrote the log.

    Why survivors are independent: with Zipf keys, a record survives if no later record has its key. Far from the end of
    a log, the survivors are rare keys, so they do not depend on their neighbours. Each key survives once.
    """

    of_records: Records
    survival: Annotated[float, Meta(gt=0, le=1)]
    delete_retention_ms: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    cleaned_after_ms: Annotated[int, Meta(ge=0, lt=2**53)] = 0

    @property
    def block_offsets(self) -> int:
        """The number of offsets reserved for a block, in whole batches: the mean and 8 standard deviations."""
        spread = SPARE_DEVIATIONS * ((1 - self.survival) * BLOCK_RECORDS) ** 0.5
        return (int((BLOCK_RECORDS + spread) / self.survival) // self.of_records + 2) * self.of_records

    def offsets(self, seed: int, block: int) -> Int64:
        gaps = np.empty(BLOCK_RECORDS, np.int32)
        draws.pick(seed, BATCHES, block * BLOCK_RECORDS, _geometric(self.survival), gaps)
        offsets = np.empty(BLOCK_RECORDS, np.int64)
        waits.follow(gaps, block * self.block_offsets - 1, offsets)
        return offsets


Batching = Fixed | Drawn | Linger | Transactions | CompactionSurvivors


def _check_sizes(records: Distribution) -> None:
    least, most = lengths_table(records)[[0, -1]].tolist()
    require(least >= 1 and most <= BLOCK_RECORDS, f"records: {least} to {most}, but 1 to {BLOCK_RECORDS} are possible")


@lru_cache(maxsize=16)
def _geometric(survival: float) -> Int32:
    """Return equally likely distances from one survivor to the next, int32[65_536]."""
    p = (np.arange(QUANTILES) + 0.5) / QUANTILES
    gaps = np.ones(QUANTILES) if survival == 1 else np.ceil(coarse(np.log1p(-p) / np.log1p(-survival)))
    table = gaps.astype(np.int32)
    table.flags.writeable = False
    return table


def drawn_ends(records: Distribution, seed: int, block: int, extra: int, units: int) -> Int64:
    """Return the ends below `units` of batches whose sizes are drawn plus `extra`."""
    size = mean_length(records) + extra
    drawn = int(units / size * 1.05) + 64
    while True:
        ends = np.cumsum(draw_lengths(records, seed, BATCHES, block * BLOCK_RECORDS, drawn), dtype=np.int64)
        if extra:
            ends += np.arange(1, drawn + 1) * extra
        if ends[-1] >= units:
            found: Int64 = ends[: np.searchsorted(ends, units)]
            return found
        drawn *= 2


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """The batches of a block. With transactions, every second batch is a marker."""

    bounds: Int64  # [batches + 1]: the first record of each batch, then the end
    offsets: Int64 | None = None  # [65_536]; None: offsets without holes


def plan_batches(batching: Batching, seed: int, block: int, starts: Int64 | None) -> BatchPlan | None:
    """Return the batches of a block; None if they depend on the records (`linger_batches`).

    starts: int64[events], the first record of each counted event; None: every record is counted.
    """
    units = BLOCK_RECORDS if starts is None else len(starts)
    match batching:
        case Fixed(records=size):
            inner = np.arange(size, units, size)
        case Drawn(records=sizes):
            inner = drawn_ends(sizes, seed, block, 0, units)
        case Transactions(records=sizes):
            ends = np.append(drawn_ends(sizes, seed, block, 1, units - 1), units)  # the last transaction has data too
            inner = np.stack([ends - 1, ends], axis=1).reshape(-1)[:-1]
        case CompactionSurvivors(of_records=size):
            offsets = batching.offsets(seed, block)
            batch = offsets // size
            inner = np.flatnonzero(batch[1:] != batch[:-1]) + 1
            return BatchPlan(bounds=_bounds(inner, None), offsets=offsets)
        case _:
            return None
    return BatchPlan(bounds=_bounds(inner, starts))


def _bounds(inner: NDArray[np.int64], starts: Int64 | None) -> Int64:
    bounds = np.empty(len(inner) + 2, np.int64)
    bounds[0], bounds[-1] = 0, BLOCK_RECORDS
    bounds[1:-1] = inner if starts is None else starts[inner]
    return bounds


def linger_batches(batching: Linger, times_us: Int64, shapes: Shapes) -> BatchPlan:
    """Return a producer's batches of a block's records. times_us: int64[65_536], the arrival of each record."""
    linger_us = round(batching.linger_ms * 1000)
    bounds = np.empty(len(shapes) + 1, np.int64)
    batches = linger(times_us, shapes.columns, linger_us, batching.batch_size_bytes, 1.0, bounds)
    return BatchPlan(bounds=bounds[: batches + 1])


def rebatch(sample: Sample, batch_size: int, start: int) -> Sample:
    """Return the same records in batches of `batch_size`, counted from the start of each block.

    A control record stays alone in its batch. A batch has the offsets of its records. It has the header fields of the
    old batch of its first record, and the sequence of this record.

    start: the number of the sample's first record.
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
