"""What the reference codecs take and give."""

from collections.abc import Sequence
from dataclasses import dataclass, field

NO_TIMESTAMP = -1
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


class RefusedError(ValueError):
    """The bytes break a promise of the format."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """One record. `timestamp_ms` is the one that was written, whatever the batch says about append time."""

    offset: int
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What a writer may set on a batch; None leaves the encoder's own choice."""

    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False
    append_time_ms: int | None = None
    delete_horizon_ms: int | None = None
    partition_leader_epoch: int = -1
    base_offset: int | None = None
    last_offset: int | None = None
    base_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None


UNSET = Fields()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch as a consumer sees it; `raw`: its uncompressed records section (v2, v3) or inner set."""

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

    @property
    def codec(self) -> str:
        return CODEC_NAMES[self.attributes & 7]

    @property
    def is_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & 8)

    @property
    def is_transactional(self) -> bool:
        return self.magic > 1 and bool(self.attributes & 16)

    @property
    def is_control(self) -> bool:
        return self.magic > 1 and bool(self.attributes & 32)

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == -1:
            return -1
        last = self.base_sequence + self.last_offset - self.base_offset
        return signed(last - 2**31 if last >= 2**31 else last, 32)

    def read_timestamps_ms(self) -> list[int]:
        """What a consumer reads: append time stands for every record of the batch."""
        if self.is_append_time:
            return [self.max_timestamp_ms for _ in self.messages]
        return [message.timestamp_ms for message in self.messages]


def signed(value: int, bits: int) -> int:
    """`value` wrapped to two's complement, as Java arithmetic does."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
