"""Record batches of magic 2, and of magic 3 (KIP-931) with its features. The records are in records.py.

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
    UNSET,
    Bases,
    Batch,
    Fields,
    Message,
    RefusedError,
    bases_of,
    check_control,
    flag_bits,
    signed,
)
from tests.reference.records import Headers, Layout, RecordsSection, common_headers
from tests.reference.varint import Reader, zigzag

NO_RECORD_ATTRIBUTES = 1 << 7
FIXED_HEADER = 1 << 8
UNSIGNED = 1 << 9
HEADERS_FIRST = 1 << 10
TAGGED = 1 << 11
SHARED_HEADERS = 1 << 16  # no attribute bit: the encoder writes tag 1
FEATURES = {
    "v2": (2, 0),
    "v3": (3, NO_RECORD_ATTRIBUTES),
    "v3-attributes-only": (3, NO_RECORD_ATTRIBUTES | FIXED_HEADER),
    "v3-header-only": (3, 0),
    "v3-unsigned": (3, NO_RECORD_ATTRIBUTES | UNSIGNED),
    "v3-headers-first": (3, NO_RECORD_ATTRIBUTES | HEADERS_FIRST),
    "v3-tagged": (3, NO_RECORD_ATTRIBUTES | TAGGED),
    "v3-batch-headers": (3, NO_RECORD_ATTRIBUTES | TAGGED | SHARED_HEADERS),
    "v3-full": (3, NO_RECORD_ATTRIBUTES | UNSIGNED | HEADERS_FIRST | TAGGED | SHARED_HEADERS),
}
# These store both times: the records' in maxTimestampDelta, the broker's append time in tag 0.
TAGGED_NAMES = [name for name, (_, bits) in FEATURES.items() if bits & TAGGED]
BATCH_HEADERS_NAMES = [name for name, (_, bits) in FEATURES.items() if bits & SHARED_HEADERS]


def _layout(magic: int, bits: int) -> Layout:
    if magic == 2:
        return Layout(with_attributes=True)
    return Layout(
        with_attributes=not bits & NO_RECORD_ATTRIBUTES,
        is_unsigned=bool(bits & UNSIGNED),
        headers_first=bool(bits & HEADERS_FIRST),
    )


def _bases(name: str, messages: Sequence[Message], fields: Fields) -> Bases:
    return bases_of(messages, fields, is_append_time_max=name not in TAGGED_NAMES)


def records_section(name: str, messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the records section of a batch before compression."""
    bases = _bases(name, messages, fields)
    shared = len(common_headers(messages)) if name in BATCH_HEADERS_NAMES else 0
    own = [replace(message, headers=message.headers[shared:]) for message in messages]
    return _layout(*FEATURES[name]).write(own, bases.base_offset, bases.base_timestamp_ms)


def _tagged_fields(name: str, messages: Sequence[Message], fields: Fields) -> bytes:
    content = {tags.APPEND_TIME: tags.append_time(fields.append_time_ms), **fields.tagged_fields}
    shared = common_headers(messages) if name in BATCH_HEADERS_NAMES else ()
    if shared:
        content[tags.BATCH_HEADERS] = _layout(*FEATURES[name]).headers(shared)
    return tags.write(content)


def batch(name: str, messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch with `payload`, which is the compressed records section of `messages`."""
    if fields.is_control:
        check_control(messages)
    magic, bits = FEATURES[name]
    bases = _bases(name, messages, fields)
    attributes = CODEC_NAMES.index(codec) | bits & 0xFFFF | flag_bits(fields)
    base_ms, max_ms = bases.base_timestamp_ms, bases.max_timestamp_ms
    producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)
    if magic == 2:
        middle = struct.pack(">iqq", bases.last_delta, base_ms, max_ms) + producer
    elif bits & FIXED_HEADER:
        middle = producer + struct.pack(">iqq", bases.last_delta, base_ms, max_ms)
    else:
        middle = producer + _layout(magic, bits).delta(bases.last_delta)
        middle += zigzag(base_ms) + zigzag(signed(max_ms - base_ms, 64))
    covered = struct.pack(">h", attributes) + middle + struct.pack(">i", len(messages))
    if bits & TAGGED:
        covered += _tagged_fields(name, messages, fields)
    covered += payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, magic, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", bases.base_offset, len(tail)) + tail


def encode(name: str, messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = codecs.compress(codec, records_section(name, messages, fields), 2) if messages else b""
    return batch(name, messages, fields, codec, payload)


class HeaderSpan(NamedTuple):
    """Header fields of offsets, timestamps and producer, up to the record count."""

    last_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer: tuple[int, int, int]
    record_count: int


def _read_span(reader: Reader, magic: int, attributes: int) -> HeaderSpan:
    if magic == 2:
        last_delta, base_ms, max_ms = reader.unpack("iqq")
        producer = reader.unpack("qhi")
    elif attributes >> 12:
        raise RefusedError(f"unknown attribute bits {attributes:#06x}")
    else:
        producer = reader.unpack("qhi")
        if attributes & FIXED_HEADER:
            last_delta, base_ms, max_ms = reader.unpack("iqq")
        else:
            last_delta, base_ms = _layout(magic, attributes).read_delta(reader), reader.zigzag()
            max_ms = signed(base_ms + reader.zigzag(), 64)
    (count,) = reader.unpack("i")
    if attributes & 7 > 5 or count < 0:
        raise RefusedError(f"codec {attributes & 7}, count {count}")
    return HeaderSpan(last_delta, base_ms, max_ms, (producer[0], producer[1], producer[2]), count)


class Tagged(NamedTuple):
    append_time_ms: int | None
    shared: Headers
    unknown: dict[int, bytes]


def _read_tagged(reader: Reader, layout: Layout) -> Tagged:
    unknown = tags.read(reader)
    append_time = unknown.pop(tags.APPEND_TIME, None)
    content = unknown.pop(tags.BATCH_HEADERS, None)
    shared: Headers = ()
    if content is not None:
        inside = Reader(content)
        shared = layout.read_headers(inside)
        inside.finish("the batch's headers")
    return Tagged(None if append_time is None else tags.read_append_time(append_time), shared, unknown)


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at byte `at` and check every rule of the format. Raise RefusedError."""
    reader = Reader(data, at)
    base_offset, length, leader_epoch, magic, crc = reader.unpack("qiibI")
    end = at + 12 + length
    if magic not in (2, 3) or end > len(data) or length < (49 if magic == 2 else 32):
        raise RefusedError(f"magic {magic}, length {length}")
    reader = reader.part(end - reader.at)
    if crc32c.crc32c(data[reader.at : end]) != crc:
        raise RefusedError("crc")
    (attributes,) = reader.unpack("H")
    span, layout = _read_span(reader, magic, attributes), _layout(magic, attributes)
    tagged = _read_tagged(reader, layout) if magic == 3 and attributes & TAGGED else Tagged(None, (), {})
    raw, section = reader.rest(), RecordsSection([], [])  # with a record count of 0, later bytes are ignored
    if span.record_count:
        raw = codecs.decompress(CODEC_NAMES[attributes & 7], raw, 2)
        section = layout.read(raw, span.record_count, base_offset, span.base_timestamp_ms)
    messages = [replace(message, headers=tagged.shared + message.headers) for message in section.messages]
    if attributes & 32:
        check_control(messages)
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=base_offset, last_offset=base_offset + span.last_delta, max_timestamp_ms=span.max_timestamp_ms,
        messages=messages, raw=raw, record_sizes=section.record_sizes, base_timestamp_ms=span.base_timestamp_ms,
        partition_leader_epoch=leader_epoch, producer_id=span.producer[0], producer_epoch=span.producer[1],
        base_sequence=span.producer[2], append_time_tag_ms=tagged.append_time_ms, tagged_fields=tagged.unknown,
        delete_horizon_ms=span.base_timestamp_ms if attributes & 64 else None,
    )  # fmt: skip
