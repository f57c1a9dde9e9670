"""Record batches of magic 2, and of magic 3 (KIP-931) with its features; the records themselves are in records.py.

v2: baseOffset i64, batchLength i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end),
    attributes i16, lastOffsetDelta i32, baseTimestamp i64, maxTimestamp i64, producerId i64,
    producerEpoch i16, baseSequence i32, count i32, records
v3: ... attributes i16, producerId i64, producerEpoch i16, baseSequence i32, lastOffsetDelta varint,
    baseTimestamp varlong, maxTimestampDelta varlong, count i32, [tags], records
    attribute bits: 7 records carry no attributes; 8 the three fields as wide as in v2; 9 unsigned varints;
    10 headers first; 11 tagged fields (tags.py). 12-15 are refused.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import crc32c

from tests.reference import codecs, tags
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
from tests.reference.records import Headers, Layout, common_headers
from tests.reference.varint import read_zigzag, zigzag

NO_RECORD_ATTRIBUTES = 1 << 7
FIXED_HEADER = 1 << 8
UNSIGNED = 1 << 9
HEADERS_FIRST = 1 << 10
TAGGED = 1 << 11
FEATURES = {
    "v2": (2, 0),
    "v3": (3, NO_RECORD_ATTRIBUTES),
    "v3-attributes-only": (3, NO_RECORD_ATTRIBUTES | FIXED_HEADER),
    "v3-header-only": (3, 0),
    "v3-unsigned": (3, NO_RECORD_ATTRIBUTES | UNSIGNED),
    "v3-headers-first": (3, NO_RECORD_ATTRIBUTES | HEADERS_FIRST),
    "v3-tagged": (3, NO_RECORD_ATTRIBUTES | TAGGED),
    "v3-batch-headers": (3, NO_RECORD_ATTRIBUTES | TAGGED),
    "v3-full": (3, NO_RECORD_ATTRIBUTES | UNSIGNED | HEADERS_FIRST | TAGGED),
}
# These carry both times: maxTimestampDelta that of the records, tag 0 that of the broker.
TAGGED_NAMES = [name for name, (_, bits) in FEATURES.items() if bits & TAGGED]
BATCH_HEADERS_NAMES = ["v3-batch-headers", "v3-full"]


def _layout(magic: int, bits: int) -> Layout:
    if magic == 2:
        return Layout(with_attributes=True)
    return Layout(
        with_attributes=not bits & NO_RECORD_ATTRIBUTES,
        is_unsigned=bool(bits & UNSIGNED),
        headers_first=bool(bits & HEADERS_FIRST),
    )


def _bases(name: str, messages: Sequence[Message], fields: Fields) -> tuple[int, int, int, int]:
    """Return base offset, last offset, base timestamp, max timestamp."""
    base_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset if fields.last_offset is not None else messages[-1].offset
    base_timestamp = messages[0].timestamp_ms if messages else NO_TIMESTAMP
    if fields.base_timestamp_ms is not None:
        base_timestamp = fields.base_timestamp_ms
    if fields.delete_horizon_ms is not None:
        base_timestamp = fields.delete_horizon_ms
    max_timestamp = max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)
    if fields.append_time_ms is not None and fields.readers_see_append_time and name not in TAGGED_NAMES:
        max_timestamp = fields.append_time_ms
    if fields.max_timestamp_ms is not None:
        max_timestamp = fields.max_timestamp_ms
    return base_offset, last_offset, base_timestamp, max_timestamp


def records_section(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the records section of a batch, which a codec covers."""
    base_offset, _, base_timestamp, _ = _bases(name, messages, fields)
    shared = len(common_headers(messages)) if name in BATCH_HEADERS_NAMES else 0
    own = [replace(message, headers=message.headers[shared:]) for message in messages]
    return _layout(*FEATURES[name]).write(own, base_offset, base_timestamp)


def _tagged_fields(name: str, messages: Sequence[Message], fields: Fields) -> bytes:
    content = {tags.APPEND_TIME: tags.append_time(fields.append_time_ms), **fields.tagged_fields}
    shared = common_headers(messages) if name in BATCH_HEADERS_NAMES else ()
    if shared:
        content[tags.BATCH_HEADERS] = _layout(*FEATURES[name]).headers(shared)
    return tags.write(content)


def batch(name: str, messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch around `payload`, the compressed records section of `messages`."""
    if fields.is_control:
        check_control(messages)
    magic, bits = FEATURES[name]
    base_offset, last_offset, base_timestamp, max_timestamp = _bases(name, messages, fields)
    attributes = CODEC_NAMES.index(codec) | bits
    attributes |= 8 if fields.readers_see_append_time else 0
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
            producer
            + _layout(magic, bits).delta(last_delta)
            + zigzag(base_timestamp)
            + zigzag(signed(max_timestamp - base_timestamp, 64))
        )
    covered = struct.pack(">h", attributes) + middle + struct.pack(">i", len(messages))
    if bits & TAGGED:
        covered += _tagged_fields(name, messages, fields)
    covered += payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, magic, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", base_offset, len(tail)) + tail


def encode(name: str, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = codecs.compress(codec, records_section(name, messages, fields), 2) if messages else b""
    return batch(name, messages, fields, codec, payload)


class Span(NamedTuple):
    """Header fields behind the attributes, up to the count; `at` is the position after them."""

    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer: tuple[int, int, int]
    record_count: int
    at: int


def _read_span(data: bytes, at: int, end: int, magic: int, attributes: int) -> Span:
    if magic == 2:
        last_delta, base_timestamp, max_timestamp, *producer = struct.unpack_from(">iqqqhi", data, at)
        at += 34
    else:
        if attributes >> 12:
            raise RefusedError(f"unknown attribute bits {attributes:#06x}")
        producer = list(struct.unpack_from(">qhi", data, at))
        at += 14
        if attributes & FIXED_HEADER:
            if end - at < 20:
                raise RefusedError("no room for the header")
            last_delta, base_timestamp, max_timestamp = struct.unpack_from(">iqq", data, at)
            at += 20
        else:
            last_delta, at = _layout(magic, attributes).read_delta(data[:end], at)
            base_timestamp, at = read_zigzag(data[:end], at, 64)
            delta, at = read_zigzag(data[:end], at, 64)
            max_timestamp = signed(base_timestamp + delta, 64)
    if end - at < 4:
        raise RefusedError("no room for the count")
    (count,) = struct.unpack_from(">i", data, at)
    if attributes & 7 > 4 or count < 0:
        raise RefusedError(f"codec {attributes & 7}, count {count}")
    return Span(last_delta, base_timestamp, max_timestamp, (producer[0], producer[1], producer[2]), count, at + 4)


class Tagged(NamedTuple):
    append_time: int | None
    shared: Headers
    unknown: dict[int, bytes]
    at: int


def _read_tagged(data: bytes, at: int, layout: Layout) -> Tagged:
    unknown, at = tags.read(data, at)
    append_time = unknown.pop(tags.APPEND_TIME, None)
    content = unknown.pop(tags.BATCH_HEADERS, None)
    shared: Headers = ()
    if content is not None:
        shared, after = layout.read_headers(content, 0)
        if after != len(content):
            raise RefusedError("bytes after the batch's headers")
    return Tagged(None if append_time is None else tags.read_append_time(append_time), shared, unknown, at)


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at `at` and check every promise."""
    if len(data) - at < 21:
        raise RefusedError("a batch needs 21 bytes up to its crc")
    base_offset, length, leader_epoch, magic, crc = struct.unpack_from(">qiibI", data, at)
    end = at + 12 + length
    if magic not in (2, 3) or end > len(data) or length < (49 if magic == 2 else 32):
        raise RefusedError(f"magic {magic}, length {length}")
    if crc32c.crc32c(data[at + 21 : end]) != crc:
        raise RefusedError("crc")
    (attributes,) = struct.unpack_from(">H", data, at + 21)
    span = _read_span(data, at + 23, end, magic, attributes)
    layout, tagged = _layout(magic, attributes), Tagged(None, (), {}, span.at)
    if magic == 3 and attributes & TAGGED:
        tagged = _read_tagged(data[:end], span.at, layout)
    raw = data[tagged.at : end]  # what follows a count of 0 is not looked at
    messages: list[Message] = []
    sizes: list[int] = []
    if span.record_count:
        raw = codecs.decompress(CODEC_NAMES[attributes & 7], raw, 2)
        messages, sizes = layout.read(raw, span.record_count, base_offset, span.base_timestamp)
        messages = [replace(message, headers=tagged.shared + message.headers) for message in messages]
    if attributes & 32:
        check_control(messages)
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=base_offset, last_offset=base_offset + span.last_delta, max_timestamp_ms=span.max_timestamp,
        messages=messages, raw=raw, record_sizes=sizes, base_timestamp_ms=span.base_timestamp,
        partition_leader_epoch=leader_epoch, producer_id=span.producer[0], producer_epoch=span.producer[1],
        base_sequence=span.producer[2], append_time_tag_ms=tagged.append_time, tagged_fields=tagged.unknown,
        delete_horizon_ms=span.base_timestamp if attributes & 64 else None,
    )  # fmt: skip
