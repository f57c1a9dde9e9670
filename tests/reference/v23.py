"""Record batches of magic 2, and of magic 3 (KIP-931) with its two features.

v2: baseOffset i64, batchLength i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end),
    attributes i16, lastOffsetDelta i32, baseTimestamp i64, maxTimestamp i64, producerId i64,
    producerEpoch i16, baseSequence i32, count i32, records
v3: ... attributes i16, producerId i64, producerEpoch i16, baseSequence i32, lastOffsetDelta varint,
    baseTimestamp varlong, maxTimestampDelta varlong, count i32, records
    attribute bit 7: records carry no attributes; bit 8: the three fields as wide as in v2
record: length varint, [attributes i8], timestampDelta varlong, offsetDelta varint, keyLength varint, key,
    valueLength varint, value, headerCount varint, {keyLength varint, key, valueLength varint, value}
"""

import struct
from collections.abc import Sequence

import crc32c

from tests.reference import codecs
from tests.reference.model import (
    CODEC_NAMES,
    NO_TIMESTAMP,
    UNSET,
    Batch,
    Fields,
    Message,
    RefusedError,
    signed,
)
from tests.reference.varint import read_zigzag, zigzag

NO_RECORD_ATTRIBUTES = 1 << 7
FIXED_HEADER = 1 << 8
FEATURES = {
    "v2": (2, 0),
    "v3": (3, NO_RECORD_ATTRIBUTES),
    "v3-attributes-only": (3, NO_RECORD_ATTRIBUTES | FIXED_HEADER),
    "v3-header-only": (3, 0),
}


def _nullable(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def _record(message: Message, base_offset: int, base_timestamp_ms: int, with_attributes: bool) -> bytes:
    body = b"\0" if with_attributes else b""
    body += zigzag(signed(message.timestamp_ms - base_timestamp_ms, 64))
    body += zigzag(message.offset - base_offset)
    body += _nullable(message.key) + _nullable(message.value) + zigzag(len(message.headers))
    for key, value in message.headers:
        body += _nullable(key.encode()) + _nullable(value)
    return zigzag(len(body)) + body


def _bases(messages: Sequence[Message], fields: Fields) -> tuple[int, int, int, int]:
    """base offset, last offset, base timestamp, max timestamp."""
    base_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset if fields.last_offset is not None else messages[-1].offset
    base_timestamp = messages[0].timestamp_ms if messages else NO_TIMESTAMP
    if fields.base_timestamp_ms is not None:
        base_timestamp = fields.base_timestamp_ms
    if fields.delete_horizon_ms is not None:
        base_timestamp = fields.delete_horizon_ms
    max_timestamp = max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)
    if fields.append_time_ms is not None:
        max_timestamp = fields.append_time_ms
    if fields.max_timestamp_ms is not None:
        max_timestamp = fields.max_timestamp_ms
    return base_offset, last_offset, base_timestamp, max_timestamp


def records_section(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    _, bits = FEATURES[name]
    base_offset, _, base_timestamp, _ = _bases(messages, fields)
    return b"".join(
        _record(message, base_offset, base_timestamp, not bits & NO_RECORD_ATTRIBUTES) for message in messages
    )


def batch(name: str, messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """The batch around `payload`, the compressed records section of `messages`."""
    magic, bits = FEATURES[name]
    base_offset, last_offset, base_timestamp, max_timestamp = _bases(messages, fields)
    attributes = CODEC_NAMES.index(codec) | bits
    attributes |= 8 if fields.append_time_ms is not None else 0
    attributes |= 16 if fields.is_transactional else 0
    attributes |= 32 if fields.is_control else 0
    attributes |= 64 if fields.delete_horizon_ms is not None else 0
    last_delta = last_offset - base_offset
    producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)
    if magic == 2:
        middle = struct.pack(">iqq", last_delta, base_timestamp, max_timestamp) + producer
    elif bits & FIXED_HEADER:
        middle = producer + struct.pack(">iqq", last_delta, base_timestamp, max_timestamp)
    else:
        middle = (
            producer + zigzag(last_delta) + zigzag(base_timestamp) + zigzag(signed(max_timestamp - base_timestamp, 64))
        )
    covered = struct.pack(">h", attributes) + middle + struct.pack(">i", len(messages)) + payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, magic, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", base_offset, len(tail)) + tail


def encode(name: str, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = codecs.compress(codec, records_section(name, messages, fields), 2) if messages else b""
    return batch(name, messages, fields, codec, payload)


def decode_one(data: bytes, at: int) -> Batch:
    """The batch at `at`, every promise checked."""
    if len(data) - at < 21:
        raise RefusedError("a batch needs 21 bytes up to its crc")
    base_offset, length, leader_epoch, magic, crc = struct.unpack_from(">qiibI", data, at)
    end = at + 12 + length
    if magic not in (2, 3) or end > len(data) or length < (49 if magic == 2 else 32):
        raise RefusedError(f"magic {magic}, length {length}")
    if crc32c.crc32c(data[at + 21 : end]) != crc:
        raise RefusedError("crc")
    (attributes,) = struct.unpack_from(">H", data, at + 21)
    where = at + 23
    if magic == 2:
        last_delta, base_timestamp, max_timestamp, *producer = struct.unpack_from(">iqqqhi", data, where)
        where += 34
    else:
        if attributes >> 9:
            raise RefusedError(f"unknown attribute bits {attributes:#06x}")
        producer = list(struct.unpack_from(">qhi", data, where))
        where += 14
        if attributes & FIXED_HEADER:
            if end - where < 20:
                raise RefusedError("no room for the header")
            last_delta, base_timestamp, max_timestamp = struct.unpack_from(">iqq", data, where)
            where += 20
        else:
            last_delta, where = read_zigzag(data[:end], where, 32)
            base_timestamp, where = read_zigzag(data[:end], where, 64)
            delta, where = read_zigzag(data[:end], where, 64)
            max_timestamp = signed(base_timestamp + delta, 64)
    if end - where < 4:
        raise RefusedError("no room for the count")
    (count,) = struct.unpack_from(">i", data, where)
    where += 4
    if attributes & 7 > 4 or count < 0:
        raise RefusedError(f"codec {attributes & 7}, count {count}")
    raw = data[where:end]  # what follows a count of 0 is not looked at
    messages: list[Message] = []
    sizes: list[int] = []
    if count:
        raw = codecs.decompress(CODEC_NAMES[attributes & 7], data[where:end], 2)
        inside = 0
        with_attributes = magic == 2 or not attributes & NO_RECORD_ATTRIBUTES
        for _ in range(count):
            message, after = _read_record(raw, inside, base_offset, base_timestamp, with_attributes)
            messages.append(message)
            sizes.append(after - inside)
            inside = after
        if inside != len(raw):
            raise RefusedError("bytes after the last record")
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=base_offset, last_offset=base_offset + last_delta, max_timestamp_ms=max_timestamp,
        messages=messages, raw=raw, record_sizes=sizes, base_timestamp_ms=base_timestamp,
        partition_leader_epoch=leader_epoch, producer_id=producer[0], producer_epoch=producer[1],
        base_sequence=producer[2], delete_horizon_ms=base_timestamp if attributes & 64 else None,
    )  # fmt: skip


def _read_record(
    raw: bytes, at: int, base_offset: int, base_timestamp: int, with_attributes: bool
) -> tuple[Message, int]:
    length, at = read_zigzag(raw, at, 32)
    end = at + length
    if length < 0 or end > len(raw):
        raise RefusedError(f"record length {length}")
    body = raw[:end]
    if with_attributes:
        at += 1
    timestamp_delta, at = read_zigzag(body, at, 64)
    offset_delta, at = read_zigzag(body, at, 32)
    key, at = _read_nullable(body, at)
    value, at = _read_nullable(body, at)
    count, at = read_zigzag(body, at, 32)
    if count < 0 or count > end - at:
        raise RefusedError(f"header count {count}")
    headers = []
    for _ in range(count):
        name, at = _read_nullable(body, at)
        if name is None:
            raise RefusedError("null header key")
        content, at = _read_nullable(body, at)
        headers.append((name.decode(errors="replace"), content))
    if at != end:
        raise RefusedError(f"{end - at} bytes left in the record")
    timestamp = signed(base_timestamp + timestamp_delta, 64)
    return Message(
        offset=base_offset + offset_delta,
        timestamp_ms=timestamp,
        key=key,
        value=value,
        headers=tuple(headers),
    ), end


def _read_nullable(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_zigzag(body, at, 32)
    if length < 0:  # Kafka writes -1 and reads any negative length as null
        return None, at
    if length > len(body) - at:
        raise RefusedError(f"length {length}")
    return body[at : at + length], at + length
