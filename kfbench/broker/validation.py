"""What a broker checks before it takes a request (`org.apache.kafka.storage.internals.log.LogValidator`).

What a broker has an error for is Refused, with that error: CORRUPT_MESSAGE for a checksum that does not hold, else
INVALID_RECORD for batches that cannot be read. CorruptLog is what it cannot name: lengths that lead nowhere, another
magic than was said, an undecodable payload, more than the limits allow.

Batches of kip98 and v3 are held to the rules of v2, enriched messages to those of v1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64
from kfbench.batches import FIELDS, NO_FIELDS, BatchFields
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, Refused
from kfbench.formats import BatchColumns, Format, PlainSets
from kfbench.kernels.broker import assignment
from kfbench.kernels.broker import request_checks as checks
from kfbench.kernels.formats import header_fields, kip98
from kfbench.kernels.wire import status
from kfbench.layouts import CONTROL_BIT, NO_TIMESTAMP, TRANSACTIONAL_BIT
from kfbench.records import Records

ANY_TIME: Final = np.iinfo(np.int64).min, np.iinfo(np.int64).max
INVALID_RECORD: Final = "INVALID_RECORD"

_KEPT: Final = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control")
_CORRUPT: Final = {status.PROMISES[state] for state in (status.SIZE, status.CRC, status.INNER_CRC)}
_UNREADABLE: Final = tuple(  # of these a broker has nothing to say, or no error but UNKNOWN_SERVER_ERROR
    status.PROMISES[state][1]
    for state in (
        status.MAGIC,
        status.COMPRESSED,
        status.LIMIT_RECORDS,
        status.LIMIT_LOG_RECORDS,
        status.LIMIT_HEADERS,
        status.LIMIT_LOG_HEADERS,
        status.LIMIT_LOG_HEADER_BYTES,
        status.LIMIT_FIELD,
    )
)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a topic and the sender of a request are held to.

    from_zero: a request's offsets count from 0. earliest_ms, latest_ms: the create times that are taken. keyed: a
    compacted topic, which takes no record without a key.
    """

    from_client: bool = True
    from_zero: bool = False
    to_messages: bool = False  # the log has v0 or v1
    is_create: bool = True
    earliest_ms: int = ANY_TIME[0]
    latest_ms: int = ANY_TIME[1]
    keyed: bool = False


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Batches as a validator sees them: columns of records, bounds int64[batches + 1] and where each batch lies.

    is_metadata: some payload was not looked at, so that `records` would miss it.
    """

    fmt: Format
    data: Bytes
    positions: Int64
    timestamps_ms: Int64
    offsets: Int64
    key_lengths: Int32
    bounds: Int64
    decompressed_bytes: int
    kind: int  # as the kernels tell layouts apart
    make_records: Callable[[], Records]
    make_tags: Callable[[], Sequence[Mapping[int, bytes]]] | None = None
    is_metadata: bool = False
    sets: PlainSets | None = None

    @cached_property
    def tags(self) -> Sequence[Mapping[int, bytes]]:
        """Tagged fields of each batch that are not the format's own."""
        return self.make_tags() if self.make_tags else []

    @cached_property
    def records(self) -> Records:
        """With the timestamps that a consumer sees."""
        return self.make_records()

    @property
    def batch_fields(self) -> BatchFields:
        """What a broker keeps of a batch that it builds anew: the producer's part of the header."""
        if self.fmt.holds_messages:
            return NO_FIELDS if self.kind != checks.ENRICHED else BatchFields(is_control=self.holds_control)
        if self.kind == checks.KIP98:
            bits = self._field(kip98.ATTRIBUTES, 2)
            return BatchFields(
                producer_id=self._field(kip98.PRODUCER, 8),
                producer_epoch=self._field(kip98.PRODUCER_EPOCH, 2),
                base_sequence=self._field(kip98.SEQUENCE, 4),
                is_transactional=bits & TRANSACTIONAL_BIT != 0,
                is_control=bits & CONTROL_BIT != 0,
            )
        rows = np.zeros(len(self.positions) - 1, FIELDS)
        header_fields.read(self.data, self.positions, self.kind, rows)
        kept = {name: rows[name] for name in _KEPT}
        return BatchFields(**kept, tagged_fields=self.tags if self.make_tags else None)

    @property
    def holds_control(self) -> NDArray[np.bool_]:
        """Which sets of enriched messages hold a control record."""
        assert self.sets is not None
        found = np.empty(len(self.positions) - 1, np.bool_)
        checks.find_control(*self.sets, found)
        return found

    def _field(self, at: int, size: int) -> Int64:
        raw = self.data[self.positions[:-1, None] + np.arange(at, at + size)]
        field: Int64 = raw.view(f">i{size}").reshape(-1).astype(np.int64)
        return field


def kind_of(fmt: Format | None) -> int:
    """Return the kernels' number of a layout that its magic does not tell; 0: the magic tells it."""
    if fmt is None or fmt.is_told_by_magic:
        return 0
    return checks.ENRICHED if fmt.holds_messages else checks.KIP98


def read(fmt: Format, data: Bytes, positions: Int64, whole: bool, allowance: Allowance, rules: Rules) -> Columns:
    """The batches data[positions[i]:positions[i + 1]], of one format and with the same features.

    whole: the records will be wanted; else no more is decompressed than tells of them. rules: a batch whose header
    breaks one is refused for that before its records are called damaged. Raises Refused and CorruptLog.
    """
    before_bytes = allowance.log_bytes
    try:
        read = fmt.read_columns(data, positions, allowance, with_payload=whole)
    except CorruptLog as error:
        raise _refusal(fmt, data, positions, error, rules) or error from None
    decompressed_bytes = before_bytes - allowance.log_bytes
    if read.plain_sets is not None and decompressed_bytes and fmt.is_told_by_magic:
        b = checks.other_magic(*read.plain_sets, fmt.magic)
        if b >= 0:
            promise = f"a record's magic does not match the outer magic {fmt.magic}"
            raise Refused(INVALID_RECORD, int(positions[b]), promise)
    return Columns(
        fmt=fmt,
        data=data,
        positions=positions,
        timestamps_ms=_claimed_times(data, positions, read),
        offsets=read.offsets,
        key_lengths=read.key_lengths,
        bounds=read.bounds,
        decompressed_bytes=decompressed_bytes,
        kind=kind_of(fmt) or fmt.magic,
        make_records=read.make_records,
        make_tags=read.make_tags,
        is_metadata=read.is_metadata,
        sets=read.plain_sets,
    )


def _claimed_times(data: Bytes, positions: Int64, read: BatchColumns) -> Int64:
    """The timestamps of records, without an append time in tag 0: the broker sets it, a producer's does not count."""
    if read.make_tags is None or read.timestamps_ms is read.create_timestamps_ms:
        return read.timestamps_ms
    has_tag = np.empty(len(positions) - 1, np.bool_)
    assignment.find_append_tag(data, positions, has_tag)
    return np.where(np.repeat(has_tag, np.diff(read.bounds)), read.create_timestamps_ms, read.timestamps_ms)


def _refusal(fmt: Format, data: Bytes, positions: Int64, error: CorruptLog, rules: Rules) -> Refused | None:
    """What a broker says of damage; None: nothing of its own."""
    broken = error.field, error.promise
    if broken in _CORRUPT:
        return Refused("CORRUPT_MESSAGE", error.position, f"{error.field}: {error.promise}")
    if error.promise.startswith(_UNREADABLE):
        return None
    refused = None
    if fmt.is_told_by_magic and not fmt.holds_messages:  # the header is looked at before the records
        b = int(np.searchsorted(positions, error.position))
        refused = _header_refusal(fmt.magic, data, positions[b : b + 2], 0, rules)
    return refused or Refused(INVALID_RECORD, error.position, f"{error.field}: {error.promise}")


def check(columns: Columns, rules: Rules) -> tuple[Int64, NDArray[np.bool_]]:
    """Of each batch: its latest time, no less than -1, and whether its offsets rise by one. Raises Refused."""
    if columns.kind == checks.ENRICHED and rules.from_client and (held := np.flatnonzero(columns.holds_control)).size:
        raise Refused(INVALID_RECORD, int(columns.positions[held[0]]), _BROKEN[checks.CONTROL_BATCH][1])
    batches = len(columns.positions) - 1
    latest_ms, in_order = np.empty(batches, np.int64), np.empty(batches, np.bool_)
    b, rule, late, keyless = checks.check(
        columns.data, columns.positions, columns.kind, columns.timestamps_ms, columns.key_lengths, columns.offsets,
        columns.bounds, rules.from_client, rules.from_zero, rules.to_messages, rules.is_create,
        rules.earliest_ms, rules.latest_ms, rules.keyed, latest_ms, in_order,
    )  # fmt: skip
    if rule != checks.SOUND:
        count = int(columns.bounds[b + 1] - columns.bounds[b])
        refusal = _header_refusal(columns.kind, columns.data, columns.positions[b : b + 2], count, rules)
        assert refusal is not None
        raise refusal
    if b >= 0:
        raise _record_refusal(columns, rules, b, late, keyless)
    if columns.kind == 1 and columns.sets and columns.decompressed_bytes:
        # A wrapper's offset stands for its last inner one: those that do not begin at 0 may lie beyond a new one.
        source, starts, _ = columns.sets
        in_order &= ~source[starts[:, None] + np.arange(8)].any(axis=1)
    return latest_ms, in_order


_BROKEN: Final = {
    checks.BASE_OFFSET: (INVALID_RECORD, "the base offset of the record batch should be 0"),
    checks.OFFSET_RANGE: (INVALID_RECORD, "batch has an invalid offset range: last offset delta {last_delta}"),
    checks.COUNT: (INVALID_RECORD, "invalid reported count for record batch: {count}"),
    checks.RANGE_AND_COUNT: (
        INVALID_RECORD,
        "inconsistent batch offset range of {offsets} and count of records {count}",
    ),
    checks.CONTROL_BATCH: (INVALID_RECORD, "clients are not allowed to write control records"),
    checks.SEQUENCE: (
        INVALID_RECORD,
        "invalid sequence number {sequence} in a batch with producer id {producer}",
    ),
    checks.IS_TRANSACTIONAL: (
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "transactional records cannot be used with a magic below 2",
    ),
    checks.IS_IDEMPOTENT: ("UNSUPPORTED_FOR_MESSAGE_FORMAT", "idempotent records cannot be used with a magic below 2"),
}


def _header_refusal(kind: int, data: Bytes, positions: Int64, held: int, rules: Rules) -> Refused | None:
    """Of the batch data[positions[0]:positions[1]], which holds so many records."""
    at, end = positions.tolist()
    rule, last_delta, count, producer, sequence = checks.broken_rule(
        data, at, end, kind, held, rules.from_client, rules.from_zero, rules.to_messages
    )
    if rule == checks.SOUND:
        return None
    error, promise = _BROKEN[rule]
    said = {"last_delta": last_delta, "offsets": last_delta + 1, "count": count}
    said |= {"producer": producer, "sequence": sequence}
    return Refused(error, at, promise.format(**said))


def _record_refusal(columns: Columns, rules: Rules, b: int, late: int, keyless: int) -> Refused:
    """One record out of time makes it an invalid timestamp, whatever else is wrong with the batch."""
    at = int(columns.positions[b])
    if late < 0:
        promise = f"compacted topic cannot accept message without key: record {keyless - int(columns.bounds[b])}"
        return Refused(INVALID_RECORD, at, promise)
    time, record = int(columns.timestamps_ms[late]), late - int(columns.bounds[b])
    if rules.is_create and time != NO_TIMESTAMP:
        span = f"[{rules.earliest_ms}, {rules.latest_ms}]"
        return Refused("INVALID_TIMESTAMP", at, f"timestamp {time} of record {record} is out of range {span}")
    return Refused("INVALID_TIMESTAMP", at, "producer should not set timestamp type to LogAppendTime")
