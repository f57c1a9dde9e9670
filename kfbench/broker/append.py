"""Append: what a leader does to a produce request (`LogValidator`): validation, and assignment of offsets and times.

| log | in place | built anew |
|---|---|---|
| v0 | plain messages | compressed sets: inner offsets are absolute |
| v1, enriched | the wrapper's offset (KIP-31), plain messages | sets whose offsets do not rise by one |
| v2, v3, kip98 | base offset and leader epoch, outside the CRC | compressed batches whose offsets do not rise by one |
| columnar | the same | batches whose offsets do not rise by one; where a maximum timestamp cannot be set, below |
| any | | another format or codec |

Log append time adds the timestamp, its type and the checksum. Where v3 has its maximum timestamp in a varlong, what
follows may have to move; tagged, tag 0 is of fixed size. A maximum that the producer set wrongly is mended, and under
create time tag 0 becomes -1, so that a producer cannot forge a broker's time.

Columnar has it in 48 bits, and create times count from it unless the batch has an anchor of its own. A broker's time
takes its place all the same: no reader asks for the others, and they are lost, which `work.losses` counts. What is
built anew for it is a batch whose maximum or new time does not fit, and one without an anchor whose producer set it
wrongly.

Of compressed batches with headers first that stay, no more than the metadata is decompressed: damage in the payload
behind it is not seen (their checksum covers plain bytes), and goes into the log as it came. Of columnar nothing is
decompressed, and no payload looked at: not whether it can be, nor what is in it, control records included. Only its
size is held to the lengths where it is plain.

A producer's requests count from offset 0: Kafka refuses batches of v2 that do not, and builds compressed sets of v1
anew. With from_zero=False offsets need only rise by one, so that the batches of a log may be sent as requests.
A control batch that is built anew stays one, where Kafka's builder makes plain records of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.arrays import Bytes, Int64, check_buffer, integers_of, ranges
from kfbench.batches import APPEND_TIME, CREATE_TIME, EncodedLog
from kfbench.broker.source import bytes_of, find
from kfbench.broker.validation import ANY_TIME, INVALID_RECORD, Columns, Rules, check, kind_of, read
from kfbench.broker.work import CREATE_TIMES, Work
from kfbench.codecs import CODEC_NAMES, CODECS, Allowance
from kfbench.codecs import find as find_codec
from kfbench.errors import CorruptLog, InvalidConfig, InvalidRecords, Refused
from kfbench.formats import BY_MAGIC, Entries, Format
from kfbench.kernels.broker import assignment
from kfbench.kernels.broker import request_checks as checks
from kfbench.kernels.wire import frames
from kfbench.layouts import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADERS_FIRST_BIT,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TAGGED_BIT,
    V3_FEATURES_MASK,
)
from kfbench.limits import Limits
from kfbench.log.writing import Kind, check_room, codec_bytes, write_batches
from kfbench.log.writing import runs as runs_of

Origin = Literal["client", "coordinator"]
ORIGINS: Final = ("client", "coordinator")
TIMESTAMP_TYPES: Final = ("create", "append")
LAST_INT64: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Appended:
    """What goes into the log: data uint8[size], positions int64[requests + 1] (where each request begins, and the end).

    next_offset: of the partition, or int64[requests] where each request has its own; max_timestamp_ms int64[requests]
    and converted_records as in Kafka's `ValidationResult`. work.read_bytes counts a batch once more where its checksum
    is computed anew; written_bytes counts all of a batch that is put into a new buffer beside others.
    """

    data: Bytes
    positions: Int64
    next_offset: int | Int64
    max_timestamp_ms: Int64
    converted_records: int
    work: Work

    @property
    def encoded(self) -> EncodedLog:
        """As a log."""
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
    """Validates requests and assigns their offsets, timestamps and leader epoch.

    One request is what lies between two positions of an EncodedLog; bytes are one request, without an incomplete last
    batch. fmt: the requests' format; None: the magic of each tells. to: the log's format (None: the same); codec: the
    log's (None: the producer's). base_offset: of the first request, the others follow; or int64[requests].
    timestamp_type: the topic's; now_ms: the broker's clock, which append time and the two limits before_max_ms and
    after_max_ms need. origin: "client", or a "coordinator" that may write control batches. compacted: every record
    needs a key. from_zero: offsets of a request have to begin at 0. in_place: `log` is a writeable buffer to assign in;
    it then holds each request's result where the request lay, but for those that are built anew or grow; with one of
    these `data` is a new buffer. All requests are found valid before any is written.

    Raises Refused with the broker's error, CorruptLog for what it has none for (see `validation`) and for more than
    `limits` allow, WouldLose where a conversion loses something and `lossy` is not given (what an append time takes in
    place is counted alone), IllegalCombination for a codec that the log's format lacks, InvalidConfig for options out
    of range, InvalidRecords for offsets that do not fit int64.
    """
    source = None if fmt is None else find(fmt)
    is_clocked = timestamp_type == "append" or before_max_ms is not None or after_max_ms is not None
    clock = _clock(now_ms, is_clocked)
    topic = _Topic(
        to=None if to is None else find(to),
        codec=None if codec is None else find_codec(codec, level).id,
        level=level,
        is_append=_one_of("timestamp_type", timestamp_type, TIMESTAMP_TYPES) == 1,
        now_ms=clock,
        epoch=_whole("partition_leader_epoch", partition_leader_epoch, NO_PARTITION_LEADER_EPOCH, 2**31 - 1),
        from_client=_one_of("origin", origin, ORIGINS) == 0,
        earliest_ms=ANY_TIME[0] if before_max_ms is None else clock - _whole("before_max_ms", before_max_ms),
        latest_ms=ANY_TIME[1]
        if after_max_ms is None
        else min(clock + _whole("after_max_ms", after_max_ms), LAST_INT64),
        compacted=compacted,
        from_zero=from_zero,
        lossy=lossy,
    )
    given_bases = _given_bases(base_offset)
    data = bytes_of(log)
    entries = Entries.of(data)
    entries.errors("raise")
    firsts, traits = _split(log, data, entries, source)
    allowance = Allowance.of(len(data), limits)
    runs = _runs(data, entries, firsts, traits, source, topic, allowance)

    counts = _one_after_another([run.counts for run in runs])
    bases, next_offset = _bases(given_bases, counts)
    bases_of = [bases[run.first : run.first + len(run.counts)] for run in runs]
    # First what may still be refused, for what it loses; then what is written into the caller's buffer.
    made: list[tuple[_Piece | None, Work]] = [
        _rewritten(run, own, topic, allowance) for run, own in zip(runs, bases_of, strict=True) if not run.all_stay
    ]
    target = data
    if any(run.any_stays for run in runs):
        target = _writeable(log, in_place, data)
        made += [_assigned(run, own, topic, target) for run, own in zip(runs, bases_of, strict=True) if run.any_stays]
    spans, pieces = entries.positions[firsts], [piece for piece, _ in made if piece]
    out, positions, joined_bytes = _joined(target, spans, pieces)
    work = reduce(Work.__add__, [work for _, work in made]) if made else Work()
    decompressed_bytes = sum(run.columns.decompressed_bytes for run in runs)
    if joined_bytes or decompressed_bytes:
        work += Work(written_bytes=joined_bytes, decompressed_bytes=decompressed_bytes)
    return Appended(
        data=out,
        positions=positions,
        next_offset=next_offset,
        max_timestamp_ms=_one_after_another([_latest(run, topic) for run in runs]),
        converted_records=sum(int(run.counts[~run.stays].sum()) for run in runs if not run.all_stay),
        work=work,
    )


@dataclass(frozen=True, kw_only=True)
class _Topic:
    to: Format | None
    codec: int | None
    level: int | None
    is_append: bool
    now_ms: int
    epoch: int
    from_client: bool
    earliest_ms: int
    latest_ms: int
    compacted: bool
    from_zero: bool
    lossy: bool

    def is_plain_marker(self, traits: Int64) -> NDArray[np.bool_]:
        """Which requests are a control batch that the topic's codec is not for."""
        found: NDArray[np.bool_] = (traits & (CODEC_MASK | CONTROL_BIT) == CONTROL_BIT) & bool(self.codec)
        return found

    def codecs(self, traits: Int64) -> Int64:
        """What each request is to have."""
        if self.codec is None:
            return traits & CODEC_MASK
        return np.where(self.is_plain_marker(traits), 0, self.codec)

    def rules(self, to: Format) -> Rules:
        return Rules(
            from_client=self.from_client,
            from_zero=self.from_zero,
            to_messages=to.magic < 2,
            is_create=not self.is_append,
            earliest_ms=self.earliest_ms,
            latest_ms=self.latest_ms,
            keyed=self.compacted,
        )


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Requests of one format, one after another. bounds: their batches, int64[requests + 1].

    codecs int64[requests]: what each is to have; stays bool[requests]: the others are built anew.
    """

    columns: Columns
    bounds: Int64
    to: Format
    codecs: Int64
    latest_ms: Int64  # of each batch
    stays: NDArray[np.bool_]
    all_stay: bool
    is_one_each: bool  # each request is one batch: all but requests of plain messages are
    record_bounds: Int64  # of requests
    counts: Int64
    first: int = 0  # its number among all

    @property
    def any_stays(self) -> bool:
        return self.all_stay or bool(self.stays.any())


class _Piece(NamedTuple):
    """Requests of these numbers, rising, in a buffer of their own."""

    requests: Int64
    data: Bytes
    positions: Int64


def _one_of(name: str, value: str, choices: Sequence[str]) -> int:
    if value not in choices:
        raise InvalidConfig(f"{name}: {' or '.join(choices)} is wanted, not {value!r}")
    return choices.index(value)


def _clock(now_ms: int | None, is_needed: bool) -> int:
    if now_ms is None and is_needed:
        raise InvalidConfig("now_ms: append time and limits of create time need the broker's clock")
    return NO_TIMESTAMP if now_ms is None else _whole("now_ms", now_ms)


def _whole(name: str, value: int | np.integer[Any], least: int = 0, most: int = LAST_INT64) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidConfig(f"{name}: a whole number from {least} to {most} is wanted, not {value!r}")
    return int(value)


def _writeable(log: EncodedLog | Any, in_place: bool, data: Bytes) -> Bytes:
    if not in_place:
        return data.copy()
    buffer = log.data if isinstance(log, EncodedLog) else log
    check_buffer(buffer)
    return buffer


def _split(log: EncodedLog | Any, data: Bytes, entries: Entries, source: Format | None) -> tuple[Int64, Int64]:
    """The first entry of each request, int64[requests + 1], and what decides how it is treated, int64[requests]."""
    positions = log.positions if isinstance(log, EncodedLog) else entries.positions[[0, -1]]
    firsts, traits = np.empty(len(positions), np.int64), np.empty(len(positions) - 1, np.int64)
    problem, entry = checks.split(data, entries.positions, entries.magics, kind_of(source), positions, firsts, traits)
    at = int(entries.positions[entry])
    if problem == checks.INSIDE_BATCH:
        raise CorruptLog(at, "length", "a request ends inside this batch")
    if problem == checks.NO_BATCH:
        raise Refused(INVALID_RECORD, at, "record batch has no batches at all")
    if problem == checks.OTHER_MAGIC:
        said = f"batch magic {entries.magics[entry]} is not the same as the first batch's magic byte"
        raise Refused(INVALID_RECORD, at, said)
    if problem == checks.TOO_MANY:
        raise Refused(INVALID_RECORD, at, "compressed outer record has more than one batch")
    return firsts, traits


def _runs(
    data: Bytes,
    entries: Entries,
    firsts: Int64,
    traits: Int64,
    source: Format | None,
    topic: _Topic,
    allowance: Allowance,
) -> list[_Run]:
    """The requests, read and found valid, in runs of one format, whatever their codecs."""
    found: list[_Run] = []
    kinds = traits & ~(CODEC_MASK | CONTROL_BIT)
    for lo, hi in runs_of(kinds) if (kinds != kinds[:1]).any() or not len(kinds) else [(0, len(kinds))]:
        magic, features = int(entries.magics[firsts[lo]]), int(traits[lo]) & V3_FEATURES_MASK
        if source is None and magic not in BY_MAGIC:
            at = int(entries.positions[firsts[lo]])
            raise CorruptLog(at, "magic", f"{magic} is none of {', '.join(map(str, BY_MAGIC))}")
        fmt = source or BY_MAGIC[magic]
        to = topic.to or fmt
        codecs = traits[lo:hi] & CODEC_MASK
        wanted = topic.codecs(traits[lo:hi])
        if to.magic < 2 <= magic and (zstd := np.flatnonzero(wanted == CODECS["zstd"].id)).size:
            said = f"zstd cannot be used with a magic below 2, but {to.name} is the log's format"
            at = int(entries.positions[firsts[lo + zstd[0]]])
            raise Refused("UNSUPPORTED_COMPRESSION_TYPE", at, said)
        if topic.codec is not None and (wanted == topic.codec).any():
            to.check_codec(CODEC_NAMES[topic.codec], topic.level)
        same = (wanted == codecs) & _is_same(fmt, to, features, topic.to is None, source is None)
        if magic == 0:
            same &= codecs == 0
        # What stays is read in part where its metadata can be had alone: not together with what is built anew.
        in_parts = features & HEADERS_FIRST_BIT or fmt.has_bare_metadata
        for first, end in runs_of(same) if in_parts else [(0, hi - lo)]:
            start = lo + first
            bounds = firsts[start : lo + end + 1] - firsts[start]
            positions = entries.positions[firsts[start] : firsts[lo + end] + 1]
            part = _checked(
                fmt, to, data, positions, bounds, traits[start : lo + end], same[first:end], topic, allowance
            )
            found.append(replace(part, first=start) if start else part)
    return found


def _is_same(fmt: Format, to: Format, features: int, is_any: bool, is_told: bool) -> bool:
    """Whether batches with these features have the log's format; is_told: nothing but their bytes say theirs."""
    if is_any:
        return True
    if fmt.magic != 3:
        return to is fmt
    # Whether headers are shared is not in the attributes: a tagged batch is taken for another one.
    known = not features & TAGGED_BIT if is_told and to.magic == 3 else to is fmt
    return known and features == to.features & V3_FEATURES_MASK


def _checked(
    fmt: Format,
    to: Format,
    data: Bytes,
    positions: Int64,
    bounds: Int64,
    traits: Int64,
    same: NDArray[np.bool_],
    topic: _Topic,
    allowance: Allowance,
) -> _Run:
    """A run of requests that were read and hold to the rules; same bool[requests]: format and codec are the log's."""
    rules, before = topic.rules(to), replace(allowance)
    columns = read(fmt, data, positions, not same.all(), allowance, rules)
    latest_ms, in_order = check(columns, rules)
    codecs, stays = topic.codecs(traits), same
    if columns.kind == checks.COLUMNAR:
        settable = np.empty(len(in_order), np.bool_)
        assignment.find_settable(data, positions, topic.is_append, topic.now_ms, latest_ms, settable)
        in_order &= settable
    if not in_order.all():  # plain, nobody asks where nobody can see it; else what is not in order is built anew
        loose = (traits & CODEC_MASK == 0) & ~(topic.is_plain_marker(traits)) & (not fmt.has_bare_metadata)
        in_order = in_order[bounds[:-1]] | loose
        stays = same & in_order
        if topic.codec:
            codecs = np.where(in_order, codecs, topic.codec)
        if columns.is_metadata and not stays.all():  # the payload is wanted after all
            spent = columns.decompressed_bytes
            allowance.read_again(before)
            columns = read(fmt, data, positions, True, allowance, rules)
            columns = replace(columns, decompressed_bytes=columns.decompressed_bytes + spent)
    is_one_each = len(bounds) == len(positions)
    record_bounds = columns.bounds if is_one_each else columns.bounds[bounds]
    return _Run(
        columns=columns, bounds=bounds, to=to, codecs=codecs, latest_ms=latest_ms, stays=stays,
        all_stay=bool(stays.all()), is_one_each=is_one_each, record_bounds=record_bounds,
        counts=record_bounds[1:] - record_bounds[:-1],
    )  # fmt: skip


def _one_after_another(columns: Sequence[Int64]) -> Int64:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.zeros(0, np.int64)


def _given_bases(base_offset: int | ArrayLike) -> int | Int64:
    if isinstance(base_offset, int | np.integer):
        return _whole("base_offset", base_offset)
    bases = integers_of("base_offset", base_offset, np.int64)
    if (bases < 0).any():
        raise InvalidRecords(f"base_offset: {bases.min()} is below 0")
    return bases


def _bases(given: int | Int64, counts: Int64) -> tuple[Int64, int | Int64]:
    """The first offset of each request, and what follows. Raises InvalidRecords."""
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


def _joined(given: Bytes, spans: Int64, pieces: Sequence[_Piece]) -> tuple[Bytes, Int64, int]:
    """(data, positions, bytes copied for it): the pieces among what stays, where request r is given[spans[r]:…]."""
    if not pieces:
        return given[: spans[-1]], spans, 0
    requests = len(spans) - 1
    if len(pieces) == 1 and len(pieces[0].requests) == requests:
        return pieces[0].data, pieces[0].positions, 0
    sizes, stays = spans[1:] - spans[:-1], np.ones(requests, np.bool_)
    for piece in pieces:
        sizes[piece.requests] = np.diff(piece.positions)
        stays[piece.requests] = False
    positions = np.append(0, np.cumsum(sizes))
    data = np.empty(positions[-1], np.uint8)
    frames.scatter(given, spans[:-1][stays], spans[1:][stays], positions[:-1][stays], data)
    for piece in pieces:
        frames.scatter(piece.data, piece.positions[:-1], piece.positions[1:], positions[piece.requests], data)
    return data, positions, int(sizes[stays].sum())


def _assigned(run: _Run, bases: Int64, topic: _Topic, target: Bytes) -> tuple[_Piece | None, Work]:
    """Sets what a broker sets in the batches that stay, in `target`; those that grow or shrink become a piece."""
    columns, chosen = run.columns, run.stays
    positions, latest, append, now_ms = columns.positions, run.latest_ms, topic.is_append, topic.now_ms
    ends = bases + run.counts
    if not run.is_one_each:  # a request of plain messages has one record each
        batches = np.diff(run.bounds)
        ends = columns.bounds[1:] + np.repeat(bases - run.record_bounds[:-1], batches)
        chosen = np.repeat(chosen, batches)
    kind, is_message = columns.kind, columns.fmt.holds_messages
    work, piece = Work(), None
    if kind == 3:
        growth = np.empty(len(chosen), np.int64)
        if assignment.measure_room(columns.data, positions, append, now_ms, latest, growth):
            grown = np.flatnonzero(chosen & (growth != 0))
            if len(grown):
                piece, work = _grown(run, grown, growth[grown], ends[grown], topic)
                chosen = chosen.copy()
                chosen[grown] = False
    losses = {}
    if append and kind == checks.COLUMNAR:  # before the target has the time, for it may be what came
        covered = assignment.count_covered(columns.data, positions, columns.bounds, columns.timestamps_ms, chosen)
        losses = {CREATE_TIMES: int(covered)} if covered else {}
    if is_message and kind == checks.ENRICHED:
        starts = ends - (columns.bounds[1:] - columns.bounds[:-1])
        written, again = assignment.assign_enriched(target, positions, starts, append, now_ms, chosen)
    elif is_message:
        written, again = assignment.assign_messages(target, positions, kind, ends, append, now_ms, latest, chosen)
    else:
        written, again = assignment.assign_batches(
            target, positions, kind, ends, topic.epoch, append, now_ms, latest, chosen, False
        )
    in_place = int(np.count_nonzero(chosen))
    size = positions[-1] - positions[0] if in_place == len(chosen) else np.diff(positions)[chosen].sum()
    own = Work(in_place=in_place, read_bytes=int(size) + again, written_bytes=written, losses=losses)
    return piece, work + own if piece else own


def _grown(run: _Run, batches: Int64, growth: Int64, ends: Int64, topic: _Topic) -> tuple[_Piece, Work]:
    """Batches of v3 in a new buffer, each a request: the varlong of their maximum timestamp changes its size."""
    columns, latest = run.columns, run.latest_ms[batches]
    starts, stops = columns.positions[batches], columns.positions[batches + 1]
    size = int((stops - starts).sum())
    data, positions = np.empty(size + int(growth.sum()), np.uint8), np.empty(len(batches) + 1, np.int64)
    assignment.make_room(columns.data, starts, stops, topic.is_append, topic.now_ms, latest, growth, data, positions)
    _, again = assignment.assign_batches(
        data, positions, 3, ends, topic.epoch, topic.is_append, topic.now_ms, latest, np.ones(len(batches), np.bool_),
        True,
    )  # fmt: skip
    work = Work(shifted=len(batches), read_bytes=size + again, written_bytes=len(data))
    return _Piece(run.first + batches, data, positions), work


def _latest(run: _Run, topic: _Topic) -> Int64:
    """The largest timestamp of each request, as Kafka gives it for its index of times."""
    if topic.is_append:
        return np.where(run.stays & (run.columns.fmt.magic == 0), NO_TIMESTAMP, np.int64(topic.now_ms))
    if run.to.magic == 0:
        return np.full(len(run.counts), NO_TIMESTAMP, np.int64)
    if run.is_one_each:
        return run.latest_ms
    latest: Int64 = np.maximum.reduceat(run.latest_ms, run.bounds[:-1])
    return latest


def _rewritten(run: _Run, bases: Int64, topic: _Topic, allowance: Allowance) -> tuple[_Piece, Work]:
    """Builds what does not stay anew: a request is one batch, wrapper or row of messages (`MemoryRecordsBuilder`)."""
    columns, to = run.columns, run.to
    requests = np.flatnonzero(~run.stays)
    counts, codecs, records, times = run.counts, run.codecs, columns.records, columns.timestamps_ms
    starts, is_all = run.record_bounds[:-1], len(requests) == len(counts)
    if not is_all:
        counts, bases, codecs, starts = counts[requests], bases[requests], codecs[requests], starts[requests]
        numbers = ranges(starts, counts)
        records, times = records.take(numbers), times[numbers]
    bounds = np.append(0, np.cumsum(counts))
    if (negative := np.flatnonzero(times < NO_TIMESTAMP)).size:
        record = int(negative[0]) if is_all else int(numbers[negative[0]])
        b = int(np.searchsorted(columns.bounds, record, side="right")) - 1
        said = f"invalid negative timestamp {times[negative[0]]}"
        raise Refused("UNKNOWN_SERVER_ERROR", int(columns.positions[b]), said)
    if to.holds_messages and topic.is_append and to.capabilities.timestamps:
        times = np.full(len(times), topic.now_ms, np.int64)  # the builder gives them to inner messages, too
    offsets = np.arange(bounds[-1]) + np.repeat(bases - bounds[:-1], counts)
    records = replace(records, shapes=replace(records.shapes, timestamps_ms=times, offsets=offsets))
    first, after = run.bounds[:-1][requests], run.bounds[1:][requests]
    kept = columns.batch_fields
    if len(kept.rows) > 1:
        kept = kept.take(first)  # of the request's first batch
    own: dict[str, Any] = {
        "base_offset": bases,
        "partition_leader_epoch": topic.epoch,
        "timestamp_type": APPEND_TIME if topic.is_append else CREATE_TIME,
        "append_time_ms": topic.now_ms if topic.is_append else NO_TIMESTAMP,
    }
    fields = kept.replace(**{name: value for name, value in own.items() if name in to.capabilities.batch_fields})
    held = np.flatnonzero(counts)  # of no records the builder makes nothing
    bounds, fields = np.append(bounds[:-1][held], bounds[-1]), fields.take(held)
    wanted, number = np.unique(codecs[held], return_inverse=True)
    kinds = [Kind(fmt=to, codec=CODEC_NAMES[codec], level=topic.level if codec else None) for codec in wanted]
    check_room(to, records, bounds, fields, columns.positions[first[held]], allowance)
    built = write_batches(records, bounds, fields, number, kinds, topic.lossy)
    recompressed_bytes = codec_bytes(records, bounds, fields, number, kinds)
    allowance.built_bytes -= max(len(built.data), recompressed_bytes)
    sizes = np.zeros(len(requests) + 1, np.int64)
    sizes[held + 1] = np.diff(built.positions)
    work = Work(
        rewritten=int((after - first).sum()),
        read_bytes=int((columns.positions[after] - columns.positions[first]).sum()),
        written_bytes=len(built.data),
        recompressed_bytes=recompressed_bytes,
        losses=built.losses,
    )
    return _Piece(run.first + requests, built.data, np.cumsum(sizes)), work
