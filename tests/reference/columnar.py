"""Magic 4, columnar: a lean header, a column for each thing that records have, then their payload (docs/columnar.md).

baseOffset i64, length i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end), attributes u16,
    maxTimestamp i48, [producerId i64, producerEpoch i16, baseSequence i32], count uvarint, [lastOffsetDelta uvarint],
    [extensions], [ages], [offset deltas], [key lengths], [value lengths], [headers], payload
attribute bits: 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon, 7 producer state, 8 ages,
    9 offsets, 10 key lengths, 11 nulls among them, 12 value lengths, 13 nulls among them, 14 headers, 15 extensions
"""

import struct
from collections.abc import Sequence
from typing import Literal

import crc32c

from tests.reference import codecs
from tests.reference.columnar_columns import (
    INT32_MAX,
    Reader,
    field_lengths,
    numbers,
    read_column,
    read_lengths,
    wrapped,
)
from tests.reference.columnar_headers import Headers, HeadersOf, encode_headers, read_headers
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
from tests.reference.varint import unsigned

MAGIC = 4
FIXED_BYTES = 29
CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 7, 1 << 3, 1 << 4, 1 << 5, 1 << 6
PRODUCER, AGES, OFFSETS = 1 << 7, 1 << 8, 1 << 9
KEYS, NULL_KEYS, VALUES, NULL_VALUES = 1 << 10, 1 << 11, 1 << 12, 1 << 13
HEADERS, EXTENSIONS = 1 << 14, 1 << 15
BASE_TIMESTAMP, DELETE_HORIZON, ANCHOR, WIDE_MAX_TIMESTAMP, BY_ROWS = range(5)
EXTENSION_BYTES = (8, 8, 8, 8, 0)
BATCH_RECORDS = 1 << 24  # the default of kfbench.Limits


# Batches


def _bases(messages: Sequence[Message], fields: Fields) -> tuple[int, int, int, int]:
    """Return base offset, last offset, base timestamp, max timestamp."""
    base_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset
    if last_offset is None:
        last_offset = messages[-1].offset if messages else base_offset
    base_timestamp = _default_base_timestamp(messages, fields.delete_horizon_ms)
    if fields.base_timestamp_ms is not None and fields.delete_horizon_ms is None:
        base_timestamp = fields.base_timestamp_ms
    max_timestamp = _latest(messages)
    if fields.append_time_ms is not None and fields.readers_see_append_time:
        max_timestamp = fields.append_time_ms
    if fields.max_timestamp_ms is not None:
        max_timestamp = fields.max_timestamp_ms
    return base_offset, last_offset, base_timestamp, max_timestamp


def _default_base_timestamp(messages: Sequence[Message], delete_horizon_ms: int | None) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    return messages[0].timestamp_ms if messages else NO_TIMESTAMP


def _latest(messages: Sequence[Message]) -> int:
    return max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)


def payload_section(messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the bytes that a codec covers: all keys, all values, all header bytes. They do not depend on `fields`."""
    keys = b"".join(message.key or b"" for message in messages)
    values = b"".join(message.value or b"" for message in messages)
    return keys + values + (encode_headers(messages)[1] if any(message.headers for message in messages) else b"")


def _extensions_of(messages: Sequence[Message], fields: Fields) -> dict[int, bytes]:
    """Return the extensions of a batch by tag."""
    _, _, base_timestamp, max_timestamp = _bases(messages, fields)
    extensions = {}
    if base_timestamp != _default_base_timestamp(messages, fields.delete_horizon_ms):
        extensions[BASE_TIMESTAMP] = struct.pack(">q", base_timestamp)
    if fields.delete_horizon_ms is not None:
        extensions[DELETE_HORIZON] = struct.pack(">q", fields.delete_horizon_ms)
    anchor = _latest(messages)
    is_known = any(message.timestamp_ms != NO_TIMESTAMP for message in messages)
    if is_known if fields.readers_see_append_time else messages and anchor != max_timestamp:
        extensions[ANCHOR] = struct.pack(">q", anchor)
    if not -(2**47) <= max_timestamp < 2**47:
        extensions[WIDE_MAX_TIMESTAMP] = struct.pack(">q", max_timestamp)
    return extensions


def _columns_of(messages: Sequence[Message], base_offset: int, last_offset: int) -> tuple[int, bytes, bytes]:
    """Return the attribute bits of the columns, the last offset delta if it is written, and the columns."""
    attributes, columns, last_delta = 0, b"", b""
    ages = [wrapped(_latest(messages) - message.timestamp_ms) for message in messages]
    if any(ages):
        attributes |= AGES
        columns += numbers(ages, "ages")
    deltas = [message.offset - base_offset for message in messages]
    if any(not -(2**31) <= delta <= INT32_MAX for delta in [*deltas, last_offset - base_offset]):
        raise RefusedError("an offset is further than an int32 from the base offset")
    if not messages or deltas != list(range(len(messages))) or last_offset - base_offset != len(messages) - 1:
        attributes |= OFFSETS
        last_delta = unsigned((last_offset - base_offset) & 0xFFFFFFFF)
        columns += numbers(deltas, "offsets") if messages else b""
    for bit, null_bit, contents in (
        (KEYS, NULL_KEYS, [message.key for message in messages]),
        (VALUES, NULL_VALUES, [message.value for message in messages]),
    ):
        if any(content is not None for content in contents):
            attributes |= bit | (null_bit if None in contents else 0)
            columns += field_lengths(contents)
    if any(message.headers for message in messages):
        attributes |= HEADERS
        columns += encode_headers(messages)[0]
    return attributes, last_delta, columns


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch around `payload`, the compressed payload section of `messages`."""
    if fields.is_control:
        check_control(messages)
    base_offset, last_offset, _, max_timestamp = _bases(messages, fields)
    attributes = CODEC_NAMES.index(codec) if messages else 0
    attributes |= APPEND_TIME if fields.readers_see_append_time else 0
    attributes |= TRANSACTIONAL if fields.is_transactional else 0
    attributes |= CONTROL if fields.is_control else 0
    attributes |= HORIZON if fields.delete_horizon_ms is not None else 0
    extensions = _extensions_of(messages, fields)

    producer = b""
    if (fields.producer_id, fields.producer_epoch, fields.base_sequence) != (-1, -1, -1):
        attributes |= PRODUCER
        producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)

    column_bits, last_delta, columns = _columns_of(messages, base_offset, last_offset)
    attributes |= column_bits
    extended = b""
    if extensions:
        attributes |= EXTENSIONS
        extended = unsigned(len(extensions))
        extended += b"".join(
            unsigned(tag) + unsigned(len(extensions[tag])) + extensions[tag] for tag in sorted(extensions)
        )

    covered = struct.pack(">H", attributes)
    covered += struct.pack(">q", 0 if WIDE_MAX_TIMESTAMP in extensions else max_timestamp)[2:]
    covered += producer + unsigned(len(messages)) + last_delta + extended + columns + payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, MAGIC, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", base_offset, len(tail)) + tail


def encode(messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = payload_section(messages)
    return batch(messages, fields, codec, codecs.compress(codec, payload, 2) if payload else b"")


# Reading


def _read_field_lengths(reader: Reader, attributes: int, bit: int, null_bit: int, count: int) -> list[int | None]:
    if attributes & null_bit and (not attributes & bit or count == 1):
        raise RefusedError(f"attributes {attributes:#06x} of {count}")
    if not attributes & bit:
        return [None] * count
    if count == 1:
        return [reader.length()]
    return read_lengths(reader, count, bool(attributes & null_bit))


def _read_numbers(reader: Reader, count: int, nature: Literal["ages", "offsets"]) -> list[int]:
    return read_column(reader, count, nature) if count > 1 else [reader.zigzag()]


def _read_extensions(reader: Reader) -> dict[int, bytes]:
    extensions: dict[int, bytes] = {}
    number, before = reader.number(), -1
    if not number:
        raise RefusedError("no extension")
    for _ in range(number):
        tag, size = reader.number(), reader.number()
        if tag <= before or tag > BY_ROWS or size != EXTENSION_BYTES[tag]:
            raise RefusedError(f"extension {tag} of {size} bytes")
        extensions[tag] = reader.take(size)
        before = tag
    return extensions


def _timestamp(extensions: dict[int, bytes], tag: int, default: int) -> int:
    return struct.unpack(">q", extensions[tag])[0] if tag in extensions else default


def _read_payload(
    raw: bytes,
    key_lengths: Sequence[int | None],
    value_lengths: Sequence[int | None],
    headers_of: HeadersOf | None,
    by_rows: bool,
) -> tuple[list[bytes | None], list[bytes | None], list[Headers]]:
    """Return the keys, the values and the headers of all records."""
    payload = Reader(raw, 0)
    if by_rows:
        lengths = zip(key_lengths, value_lengths, strict=True)
        rows = [(payload.content(key), payload.content(value)) for key, value in lengths]
        keys, values = [key for key, _ in rows], [value for _, value in rows]
    else:
        keys = [payload.content(length) for length in key_lengths]
        values = [payload.content(length) for length in value_lengths]
    headers: list[Headers] = headers_of(payload) if headers_of else [()] * len(keys)
    if payload.at != len(raw):
        raise RefusedError(f"{len(raw) - payload.at} bytes after the payload")
    return keys, values, headers


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at `at` and check every promise."""
    if len(data) - at < FIXED_BYTES:
        raise RefusedError("no room for the header")
    base_offset, length, leader_epoch, magic, crc, attributes = struct.unpack_from(">qiibIH", data, at)
    end = at + 12 + length
    if magic != MAGIC or length < FIXED_BYTES + 1 - 12 or end > len(data):
        raise RefusedError(f"magic {magic}, length {length}")
    if crc32c.crc32c(data[at + 21 : end]) != crc:
        raise RefusedError("crc")
    if attributes & CODEC >= len(CODEC_NAMES):
        raise RefusedError(f"codec {attributes & CODEC}")

    reader = Reader(data[:end], at + 23)
    max_timestamp = int.from_bytes(reader.take(6), "big", signed=True)
    producer = struct.unpack(">qhi", reader.take(14)) if attributes & PRODUCER else (-1, -1, -1)
    count = reader.number()
    if count > BATCH_RECORDS:
        raise RefusedError(f"{count} records")
    last_delta = signed(reader.number(), 32) if attributes & OFFSETS else count - 1
    extensions = _read_extensions(reader) if attributes & EXTENSIONS else {}
    if bool(attributes & HORIZON) != (DELETE_HORIZON in extensions):
        raise RefusedError("the bit of the delete horizon and its extension disagree")
    if {BASE_TIMESTAMP, DELETE_HORIZON} <= extensions.keys():
        raise RefusedError("base timestamp and delete horizon")
    max_timestamp = _timestamp(extensions, WIDE_MAX_TIMESTAMP, max_timestamp)
    columns = AGES | KEYS | NULL_KEYS | VALUES | NULL_VALUES | HEADERS
    if not count and (attributes & columns or not attributes & OFFSETS or reader.at < end):
        raise RefusedError(f"empty batch of attributes {attributes:#06x}, {end - reader.at} bytes behind it")

    ages = _read_numbers(reader, count, "ages") if attributes & AGES else [0] * count
    deltas = _read_numbers(reader, count, "offsets") if attributes & OFFSETS and count else list(range(count))
    if any(not -(2**31) <= delta <= INT32_MAX for delta in deltas):
        raise RefusedError("offset delta")
    key_lengths = _read_field_lengths(reader, attributes, KEYS, NULL_KEYS, count)
    value_lengths = _read_field_lengths(reader, attributes, VALUES, NULL_VALUES, count)
    headers_of = read_headers(reader, count, len(data)) if attributes & HEADERS else None

    raw = reader.rest()
    if raw:
        raw = codecs.decompress(CODEC_NAMES[attributes & CODEC], raw, 2)
    keys, values, headers = _read_payload(raw, key_lengths, value_lengths, headers_of, BY_ROWS in extensions)

    anchor = _timestamp(extensions, ANCHOR, max_timestamp)
    is_known = ANCHOR in extensions or not attributes & APPEND_TIME
    messages = [
        Message(
            offset=base_offset + deltas[i],
            timestamp_ms=wrapped(anchor - ages[i]) if is_known else NO_TIMESTAMP,
            key=keys[i],
            value=values[i],
            headers=headers[i],
        )
        for i in range(count)
    ]
    if attributes & CONTROL:
        check_control(messages)
    horizon = _timestamp(extensions, DELETE_HORIZON, NO_TIMESTAMP) if attributes & HORIZON else None
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=base_offset, last_offset=base_offset + last_delta, max_timestamp_ms=max_timestamp,
        messages=messages, raw=raw,
        base_timestamp_ms=_timestamp(extensions, BASE_TIMESTAMP, _default_base_timestamp(messages, horizon)),
        partition_leader_epoch=leader_epoch, producer_id=producer[0], producer_epoch=producer[1],
        base_sequence=producer[2], delete_horizon_ms=horizon,
    )  # fmt: skip
