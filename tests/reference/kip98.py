"""Magic 2 as the text of KIP-98 has it, which never shipped: no leader epoch, no count, no headers.

firstOffset i64, length i32, crc u32 (CRC-32C of attributes..end), magic i8, attributes i16, lastOffsetDelta i32,
firstTimestamp i64, maxTimestamp i64, pid i64, epoch i16, firstSequence i32, then messages until `length` is used up
message: length uvarint, attributes i8, timestampDelta varlong, offsetDelta uvarint (of the int32's two's complement),
    [keyLength uvarint, key], [value: what is left]; attributes bit 0: key is null, bit 1: value is null
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
    check_control,
    signed,
)
from tests.reference.varint import read_unsigned, read_zigzag, unsigned, zigzag

HEADER_BYTES = 53
KEY_IS_NULL, VALUE_IS_NULL = 1, 2


def _bases(messages: Sequence[Message], fields: Fields) -> tuple[int, int, int, int]:
    """Return first offset, last offset, first timestamp, max timestamp."""
    first_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset if fields.last_offset is not None else messages[-1].offset
    first_timestamp, max_timestamp = fields.base_timestamp_ms, fields.max_timestamp_ms
    if first_timestamp is None:
        first_timestamp = messages[0].timestamp_ms if messages else NO_TIMESTAMP
    if max_timestamp is None and fields.readers_see_append_time:
        max_timestamp = fields.append_time_ms
    if max_timestamp is None:
        max_timestamp = max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)
    return first_offset, last_offset, first_timestamp, max_timestamp


def _message(message: Message, first_offset: int, first_timestamp_ms: int) -> bytes:
    attributes = KEY_IS_NULL if message.key is None else 0
    attributes |= VALUE_IS_NULL if message.value is None else 0
    body = struct.pack(">b", attributes)
    body += zigzag(signed(message.timestamp_ms - first_timestamp_ms, 64))
    body += unsigned((message.offset - first_offset) & 0xFFFFFFFF)
    if message.key is not None:
        body += unsigned(len(message.key)) + message.key
    body += message.value or b""
    return unsigned(len(body)) + body


def messages_section(messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the messages of a batch, which a codec covers."""
    first_offset, _, first_timestamp, _ = _bases(messages, fields)
    return b"".join(_message(message, first_offset, first_timestamp) for message in messages)


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch around `payload`, the compressed messages."""
    if fields.is_control:
        check_control(messages)
    first_offset, last_offset, first_timestamp, max_timestamp = _bases(messages, fields)
    attributes = CODEC_NAMES.index(codec)
    attributes |= 8 if fields.readers_see_append_time else 0
    attributes |= 16 if fields.is_transactional else 0
    attributes |= 32 if fields.is_control else 0
    covered = struct.pack(
        ">hiqqqhi", attributes, last_offset - first_offset, first_timestamp, max_timestamp,
        fields.producer_id, fields.producer_epoch, fields.base_sequence,
    ) + payload  # fmt: skip
    return struct.pack(">qiIb", first_offset, len(covered) + 5, crc32c.crc32c(covered), 2) + covered


def encode(messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = codecs.compress(codec, messages_section(messages, fields), 2) if messages else b""
    return batch(messages, fields, codec, payload)


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at `at` and check every promise."""
    if len(data) - at < HEADER_BYTES:
        raise RefusedError("no room for the header")
    first_offset, length, crc, magic = struct.unpack_from(">qiIb", data, at)
    end = at + 12 + length
    if magic != 2 or length < HEADER_BYTES - 12 or end > len(data):
        raise RefusedError(f"magic {magic}, length {length}")
    if crc32c.crc32c(data[at + 17 : end]) != crc:
        raise RefusedError("crc")
    attributes, last_delta, first_timestamp, max_timestamp, *producer = struct.unpack_from(">Hiqqqhi", data, at + 17)
    if attributes & 7 > 4:
        raise RefusedError(f"codec {attributes & 7}")
    raw = data[at + HEADER_BYTES : end]
    if raw:  # a batch that lost all its messages has nothing for a codec to cover
        raw = codecs.decompress(CODEC_NAMES[attributes & 7], raw, 2)
    messages: list[Message] = []
    sizes: list[int] = []
    inside = 0
    while inside < len(raw):
        message, after = _read_message(raw, inside, first_offset, first_timestamp)
        messages.append(message)
        sizes.append(after - inside)
        inside = after
    if attributes & 32:
        check_control(messages)
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=first_offset, last_offset=first_offset + last_delta, max_timestamp_ms=max_timestamp,
        messages=messages, raw=raw, record_sizes=sizes, base_timestamp_ms=first_timestamp,
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2],
    )  # fmt: skip


def _read_message(raw: bytes, at: int, first_offset: int, first_timestamp_ms: int) -> tuple[Message, int]:
    length, at = read_unsigned(raw, at, 32)
    end = at + length
    if not length or end > len(raw):
        raise RefusedError(f"message length {length}")
    body = raw[:end]
    attributes = body[at]
    if attributes >> 2:
        raise RefusedError(f"unknown message attributes {attributes:#04x}")
    timestamp_delta, at = read_zigzag(body, at + 1, 64)
    offset_delta, at = read_unsigned(body, at, 32)
    key = value = None
    if not attributes & KEY_IS_NULL:
        key_length, at = read_unsigned(body, at, 32)
        if key_length > end - at:
            raise RefusedError(f"key length {key_length}")
        key = body[at : at + key_length]
        at += key_length
    if not attributes & VALUE_IS_NULL:
        value = body[at:]
    elif at != end:
        raise RefusedError(f"{end - at} bytes of a null value")
    offset = first_offset + signed(offset_delta, 32)
    timestamp = signed(first_timestamp_ms + timestamp_delta, 64)
    return Message(offset=offset, timestamp_ms=timestamp, key=key, value=value), end
