"""Checks of a broker before it takes a request (`org.apache.kafka.storage.internals.log.LogValidator`).

The input of an append is split into produce requests. They are read, and checked against the topic's rules.

A refusal is raised as Refused with the broker's error: CORRUPT_MESSAGE for a wrong checksum, else INVALID_RECORD for
batches that cannot be read. CorruptLog is raised for damage that a broker has no error for: wrong lengths, a magic
other than the given format's, an undecodable payload, more than the limits allow.

Batches of kip98 and v3 follow the rules of v2. Enriched messages follow the rules of v1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.source import find, of_magic
from kfbench.codecs import CODECS, Allowance, codec_names
from kfbench.codecs import find as find_codec
from kfbench.errors import CorruptLog, IllegalCombination, InvalidConfig, MissingDictionary, Refused
from kfbench.formats import Entries, Format, Reading
from kfbench.kernels.broker import assignment, request_checks
from kfbench.kernels.wire import status
from kfbench.layouts import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADERS_FIRST_BIT,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
    TAGGED_BIT,
    V3_FEATURES_MASK,
)
from kfbench.log.writing import runs

INVALID_RECORD: Final = "INVALID_RECORD"
Origin = Literal["client", "coordinator"]
ORIGINS: Final = ("client", "coordinator")
TIMESTAMP_TYPES: Final = ("create", "append")
LAST_INT32, FIRST_INT64, LAST_INT64 = 2**31 - 1, -(2**63), 2**63 - 1

_CORRUPT: Final = {status.PROMISES[state] for state in (status.SIZE, status.CRC, status.INNER_CRC)}
_UNREADABLE: Final = tuple(  # a broker answers these with UNKNOWN_SERVER_ERROR
    status.PROMISES[state][1]
    for state in (
        status.MAGIC, status.COMPRESSED, status.LIMIT_RECORDS, status.LIMIT_LOG_RECORDS, status.LIMIT_HEADERS,
        status.LIMIT_LOG_HEADERS, status.LIMIT_LOG_HEADER_BYTES, status.LIMIT_FIELD,
    )
)  # fmt: skip


class TopicSettings:
    """The options of `append`, after they were checked.

    Attributes:
        to: the log's format; None: each request keeps its format.
        codec: the number of the log's codec; None: each request keeps its codec.
        level: the codec's level.
        is_append: True: the topic stores append times. False: create times.
        now_ms: the broker's clock.
        epoch: the partition leader epoch.
        from_client: the sender is a client, which may not write control records.
        from_zero: the offsets of a request must begin at 0.
        earliest_ms, latest_ms: the first and the last create time that is accepted.
        is_keyed: the topic is compacted, so each record needs a key.
    """

    def __init__(
        self,
        *,
        to: Format | str | None,
        codec: str | None,
        level: int | None,
        timestamp_type: str,
        now_ms: int | None,
        partition_leader_epoch: int,
        origin: str,
        before_max_ms: int | None,
        after_max_ms: int | None,
        compacted: bool,
        from_zero: bool,
        lossy: bool,
    ) -> None:
        """Check the options of `append`. Raise InvalidConfig, IllegalCombination."""
        self.is_append = _one_of("timestamp_type", timestamp_type, TIMESTAMP_TYPES) == "append"
        if now_ms is None and (self.is_append or before_max_ms is not None or after_max_ms is not None):
            raise InvalidConfig("now_ms: append time and limits of create time need the broker's clock")
        self.now_ms = NO_TIMESTAMP if now_ms is None else whole_number("now_ms", now_ms)
        self.earliest_ms, self.latest_ms = FIRST_INT64, LAST_INT64
        if before_max_ms is not None:
            self.earliest_ms = self.now_ms - whole_number("before_max_ms", before_max_ms)
        if after_max_ms is not None:
            self.latest_ms = min(self.now_ms + whole_number("after_max_ms", after_max_ms), LAST_INT64)
        self.to = None if to is None else find(to)
        self.codec = None if codec is None else find_codec(codec, level).id
        self.epoch = whole_number(
            "partition_leader_epoch", partition_leader_epoch, NO_PARTITION_LEADER_EPOCH, LAST_INT32
        )
        self.from_client = _one_of("origin", origin, ORIGINS) == "client"
        self.level, self.from_zero, self.is_keyed, self.lossy = level, from_zero, compacted, lossy

    def is_plain_marker(self, traits: Int64) -> NDArray[np.bool_]:
        """Return for each request True if it is a control batch without a codec.

        The topic's codec is not applied to it. If the topic has no codec, all items are False. traits: see `Requests`.
        """
        found: NDArray[np.bool_] = (traits & (CODEC_MASK | CONTROL_BIT) == CONTROL_BIT) & bool(self.codec)
        return found

    def codecs(self, traits: Int64) -> Int64:
        """Return the number of the codec that each request gets in the log. traits: attribute bits, see `Requests`."""
        if self.codec is None:
            return traits & CODEC_MASK
        return np.where(self.is_plain_marker(traits), 0, self.codec)


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidConfig(f"{name}: {' or '.join(choices)} is wanted, not {value!r}")
    return value


def whole_number(name: str, value: int | np.integer[Any], least: int = 0, most: int = LAST_INT64) -> int:
    """Return an option as an int. Raise InvalidConfig unless it is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidConfig(f"{name}: a whole number from {least} to {most} is wanted, not {value!r}")
    return int(value)


class Requests(NamedTuple):
    """Produce requests in one buffer.

    Args:
        data: the bytes of all requests.
        entries: the batches, plain messages and compressed sets in `data`.
        firsts: the number of the first entry of each request, and the end, int64[requests + 1].
        traits: attribute bits of each request's first entry, int64[requests]: its codec, its control flag, and its
            features of v3.
    """

    data: Bytes
    entries: Entries
    firsts: Int64
    traits: Int64


@dataclass(frozen=True, kw_only=True)
class RequestRun:
    """Consecutive valid requests of one format.

    Args:
        fmt, read: their format, and the reader of their batches and records.
        timestamps_ms: the timestamp of each record. An append time that a producer claims is ignored.
        decompressed_bytes: number of bytes that were decompressed.
        bounds: the number of the first batch of each request, and the end, int64[requests + 1].
        record_bounds: the number of the first record of each request, and the end, int64[requests + 1].
        to: the log's format.
        codecs: the number of the codec that each request gets in the log, int64[requests].
        latest_ms: the largest timestamp of each batch.
        stays: bool[requests]. False: the request is rebuilt.
        first: the number of the first request among all requests of the append.
    """

    fmt: Format
    read: Reading
    timestamps_ms: Int64
    decompressed_bytes: int
    bounds: Int64
    record_bounds: Int64
    to: Format
    codecs: Int64
    latest_ms: Int64
    stays: NDArray[np.bool_]
    first: int

    @property
    def counts(self) -> Int64:
        """The number of records in each request."""
        return self.record_bounds[1:] - self.record_bounds[:-1]

    @property
    def is_one_each(self) -> bool:
        """True if each request is one batch. A request of plain messages may have several."""
        return len(self.bounds) == len(self.read.positions)


def split_requests(log: EncodedLog | Any, data: Bytes, source: Format | None) -> Requests:
    """Split the bytes into requests. Raise CorruptLog and Refused.

    source: the format of the requests; None: found by their magic.
    """
    entries = Entries.of(data)
    entries.errors("raise")
    positions = log.positions if isinstance(log, EncodedLog) else entries.positions[[0, -1]]
    firsts, traits = np.empty(len(positions), np.int64), np.empty(len(positions) - 1, np.int64)
    layout = 0 if source is None or source.is_told_by_magic else source.appending.kind  # 0: the magic says it
    problem, entry = request_checks.find_requests(
        data, entries.positions, entries.magics, layout, positions, firsts, traits
    )
    at = int(entries.positions[entry])
    if problem == request_checks.INSIDE_BATCH:
        raise CorruptLog(at, "length", "a request ends inside this batch")
    if problem == request_checks.NO_BATCH:
        raise Refused(INVALID_RECORD, at, "record batch has no batches at all")
    if problem == request_checks.OTHER_MAGIC:
        promise = f"batch magic {entries.magics[entry]} is not the same as the first batch's magic byte"
        raise Refused(INVALID_RECORD, at, promise)
    if problem == request_checks.TOO_MANY:
        raise Refused(INVALID_RECORD, at, "compressed outer record has more than one batch")
    return Requests(data, entries, firsts, traits)


def checked_runs(
    requests: Requests, source: Format | None, topic: TopicSettings, allowance: Allowance
) -> list[RequestRun]:
    """Read and check all requests. Return them as runs of one format. Raise CorruptLog and Refused."""
    entries, firsts, traits = requests.entries, requests.firsts, requests.traits
    found: list[RequestRun] = []
    layouts = traits & ~(CODEC_MASK | CONTROL_BIT)
    for lo, hi in runs(layouts) if (layouts != layouts[:1]).any() or not len(layouts) else [(0, len(layouts))]:
        at, magic = int(entries.positions[firsts[lo]]), int(entries.magics[firsts[lo]])
        fmt = source or of_magic(magic, at, for_append=True)
        to = topic.to or fmt
        codecs = topic.codecs(traits[lo:hi])
        no_zstd = to.holds_messages and not fmt.holds_messages
        if no_zstd and (zstd := np.flatnonzero(codecs >= CODECS["zstd"].id)).size:
            promise = f"zstd cannot be used with a magic below 2, but {to.name} is the log's format"
            at = int(entries.positions[firsts[lo + zstd[0]]])
            raise Refused("UNSUPPORTED_COMPRESSION_TYPE", at, promise)
        if topic.codec is not None and (codecs == topic.codec).any():
            to.check_codec(codec_names()[topic.codec], topic.level)
        features = int(traits[lo]) & V3_FEATURES_MASK
        own_codecs = traits[lo:hi] & CODEC_MASK
        is_same = (codecs == own_codecs) & (topic.to is None or _is_same_format(fmt, to, features, source is None))
        if fmt.appending.has_absolute_offsets:
            is_same &= own_codecs == 0
        if fmt.appending.is_only_path and (topic.is_append or not is_same.all()):
            raise IllegalCombination(f"{fmt.name}: append sets offsets, but no append time, format or codec")
        # Only the metadata of requests that are not rebuilt is needed, if it can be read without the payload.
        for first, end in runs(is_same) if features & HEADERS_FIRST_BIT else [(0, hi - lo)]:
            part = slice(lo + first, lo + end)
            found.append(_check_requests(requests, part, fmt, to, is_same[first:end], topic, allowance))
    return found


def _is_same_format(fmt: Format, to: Format, features: int, is_guessed: bool) -> bool:
    """Return True if batches of `fmt` with these features (attribute bits of v3) already have the log's format `to`.

    is_guessed: `fmt` was found by the magic, and another format may have the same magic.
    """
    if is_guessed and to.is_told_by_magic and to.magic == fmt.magic:
        # Attributes do not show if headers are shared, so a batch with tags counts as another format.
        return not features & TAGGED_BIT and features == to.features & V3_FEATURES_MASK
    return to is fmt and features == to.features & V3_FEATURES_MASK


def _check_requests(
    requests: Requests,
    part: slice,
    fmt: Format,
    to: Format,
    is_same: NDArray[np.bool_],
    topic: TopicSettings,
    allowance: Allowance,
) -> RequestRun:
    """Read and check some requests of one format, and decide which are rebuilt.

    Args:
        part: the numbers of the requests.
        is_same: True if format and codec already equal the log's, bool[requests].
    """
    traits, data = requests.traits[part], requests.data
    firsts = requests.firsts[part.start : part.stop + 1]
    bounds = firsts - firsts[0]
    positions = requests.entries.positions[firsts[0] : firsts[-1] + 1]
    before = replace(allowance)
    found = _read(fmt, data, positions, not is_same.all(), allowance, topic)
    times_ms, decompressed_bytes = _claimed_times(found), before.log_bytes - allowance.log_bytes
    latest_ms, in_order = _check_batches(fmt, found, times_ms, decompressed_bytes > 0, topic)
    codecs, stays = topic.codecs(traits), is_same
    if fmt.appending.is_only_path and not in_order.all():
        promise = f"offsets do not rise by one, or the largest create time is not the maximum of the {fmt.name} batch"
        raise Refused(INVALID_RECORD, int(positions[np.argmin(in_order)]), promise)
    if not in_order.all():  # batches without a codec are set in place
        is_ignored = (traits & CODEC_MASK == 0) & ~(topic.is_plain_marker(traits))
        in_order = in_order[bounds[:-1]] | is_ignored
        stays = is_same & in_order
        if topic.codec:
            codecs = np.where(in_order, codecs, topic.codec)
        if found.is_metadata and not stays.all():  # now the payload is needed
            allowance.read_again(before)
            found = _read(fmt, data, positions, True, allowance, topic)
            decompressed_bytes += before.log_bytes - allowance.log_bytes
    return RequestRun(
        fmt=fmt,
        read=found,
        timestamps_ms=times_ms,
        decompressed_bytes=decompressed_bytes,
        bounds=bounds,
        record_bounds=found.bounds if len(bounds) == len(positions) else found.bounds[bounds],
        to=to,
        codecs=codecs,
        latest_ms=latest_ms,
        stays=stays,
        first=part.start,
    )


def _read(
    fmt: Format, data: Bytes, positions: Int64, with_payload: bool, allowance: Allowance, topic: TopicSettings
) -> Reading:
    """Read batches of one format with the same features (bits of v3's attributes). Raise Refused and CorruptLog.

    Args:
        with_payload: False: decompress only the bytes that the checks need.
        topic: has the rules for headers. If a header breaks one, this is reported before damage in the records of its
            batch.
    """
    before_bytes = allowance.log_bytes
    try:
        found = fmt.read_columns(data, positions, allowance, with_payload=with_payload)
    except MissingDictionary:
        raise
    except CorruptLog as error:
        raise _refusal(fmt, data, positions, error, topic) or error from None
    if found.plain_sets is not None and allowance.log_bytes < before_bytes and fmt.is_told_by_magic:
        batch = request_checks.other_magic(*found.plain_sets, fmt.magic)
        if batch >= 0:
            promise = f"a record's magic does not match the outer magic {fmt.magic}"
            raise Refused(INVALID_RECORD, int(positions[batch]), promise)
    return found


def _claimed_times(read: Reading) -> Int64:
    """Return the timestamp of each record, with create times where a producer set an append time in tag 0."""
    times_ms, created_ms = read.index.timestamps, read.index.created
    if not read.has_tags or times_ms is created_ms:
        return times_ms
    has_tag = np.empty(len(read.bounds) - 1, np.bool_)
    assignment.find_append_tag(read.data, read.positions, has_tag)
    return np.where(np.repeat(has_tag, np.diff(read.bounds)), created_ms, times_ms)


def _refusal(fmt: Format, data: Bytes, positions: Int64, error: CorruptLog, topic: TopicSettings) -> Refused | None:
    """Return the broker's error for this damage; None: the broker has no error for it."""
    if (error.field, error.promise) in _CORRUPT:
        return Refused("CORRUPT_MESSAGE", error.position, f"{error.field}: {error.promise}")
    if error.promise.startswith(_UNREADABLE):
        return None
    refused = None
    if fmt.is_told_by_magic and not fmt.holds_messages:  # the header is checked before the records
        batch = int(np.searchsorted(positions, error.position))
        refused = _header_refusal(fmt, data, positions[batch : batch + 2], 0, topic)
    return refused or Refused(INVALID_RECORD, error.position, f"{error.field}: {error.promise}")


class CheckedBatches(NamedTuple):
    """The result of `_check_batches`, one item per batch.

    Args:
        latest_ms: the largest timestamp, -1 or more.
        in_order: True if the offsets rise by one.
    """

    latest_ms: Int64
    in_order: NDArray[np.bool_]


def _check_batches(
    fmt: Format, read: Reading, times_ms: Int64, any_codec: bool, topic: TopicSettings
) -> CheckedBatches:
    """Check headers and records of batches. Raise Refused for the first one that breaks a rule of the topic.

    Args:
        times_ms: the timestamp of each record, see `_claimed_times`.
        any_codec: True if a batch was decompressed.
    """
    data, positions = read.data, read.positions
    control = fmt.appending.control_sets(read) if topic.from_client else None
    if control is not None and (found := np.flatnonzero(control)).size:
        raise Refused(INVALID_RECORD, int(positions[found[0]]), _BROKEN[request_checks.CONTROL_BATCH])
    batches = len(positions) - 1
    latest_ms, in_order = np.empty(batches, np.int64), np.empty(batches, np.bool_)
    batch, rule, late, keyless = request_checks.check(
        data, positions, fmt.appending.kind, fmt.appending.rule_fields(data, positions),
        times_ms, read.index.key_lengths, read.index.offsets,
        read.bounds, topic.from_client, topic.from_zero, (topic.to or fmt).holds_messages, not topic.is_append,
        topic.earliest_ms, topic.latest_ms, topic.is_keyed, latest_ms, in_order,
    )  # fmt: skip
    if rule != request_checks.SOUND:
        count = int(read.bounds[batch + 1] - read.bounds[batch])
        refusal = _header_refusal(fmt, data, positions[batch : batch + 2], count, topic)
        assert refusal is not None
        raise refusal
    if batch >= 0:
        raise _record_refusal(read, times_ms, topic, batch, late, keyless)
    if (keeps_times := fmt.appending.keeps_times(data, positions, latest_ms)) is not None:
        in_order &= keeps_times
    misplaced = fmt.appending.misplaced_sets(read) if any_codec else None
    if misplaced is not None:
        in_order &= ~misplaced
    return CheckedBatches(latest_ms, in_order)


_BROKEN: Final = {  # the message for each rule that `request_checks` reports as broken
    request_checks.BASE_OFFSET: "the base offset of the record batch should be 0",
    request_checks.OFFSET_RANGE: "batch has an invalid offset range: last offset delta {last_delta}",
    request_checks.COUNT: "invalid reported count for record batch: {count}",
    request_checks.RANGE_AND_COUNT: "inconsistent batch offset range of {offsets} and count of records {count}",
    request_checks.CONTROL_BATCH: "clients are not allowed to write control records",
    request_checks.SEQUENCE: "invalid sequence number {sequence} in a batch with producer id {producer}",
    request_checks.IS_TRANSACTIONAL: "transactional records cannot be used with a magic below 2",
    request_checks.IS_IDEMPOTENT: "idempotent records cannot be used with a magic below 2",
}


def _header_refusal(fmt: Format, data: Bytes, positions: Int64, count: int, topic: TopicSettings) -> Refused | None:
    """Return the refusal of the batch data[positions[0]:positions[1]] for its header; None: it breaks no rule.

    count: the number of records that were read in the batch.
    """
    at, end = positions.tolist()
    rule, last_delta, stored_count, producer_id, base_sequence = request_checks.broken_rule(
        data, at, end, fmt.appending.kind, fmt.appending.rule_fields(data, positions), 0, count, topic.from_client,
        topic.from_zero, (topic.to or fmt).holds_messages,
    )  # fmt: skip
    if rule == request_checks.SOUND:
        return None
    is_unsupported = rule in (request_checks.IS_TRANSACTIONAL, request_checks.IS_IDEMPOTENT)
    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT" if is_unsupported else INVALID_RECORD
    numbers = {"last_delta": last_delta, "offsets": last_delta + 1, "count": stored_count}
    return Refused(error, at, _BROKEN[rule].format(**numbers, sequence=base_sequence, producer=producer_id))


def _record_refusal(
    read: Reading, times_ms: Int64, topic: TopicSettings, batch: int, late: int, keyless: int
) -> Refused:
    """Return the refusal of a batch for one of its records.

    Args:
        late: the index of the first record with a refused timestamp; -1: there is none.
        keyless: the index of the first record without a key, used if late is -1.
    """
    at, first = int(read.positions[batch]), int(read.bounds[batch])
    if late < 0:
        promise = f"compacted topic cannot accept message without key: record {keyless - first}"
        return Refused(INVALID_RECORD, at, promise)
    time_ms = int(times_ms[late])
    if not topic.is_append and time_ms != NO_TIMESTAMP:
        promise = (
            f"timestamp {time_ms} of record {late - first} is out of range [{topic.earliest_ms}, {topic.latest_ms}]"
        )
    else:
        promise = "producer should not set timestamp type to LogAppendTime"
    return Refused("INVALID_TIMESTAMP", at, promise)
