"""The "Kafka Enriched Message Metadata" proposal: magic 1, but not Kafka's.

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

from tests.reference import codecs
from tests.reference.model import NO_TIMESTAMP, UNSET, Batch, Fields, Message, RefusedError, check_control, signed

INT32 = 2**31 - 1
CODECS = ("none", "gzip", "snappy", "lz4")
TIMESTAMP, NUMBER_OF_MESSAGES, RELATIVE_OFFSETS, CONTAINS_KEYS = 0, 32, 33, 34
TAG_VALUES = {TIMESTAMP: ">q", NUMBER_OF_MESSAGES: ">i", RELATIVE_OFFSETS: ">b", CONTAINS_KEYS: ">b"}
CONTROL_TYPES = {2: 8, 1: 10, 0: 11}  # by the type in a control record's key
OTHER_CONTROL = 12
CONTROL = range(8, 13)
SMALLEST = 22  # the size field of a message without tags, key and value


def seconds(timestamp_ms: int) -> int:
    """Return the timestamp field for a time in milliseconds."""
    floor = timestamp_ms // 1000
    return floor if 0 <= floor <= INT32 else -1


def _field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def tags_field(tags: dict[int, int]) -> bytes:
    return _field(b"".join(struct.pack(">b", tag) + struct.pack(TAG_VALUES[tag], tags[tag]) for tag in sorted(tags)))


def entry(offset: int, kind: int, timestamp_s: int, key: bytes | None, value: bytes | None, tags: bytes = b"") -> bytes:
    """Return one message; `tags` has its length field in front."""
    body = struct.pack(">bbi", 1, kind, timestamp_s) + (tags or _field(None)) + _field(key) + _field(value)
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
    """Return the inner messages of a wrapper, which a codec covers."""
    base = fields.base_offset if fields.base_offset is not None else messages[0].offset
    return b"".join(_message(name, message, message.offset - base, fields.is_control) for message in messages)


def plain(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    return b"".join(_message(name, message, message.offset, fields.is_control) for message in messages)


def wrapper(name: str, codec: str, messages: Sequence[Message], payload: bytes, fields: Fields = UNSET) -> bytes:
    """Return the message around `payload`, the compressed inner set of `messages`."""
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
    """Return one batch: plain messages, or one wrapper."""
    if not messages:
        return b""
    if codec == "none":
        return plain(name, messages, fields)
    return wrapper(name, codec, messages, codecs.compress(codec, inner_set(name, messages, fields), 1), fields)


def _read_entry(data: bytes, at: int) -> tuple[int, int, dict[int, int], Message, int]:
    """Return crc, attributes, tags, the message, and the position after it."""
    if len(data) - at < 12:
        raise RefusedError("an entry needs 12 bytes of offset and size")
    offset, size = struct.unpack_from(">qi", data, at)
    end = at + 12 + size
    if size < SMALLEST or end > len(data):
        raise RefusedError(f"size {size}")
    crc, magic, attributes, timestamp_s = struct.unpack_from(">Ibbi", data, at + 12)
    if magic != 1:
        raise RefusedError(f"magic {magic}")
    if zlib.crc32(data[at + 16 : end]) != crc:
        raise RefusedError("crc")
    kind = attributes & 15
    if kind >= len(CODECS) and kind not in CONTROL:
        raise RefusedError(f"type {kind}")
    content, at = _read_field(data, at + 22, end)
    tags = _read_tags(content or b"")
    key, at = _read_field(data, at, end)
    value, at = _read_field(data, at, end)
    if at != end:
        raise RefusedError(f"{end - at} bytes after the value")
    timestamp = tags.get(TIMESTAMP, NO_TIMESTAMP if timestamp_s == -1 else timestamp_s * 1000)
    message = Message(offset=offset, timestamp_ms=timestamp, key=key, value=value)
    if kind in CONTROL:
        check_control([message])
    return crc, attributes, tags, message, end


def _read_field(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < 4:
        raise RefusedError("no room for a length")
    (length,) = struct.unpack_from(">i", data, at)
    at += 4
    if length == -1:
        return None, at
    if length < 0 or length > end - at:
        raise RefusedError(f"length {length}")
    return data[at : at + length], at + length


def _read_tags(content: bytes) -> dict[int, int]:
    """Return the known tags before the first unknown one."""
    tags: dict[int, int] = {}
    at = 0
    while at < len(content) and content[at] in TAG_VALUES:
        layout = TAG_VALUES[content[at]]
        if struct.calcsize(layout) > len(content) - at - 1:
            raise RefusedError(f"tag {content[at]} runs past the tags")
        (tags[content[at]],) = struct.unpack_from(layout, content, at + 1)
        at += 1 + struct.calcsize(layout)
    return tags


def decode_one(data: bytes, at: int) -> Batch:
    """Read the message or wrapper at `at`. An inner set that is cut short ends at its last whole message."""
    crc, attributes, tags, message, end = _read_entry(data, at)
    kind = attributes & 15
    messages, sizes, raw = [message], [end - at], data[at:end]
    is_control = kind in CONTROL
    if 0 < kind < len(CODECS):
        if message.value is None:
            raise RefusedError("wrapper without a value")
        raw = codecs.decompress(CODECS[kind], message.value, 1)
        messages, sizes, is_control = _read_inner(raw)
        if tags.get(NUMBER_OF_MESSAGES, len(messages)) != len(messages):
            raise RefusedError(f"{len(messages)} messages, not {tags[NUMBER_OF_MESSAGES]}")
        if not tags.get(RELATIVE_OFFSETS, 1):
            messages = [replace(inner, offset=i) for i, inner in enumerate(messages)]
        messages = [replace(inner, offset=signed(message.offset + inner.offset, 64)) for inner in messages]
    return Batch(
        position=at, size_bytes=end - at, magic=1, crc=crc, attributes=attributes,
        base_offset=message.offset, last_offset=messages[-1].offset, max_timestamp_ms=message.timestamp_ms,
        messages=messages, raw=raw, record_sizes=sizes, is_enriched=True, is_enriched_control=is_control,
    )  # fmt: skip


def _read_inner(raw: bytes) -> tuple[list[Message], list[int], bool]:
    """Return the messages, their sizes, and whether any is a control record."""
    messages, sizes, kinds, at = [], [], set(), 0
    while len(raw) - at >= 12 and struct.unpack_from(">i", raw, at + 8)[0] <= len(raw) - at - 12:
        _, attributes, _, message, end = _read_entry(raw, at)
        if 0 < attributes & 15 < len(CODECS):
            raise RefusedError("nested compression")
        messages.append(message)
        sizes.append(end - at)
        kinds.add(attributes & 15 in CONTROL)
        at = end
    if not messages:
        raise RefusedError("empty inner set")
    return messages, sizes, True in kinds
