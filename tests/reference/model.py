"""The data classes of the reference codecs: messages, batches and header fields."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

NO_TIMESTAMP = -1
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd", "zstd-dictionary")


class RefusedError(ValueError):
    """Raised when bytes break a rule of the format."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """A record. timestamp_ms: the stored create time, even if the batch has an append time."""

    offset: int
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Header fields that a writer may set on a batch. The encoder chooses a value for None.

    Readers see the append time unless `timestamp_type` is 0. Only tagged formats store an append time that readers do
    not see.
    """

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    append_time_ms: int | None = None
    timestamp_type: int | None = None
    delete_horizon_ms: int | None = None
    partition_leader_epoch: int = -1
    base_offset: int | None = None
    last_offset: int | None = None
    base_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    tagged_fields: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def readers_see_append_time(self) -> bool:
        return self.append_time_ms is not None if self.timestamp_type is None else bool(self.timestamp_type)


UNSET = Fields()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A decoded batch.

    raw: its records section (magic 2 and above) or inner set (magic 0 and 1), decompressed.
    """

    position: int
    size_bytes: int
    magic: int
    crc: int
    attributes: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    messages: Sequence[Message]
    raw: bytes
    base_timestamp_ms: int | None = None
    partition_leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    delete_horizon_ms: int | None = None
    record_sizes: Sequence[int] = field(default=())
    """Bytes of each record with its own length field (v0, v1: with offset and size)."""
    append_time_tag_ms: int | None = None
    """Tag 0 of a tagged batch."""
    tagged_fields: Mapping[int, bytes] = field(default_factory=dict)
    """Tags other than 0 and 1."""
    is_enriched: bool = False
    """True in the enriched proposal, whose attributes name a type of message instead of flags."""
    is_enriched_control: bool = False

    @property
    def codec(self) -> str:
        if self.is_enriched:
            return CODEC_NAMES[self.attributes & 15] if self.attributes & 15 < 4 else "none"
        return CODEC_NAMES[self.attributes & 7]

    @property
    def is_append_time(self) -> bool:
        return self.magic > 0 and not self.is_enriched and bool(self.attributes & 8)

    @property
    def append_time_ms(self) -> int:
        if self.append_time_tag_ms is not None:
            return self.append_time_tag_ms
        return self.max_timestamp_ms if self.is_append_time else NO_TIMESTAMP

    @property
    def is_transactional(self) -> bool:
        return self.magic > 1 and bool(self.attributes & 16)

    @property
    def is_control(self) -> bool:
        return self.is_enriched_control if self.is_enriched else self.magic > 1 and bool(self.attributes & 32)

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == -1:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset - self.base_offset)

    def fields(self, **changed: Any) -> Fields:
        """Return the header fields with which a writer makes this batch again."""
        own = {each.name: getattr(self, each.name) for each in fields(Fields) if hasattr(self, each.name)}
        own["append_time_ms"] = self.append_time_ms if self.is_append_time else None
        return Fields(**own | changed)

    def read_timestamps_ms(self) -> list[int]:
        """Return the timestamps that a consumer sees: the append time, or those of the records."""
        if self.is_append_time:
            return [self.append_time_ms for _ in self.messages]
        return [message.timestamp_ms for message in self.messages]


class Bases(NamedTuple):
    """First and last offset, base and maximum timestamp of a batch header.

    Deltas of records count from the base values.
    """

    base_offset: int
    last_offset: int
    base_timestamp_ms: int
    max_timestamp_ms: int

    @property
    def last_delta(self) -> int:
        return self.last_offset - self.base_offset


def bases_of(messages: Sequence[Message], fields: Fields, is_append_time_max: bool = True) -> Bases:
    """Return the offsets and timestamps that an encoder writes into the header.

    is_append_time_max: an append time replaces the maximum timestamp. It is False for tagged formats, which store both.
    """
    base_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset
    if last_offset is None:
        last_offset = messages[-1].offset if messages else base_offset
    base_timestamp_ms = default_base_timestamp_ms(messages, fields.delete_horizon_ms)
    if fields.base_timestamp_ms is not None and fields.delete_horizon_ms is None:
        base_timestamp_ms = fields.base_timestamp_ms
    max_timestamp_ms = latest_ms(messages)
    if is_append_time_max and fields.append_time_ms is not None and fields.readers_see_append_time:
        max_timestamp_ms = fields.append_time_ms
    if fields.max_timestamp_ms is not None:
        max_timestamp_ms = fields.max_timestamp_ms
    return Bases(base_offset, last_offset, base_timestamp_ms, max_timestamp_ms)


def default_base_timestamp_ms(messages: Sequence[Message], delete_horizon_ms: int | None) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    return messages[0].timestamp_ms if messages else NO_TIMESTAMP


def latest_ms(messages: Sequence[Message]) -> int:
    return max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)


def flag_bits(fields: Fields) -> int:
    """Return the attribute bits 3 to 6 of a batch: append time, transactional, control, delete horizon."""
    flags = (
        fields.readers_see_append_time,
        fields.is_transactional,
        fields.is_control,
        fields.delete_horizon_ms is not None,
    )
    return sum(1 << bit for bit, is_set in enumerate(flags, 3) if is_set)


def check_control(messages: Iterable[Message]) -> None:
    """Raise RefusedError for control records that Kafka's ControlRecordType.parse or EndTransactionMarker refuses.

    key: version i16, type i16; value of an abort (0) or commit (1): version i16, coordinatorEpoch i32.
    """
    for message in messages:
        if message.key is None or len(message.key) < 4:
            raise RefusedError("a control record needs a version and a type in its key")
        version, kind = struct.unpack_from(">hh", message.key)
        if version < 0:
            raise RefusedError(f"control record of version {version}")
        if kind in (0, 1):
            if message.value is None or len(message.value) < 6:
                raise RefusedError("an end transaction marker needs a version and a coordinator epoch in its value")
            if struct.unpack_from(">h", message.value)[0] < 0:
                raise RefusedError("end transaction marker of a negative version")


def increment_sequence(sequence: int, by: int) -> int:
    """Return the sequence number `by` later. 0 follows the largest int32. A negative `by` wraps as in Java."""
    if sequence > signed(2**31 - 1 - by, 32):
        return signed(by - (2**31 - 1 - sequence) - 1, 32)
    return signed(sequence + by, 32)


def signed(value: int, bits: int) -> int:
    """Wrap an integer to a signed number of `bits` bits (two's complement), as Java does."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
