"""Append: a leader's work on a produce request (`LogValidator`): validation, and assignment of offsets and times.

The table shows, by format of the log, what is set in place and what makes a broker rebuild a batch:

| log | in place | rebuilt |
|---|---|---|
| v0 | plain messages | compressed sets: inner offsets are absolute |
| v1, enriched | the wrapper's offset (KIP-31), plain messages | sets whose offsets do not rise by one |
| v2, v3, kip98 | base offset and leader epoch, outside the CRC | compressed batches whose offsets do not rise by one |
| any other | | another format or codec |

Log append time also sets the timestamp, its type and the checksum. In v3 the maximum timestamp is a varlong, so the
bytes after it may move. In v3 with tags, tag 0 stores the append time and has a fixed size. A wrong maximum timestamp
is corrected. With create time, tag 0 becomes -1, so that a producer cannot forge a broker's time.

A format may have no other path than append (`Appending.is_only_path`). Then a request is refused where another one
would be rebuilt: if its offsets do not rise by one, its times would have to be set, or it has another format or codec.

If a batch with headers first is not rebuilt, only its metadata is decompressed. So damage in its payload gets into the
log.

Offsets of a producer's request begin at 0: Kafka refuses batches of v2 that do not, and rebuilds compressed sets of v1.
With from_zero=False it is enough that offsets rise by one, so that the batches of a log may be sent as requests. A
rebuilt control batch stays a control batch. Kafka's builder would make plain records of it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64, check_buffer, integers_of
from kfbench.batches import EncodedLog
from kfbench.broker.in_place import Piece, assign
from kfbench.broker.rebuild import rebuild
from kfbench.broker.requests import Run, checked_runs, split
from kfbench.broker.source import bytes_of, find
from kfbench.broker.topic import LAST_INT64, Origin, Topic, whole_number
from kfbench.broker.work import NewLog, Work
from kfbench.codecs import Allowance, Dictionary
from kfbench.errors import InvalidRecords
from kfbench.formats import Format
from kfbench.kernels.wire import frames
from kfbench.layouts import NO_TIMESTAMP
from kfbench.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Appended(NewLog):
    """The bytes that go into the log.

    Args:
        data: uint8[size].
        positions: the byte position of each request, and the end, int64[requests + 1].
        work: counters. `read_bytes` counts a batch twice if its checksum is computed. `written_bytes` counts all bytes
            of a batch that is copied into a new buffer.
        next_offset: the next offset of the partition. If each request has its own base offset: the next one after each
            request, int64[requests].
        max_timestamp_ms: the largest timestamp of each request, int64[requests], as in Kafka's `ValidationResult`.
        converted_records: number of records in rebuilt requests, as in Kafka's `ValidationResult`.
    """

    next_offset: int | Int64
    max_timestamp_ms: Int64
    converted_records: int


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
    dictionaries: Iterable[Dictionary] = (),
) -> Appended:
    """Validate requests and assign their offsets, timestamps and leader epoch.

    A request is the bytes between two positions of an EncodedLog; plain bytes are one request. All requests are checked
    before any is written.

    Args:
        fmt: the format of the requests; None: found by their magic.
        to, codec, level: format, codec and level of the log; None: those of each request.
        base_offset: the first offset of the first request (the others follow), or of each request, int64[requests].
        now_ms: the broker's clock, for append time and for the limits before_max_ms and after_max_ms.
        partition_leader_epoch: the epoch to set in each batch.
        origin: "client", or "coordinator", which may write control batches.
        before_max_ms, after_max_ms: how far a create time may lie before and after now_ms.
        compacted: True: refuse records without a key.
        from_zero: True: the offsets of a request must begin at 0.
        in_place: assign in `log`, a writeable buffer. If a request is rebuilt or resized, `data` is a new buffer.
        lossy: a conversion may lose properties.
        dictionaries: the zstd dictionaries of the partition.

    Raises:
        Refused: with the broker's error.
        CorruptLog: damage that a broker has no error for, or more than `limits` allow.
        WouldLose: a loss without `lossy`.
        IllegalCombination: a codec that the log's format lacks, or a path that it does not have.
        InvalidConfig: options out of range.
        InvalidRecords: offsets beyond int64.
    """
    source = None if fmt is None else find(fmt, for_append=True)
    topic = Topic.of(
        to=to, codec=codec, level=level, timestamp_type=timestamp_type, now_ms=now_ms,
        partition_leader_epoch=partition_leader_epoch, origin=origin, before_max_ms=before_max_ms,
        after_max_ms=after_max_ms, compacted=compacted, from_zero=from_zero, lossy=lossy,
    )  # fmt: skip
    given_bases, data = _given_bases(base_offset), bytes_of(log)
    requests = split(log, data, source)
    allowance = Allowance.of(len(data), limits, dictionaries)
    runs = checked_runs(requests, source, topic, allowance)
    counts = _concatenated([run.counts for run in runs])
    bases = _bases(given_bases, counts)
    written = _written(runs, bases, topic, allowance, lambda: _writeable(log, in_place, data))
    joined = _joined(written.target, requests.entries.positions[requests.firsts], written.pieces)
    return Appended(
        data=joined.data,
        positions=joined.positions,
        next_offset=given_bases + int(counts.sum()) if isinstance(given_bases, int) else bases + counts,
        max_timestamp_ms=_concatenated([_latest_ms(run, topic) for run in runs]),
        converted_records=sum(int(run.counts[~run.stays].sum()) for run in runs if not run.stays.all()),
        work=written.work + Work(written_bytes=joined.copied_bytes),
    )


class _Written(NamedTuple):
    """All requests of one append after assignment.

    Args:
        target: the buffer of the requests that are not rebuilt or resized.
        pieces: buffers of all other requests.
    """

    target: Bytes
    pieces: list[Piece]
    work: Work


def _written(
    runs: Sequence[Run], bases: Int64, topic: Topic, allowance: Allowance, writeable: Callable[[], Bytes]
) -> _Written:
    """Rebuild some requests, and set the fields of the others in place.

    Args:
        bases: the first offset of each request, int64[requests].
        writeable: returns the buffer in which fields are set.
    """
    bases_of = [bases[run.first : run.first + len(run.counts)] for run in runs]
    # Rebuilding may be refused for a loss, so it comes before anything is written into the caller's buffer.
    pieces = [
        rebuild(run, own, topic, allowance) for run, own in zip(runs, bases_of, strict=True) if not run.stays.all()
    ]
    works = [piece.work for piece in pieces]
    staying = [(run, own) for run, own in zip(runs, bases_of, strict=True) if run.stays.any()]
    target = writeable() if staying else np.zeros(0, np.uint8)
    for run, own in staying:
        assigned = assign(run, own, topic, target)
        works.append(assigned.work)
        if assigned.moved:
            pieces.append(assigned.moved)
            works.append(assigned.moved.work)
    decompressed_bytes = sum(run.columns.decompressed_bytes for run in runs)
    return _Written(target, pieces, reduce(Work.__add__, works, Work(decompressed_bytes=decompressed_bytes)))


def _given_bases(base_offset: int | ArrayLike) -> int | Int64:
    if isinstance(base_offset, int | np.integer):
        return whole_number("base_offset", base_offset)
    bases = integers_of("base_offset", base_offset, np.int64)
    if (bases < 0).any():
        raise InvalidRecords(f"base_offset: {bases.min()} is below 0")
    return bases


def _bases(given: int | Int64, counts: Int64) -> Int64:
    if isinstance(given, int):
        total = int(counts.sum())
        if given > LAST_INT64 - total:
            raise InvalidRecords(f"base_offset: {total} records from {given} on do not fit int64")
        return given + np.cumsum(counts) - counts
    if len(given) != len(counts):
        raise InvalidRecords(f"base_offset: {len(given)} items for {len(counts)} requests")
    if (over := np.flatnonzero(given > LAST_INT64 - counts)).size:
        r = int(over[0])
        raise InvalidRecords(f"base_offset: {counts[r]} records from {given[r]} on do not fit int64")
    return given


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


class _Joined(NamedTuple):
    """All requests of one append, in order.

    copied_bytes: bytes of unchanged requests, copied to a new buffer because other requests were rebuilt or resized.
    """

    data: Bytes
    positions: Int64
    copied_bytes: int


def _joined(target: Bytes, spans: Int64, pieces: Sequence[Piece]) -> _Joined:
    """Put all requests into one buffer, in order.

    Args:
        target: the bytes of requests in place. Request r is target[spans[r]:spans[r + 1]], unless a piece has it.
        pieces: buffers of rebuilt and resized requests, with their numbers.
    """
    if not pieces:
        return _Joined(target[: spans[-1]], spans, 0)
    requests = len(spans) - 1
    if len(pieces) == 1 and len(pieces[0].requests) == requests:
        return _Joined(pieces[0].data, pieces[0].positions, 0)
    sizes, stays = spans[1:] - spans[:-1], np.ones(requests, np.bool_)
    for piece in pieces:
        sizes[piece.requests] = np.diff(piece.positions)
        stays[piece.requests] = False
    positions = np.append(0, np.cumsum(sizes))
    data = np.empty(positions[-1], np.uint8)
    frames.scatter(target, spans[:-1][stays], spans[1:][stays], positions[:-1][stays], data)
    for piece in pieces:
        frames.scatter(piece.data, piece.positions[:-1], piece.positions[1:], positions[piece.requests], data)
    return _Joined(data, positions, int(sizes[stays].sum()))


def _latest_ms(run: Run, topic: Topic) -> Int64:
    """Return the largest timestamp of each request in ms, as Kafka's time index stores it; -1: none."""
    if topic.is_append:
        has_no_time = run.stays & (not run.columns.fmt.capabilities.timestamps)
        return np.where(has_no_time, NO_TIMESTAMP, np.int64(topic.now_ms))
    if not run.to.capabilities.timestamps:
        return np.full(len(run.counts), NO_TIMESTAMP, np.int64)
    if run.is_one_each:
        return run.latest_ms
    latest: Int64 = np.maximum.reduceat(run.latest_ms, run.bounds[:-1])
    return latest
