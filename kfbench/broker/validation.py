"""Checks of a broker before it takes a request (`org.apache.kafka.storage.internals.log.LogValidator`).

A refusal is raised as Refused with the broker's error: CORRUPT_MESSAGE for a wrong checksum, else INVALID_RECORD for
batches that cannot be read. CorruptLog is raised for damage that a broker has no error for: wrong lengths, a magic
other than the given format's, an undecodable payload, more than the limits allow.

Batches of kip98 and v3 follow the rules of v2. Enriched messages follow the rules of v1.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.broker.topic import TopicSettings
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, MissingDictionary, Refused
from kfbench.formats import Format, Reading
from kfbench.kernels.broker import assignment, request_checks
from kfbench.kernels.wire import status
from kfbench.layouts import NO_TIMESTAMP

INVALID_RECORD: Final = "INVALID_RECORD"

_CORRUPT: Final = {status.PROMISES[state] for state in (status.SIZE, status.CRC, status.INNER_CRC)}
_UNREADABLE: Final = tuple(  # a broker answers these with UNKNOWN_SERVER_ERROR
    status.PROMISES[state][1]
    for state in (
        status.MAGIC, status.COMPRESSED, status.LIMIT_RECORDS, status.LIMIT_LOG_RECORDS, status.LIMIT_HEADERS,
        status.LIMIT_LOG_HEADERS, status.LIMIT_LOG_HEADER_BYTES, status.LIMIT_FIELD,
    )
)  # fmt: skip


def read(
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


def claimed_times(read: Reading) -> Int64:
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


class Checked(NamedTuple):
    """The result of `check`, one item per batch.

    Args:
        latest_ms: the largest timestamp, -1 or more.
        in_order: True if the offsets rise by one.
    """

    latest_ms: Int64
    in_order: NDArray[np.bool_]


def check(fmt: Format, read: Reading, times_ms: Int64, any_codec: bool, topic: TopicSettings) -> Checked:
    """Check headers and records of batches. Raise Refused for the first one that breaks a rule of the topic.

    Args:
        times_ms: the timestamp of each record, see `claimed_times`.
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
        read.bounds, topic.from_client, topic.from_zero, topic.format_for(fmt).holds_messages, not topic.is_append,
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
    return Checked(latest_ms, in_order)


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
        topic.from_zero, topic.format_for(fmt).holds_messages,
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
