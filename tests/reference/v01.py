"""Messages of magic 0 and 1, and their wrappers (messages around compressed sets).

offset i64, size i32, crc u32 (zlib's, over magic..end), magic i8, attributes i8, [v1: timestamp i64],
keyLength i32, key, valueLength i32, value
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.reference import codecs
from tests.reference.model import NO_TIMESTAMP, UNSET, Batch, Fields, Message, RefusedError
from tests.reference.varint import Reader

SMALLEST = {0: 14, 1: 22}
CODECS = ("none", "gzip", "snappy", "lz4")


def field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def entry(magic: int, offset: int, attributes: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp_ms)
    body += field(key) + field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def inner_set(magic: int, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the inner set of a wrapper before compression.

    Its offsets are relative to the base offset in v1, absolute in v0.

    Under append time, Kafka's builder writes the append time and its bit into each inner message. A broker leaves inner
    messages as the producer wrote them. So messages get the bit if their timestamp equals the append time.
    """
    base = 0
    if magic:
        base = messages[0].offset if fields.base_offset is None else fields.base_offset
    out = b""
    for message in messages:
        attributes = 8 if magic and message.timestamp_ms == fields.append_time_ms else 0
        out += entry(magic, message.offset - base, attributes, message.timestamp_ms, message.key, message.value)
    return out


def plain(magic: int, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return one message after another. An append time replaces their timestamps."""
    out = b""
    for message in messages:
        timestamp, attributes = message.timestamp_ms, 0
        if magic and fields.append_time_ms is not None:
            timestamp, attributes = fields.append_time_ms, 8
        out += entry(magic, message.offset, attributes, timestamp, message.key, message.value)
    return out


def wrapper(magic: int, codec: str, messages: Sequence[Message], payload: bytes, fields: Fields = UNSET) -> bytes:
    """Return the wrapper with `payload`, which is the compressed inner set of `messages`."""
    if codec not in CODECS[1:]:
        raise RefusedError(f"{codec} in v{magic}")
    attributes = CODECS.index(codec)
    timestamp = fields.max_timestamp_ms
    if timestamp is None:
        timestamp = max(message.timestamp_ms for message in messages)
    if magic and fields.append_time_ms is not None:
        timestamp, attributes = fields.append_time_ms, attributes | 8
    # A v1 reader counts back from the wrapper's offset. In v0 this offset only tells which offset comes next.
    last = messages[-1].offset if magic or fields.last_offset is None else fields.last_offset
    return entry(magic, last, attributes, timestamp, None, payload)


def encode(magic: int, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    """Return one batch: plain messages without a codec, else one wrapper."""
    if not messages or fields.is_control:
        return b""  # these formats have neither empty nor control batches
    if codec == "none":
        return plain(magic, messages, fields)
    return wrapper(magic, codec, messages, codecs.compress(codec, inner_set(magic, messages, fields), magic), fields)


class LegacyEntry(NamedTuple):
    """A decoded message. end: the byte position after it."""

    crc: int
    magic: int
    attributes: int
    timestamp_ms: int
    message: Message
    end: int


def _read_entry(data: bytes, at: int) -> LegacyEntry:
    reader = Reader(data, at)
    offset, size = reader.unpack("qi")
    if size < SMALLEST[0]:
        raise RefusedError(f"size {size}")
    body = reader.part(size)
    crc, magic, attributes = body.unpack("Ibb")
    if magic not in SMALLEST or size < SMALLEST[magic]:
        raise RefusedError(f"size {size} of magic {magic}")
    if zlib.crc32(data[at + 16 : reader.at]) != crc:
        raise RefusedError("crc")
    (timestamp_ms,) = body.unpack("q") if magic else (NO_TIMESTAMP,)
    key, value = _read_field(body), _read_field(body)  # Kafka ignores bytes after the value
    message = Message(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value)
    return LegacyEntry(crc, magic, attributes, timestamp_ms, message, reader.at)


def _read_field(reader: Reader) -> bytes | None:
    (length,) = reader.unpack("i")
    return None if length < 0 else reader.take(length)  # Kafka writes -1 for null and reads any negative length as it


def entry_starts(raw: bytes) -> Iterator[int]:
    """Yield the byte position of each complete message of an inner set."""
    at = 0
    while len(raw) - at >= 12:
        (size,) = struct.unpack_from(">i", raw, at + 8)
        if size > len(raw) - at - 12:
            return
        yield at
        at += 12 + size


def decode_one(data: bytes, at: int) -> Batch:
    """Read the message or wrapper at byte `at`. A message that the inner set cuts short is left out."""
    entry = _read_entry(data, at)
    messages, sizes, raw = [entry.message], [entry.end - at], data[at : entry.end]
    if codec := entry.attributes & 7:
        if entry.message.value is None:
            raise RefusedError("wrapper without a value")
        if codec >= len(CODECS):
            raise RefusedError(f"codec {codec} in v{entry.magic}")
        raw = codecs.decompress(CODECS[codec], entry.message.value, entry.magic)
        starts = entry_starts(raw)
        inner = [(_read_entry(raw, start), start) for start in starts]
        if not inner:
            raise RefusedError("empty inner set")
        if any(each.attributes & 7 for each, _ in inner):
            raise RefusedError("nested compression")
        sizes = [each.end - start for each, start in inner]
        shift, offset = 0, entry.message.offset
        if entry.magic and offset:
            shift = offset - inner[-1][0].message.offset
            if offset > 0 > shift:
                raise RefusedError("wrapper offset below the last inner offset")
        messages = [replace(each.message, offset=each.message.offset + shift) for each, _ in inner]
    return Batch(
        position=at, size_bytes=entry.end - at, magic=entry.magic, crc=entry.crc, attributes=entry.attributes,
        base_offset=messages[0].offset, last_offset=entry.message.offset, max_timestamp_ms=entry.timestamp_ms,
        messages=messages, raw=raw, record_sizes=sizes,
    )  # fmt: skip
