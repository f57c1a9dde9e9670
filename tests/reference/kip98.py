"""Magic 2 as the text of KIP-98 describes it. It never shipped: no leader epoch, no record count, no headers.

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
    UNSET,
    Batch,
    Fields,
    Message,
    RefusedError,
    bases_of,
    check_control,
    flag_bits,
    signed,
)
from tests.reference.varint import Reader, unsigned, zigzag

HEADER_BYTES = 53
KEY_IS_NULL, VALUE_IS_NULL = 1, 2


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
    """Return the messages of a batch before compression."""
    bases = bases_of(messages, fields)
    return b"".join(_message(message, bases.base_offset, bases.base_timestamp_ms) for message in messages)


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch with `payload`, which is the compressed messages section."""
    if fields.is_control:
        check_control(messages)
    bases = bases_of(messages, fields)
    covered = struct.pack(
        ">hiqqqhi", CODEC_NAMES.index(codec) | flag_bits(fields), bases.last_delta, bases.base_timestamp_ms,
        bases.max_timestamp_ms, fields.producer_id, fields.producer_epoch, fields.base_sequence,
    ) + payload  # fmt: skip
    return struct.pack(">qiIb", bases.base_offset, len(covered) + 5, crc32c.crc32c(covered), 2) + covered


def encode(messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = codecs.compress(codec, messages_section(messages, fields), 2) if messages else b""
    return batch(messages, fields, codec, payload)


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at byte `at` and check every rule of the format. Raise RefusedError."""
    reader = Reader(data, at)
    first_offset, length, crc, magic = reader.unpack("qiIb")
    end = at + 12 + length
    if magic != 2 or length < HEADER_BYTES - 12 or end > len(data):
        raise RefusedError(f"magic {magic}, length {length}")
    reader = reader.part(end - reader.at)
    if crc32c.crc32c(data[reader.at : end]) != crc:
        raise RefusedError("crc")
    attributes, last_delta, first_timestamp, max_timestamp, *producer = reader.unpack("Hiqqqhi")
    if attributes & 7 > 4:
        raise RefusedError(f"codec {attributes & 7}")
    raw = reader.rest()
    if raw:  # an empty batch has no payload, whatever its codec bits say
        raw = codecs.decompress(CODEC_NAMES[attributes & 7], raw, 2)
    messages: list[Message] = []
    sizes: list[int] = []
    inside = Reader(raw)
    while inside.at < len(raw):
        start = inside.at
        messages.append(_read_message(inside, first_offset, first_timestamp))
        sizes.append(inside.at - start)
    if attributes & 32:
        check_control(messages)
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=first_offset, last_offset=first_offset + last_delta, max_timestamp_ms=max_timestamp,
        messages=messages, raw=raw, record_sizes=sizes, base_timestamp_ms=first_timestamp,
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2],
    )  # fmt: skip


def _read_message(reader: Reader, first_offset: int, first_timestamp_ms: int) -> Message:
    length = reader.number()
    if not length:
        raise RefusedError("empty message")
    body = reader.part(length)
    attributes = body.byte()
    if attributes >> 2:
        raise RefusedError(f"unknown message attributes {attributes:#04x}")
    timestamp_ms = signed(first_timestamp_ms + body.zigzag(), 64)
    offset = first_offset + signed(body.number(), 32)
    key = None if attributes & KEY_IS_NULL else body.take(body.number())
    value = None if attributes & VALUE_IS_NULL else body.rest()
    body.finish("a null value")
    return Message(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value)
