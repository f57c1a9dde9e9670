"""Magic 1 of the "Kafka Enriched Message Metadata" proposal. Its layout is not that of v1.

offset i64, size i32, crc u32 (zlib's, over magic..end), magic i8 = 1, attributes i8, timestamp i32 (Unix seconds,
-1: none), tagsLength i32 (-1: none), tags, keyLength i32, key, valueLength i32, value

attributes, lowest 4 bits: 0 plain, 1 gzip, 2 snappy, 3 lz4, 8 leader epoch, 9 start, 10 commit, 11 abort transaction,
    12 any other control record (ours). The text leaves 4-7 and 13-15 open: refused.
tag: id i8, then 0 timestamp i64 ms; 32 number of messages i32; ours: 33 relative offsets honoured i8, 34 contains keys
    i8. An unknown one has no size: reading stops there, tagsLength skips the rest.
wrapper: offset of the first message, null key, value = the compressed messages with offsets relative to it, or, with
    tag 33 off, to be counted.
`enriched` writes no tags but in wrappers (32-34); `enriched-ms` writes tag 0 in every message and wrapper.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tests.reference import codecs
from tests.reference.model import NO_TIMESTAMP, UNSET, Batch, Fields, Message, RefusedError, check_control, signed
from tests.reference.v01 import CODECS, entry_starts, field
from tests.reference.varint import Reader

INT32 = 2**31 - 1
TIMESTAMP, NUMBER_OF_MESSAGES, RELATIVE_OFFSETS, CONTAINS_KEYS = 0, 32, 33, 34
TAG_VALUES = {TIMESTAMP: ">q", NUMBER_OF_MESSAGES: ">i", RELATIVE_OFFSETS: ">b", CONTAINS_KEYS: ">b"}
CONTROL_TYPES = {2: 8, 1: 10, 0: 11}  # control type in the record's key -> attribute value
OTHER_CONTROL = 12
CONTROL = range(8, 13)
SMALLEST = 22  # size field of a message without tags, key and value


def seconds(timestamp_ms: int) -> int:
    """Return the timestamp field (seconds) for a time in milliseconds; -1 if it does not fit."""
    floor = timestamp_ms // 1000
    return floor if 0 <= floor <= INT32 else -1


def tags_field(tags: dict[int, int]) -> bytes:
    return field(b"".join(struct.pack(">b", tag) + struct.pack(TAG_VALUES[tag], tags[tag]) for tag in sorted(tags)))


def entry(offset: int, kind: int, timestamp_s: int, key: bytes | None, value: bytes | None, tags: bytes = b"") -> bytes:
    """Return the bytes of one message. tags: the tags field, with its length in front."""
    body = struct.pack(">bbi", 1, kind, timestamp_s) + (tags or field(None)) + field(key) + field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def _message(name: str, message: Message, offset: int, is_control: bool) -> bytes:
    kind = 0
    if is_control:
        check_control([message])
        assert message.key is not None
        kind = CONTROL_TYPES.get(struct.unpack_from(">h", message.key, 2)[0], OTHER_CONTROL)
    tags = tags_field({TIMESTAMP: message.timestamp_ms}) if name == "enriched-ms" else b""
    return entry(offset, kind, seconds(message.timestamp_ms), message.key, message.value, tags)


def inner_set(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the inner messages of a wrapper before compression."""
    base = fields.base_offset if fields.base_offset is not None else messages[0].offset
    return b"".join(_message(name, message, message.offset - base, fields.is_control) for message in messages)


def plain(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    return b"".join(_message(name, message, message.offset, fields.is_control) for message in messages)


def wrapper(name: str, codec: str, messages: Sequence[Message], payload: bytes, fields: Fields = UNSET) -> bytes:
    """Return the wrapper with `payload`, which is the compressed inner set of `messages`."""
    if codec not in CODECS[1:]:
        raise RefusedError(f"{codec} in {name}")
    base = fields.base_offset if fields.base_offset is not None else messages[0].offset
    tags = {
        NUMBER_OF_MESSAGES: len(messages),
        RELATIVE_OFFSETS: 1,
        CONTAINS_KEYS: int(any(message.key is not None for message in messages)),
    }
    if name == "enriched-ms":
        tags[TIMESTAMP] = max(message.timestamp_ms for message in messages)
        timestamp_s = seconds(tags[TIMESTAMP])
    else:
        timestamp_s = max(seconds(message.timestamp_ms) for message in messages)
    return entry(base, CODECS.index(codec), timestamp_s, None, payload, tags_field(tags))


def encode(name: str, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    """Return one batch: plain messages without a codec, else one wrapper."""
    if not messages:
        return b""
    if codec == "none":
        return plain(name, messages, fields)
    return wrapper(name, codec, messages, codecs.compress(codec, inner_set(name, messages, fields), 1), fields)


class EnrichedEntry(NamedTuple):
    """A decoded message. end: the byte position after it."""

    crc: int
    attributes: int
    tags: dict[int, int]
    message: Message
    end: int

    @property
    def kind(self) -> int:
        return self.attributes & 15


def _read_entry(data: bytes, at: int) -> EnrichedEntry:
    reader = Reader(data, at)
    offset, size = reader.unpack("qi")
    if size < SMALLEST:
        raise RefusedError(f"size {size}")
    body = reader.part(size)
    crc, magic, attributes, timestamp_s = body.unpack("Ibbi")
    if magic != 1:
        raise RefusedError(f"magic {magic}")
    if zlib.crc32(data[at + 16 : reader.at]) != crc:
        raise RefusedError("crc")
    kind = attributes & 15
    if kind >= len(CODECS) and kind not in CONTROL:
        raise RefusedError(f"type {kind}")
    tags, key, value = _read_tags(_read_field(body) or b""), _read_field(body), _read_field(body)
    body.finish("the value")
    timestamp = tags.get(TIMESTAMP, NO_TIMESTAMP if timestamp_s == -1 else timestamp_s * 1000)
    message = Message(offset=offset, timestamp_ms=timestamp, key=key, value=value)
    if kind in CONTROL:
        check_control([message])
    return EnrichedEntry(crc, attributes, tags, message, reader.at)


def _read_field(reader: Reader) -> bytes | None:
    (length,) = reader.unpack("i")
    if length < -1:
        raise RefusedError(f"length {length}")
    return None if length == -1 else reader.take(length)


def _read_tags(content: bytes) -> dict[int, int]:
    """Return the known tags. Reading stops at the first unknown tag."""
    reader, tags = Reader(content), dict[int, int]()
    while reader.at < len(content) and content[reader.at] in TAG_VALUES:
        tag = reader.byte()
        (tags[tag],) = reader.unpack(TAG_VALUES[tag][1:])
    return tags


def decode_one(data: bytes, at: int) -> Batch:
    """Read the message or wrapper at byte `at`. A message that the inner set cuts short is left out."""
    entry = _read_entry(data, at)
    messages, sizes, raw = [entry.message], [entry.end - at], data[at : entry.end]
    is_control = entry.kind in CONTROL
    if 0 < entry.kind < len(CODECS):
        if entry.message.value is None:
            raise RefusedError("wrapper without a value")
        raw = codecs.decompress(CODECS[entry.kind], entry.message.value, 1)
        starts = entry_starts(raw)
        inner = [(_read_entry(raw, start), start) for start in starts]
        if not inner:
            raise RefusedError("empty inner set")
        if any(0 < each.kind < len(CODECS) for each, _ in inner):
            raise RefusedError("nested compression")
        if entry.tags.get(NUMBER_OF_MESSAGES, len(inner)) != len(inner):
            raise RefusedError(f"{len(inner)} messages, not {entry.tags[NUMBER_OF_MESSAGES]}")
        sizes, is_control = [each.end - start for each, start in inner], any(each.kind in CONTROL for each, _ in inner)
        offsets = [each.message.offset for each, _ in inner]
        if not entry.tags.get(RELATIVE_OFFSETS, 1):
            offsets = list(range(len(inner)))
        messages = [
            replace(each.message, offset=signed(entry.message.offset + offset, 64))
            for (each, _), offset in zip(inner, offsets, strict=True)
        ]
    return Batch(
        position=at, size_bytes=entry.end - at, magic=1, crc=entry.crc, attributes=entry.attributes,
        base_offset=entry.message.offset, last_offset=messages[-1].offset, max_timestamp_ms=entry.message.timestamp_ms,
        messages=messages, raw=raw, record_sizes=sizes, is_enriched=True, is_enriched_control=is_control,
    )  # fmt: skip
