"""Batches of records, as data: by number, by time and size as a producer does, or by what belongs together.

Batches never cross a block of 65,536 records: the last one of a block may be smaller than the model says. The batches
of a block depend only on the seed and the block's number, so every slice of it sees the same ones.
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

BATCHES: Final = 100  # the stream of batch sizes, and of the gaps between survivors
SPARE_DEVIATIONS: Final = 8
LAST_SEQUENCE: Final = 2**31 - 1

Records = Annotated[int, Meta(ge=1, le=BLOCK_RECORDS)]
BatchBytes = Annotated[int, Meta(ge=0, lt=2**31)]


class _Batching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="model"):
    pass


class Fixed(_Batching, frozen=True, kw_only=True, tag="fixed"):
    """Batches of so many records each."""

    records: Records


class Drawn(_Batching, frozen=True, kw_only=True, tag="drawn"):
    """Batches whose number of records is drawn: an upload, or a database's transaction, that is sent at once.

    A tombstone after its delete is not counted, and is always in the delete's batch.
    """

    records: Distribution

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class Linger(_Batching, frozen=True, kw_only=True, tag="linger"):
    """A producer's accumulator for one partition, record by record (`kernels/workload/linger.py`).

    A batch takes what comes within linger.ms of its first record, up to batch.size. Under Poisson arrivals of rate r
    that is 1 + Poisson(r · linger) records until the size sets the limit (N/T policy). Kafka's defaults: 16,384 bytes;
    5 ms since 4.0, 0 before.
    """

    linger_ms: Annotated[float, Meta(ge=0, le=86_400_000)]
    batch_size_bytes: BatchBytes = 16_384


class Transactions(_Batching, frozen=True, kw_only=True, tag="transactions"):
    """A batch of data, then the marker that ends its transaction: a control batch of one record.

    Every transaction has a new epoch and sequences from 0, as under transaction.version 2 (KIP-890). When the epochs
    run out, a new producer id follows.
    """

    records: Distribution
    abort_share: Annotated[float, Meta(ge=0, le=1)] = 0.0

    def __post_init__(self) -> None:
        _check_sizes(self.records)


class Survivors(_Batching, frozen=True, kw_only=True, tag="survivors"):
    """Survivors of compaction in batches that had `of_records` records.

    Each record stays with probability `survival`, so offsets have holes of geometric length. Batches that lost all are
    gone. Batches keep the offsets of their old first and last record, as `MemoryRecords.filterTo` does. A batch with a
    tombstone has a delete horizon (KIP-534): the time of its first cleaning, `cleaned_after_ms` after its last record,
    plus `delete_retention_ms` (delete.retention.ms). Without that it was not cleaned since Kafka 3.1. Each batch has a
    time of cleaning of its own, though a real run of the cleaner has one for all that it rewrites.

    In a log of Zipf keys a record survives if none of the d later ones has its key: the further from the log's end, the
    fewer survive. Survivors there are the cold keys, which are hardly ever drawn. So neighbours are independent, and
    only the share matters. Each key survives once.
    """

    of_records: Records
    survival: Annotated[float, Meta(gt=0, le=1)]
    delete_retention_ms: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    cleaned_after_ms: Annotated[int, Meta(ge=0, lt=2**53)] = 0

    @property
    def block_offsets(self) -> int:
        """The offsets reserved for a block, in whole batches: enough for 8 standard deviations of luck."""
        spread = SPARE_DEVIATIONS * ((1 - self.survival) * BLOCK_RECORDS) ** 0.5
        return (int((BLOCK_RECORDS + spread) / self.survival) // self.of_records + 2) * self.of_records

    def offsets(self, seed: int, block: int) -> Int64:
        """Return the offsets of the block's records, int64[65_536]."""
        gaps = np.empty(BLOCK_RECORDS, np.int32)
        draws.pick(seed, BATCHES, block * BLOCK_RECORDS, _geometric(self.survival), gaps)
        offsets = np.empty(BLOCK_RECORDS, np.int64)
        waits.follow(gaps, block * self.block_offsets - 1, offsets)
        return offsets


Batching = Fixed | Drawn | Linger | Transactions | Survivors


def _check_sizes(records: Distribution) -> None:
    least, most = lengths_table(records)[[0, -1]].tolist()
    require(least >= 1 and most <= BLOCK_RECORDS, f"records: {least} to {most}, and 1 to {BLOCK_RECORDS} can be had")


@lru_cache(maxsize=16)
def _geometric(survival: float) -> Int32:
    """Return the distance to the next survivor in equally likely quantiles, int32[65_536]."""
    p = (np.arange(QUANTILES) + 0.5) / QUANTILES
    gaps = np.ones(QUANTILES) if survival == 1 else np.ceil(coarse(np.log1p(-p) / np.log1p(-survival)))
    table = gaps.astype(np.int32)
    table.flags.writeable = False
    return table


def drawn_ends(records: Distribution, seed: int, block: int, extra: int, units: int) -> Int64:
    """Return the ends below `units` of batches whose sizes are drawn, and `extra` larger."""
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
class Plan:
    """The batches of a block: bounds int64[batches + 1]. In transactions every second batch is a marker."""

    bounds: Int64
    offsets: Int64 | None = None  # int64[65_536]; None: without holes


def plan(batching: Batching, seed: int, block: int, starts: Int64 | None) -> Plan | None:
    """Return the batches of a block, or None where they follow from the records (`lingering`).

    starts: the first record of each counted event, int64[events]; None where every record counts.
    """
    units = BLOCK_RECORDS if starts is None else len(starts)
    match batching:
        case Fixed(records=size):
            inner = np.arange(size, units, size)
        case Drawn(records=sizes):
            inner = drawn_ends(sizes, seed, block, 0, units)
        case Transactions(records=sizes):
            ends = np.append(drawn_ends(sizes, seed, block, 1, units - 1), units)  # the last one has data too
            inner = np.stack([ends - 1, ends], axis=1).reshape(-1)[:-1]
        case Survivors(of_records=size):
            offsets = batching.offsets(seed, block)
            batch = offsets // size
            inner = np.flatnonzero(batch[1:] != batch[:-1]) + 1
            return Plan(bounds=_between(inner, None), offsets=offsets)
        case _:
            return None
    return Plan(bounds=_between(inner, starts))


def _between(inner: NDArray[np.int64], starts: Int64 | None) -> Int64:
    bounds = np.empty(len(inner) + 2, np.int64)
    bounds[0], bounds[-1] = 0, BLOCK_RECORDS
    bounds[1:-1] = inner if starts is None else starts[inner]
    return bounds


def lingering(batching: Linger, times_us: Int64, shapes: Shapes) -> Plan:
    """Return the batches that a producer makes of a block's records. times_us: when it gets them, int64[65_536]."""
    linger_us = round(batching.linger_ms * 1000)
    bounds = np.empty(len(shapes) + 1, np.int64)
    batches = linger(times_us, shapes.columns, linger_us, batching.batch_size_bytes, 1.0, bounds)
    return Plan(bounds=bounds[: batches + 1])


def in_batches_of(sample: Sample, size: int, start: int) -> Sample:
    """Return the same records in batches of `size`. Control records stay in batches of their own.

    start: the number of the sample's first record. Batches are counted from their block's first record. Each has the
    header fields of the batch that its first record was in, that record's sequence, and its records' offsets.
    """
    starts, ends = sample.bounds[:-1], sample.bounds[1:]
    rows = np.broadcast_to(sample.batch_fields.over(len(starts)), len(starts))
    begins = (np.arange(len(sample.shapes) + 1) + start) % BLOCK_RECORDS % size == 0
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
