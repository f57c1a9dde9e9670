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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64, check_buffer, integers_of, ranges
from kfbench.batches import APPEND_TIME, CREATE_TIME, BatchFields, EncodedLog
from kfbench.broker.source import bytes_of, find
from kfbench.broker.validation import (
    LAST_INT64,
    Origin,
    RequestRun,
    TopicSettings,
    checked_runs,
    split_requests,
    whole_number,
)
from kfbench.broker.work import NewLog, Work, build
from kfbench.codecs import Allowance, Dictionary, rebuilt_as
from kfbench.errors import InvalidRecords, Refused
from kfbench.formats import BrokerFields, Format
from kfbench.layouts import NO_TIMESTAMP
from kfbench.limits import Limits
from kfbench.log.writing import BatchEncoding, Slices, check_room, splice
from kfbench.records import Records


@dataclass(frozen=True, kw_only=True)
class AppendResult(NewLog):
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
) -> AppendResult:
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
    topic = TopicSettings(
        to=to, codec=codec, level=level, timestamp_type=timestamp_type, now_ms=now_ms,
        partition_leader_epoch=partition_leader_epoch, origin=origin, before_max_ms=before_max_ms,
        after_max_ms=after_max_ms, compacted=compacted, from_zero=from_zero, lossy=lossy,
    )  # fmt: skip
    given_bases, data = _given_bases(base_offset), bytes_of(log)
    requests = split_requests(log, data, source)
    allowance = Allowance.of(len(data), limits, dictionaries)
    runs = checked_runs(requests, source, topic, allowance)
    counts = _concatenate([run.counts for run in runs])
    bases = _bases(given_bases, counts)
    shares = [(run, bases[run.first : run.first + len(run.counts)]) for run in runs]
    # Rebuilding may be refused for a loss, so it comes before anything is written into the caller's buffer.
    moved = [_rebuild(run, own, topic, allowance) for run, own in shares if not run.stays.all()]
    staying = [(run, own) for run, own in shares if run.stays.any()]
    target = _writeable(log, in_place, data) if staying else np.zeros(0, np.uint8)
    works = []
    for run, own in staying:
        works.append(_assign(run, own, topic, target, moved))  # those that get another size go to `moved`
    works += [each.work for each in moved]
    joined = _join(target, requests.entries.positions[requests.firsts], moved)
    copied_bytes = len(joined.data) - sum(len(each.log.data) for each in moved) if moved else 0
    decompressed_bytes = sum(run.decompressed_bytes for run in runs)
    return AppendResult(
        data=joined.data,
        positions=joined.positions,
        next_offset=given_bases + int(counts.sum()) if isinstance(given_bases, int) else bases + counts,
        max_timestamp_ms=_concatenate([_latest_ms(run, topic) for run in runs]),
        converted_records=sum(int(run.counts[~run.stays].sum()) for run in runs if not run.stays.all()),
        work=reduce(Work.__add__, works, Work(decompressed_bytes=decompressed_bytes, written_bytes=copied_bytes)),
    )


class MovedRequests(NamedTuple):
    """Requests of an append that were rebuilt or have another size, in a buffer of their own.

    Args:
        requests: their numbers, rising.
        log: the bytes, with a position for each request.
        work: counters of writing them.
    """

    requests: Int64
    log: EncodedLog
    work: Work


def _given_bases(base_offset: int | ArrayLike) -> int | Int64:
    if isinstance(base_offset, int | np.integer):
        return whole_number("base_offset", base_offset)
    bases = integers_of("base_offset", base_offset, np.int64)
    if (bases < 0).any():
        raise InvalidRecords(f"base_offset: {bases.min()} is below 0")
    return bases


def _bases(given: int | Int64, counts: Int64) -> Int64:
    """Return the first offset of each request. counts: the number of records in each."""
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


def _concatenate(columns: Sequence[Int64]) -> Int64:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


def _join(target: Bytes, spans: Int64, moved: Sequence[MovedRequests]) -> EncodedLog:
    """Put all requests into one buffer, in order.

    target: the bytes of requests in place. Request r is target[spans[r]:spans[r + 1]], unless it is in `moved`.
    """
    if not moved:
        return EncodedLog(data=target[: spans[-1]], positions=spans)
    requests = len(spans) - 1
    if len(moved[0].requests) == requests:
        return moved[0].log
    stays = np.ones(requests, np.bool_)
    parts = []
    for numbers, log, _ in moved:
        stays[numbers] = False
        parts.append(Slices.of(log, numbers))
    return splice(requests, [Slices(target, spans[:-1][stays], spans[1:][stays], np.flatnonzero(stays)), *parts])


def _latest_ms(run: RequestRun, topic: TopicSettings) -> Int64:
    """Return the largest timestamp of each request in ms, as Kafka's time index stores it; -1: none."""
    if topic.is_append:
        has_no_time = run.stays & (not run.fmt.capabilities.timestamps)
        return np.where(has_no_time, NO_TIMESTAMP, np.int64(topic.now_ms))
    if not run.to.capabilities.timestamps:
        return np.full(len(run.counts), NO_TIMESTAMP, np.int64)
    if run.is_one_each:
        return run.latest_ms
    latest: Int64 = np.maximum.reduceat(run.latest_ms, run.bounds[:-1])
    return latest


def _assign(run: RequestRun, bases: Int64, topic: TopicSettings, target: Bytes, moved: list[MovedRequests]) -> Work:
    """Set the broker's fields in the requests that are not rebuilt.

    Args:
        bases: the first offset of each request in the run.
        target: the buffer that is changed.
        moved: the list that gets the requests whose size changes.
    """
    positions, appending, chosen = run.read.positions, run.fmt.appending, run.stays
    fields = _broker_fields(run, bases, topic)
    if not run.is_one_each:
        chosen = np.repeat(chosen, np.diff(run.bounds))
    growth = appending.growth(run.read.data, positions, fields)
    if growth is not None and len(grown := np.flatnonzero(chosen & (growth != 0))):
        moved.append(_resize(run, fields.take(grown), grown, growth[grown]))
        chosen = chosen.copy()
        chosen[grown] = False
    done = appending.assign(target, positions, fields, chosen)
    in_place = int(np.count_nonzero(chosen))
    size = positions[-1] - positions[0] if in_place == len(chosen) else np.diff(positions)[chosen].sum()
    return Work(in_place=in_place, read_bytes=int(size) + done.checksum_bytes, written_bytes=done.written_bytes)


def _broker_fields(run: RequestRun, bases: Int64, topic: TopicSettings) -> BrokerFields:
    """Return the fields that the broker sets in each batch. bases: the first offset of each request in the run."""
    ends = bases + run.counts
    if not run.is_one_each:
        bounds, shift = run.read.bounds, np.repeat(bases - run.record_bounds[:-1], np.diff(run.bounds))
        bases, ends = bounds[:-1] + shift, bounds[1:] + shift
    return BrokerFields(bases, ends, topic.epoch, topic.is_append, topic.now_ms, run.latest_ms)


def _resize(run: RequestRun, fields: BrokerFields, grown: Int64, growth: Int64) -> MovedRequests:
    """Set the fields in a new buffer, for batches whose size changes with the maximum timestamp.

    Here each batch is one request.

    Args:
        fields: those of these batches.
        grown: the numbers of these batches.
        growth: the number of bytes that each grows; negative: it shrinks.
    """
    read, appending = run.read, run.fmt.appending
    starts, stops = read.positions[grown], read.positions[grown + 1]
    log = appending.moved(read.data, starts, stops, fields, growth)
    done = appending.assign(log.data, log.positions, fields, np.ones(len(grown), np.bool_), is_moved=True)
    work = Work(
        shifted=len(grown), read_bytes=int((stops - starts).sum()) + done.checksum_bytes, written_bytes=len(log.data)
    )
    return MovedRequests(run.first + grown, log, work)


def _rebuild(run: RequestRun, bases: Int64, topic: TopicSettings, allowance: Allowance) -> MovedRequests:
    """Rebuild the requests of a run that cannot be set in place (`MemoryRecordsBuilder`).

    Each becomes one batch, one compressed set (wrapper) or several plain messages. Raises Refused, CorruptLog if the
    batches need more bytes than `allowance` has, and WouldLose.

    bases: the first offset of each request in the run.
    """
    requests, to, positions = np.flatnonzero(~run.stays), run.to, run.read.positions
    first, end = run.bounds[:-1][requests], run.bounds[1:][requests]
    records = _stored_records(run, requests, bases[requests], topic)
    fields = run.fmt.appending.producer_fields(run.read)
    if len(fields.rows) > 1:
        fields = fields.take(first)  # a request has the fields of its first batch
    fields = _with_broker_fields(fields, bases[requests], topic, to)
    bounds = np.append(0, np.cumsum(run.counts[requests]))
    filled = np.flatnonzero(np.diff(bounds))  # Kafka's builder writes nothing for no records
    bounds, fields = np.append(bounds[:-1][filled], bounds[-1]), fields.take(filled)
    codecs, number = np.unique(run.codecs[requests][filled], return_inverse=True)
    kinds = [BatchEncoding(fmt=to, codec=rebuilt_as()[codec], level=topic.level if codec else None) for codec in codecs]
    check_room(to, records, bounds, fields, positions[first[filled]], allowance)
    built = build(records, bounds, fields, number, kinds, topic.lossy)
    allowance.built_bytes -= max(len(built.log.data), built.plain_bytes)
    sizes = np.zeros(len(requests) + 1, np.int64)
    sizes[filled + 1] = np.diff(built.log.positions)
    work = Work(
        rewritten=int((end - first).sum()),
        read_bytes=int((positions[end] - positions[first]).sum()),
        written_bytes=len(built.log.data),
        recompressed_bytes=built.plain_bytes,
        losses=built.log.losses,
    )
    log = EncodedLog(data=built.log.data, positions=np.cumsum(sizes))
    return MovedRequests(run.first + requests, log, work)


def _stored_records(run: RequestRun, requests: Int64, bases: Int64, topic: TopicSettings) -> Records:
    """Return the records of some requests of a run, with the offsets and times that the log stores.

    bases: the first offset of each of these requests.
    """
    read, to, counts = run.read, run.to, run.counts[requests]
    records, times_ms = read.records(), run.timestamps_ms
    numbers = None  # indices of the selected records in the run; None: all records
    if len(requests) < len(run.counts):
        numbers = ranges(run.record_bounds[:-1][requests], counts)
        records, times_ms = records.take(numbers), times_ms[numbers]
    if (negative := np.flatnonzero(times_ms < NO_TIMESTAMP)).size:
        record = negative[0] if numbers is None else numbers[negative[0]]
        batch = int(np.searchsorted(read.bounds, record, side="right")) - 1
        promise = f"invalid negative timestamp {times_ms[negative[0]]}"
        raise Refused("UNKNOWN_SERVER_ERROR", int(read.positions[batch]), promise)
    if to.holds_messages and topic.is_append and to.capabilities.timestamps:
        times_ms = np.full(len(times_ms), topic.now_ms, np.int64)  # Kafka's builder sets them in inner messages too
    return records.at_times(times_ms).at_offsets(ranges(bases, counts))


def _with_broker_fields(fields: BatchFields, bases: Int64, topic: TopicSettings, to: Format) -> BatchFields:
    """Set the header fields that the broker decides, as far as the format `to` has them."""
    set_by_broker: dict[str, Any] = {
        "base_offset": bases,
        "partition_leader_epoch": topic.epoch,
        "timestamp_type": APPEND_TIME if topic.is_append else CREATE_TIME,
        "append_time_ms": topic.now_ms if topic.is_append else NO_TIMESTAMP,
    }
    known = to.capabilities.batch_fields
    return fields.replace(**{name: value for name, value in set_by_broker.items() if name in known})
