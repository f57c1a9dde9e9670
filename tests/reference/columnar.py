"""Magic 4, columnar: a short header, one column per field of the records, then the payload (docs/columnar.md).

baseOffset i64, length i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end), attributes u16,
    maxTimestamp i48, [producerId i64, producerEpoch i16, baseSequence i32], count uvarint, [lastOffsetDelta uvarint],
    [extensions], [ages], [offset deltas], [key lengths], [value lengths], [headers], payload
attribute bits: 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon, 7 producer state, 8 ages,
    9 offsets, 10 key lengths, 11 nulls among them, 12 value lengths, 13 nulls among them, 14 headers, 15 extensions
"""

import struct
from collections.abc import Sequence
from typing import Literal, NamedTuple

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
from tests.reference.columnar_headers import Headers, encode_headers, read_headers
from tests.reference.model import (
    CODEC_NAMES,
    NO_TIMESTAMP,
    UNSET,
    Bases,
    Batch,
    Fields,
    Message,
    RefusedError,
    bases_of,
    check_control,
    default_base_timestamp_ms,
    flag_bits,
    latest_ms,
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
BATCH_RECORDS = 1 << 24  # default of kfbench.Limits.batch_records


# Batches


def payload_section(messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the payload before compression: all keys, all values, all header bytes.

    The parameter `fields` has no effect.
    """
    keys = b"".join(message.key or b"" for message in messages)
    values = b"".join(message.value or b"" for message in messages)
    return keys + values + (encode_headers(messages).payload if any(message.headers for message in messages) else b"")


def _extensions_of(messages: Sequence[Message], fields: Fields) -> dict[int, bytes]:
    """Return the extensions (optional header fields) of a batch, by tag."""
    bases = bases_of(messages, fields)
    extensions = {}
    if bases.base_timestamp_ms != default_base_timestamp_ms(messages, fields.delete_horizon_ms):
        extensions[BASE_TIMESTAMP] = struct.pack(">q", bases.base_timestamp_ms)
    if fields.delete_horizon_ms is not None:
        extensions[DELETE_HORIZON] = struct.pack(">q", fields.delete_horizon_ms)
    anchor = latest_ms(messages)
    is_known = any(message.timestamp_ms != NO_TIMESTAMP for message in messages)
    if is_known if fields.readers_see_append_time else messages and anchor != bases.max_timestamp_ms:
        extensions[ANCHOR] = struct.pack(">q", anchor)
    if not -(2**47) <= bases.max_timestamp_ms < 2**47:
        extensions[WIDE_MAX_TIMESTAMP] = struct.pack(">q", bases.max_timestamp_ms)
    return extensions


class Columns(NamedTuple):
    """The columns of a batch, their attribute bits, and the bytes of the last offset delta.

    last_delta is empty if the batch does not store it.
    """

    attributes: int
    last_delta: bytes
    columns: bytes


def _columns_of(messages: Sequence[Message], bases: Bases) -> Columns:
    attributes, columns, last_delta = 0, b"", b""
    ages = [wrapped(latest_ms(messages) - message.timestamp_ms) for message in messages]
    if any(ages):
        attributes |= AGES
        columns += numbers(ages, "ages")
    deltas = [message.offset - bases.base_offset for message in messages]
    if any(not -(2**31) <= delta <= INT32_MAX for delta in [*deltas, bases.last_delta]):
        raise RefusedError("an offset is further than an int32 from the base offset")
    if not messages or deltas != list(range(len(messages))) or bases.last_delta != len(messages) - 1:
        attributes |= OFFSETS
        last_delta = unsigned(bases.last_delta & 0xFFFFFFFF)
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
        columns += encode_headers(messages).columns
    return Columns(attributes, last_delta, columns)


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch with `payload`, which is the compressed payload section of `messages`."""
    if fields.is_control:
        check_control(messages)
    bases, extensions = bases_of(messages, fields), _extensions_of(messages, fields)
    attributes = flag_bits(fields) | (CODEC_NAMES.index(codec) if messages else 0)
    producer = b""
    if (fields.producer_id, fields.producer_epoch, fields.base_sequence) != (-1, -1, -1):
        attributes |= PRODUCER
        producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)

    columns = _columns_of(messages, bases)
    attributes |= columns.attributes
    extended = b""
    if extensions:
        attributes |= EXTENSIONS
        extended = unsigned(len(extensions))
        extended += b"".join(
            unsigned(tag) + unsigned(len(extensions[tag])) + extensions[tag] for tag in sorted(extensions)
        )

    covered = struct.pack(">H", attributes)
    covered += struct.pack(">q", 0 if WIDE_MAX_TIMESTAMP in extensions else bases.max_timestamp_ms)[2:]
    covered += producer + unsigned(len(messages)) + columns.last_delta + extended + columns.columns + payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, MAGIC, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", bases.base_offset, len(tail)) + tail


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


class Header(NamedTuple):
    """The fields of a batch before its columns, including extensions."""

    base_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    max_timestamp_ms: int
    producer: tuple[int, int, int]
    record_count: int
    last_delta: int
    extensions: dict[int, bytes]

    @property
    def is_by_rows(self) -> bool:
        return BY_ROWS in self.extensions


def _read_header(reader: Reader) -> Header:
    """Read the fields of one batch, and limit `reader` to the bytes of that batch."""
    start = reader.at
    base_offset, length, leader_epoch, magic, crc = reader.unpack("qiibI")
    if magic != MAGIC or length < FIXED_BYTES + 1 - 12 or start + 12 + length > len(reader.data):
        raise RefusedError(f"magic {magic}, length {length}")
    reader.data = reader.data[: start + 12 + length]
    if crc32c.crc32c(reader.data[reader.at :]) != crc:
        raise RefusedError("crc")
    (attributes,) = reader.unpack("H")
    if attributes & CODEC >= len(CODEC_NAMES):
        raise RefusedError(f"codec {attributes & CODEC}")
    max_timestamp_ms = int.from_bytes(reader.take(6), "big", signed=True)
    producer = reader.unpack("qhi") if attributes & PRODUCER else (-1, -1, -1)
    count = reader.number()
    if count > BATCH_RECORDS:
        raise RefusedError(f"{count} records")
    last_delta = signed(reader.number(), 32) if attributes & OFFSETS else count - 1
    extensions = _read_extensions(reader) if attributes & EXTENSIONS else {}
    if bool(attributes & HORIZON) != (DELETE_HORIZON in extensions):
        raise RefusedError("the bit of the delete horizon and its extension disagree")
    if {BASE_TIMESTAMP, DELETE_HORIZON} <= extensions.keys():
        raise RefusedError("base timestamp and delete horizon")
    max_timestamp_ms = _timestamp(extensions, WIDE_MAX_TIMESTAMP, max_timestamp_ms)
    left, columns = len(reader.data) - reader.at, AGES | KEYS | NULL_KEYS | VALUES | NULL_VALUES | HEADERS
    if not count and (attributes & columns or not attributes & OFFSETS or left):
        raise RefusedError(f"empty batch of attributes {attributes:#06x}, {left} bytes behind it")
    return Header(
        base_offset, leader_epoch, crc, attributes, max_timestamp_ms, (producer[0], producer[1], producer[2]), count,
        last_delta, extensions,
    )  # fmt: skip


class Records(NamedTuple):
    """The records of a batch, and its payload after decompression."""

    messages: list[Message]
    raw: bytes


def _read_messages(reader: Reader, header: Header, log_bytes: int) -> Records:
    """Read the columns and the payload of a batch.

    log_bytes: size of the whole log in bytes, for the limit on shared headers.
    """
    attributes, count = header.attributes, header.record_count
    ages = _read_numbers(reader, count, "ages") if attributes & AGES else [0] * count
    deltas = _read_numbers(reader, count, "offsets") if attributes & OFFSETS and count else list(range(count))
    if any(not -(2**31) <= delta <= INT32_MAX for delta in deltas):
        raise RefusedError("offset delta")
    key_lengths = _read_field_lengths(reader, attributes, KEYS, NULL_KEYS, count)
    value_lengths = _read_field_lengths(reader, attributes, VALUES, NULL_VALUES, count)
    headers_of = read_headers(reader, count, log_bytes) if attributes & HEADERS else None
    raw = reader.rest()
    if raw:
        raw = codecs.decompress(CODEC_NAMES[attributes & CODEC], raw, 2)
    payload = Reader(raw)
    if header.is_by_rows:
        pairs = zip(key_lengths, value_lengths, strict=True)
        contents = [(payload.content(key), payload.content(value)) for key, value in pairs]
    else:
        keys = [payload.content(length) for length in key_lengths]
        contents = list(zip(keys, [payload.content(length) for length in value_lengths], strict=True))
    headers: list[Headers] = headers_of(payload) if headers_of else [()] * count
    payload.finish("the payload")
    anchor = _timestamp(header.extensions, ANCHOR, header.max_timestamp_ms)
    is_known = ANCHOR in header.extensions or not attributes & APPEND_TIME
    messages = [
        Message(
            offset=header.base_offset + deltas[i],
            timestamp_ms=wrapped(anchor - ages[i]) if is_known else NO_TIMESTAMP,
            key=key,
            value=value,
            headers=headers[i],
        )
        for i, (key, value) in enumerate(contents)
    ]
    return Records(messages, raw)


def decode_one(data: bytes, at: int) -> Batch:
    """Read the batch at byte `at` and check every rule of the format. Raise RefusedError."""
    reader = Reader(data, at)
    header = _read_header(reader)
    messages, raw = _read_messages(reader, header, len(data))
    if header.attributes & CONTROL:
        check_control(messages)
    horizon = None
    if header.attributes & HORIZON:
        horizon = _timestamp(header.extensions, DELETE_HORIZON, NO_TIMESTAMP)
    base_timestamp_ms = _timestamp(header.extensions, BASE_TIMESTAMP, default_base_timestamp_ms(messages, horizon))
    return Batch(
        position=at, size_bytes=reader.at - at, magic=MAGIC, crc=header.crc, attributes=header.attributes,
        base_offset=header.base_offset, last_offset=header.base_offset + header.last_delta,
        max_timestamp_ms=header.max_timestamp_ms, messages=messages, raw=raw, base_timestamp_ms=base_timestamp_ms,
        partition_leader_epoch=header.leader_epoch, producer_id=header.producer[0],
        producer_epoch=header.producer[1], base_sequence=header.producer[2], delete_horizon_ms=horizon,
    )  # fmt: skip
