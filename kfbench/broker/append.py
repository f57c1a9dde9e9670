"""Append: a leader's work on a produce request (`LogValidator`): validation, and assignment of offsets and times.

| log | in place | built anew |
|---|---|---|
| v0 | plain messages | compressed sets: inner offsets are absolute |
| v1, enriched | the wrapper's offset (KIP-31), plain messages | sets whose offsets do not rise by one |
| v2, v3, kip98 | base offset and leader epoch, outside the CRC | compressed batches whose offsets do not rise by one |
| columnar | the same | batches whose offsets do not rise by one; a maximum timestamp that cannot be set |
| any | | another format or codec |

Log append time also sets the timestamp, its type and the checksum. In v3 the maximum timestamp is a varlong, so what
follows it may move. In v3 with tags, tag 0 has a fixed size. A wrong maximum is corrected. Under create time tag 0
becomes -1, so that a producer cannot forge a broker's time.

In columnar the maximum has 48 bits, and create times count from it unless the batch has an anchor. A broker's time
replaces it all the same. The create times are then lost, and `work.losses` counts them. A batch is built anew where the
time does not fit, and where a producer set the maximum wrongly in a batch without an anchor.

A batch with headers first that stays has its metadata decompressed and no more. Nothing of columnar is decompressed.
Damage in such a payload goes into the log, and so do control records in columnar. Only the size of a plain columnar
payload is checked, against the lengths.

Offsets of a producer's request begin at 0: Kafka refuses batches of v2 that do not, and builds compressed sets of v1
anew. With from_zero=False offsets need only rise by one, so that the batches of a log may be sent as requests. A
control batch that is built anew stays one, where Kafka's builder makes plain records of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64, check_buffer, integers_of
from kfbench.batches import EncodedLog
from kfbench.broker.in_place import Piece, assign
from kfbench.broker.rebuild import rebuild
from kfbench.broker.requests import Run, checked_runs, split
from kfbench.broker.source import bytes_of, find
from kfbench.broker.topic import LAST_INT64, Origin, Topic, whole_number
from kfbench.broker.work import Work
from kfbench.codecs import Allowance
from kfbench.errors import InvalidRecords
from kfbench.formats import Format
from kfbench.kernels.wire import frames
from kfbench.layouts import NO_TIMESTAMP
from kfbench.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Appended:
    """The bytes that go into the log: data uint8[size], positions int64[requests + 1].

    next_offset: of the partition, or int64[requests] where each request has its own. max_timestamp_ms int64[requests]
    and converted_records: as in Kafka's `ValidationResult`. work.read_bytes counts a batch again where its checksum is
    computed. work.written_bytes counts all of a batch that is put into a new buffer beside others.
    """

    data: Bytes
    positions: Int64
    next_offset: int | Int64
    max_timestamp_ms: Int64
    converted_records: int
    work: Work

    @property
    def encoded(self) -> EncodedLog:
        """The same bytes as a log."""
        return EncodedLog(data=self.data, positions=self.positions, losses=dict(self.work.losses))


def append(
    log: EncodedLog | Any,
    fmt: Format | str | None = None,
    *,
    to: Format | str | None = None,
    codec: str | None = None,
    level: int | None = None,
    base_offset: int | ArrayLike = 0,
    timestamp_type: Literal["create", "append"] = "create",
    now_ms: int | None = None,
    partition_leader_epoch: int = 0,
    origin: Origin = "client",
    before_max_ms: int | None = None,
    after_max_ms: int | None = None,
    compacted: bool = False,
    from_zero: bool = True,
    in_place: bool = False,
    lossy: bool = False,
    limits: Limits | None = None,
) -> Appended:
    """Validate requests and assign their offsets, timestamps and leader epoch.

    A request is the bytes between two positions of an EncodedLog; plain bytes are one request. All requests are
    checked before any is written. Raises Refused with the broker's error, CorruptLog for what it has none for and for
    more than `limits` allow, WouldLose where a conversion loses something without `lossy`, IllegalCombination for a
    codec that the log's format lacks, InvalidConfig for options out of range, InvalidRecords for offsets beyond int64.

    fmt: of the requests; None: the magic tells. to, codec: of the log; None: those of each request. base_offset: of the
    first request (the others follow), or int64[requests]. now_ms: the broker's clock, for append time and the limits
    before_max_ms and after_max_ms. origin: a "coordinator" may write control batches. compacted: every record needs a
    key. from_zero: offsets of a request begin at 0. in_place: assign in `log`, a writeable buffer. Where a request is
    built anew or changes its size, `data` is a new buffer.
    """
    source = None if fmt is None else find(fmt)
    topic = Topic.of(
        to=to, codec=codec, level=level, timestamp_type=timestamp_type, now_ms=now_ms,
        partition_leader_epoch=partition_leader_epoch, origin=origin, before_max_ms=before_max_ms,
        after_max_ms=after_max_ms, compacted=compacted, from_zero=from_zero, lossy=lossy,
    )  # fmt: skip
    given_bases, data = _given_bases(base_offset), bytes_of(log)
    requests = split(log, data, source)
    allowance = Allowance.of(len(data), limits)
    runs = checked_runs(requests, source, topic, allowance)
    bases, next_offset = _bases(given_bases, _concatenated([run.counts for run in runs]))
    target, pieces, work = _written(runs, bases, topic, allowance, lambda: _writeable(log, in_place, data))
    joined, positions, joined_bytes = _joined(target, requests.entries.positions[requests.firsts], pieces)
    return Appended(
        data=joined,
        positions=positions,
        next_offset=next_offset,
        max_timestamp_ms=_concatenated([_latest_ms(run, topic) for run in runs]),
        converted_records=sum(int(run.counts[~run.stays].sum()) for run in runs if not run.all_stay),
        work=work + Work(written_bytes=joined_bytes),
    )


def _written(
    runs: Sequence[Run], bases: Int64, topic: Topic, allowance: Allowance, writeable: Callable[[], Bytes]
) -> tuple[Bytes, list[Piece], Work]:
    """Build anew and assign in place. Return the buffer of requests that stay, the other requests, and the work."""
    bases_of = [bases[run.first : run.first + len(run.counts)] for run in runs]
    # Rebuilding may be refused for a loss, so it comes before anything is written into the caller's buffer.
    pieces = [rebuild(run, own, topic, allowance) for run, own in zip(runs, bases_of, strict=True) if not run.all_stay]
    works = [piece.work for piece in pieces]
    staying = [(run, own) for run, own in zip(runs, bases_of, strict=True) if run.any_stays]
    target = writeable() if staying else np.zeros(0, np.uint8)
    for run, own in staying:
        work, moved = assign(run, own, topic, target)
        works.append(work)
        if moved:
            pieces.append(moved)
            works.append(moved.work)
    decompressed_bytes = sum(run.columns.decompressed_bytes for run in runs)
    return target, pieces, reduce(Work.__add__, works, Work(decompressed_bytes=decompressed_bytes))


def _given_bases(base_offset: int | ArrayLike) -> int | Int64:
    if isinstance(base_offset, int | np.integer):
        return whole_number("base_offset", base_offset)
    bases = integers_of("base_offset", base_offset, np.int64)
    if (bases < 0).any():
        raise InvalidRecords(f"base_offset: {bases.min()} is below 0")
    return bases


def _bases(given: int | Int64, counts: Int64) -> tuple[Int64, int | Int64]:
    """Return the first offset of each request, and `Appended.next_offset`. Raise InvalidRecords."""
    if isinstance(given, int):
        total = int(counts.sum())
        if given > LAST_INT64 - total:
            raise InvalidRecords(f"base_offset: {total} records from {given} on do not fit int64")
        ends = given + np.cumsum(counts)
        return ends - counts, given + total
    if len(given) != len(counts):
        raise InvalidRecords(f"base_offset: {len(given)} items for {len(counts)} requests")
    if (over := np.flatnonzero(given > LAST_INT64 - counts)).size:
        r = int(over[0])
        raise InvalidRecords(f"base_offset: {counts[r]} records from {given[r]} on do not fit int64")
    return given, given + counts


def _writeable(log: EncodedLog | Any, in_place: bool, data: Bytes) -> Bytes:
    if not in_place:
        return data.copy()
    buffer = log.data if isinstance(log, EncodedLog) else log
    check_buffer(buffer)
    return buffer


def _concatenated(columns: Sequence[Int64]) -> Int64:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


def _joined(target: Bytes, spans: Int64, pieces: Sequence[Piece]) -> tuple[Bytes, Int64, int]:
    """Return data and positions with the pieces in their places, and the bytes copied beside them.

    Request r is target[spans[r]:spans[r + 1]], or in a piece.
    """
    if not pieces:
        return target[: spans[-1]], spans, 0
    requests = len(spans) - 1
    if len(pieces) == 1 and len(pieces[0].requests) == requests:
        return pieces[0].data, pieces[0].positions, 0
    sizes, stays = spans[1:] - spans[:-1], np.ones(requests, np.bool_)
    for piece in pieces:
        sizes[piece.requests] = np.diff(piece.positions)
        stays[piece.requests] = False
    positions = np.append(0, np.cumsum(sizes))
    data = np.empty(positions[-1], np.uint8)
    frames.scatter(target, spans[:-1][stays], spans[1:][stays], positions[:-1][stays], data)
    for piece in pieces:
        frames.scatter(piece.data, piece.positions[:-1], piece.positions[1:], positions[piece.requests], data)
    return data, positions, int(sizes[stays].sum())


def _latest_ms(run: Run, topic: Topic) -> Int64:
    """Return the largest timestamp of each request, as Kafka gives it for its time index."""
    if topic.is_append:
        has_no_time = run.stays & (not run.columns.fmt.capabilities.timestamps)
        return np.where(has_no_time, NO_TIMESTAMP, np.int64(topic.now_ms))
    if not run.to.capabilities.timestamps:
        return np.full(len(run.counts), NO_TIMESTAMP, np.int64)
    if run.is_one_each:
        return run.latest_ms
    latest: Int64 = np.maximum.reduceat(run.latest_ms, run.bounds[:-1])
    return latest
