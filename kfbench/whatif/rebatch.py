"""Put records into other batches, as a producer with another linger.ms and batch.size would send them.

A producer fills one batch at a time for each partition. Each producer id counts as one producer. All records without an
id count as those of one producer. The new offsets have no holes. Sources: KafkaProducer's `RecordAccumulator`,
`ProducerBatch.tryAppend`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64, freeze, ranges
from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload.linger import linger
from kfbench.layouts import NO_SEQUENCE
from kfbench.log.segment import join_records
from kfbench.records import Records
from kfbench.text import count_words

LATEST_MS: Final = 1 << 42  # the year 2109; timestamps after it or before 1970 are wrong
# A timestamp is wrong if it is more than AHEAD_MS (one hour) later than most of the records that follow it.
AHEAD_MS: Final = 3_600_000
FOLLOWING: Final = 32  # number of following records that are compared; a quarter of them must confirm a timestamp
OPEN_BYTES: Final = 32 << 20  # if records in open batches take this much, all batches are closed

# The fields of a record that come from its batch: they identify its producer, and its broker's settings. Besides, its
# partition, and its timestamp in ms, if the stored one is in another unit (see `record_times`).
OWNER: Final = np.dtype(
    [
        ("producer_id", np.int64),
        ("append_time_ms", np.int64),
        ("base_sequence", np.int32),
        ("partition_leader_epoch", np.int32),
        ("producer_epoch", np.int16),
        ("timestamp_type", np.int8),
        ("is_transactional", np.bool_),
        ("partition", np.int32),
        ("time_ms", np.int64),
    ]
)
PRODUCER: Final = ("is_transactional", "producer_epoch", "producer_id", "partition")
OF_BATCHES: Final = tuple(name for name in OWNER.names or () if name not in ("partition", "time_ms"))


@dataclass(frozen=True, order=True)
class Batching:
    """A producer's settings for batches. Raises InvalidConfig for values out of range.

    batch_size_bytes: bytes before compression. A producer that compresses fits more into a batch.
    """

    linger_ms: float
    batch_size_bytes: int

    @property
    def words(self) -> str:
        return f"linger {self.linger_ms:g} ms and batch.size {self.batch_size_bytes:,}"

    @property
    def short_words(self) -> str:
        kib, others = divmod(self.batch_size_bytes, 1024)
        size = count_words(self.batch_size_bytes, "byte") if others else f"{kib:,} KiB"
        return f"{self.linger_ms:g} ms, {size}"

    def __post_init__(self) -> None:
        if not 0 <= self.linger_ms <= 86_400_000:
            raise InvalidConfig(f"linger_ms: {self.linger_ms:g} is not 0 to 86400000 (a day)")
        if not 0 <= self.batch_size_bytes < 1 << 31:
            raise InvalidConfig(f"batch_size_bytes: {self.batch_size_bytes} is not 0 to {(1 << 31) - 1}")


# The defaults of Kafka 4, and two steps towards fewer and larger batches.
BATCHINGS: Final = (Batching(5.0, 16 << 10), Batching(20.0, 64 << 10), Batching(100.0, 256 << 10))


def batchings_of(lingers_ms: Sequence[float] | None, batch_sizes: Sequence[int] | None) -> tuple[Batching, ...] | None:
    """Return all pairs of the two settings; None if both lists are missing.

    For a missing list Kafka 4's default is used. Raises InvalidConfig.
    """
    if not lingers_ms and not batch_sizes:
        return None
    default = BATCHINGS[0]
    pairs = product(lingers_ms or [default.linger_ms], batch_sizes or [default.batch_size_bytes])
    return tuple(dict.fromkeys(Batching(float(linger_ms), size) for linger_ms, size in pairs))


class Batches(NamedTuple):
    """Records in batches, in the form that the formats' methods take."""

    records: Records
    bounds: Int64
    fields: BatchFields

    def part(self, first: int, end: int) -> "Batches":
        """Return the batches first to end - 1. No record is copied."""
        records = self.records.part(int(self.bounds[first]), int(self.bounds[end]))
        return Batches(records, self.bounds[first : end + 1] - self.bounds[first], self.fields.part(first, end))

    def take(self, chosen: Int64) -> "Batches":
        """Return the batches with these indices, in this order. Key, value and header bytes are not copied."""
        counts = np.diff(self.bounds)[chosen]
        records = self.records.take(ranges(self.bounds[chosen], counts))
        return Batches(records, np.append(0, np.cumsum(counts)), self.fields.take(chosen))

    def pack(self) -> "Batches":
        """Copy keys, values and headers into buffers of their own."""
        return self._replace(records=self.records.pack())

    def freeze(self) -> None:
        """Make all arrays read-only, as kernels need them. Pickling loses that."""
        freeze(*self.records.columns, self.fields.rows, self.fields.tags)


class SentRecords(NamedTuple):
    """Records that clients sent, before they are put into batches. owners: an OWNER row per record."""

    records: Records
    owners: NDArray[np.void]

    def at(self, indices: Int64) -> "SentRecords":
        return SentRecords(self.records.take(indices), self.owners[indices])

    def where(self, wanted: NDArray[np.bool_]) -> "SentRecords":
        """Return the records where `wanted` is True, bool[records]. If they are consecutive, no array is copied."""
        indices = np.flatnonzero(wanted)
        if not len(indices) or indices[-1] - indices[0] + 1 > len(indices):
            return self.at(indices)
        first, end = int(indices[0]), int(indices[-1]) + 1
        return SentRecords(self.records.part(first, end), self.owners[first:end])

    def batched(self, bounds: Int64) -> Batches:
        """Put the records into batches with these boundaries. Offsets count from 0.

        A batch gets the fields of its first record's owner row.
        """
        first = self.owners[bounds[:-1]]
        columns: dict[str, Any] = {name: first[name] for name in OF_BATCHES}
        fields = BatchFields(**columns)
        return Batches(self.records.at_offsets(np.arange(len(self.records))), bounds, fields)


def sent_records(
    records: Records, bounds: Int64 | None, fields: BatchFields, partitions: NDArray[np.int32] | None = None
) -> SentRecords:
    """Return the records that clients sent: all except control records.

    partitions: the partition of each record, int32[records]; None: all are of one partition.
    """
    batches = 1 if bounds is None else len(bounds) - 1
    counts = np.array([len(records)]) if bounds is None else np.diff(bounds)
    rows = np.broadcast_to(fields.over(batches), batches)
    batch = np.repeat(np.arange(batches), counts)
    owners = np.empty(len(records), OWNER)
    for name in OF_BATCHES:
        owners[name] = rows[name][batch]
    owners["partition"] = 0 if partitions is None else partitions
    owners["time_ms"] = records.timestamps_ms
    if bounds is not None and (owners["base_sequence"] != NO_SEQUENCE).any():
        number = np.arange(len(records)) - bounds[:-1][batch]
        is_known = owners["base_sequence"] != NO_SEQUENCE
        owners["base_sequence"] = np.where(is_known, (owners["base_sequence"] + number) & 0x7FFFFFFF, NO_SEQUENCE)
    every = SentRecords(records, owners)
    return every.where(~rows["is_control"][batch]) if rows["is_control"].any() else every


class Rebatcher:
    """Puts records that come in pieces into batches.

    A batch that may still take a record waits for the next piece. The clock of a producer is the latest timestamp so
    far that was right.

    ahead: number of returned records whose timestamp was too late to be right. These do not move the clock.
    """

    def __init__(self, batching: Batching) -> None:
        self.ahead = 0
        self._batching = batching
        self._waiting: SentRecords | None = None
        self._clocks_us: dict[Any, int] = {}

    def add(self, given: SentRecords, last: bool = False) -> Iterator[Batches]:
        """Add a piece of records. Yield the batches that are closed by now; with `last` all of them."""
        if self._waiting is not None:
            records = join_records([self._waiting.records, given.records])
            given = SentRecords(records, np.concatenate([self._waiting.owners, given.owners]))
            self._waiting = None
        if not len(given.records):
            return
        # Waiting records are examined again. The records after them may show that a timestamp is wrong, or that the
        # clock is.
        given, starts = _by_producer(given)
        producers = given.owners[starts[:-1]][list(PRODUCER)].tolist()
        times_us, ahead = _times_us(given, starts, list(map(self._clocks_us.get, producers)))
        bounds = _batch_bounds(given, times_us, starts, self._batching)
        # No later record can enter a batch that is not the last one of its producer.
        closed = ~np.isin(bounds[1:], starts[1:])
        # Waiting records are examined again, so the clock goes back to the start of their batch.
        self._clocks_us |= zip(producers, times_us[bounds[:-1][~closed]].tolist(), strict=True)
        if not last and not closed.all():
            waiting = np.repeat(~closed, np.diff(bounds))
            still_open = given.at(np.flatnonzero(waiting))  # copied, because they outlive this piece
            if still_open.records.shapes.payload_bytes < OPEN_BYTES:
                self._waiting = SentRecords(still_open.records.pack(), still_open.owners)
                given, bounds = given.where(~waiting), np.append(0, np.cumsum(np.diff(bounds)[closed]))
                ahead = ahead[~waiting]
        self.ahead += int(ahead.sum())
        if len(bounds) > 1:
            yield given.batched(bounds.astype(np.int64))


def _times_us(given: SentRecords, starts: Int64, clocks_us: Sequence[int | None]) -> tuple[Int64, NDArray[np.bool_]]:
    """Return each producer's clock at each record, in µs, and True for each timestamp that is too late to be right.

    clocks_us: the clocks of the producers before these records, if known.
    """
    times_us = np.clip(given.owners["time_ms"], 0, LATEST_MS) * 1000
    ahead = np.zeros(len(times_us), np.bool_)
    for clock_us, (first, end) in zip(clocks_us, pairwise(starts.tolist()), strict=True):
        shown = np.append(times_us[first] if clock_us is None else clock_us, times_us[first:end])
        wrong = _ahead(shown)
        shown[wrong] = 0
        ahead[first:end] = wrong[1:]
        times_us[first:end] = np.maximum.accumulate(shown)[1:]  # the producer's clock never goes back
    return times_us, ahead


def _batch_bounds(given: SentRecords, times_us: Int64, starts: Int64, batching: Batching) -> Int64:
    """Return the index of the first record of each batch, and the end: int64[batches + 1].

    Any gap longer than linger closes a batch. Between two producers is such a gap. Longer ones are shortened to it.
    """
    linger_us = round(batching.linger_ms * 1000)
    gaps_us = np.minimum(np.diff(times_us, prepend=times_us[:1]), linger_us + 1)
    gaps_us[starts[1:-1]] = linger_us + 1
    columns, bounds = given.records.shapes.columns, np.empty(len(times_us) + 1, np.int64)
    return bounds[: linger(np.cumsum(gaps_us), columns, linger_us, batching.batch_size_bytes, 1.0, bounds) + 1]


def _ahead(times_us: Int64) -> NDArray[np.bool_]:
    """Return True for each timestamp that is too late to be right. The last one is never marked.

    Up to FOLLOWING following records are compared. A timestamp is right if a quarter of them are at most AHEAD_MS
    earlier, or later.
    """
    ahead = np.zeros(len(times_us), np.bool_)
    if not (np.diff(np.maximum.accumulate(times_us)) > AHEAD_MS * 1000).any() and (
        times_us[0] - times_us.min() <= AHEAD_MS * 1000
    ):
        return ahead
    near_us, confirmed = times_us - AHEAD_MS * 1000, np.zeros(len(times_us), np.int64)
    for distance in range(1, min(FOLLOWING, len(times_us) - 1) + 1):
        confirmed[:-distance] += times_us[distance:] >= near_us[:-distance]
    following = np.minimum(np.arange(len(times_us))[::-1], FOLLOWING)
    return confirmed * 4 < following


def _by_producer(given: SentRecords) -> tuple[SentRecords, Int64]:
    """Sort the records by producer and partition, otherwise in their order.

    Return them, and the index of the first record of each producer and partition, with the end: int64[k + 1].
    """
    keys = [given.owners[name] for name in PRODUCER]
    if all((key == key[0]).all() for key in keys):
        return given, np.array([0, len(given.records)])
    order = np.lexsort(keys)
    given = given.at(order)
    changes = np.zeros(len(order) - 1, np.bool_)
    for key in keys:
        in_order = key[order]
        changes |= in_order[1:] != in_order[:-1]
    return given, np.concatenate([[0], np.flatnonzero(changes) + 1, [len(order)]]).astype(np.int64)
