"""Checks of a broker before it takes a request (`org.apache.kafka.storage.internals.log.LogValidator`).

Refused has the broker's error: CORRUPT_MESSAGE for a wrong checksum, else INVALID_RECORD for batches that cannot be
read. CorruptLog is raised for damage that a broker has no error for: wrong lengths, a magic other than the given
format's, an undecodable payload, more than the limits allow.

Batches of kip98 and v3 follow the rules of v2, enriched messages those of v1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, Refused
from kfbench.formats import BatchColumns, Format
from kfbench.kernels.broker import assignment, request_checks
from kfbench.kernels.wire import status
from kfbench.layouts import NO_TIMESTAMP
from kfbench.records import Records

ANY_TIME: Final = np.iinfo(np.int64).min, np.iinfo(np.int64).max
INVALID_RECORD: Final = "INVALID_RECORD"

_CORRUPT: Final = {status.PROMISES[state] for state in (status.SIZE, status.CRC, status.INNER_CRC)}
_UNREADABLE: Final = tuple(  # a broker answers these with UNKNOWN_SERVER_ERROR
    status.PROMISES[state][1]
    for state in (
        status.MAGIC, status.COMPRESSED, status.LIMIT_RECORDS, status.LIMIT_LOG_RECORDS, status.LIMIT_HEADERS,
        status.LIMIT_LOG_HEADERS, status.LIMIT_LOG_HEADER_BYTES, status.LIMIT_FIELD,
    )
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules for a request, by its topic and sender.

    from_zero: offsets begin at 0. to_messages: the log has v0 or v1. earliest_ms, latest_ms: the range of accepted
    create times. is_keyed: a compacted topic, in which each record needs a key.
    """

    from_client: bool = True
    from_zero: bool = False
    to_messages: bool = False
    is_create: bool = True
    earliest_ms: int = ANY_TIME[0]
    latest_ms: int = ANY_TIME[1]
    is_keyed: bool = False


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Batches of one format with the columns of their records. Batch b is data[positions[b]:positions[b + 1]].

    timestamps_ms: of each record. An append time that a producer claims is ignored.
    """

    fmt: Format
    data: Bytes
    positions: Int64
    read: BatchColumns
    timestamps_ms: Int64
    decompressed_bytes: int

    @property
    def bounds(self) -> Int64:
        """The first record of each batch, and the end: int64[batches + 1]."""
        return self.read.bounds

    @cached_property
    def records(self) -> Records:
        """The records, with the timestamps that a consumer sees."""
        return self.read.make_records()

    @property
    def batch_fields(self) -> BatchFields:
        """The producer's part of each header. A broker keeps it in a batch that it rebuilds."""
        return self.fmt.appending.producer_fields(self.data, self.positions, self.read)


def layout_of(fmt: Format | None) -> int:
    """Return the kernels' number of a layout that shares its magic with another format; 0: the magic is enough.

    Raise IllegalCombination for a format without broker paths.
    """
    if fmt is None:
        return 0
    kind = fmt.appending.kind
    return 0 if fmt.is_told_by_magic else kind


def read(fmt: Format, data: Bytes, positions: Int64, with_payload: bool, allowance: Allowance, rules: Rules) -> Columns:
    """Read batches of one format and with the same features. Raise Refused and CorruptLog.

    with_payload: False: only bytes that the columns need are decompressed. rules: a broken rule of a header is reported
    before damage in the records of its batch.
    """
    before_bytes = allowance.log_bytes
    try:
        columns = fmt.read_columns(data, positions, allowance, with_payload=with_payload)
    except CorruptLog as error:
        raise _refusal(fmt, data, positions, error, rules) or error from None
    decompressed_bytes = before_bytes - allowance.log_bytes
    if columns.plain_sets is not None and decompressed_bytes and fmt.is_told_by_magic:
        batch = request_checks.other_magic(*columns.plain_sets, fmt.magic)
        if batch >= 0:
            promise = f"a record's magic does not match the outer magic {fmt.magic}"
            raise Refused(INVALID_RECORD, int(positions[batch]), promise)
    return Columns(
        fmt=fmt,
        data=data,
        positions=positions,
        read=columns,
        timestamps_ms=_claimed_times(data, positions, columns),
        decompressed_bytes=decompressed_bytes,
    )


def _claimed_times(data: Bytes, positions: Int64, columns: BatchColumns) -> Int64:
    """Return the timestamps of records. If a producer set an append time in tag 0, the create times are used."""
    if columns.make_tags is None or columns.timestamps_ms is columns.create_timestamps_ms:
        return columns.timestamps_ms
    has_tag = np.empty(len(positions) - 1, np.bool_)
    assignment.find_append_tag(data, positions, has_tag)
    has_tag = np.repeat(has_tag, np.diff(columns.bounds))
    return np.where(has_tag, columns.create_timestamps_ms, columns.timestamps_ms)


def _refusal(fmt: Format, data: Bytes, positions: Int64, error: CorruptLog, rules: Rules) -> Refused | None:
    """Return the broker's error for damage; None: a broker has none."""
    if (error.field, error.promise) in _CORRUPT:
        return Refused("CORRUPT_MESSAGE", error.position, f"{error.field}: {error.promise}")
    if error.promise.startswith(_UNREADABLE):
        return None
    refused = None
    if fmt.is_told_by_magic and not fmt.holds_messages:  # the header is checked before the records
        batch = int(np.searchsorted(positions, error.position))
        refused = _header_refusal(fmt, data, positions[batch : batch + 2], 0, rules)
    return refused or Refused(INVALID_RECORD, error.position, f"{error.field}: {error.promise}")


class Checked(NamedTuple):
    """The result per batch. latest_ms: the largest timestamp, at least -1. in_order: offsets rise by one."""

    latest_ms: Int64
    in_order: NDArray[np.bool_]


def check(columns: Columns, rules: Rules) -> Checked:
    """Check headers and records of batches against the rules. Raise Refused."""
    fmt, read = columns.fmt, columns.read
    control = fmt.appending.control_sets(read) if rules.from_client else None
    if control is not None and (found := np.flatnonzero(control)).size:
        raise Refused(INVALID_RECORD, int(columns.positions[found[0]]), _BROKEN[request_checks.CONTROL_BATCH])
    batches = len(columns.positions) - 1
    latest_ms, in_order = np.empty(batches, np.int64), np.empty(batches, np.bool_)
    batch, rule, late, keyless = request_checks.check(
        columns.data, columns.positions, fmt.appending.kind, columns.timestamps_ms, read.key_lengths, read.offsets,
        read.bounds, rules.from_client, rules.from_zero, rules.to_messages, rules.is_create,
        rules.earliest_ms, rules.latest_ms, rules.is_keyed, latest_ms, in_order,
    )  # fmt: skip
    if rule != request_checks.SOUND:
        count = int(read.bounds[batch + 1] - read.bounds[batch])
        refusal = _header_refusal(fmt, columns.data, columns.positions[batch : batch + 2], count, rules)
        assert refusal is not None
        raise refusal
    if batch >= 0:
        raise _record_refusal(columns, rules, batch, late, keyless)
    misplaced = fmt.appending.misplaced_sets(read) if columns.decompressed_bytes else None
    if misplaced is not None:
        in_order &= ~misplaced
    return Checked(latest_ms, in_order)


_BROKEN: Final = {  # promises by the kernel's number of the rule
    request_checks.BASE_OFFSET: "the base offset of the record batch should be 0",
    request_checks.OFFSET_RANGE: "batch has an invalid offset range: last offset delta {last_delta}",
    request_checks.COUNT: "invalid reported count for record batch: {count}",
    request_checks.RANGE_AND_COUNT: "inconsistent batch offset range of {offsets} and count of records {count}",
    request_checks.CONTROL_BATCH: "clients are not allowed to write control records",
    request_checks.SEQUENCE: "invalid sequence number {sequence} in a batch with producer id {producer}",
    request_checks.IS_TRANSACTIONAL: "transactional records cannot be used with a magic below 2",
    request_checks.IS_IDEMPOTENT: "idempotent records cannot be used with a magic below 2",
}


def _header_refusal(fmt: Format, data: Bytes, positions: Int64, count: int, rules: Rules) -> Refused | None:
    """Return the refusal of the batch data[positions[0]:positions[1]], or None. count: the number of its records."""
    at, end = positions.tolist()
    rule, last_delta, stored_count, producer_id, base_sequence = request_checks.broken_rule(
        data, at, end, fmt.appending.kind, count, rules.from_client, rules.from_zero, rules.to_messages
    )
    if rule == request_checks.SOUND:
        return None
    is_unsupported = rule in (request_checks.IS_TRANSACTIONAL, request_checks.IS_IDEMPOTENT)
    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT" if is_unsupported else INVALID_RECORD
    numbers = {"last_delta": last_delta, "offsets": last_delta + 1, "count": stored_count}
    return Refused(error, at, _BROKEN[rule].format(**numbers, sequence=base_sequence, producer=producer_id))


def _record_refusal(columns: Columns, rules: Rules, batch: int, late: int, keyless: int) -> Refused:
    """Return the refusal of a batch for one of its records.

    late: the first record with a refused timestamp; -1: none. keyless: the first without a key, if late is -1.
    """
    at, first = int(columns.positions[batch]), int(columns.bounds[batch])
    if late < 0:
        promise = f"compacted topic cannot accept message without key: record {keyless - first}"
        return Refused(INVALID_RECORD, at, promise)
    time_ms = int(columns.timestamps_ms[late])
    if rules.is_create and time_ms != NO_TIMESTAMP:
        promise = (
            f"timestamp {time_ms} of record {late - first} is out of range [{rules.earliest_ms}, {rules.latest_ms}]"
        )
    else:
        promise = "producer should not set timestamp type to LogAppendTime"
    return Refused("INVALID_TIMESTAMP", at, promise)
