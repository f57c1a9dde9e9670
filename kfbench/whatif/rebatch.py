"""The same records in other batches: as a producer with another linger.ms and batch.size would send them.

Every producer has an accumulator for each partition. Each producer id is one producer; records without an id are of one
producer together. The new offsets have no holes. Sources: KafkaProducer's `RecordAccumulator`,
`ProducerBatch.tryAppend`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload.linger import linger
from kfbench.layouts import NO_SEQUENCE
from kfbench.log.segment import join_records
from kfbench.records import Records

LATEST_MS: Final = 1 << 42  # the year 2109; no client has a later time, or one before 1970
# A time more than AHEAD_MS ahead of most of the records that follow it is wrong: no clock showed it.
AHEAD_MS: Final = 3_600_000
FOLLOWING: Final = 32  # records that are compared; a quarter of them must confirm a time
OPEN_BYTES: Final = 32 << 20  # of records that wait for their batch to close; beyond it all batches are closed

# Fields of a record's batch that name its producer and its broker.
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
    ]
)
PRODUCER: Final = ("is_transactional", "producer_epoch", "producer_id", "partition")
OF_BATCHES: Final = tuple(name for name in OWNER.names or () if name != "partition")


@dataclass(frozen=True, order=True)
class Batching:
    """A producer's settings for batches. batch_size_bytes: uncompressed (a producer that compresses fits more into it).

    Raises InvalidConfig.
    """

    linger_ms: float
    batch_size_bytes: int

    @property
    def words(self) -> str:
        return f"linger {self.linger_ms:g} ms and batch.size {self.batch_size_bytes:,}"

    @property
    def short_words(self) -> str:
        size = f"{self.batch_size_bytes >> 10:,} KiB" if self.batch_size_bytes % 1024 == 0 else self.batch_size_bytes
        return f"{self.linger_ms:g} ms, {size}"

    def __post_init__(self) -> None:
        if not 0 <= self.linger_ms <= 86_400_000:
            raise InvalidConfig(f"linger_ms: {self.linger_ms:g} is not 0 to 86400000 (a day)")
        if not 0 <= self.batch_size_bytes < 1 << 31:
            raise InvalidConfig(f"batch_size_bytes: {self.batch_size_bytes} is not 0 to {(1 << 31) - 1}")


# The defaults of Kafka 4, and two steps towards fewer and larger batches.
BATCHINGS: Final = (Batching(5.0, 16 << 10), Batching(20.0, 64 << 10), Batching(100.0, 256 << 10))


def batchings_of(lingers_ms: Sequence[float] | None, batch_sizes: Sequence[int] | None) -> tuple[Batching, ...] | None:
    """Return all pairs, with Kafka 4's default where one list is not given; None where neither is.

    Raises InvalidConfig.
    """
    if not lingers_ms and not batch_sizes:
        return None
    default = BATCHINGS[0]
    pairs = product(lingers_ms or [default.linger_ms], batch_sizes or [default.batch_size_bytes])
    return tuple(dict.fromkeys(Batching(float(linger_ms), size) for linger_ms, size in pairs))


class Batches(NamedTuple):
    """Records in batches, as formats take them."""

    records: Records
    bounds: Int64
    fields: BatchFields


class Sent(NamedTuple):
    """Records of clients, one OWNER row each; they have no offsets and no batches yet."""

    records: Records
    owners: NDArray[np.void]

    def at(self, indices: Int64) -> "Sent":
        return Sent(self.records.take(indices), self.owners[indices])

    def batched(self, bounds: Int64) -> Batches:
        """Make batches with these boundaries and offsets from 0. A batch has the fields of its first record."""
        first = self.owners[bounds[:-1]]
        columns: dict[str, Any] = {name: first[name] for name in OF_BATCHES}
        fields = BatchFields(**columns)
        return Batches(self.records.at_offsets(np.arange(len(self.records))), bounds, fields)


def sent(
    records: Records, bounds: Int64 | None, fields: BatchFields, partitions: NDArray[np.int32] | None = None
) -> Sent:
    """Return the records that clients sent: all but control records. partitions int32[n]; None: one for all."""
    batches = 1 if bounds is None else len(bounds) - 1
    counts = np.array([len(records)]) if bounds is None else np.diff(bounds)
    rows = np.broadcast_to(fields.over(batches), batches)
    batch = np.repeat(np.arange(batches), counts)
    owners = np.empty(len(records), OWNER)
    for name in OF_BATCHES:
        owners[name] = rows[name][batch]
    owners["partition"] = 0 if partitions is None else partitions
    if bounds is not None and (owners["base_sequence"] != NO_SEQUENCE).any():
        number = np.arange(len(records)) - bounds[:-1][batch]
        told = owners["base_sequence"] != NO_SEQUENCE
        owners["base_sequence"] = np.where(told, (owners["base_sequence"] + number) & 0x7FFFFFFF, NO_SEQUENCE)
    found = Sent(records, owners)
    return found.at(np.flatnonzero(~rows["is_control"][batch])) if rows["is_control"].any() else found


class _Cut(NamedTuple):
    """Records cut into batches.

    bounds: int64[batches + 1]. is_closed: bool[batches]; no later record can enter the batch: it is not the last of its
    producer. is_ahead: bool[records].
    """

    bounds: Int64
    is_closed: NDArray[np.bool_]
    is_ahead: NDArray[np.bool_]


class Rebatcher:
    """Makes batches of records that come piece by piece. A batch that may still take a record waits for the next piece.

    ahead: records given back whose time is ahead of those that follow; it did not move the clock.
    """

    def __init__(self, batching: Batching) -> None:
        self.ahead = 0
        self._batching = batching
        self._waiting: Sent | None = None
        self._clocks_us: dict[Any, int] = {}

    def add(self, given: Sent, last: bool = False) -> Iterator[Batches]:
        """Yield the batches that are closed by now; with `last` all of them."""
        if self._waiting is not None:
            records = join_records([self._waiting.records, given.records])
            given = Sent(records, np.concatenate([self._waiting.owners, given.owners]))
            self._waiting = None
        if not len(given.records):
            return
        given, starts = _by_producer(given)
        bounds, closed, ahead = self._batches(given, starts)
        if not last and not closed.all():
            waiting = np.repeat(~closed, np.diff(bounds))
            kept = given.at(np.flatnonzero(waiting))
            if kept.records.shapes.payload_bytes < OPEN_BYTES:
                self._waiting = Sent(kept.records.packed(), kept.owners)
                given, bounds = given.at(np.flatnonzero(~waiting)), np.append(0, np.cumsum(np.diff(bounds)[closed]))
                ahead = ahead[~waiting]
        self.ahead += int(ahead.sum())
        if len(bounds) > 1:
            yield given.batched(bounds.astype(np.int64))

    def _batches(self, given: Sent, starts: Int64) -> "_Cut":
        """Cut the records of each producer into batches."""
        linger_us, shapes = round(self._batching.linger_ms * 1000), given.records.shapes
        times_us = np.clip(shapes.timestamps_ms, 0, LATEST_MS) * 1000
        ahead = np.zeros(len(times_us), np.bool_)
        producers = given.owners[starts[:-1]][list(PRODUCER)].tolist()
        for producer, (first, end) in zip(producers, pairwise(starts.tolist()), strict=True):
            # Records that wait come again. With those that follow, a time may turn out to be wrong: so may the clock.
            shown = np.append(self._clocks_us.get(producer, times_us[first]), times_us[first:end])
            wrong = _ahead(shown)
            shown[wrong] = 0
            ahead[first:end] = wrong[1:]
            times_us[first:end] = np.maximum.accumulate(shown)[1:]  # a clock does not run back
        # Any gap longer than linger closes a batch; the same gap separates two producers.
        gaps_us = np.minimum(np.diff(times_us, prepend=times_us[:1]), linger_us + 1)
        gaps_us[starts[1:-1]] = linger_us + 1
        bounds = np.empty(len(times_us) + 1, np.int64)
        batches = linger(np.cumsum(gaps_us), shapes.columns, linger_us, self._batching.batch_size_bytes, 1.0, bounds)
        bounds = bounds[: batches + 1]
        is_last = np.isin(bounds[1:], starts[1:])
        # Records that wait come again: the clock goes back to the start of their batch.
        self._clocks_us |= dict(zip(producers, times_us[bounds[:-1][is_last]].tolist(), strict=True))
        return _Cut(bounds, ~is_last, ahead)


def _ahead(times_us: Int64) -> NDArray[np.bool_]:
    """Mark times that fewer than a quarter of the FOLLOWING records come near or pass. The last is never marked."""
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


def _by_producer(given: Sent) -> tuple[Sent, Int64]:
    """Sort the records by producer and partition, else in their order; return them and each start: int64[k + 1]."""
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
