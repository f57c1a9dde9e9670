"""Log entries of magic 0 and 1, and their compressed wrappers.

offset i64, size i32, crc u32 (zlib's, over magic..end), magic i8, attributes i8, [v1: timestamp i64],
keyLength i32, key, valueLength i32, value
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace

from tests.reference import codecs
from tests.reference.model import NO_TIMESTAMP, UNSET, Batch, Fields, Message, RefusedError

SMALLEST = {0: 14, 1: 22}


def _field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def entry(magic: int, offset: int, attributes: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    body = struct.pack(">bb", magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp_ms)
    body += _field(key) + _field(value)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def inner_set(magic: int, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the uncompressed content of a wrapper: offsets relative to the base offset in v1, absolute in v0.

    Under append time Kafka's builder writes the append time and its bit into each inner message. Its broker leaves
    inner messages as the producer wrote them. So the bit is there where the timestamp is the append time.
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
    """Return each message as an entry of its own; append time takes the place of the producer's."""
    out = b""
    for message in messages:
        timestamp, attributes = message.timestamp_ms, 0
        if magic and fields.append_time_ms is not None:
            timestamp, attributes = fields.append_time_ms, 8
        out += entry(magic, message.offset, attributes, timestamp, message.key, message.value)
    return out


def wrapper(magic: int, codec: str, messages: Sequence[Message], payload: bytes, fields: Fields = UNSET) -> bytes:
    """Return the wrapper message around `payload`, the compressed inner set of `messages`."""
    if codec not in ("gzip", "snappy", "lz4"):
        raise RefusedError(f"{codec} in v{magic}")
    attributes = ("none", "gzip", "snappy", "lz4").index(codec)
    timestamp = fields.max_timestamp_ms
    if timestamp is None:
        timestamp = max(message.timestamp_ms for message in messages)
    if magic and fields.append_time_ms is not None:
        timestamp, attributes = fields.append_time_ms, attributes | 8
    # A v1 reader counts back from the wrapper's offset; in v0 it only says which offset comes next.
    last = messages[-1].offset if magic or fields.last_offset is None else fields.last_offset
    return entry(magic, last, attributes, timestamp, None, payload)


def encode(magic: int, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    """Return one batch: plain entries, or one wrapper."""
    if not messages or fields.is_control:
        return b""  # neither has a place in these formats
    if codec == "none":
        return plain(magic, messages, fields)
    return wrapper(magic, codec, messages, codecs.compress(codec, inner_set(magic, messages, fields), magic), fields)


def _read_entry(data: bytes, at: int) -> tuple[int, int, int, int, Message, int]:
    """Return crc, magic, attributes, timestamp_ms, the message, and the position after it."""
    if len(data) - at < 12:
        raise RefusedError("an entry needs 12 bytes of offset and size")
    offset, size = struct.unpack_from(">qi", data, at)
    if size < SMALLEST[0] or at + 12 + size > len(data):
        raise RefusedError(f"size {size}")
    end = at + 12 + size
    crc, magic, attributes = struct.unpack_from(">Ibb", data, at + 12)
    if magic not in SMALLEST or size < SMALLEST[magic]:
        raise RefusedError(f"size {size} of magic {magic}")
    if zlib.crc32(data[at + 16 : end]) != crc:
        raise RefusedError("crc")
    at += 18
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = struct.unpack_from(">q", data, at)
        at += 8
    key, at = _read_field(data, at, end)
    value, at = _read_field(data, at, end)  # Kafka does not look at what follows
    return (
        crc,
        magic,
        attributes,
        timestamp,
        Message(offset=offset, timestamp_ms=timestamp, key=key, value=value),
        end,
    )


def _read_field(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < 4:
        raise RefusedError("no room for a length")
    (length,) = struct.unpack_from(">i", data, at)
    at += 4
    if length < 0:  # Kafka writes -1 and reads any negative length as null
        return None, at
    if length > end - at:
        raise RefusedError(f"length {length}")
    return data[at : at + length], at + length


def decode_one(data: bytes, at: int) -> Batch:
    """Read the entry or wrapper at `at`. An inner set that is cut short ends at its last whole entry."""
    crc, magic, attributes, timestamp, message, end = _read_entry(data, at)
    size = end - at
    if not attributes & 7:
        return Batch(
            position=at, size_bytes=size, magic=magic, crc=crc, attributes=attributes,
            base_offset=message.offset, last_offset=message.offset, max_timestamp_ms=timestamp,
            messages=[message], raw=data[at:end], record_sizes=[size],
        )  # fmt: skip
    if message.value is None:
        raise RefusedError("wrapper without a value")
    if attributes & 7 > 3:
        raise RefusedError(f"codec {attributes & 7} in v{magic}")
    raw = codecs.decompress(("none", "gzip", "snappy", "lz4")[attributes & 7], message.value, magic)
    inner: list[Message] = []
    sizes: list[int] = []
    inside = 0
    while len(raw) - inside >= 12 and struct.unpack_from(">i", raw, inside + 8)[0] <= len(raw) - inside - 12:
        _, _, inner_attributes, _, record, after = _read_entry(raw, inside)
        if inner_attributes & 7:
            raise RefusedError("nested compression")
        inner.append(record)
        sizes.append(after - inside)
        inside = after
    if not inner:
        raise RefusedError("empty inner set")
    shift = 0
    if magic:
        if 0 < message.offset < inner[-1].offset:
            raise RefusedError("wrapper offset below the last inner offset")
        shift = message.offset - inner[-1].offset if message.offset else 0
    messages = [replace(record, offset=record.offset + shift) for record in inner]
    return Batch(
        position=at, size_bytes=size, magic=magic, crc=crc, attributes=attributes,
        base_offset=messages[0].offset, last_offset=message.offset, max_timestamp_ms=timestamp,
        messages=messages, raw=raw, record_sizes=sizes,
    )  # fmt: skip
