"""Magic 5, columnar: a short header, one column per field of the records, then the payload (docs/columnar.md).

baseOffset i64, length i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end), attributes u16,
    maxTimestamp i48, [producerId i64, producerEpoch i16, baseSequence i32], count uvarint, [lastOffsetDelta uvarint],
    [deleteHorizon i64], [baseTimestamp i64], [anchor i64], [wideMaxTimestamp i64], [ages], [offset deltas],
    [key lengths], [value lengths], [headers], payload
attribute bits: 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon, 7 producer state, 8 ages,
    9 offsets, 10 key lengths, 11 value lengths, 12 headers, 13 base timestamp, 14 anchor, 15 wide maximum timestamp
"""

import struct
from collections.abc import Sequence
from typing import Literal, NamedTuple

import crc32c

from tests.reference import codecs
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
from tests.research.columnar.reference_columns import (
    INT32_MAX,
    Reader,
    field_lengths,
    numbers,
    read_column,
    read_lengths,
    wrapped,
)
from tests.research.columnar.reference_headers import Headers, encode_headers, read_headers

MAGIC = 5
FIXED_BYTES = 29
CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 7, 1 << 3, 1 << 4, 1 << 5, 1 << 6
PRODUCER, AGES, OFFSETS, KEYS, VALUES, HEADERS = (1 << bit for bit in range(7, 13))
BASE_TIMESTAMP, ANCHOR, WIDE_MAX_TIMESTAMP = (1 << bit for bit in range(13, 16))
TIMES = HORIZON, BASE_TIMESTAMP, ANCHOR, WIDE_MAX_TIMESTAMP  # bits of optional timestamps, in their order in a batch
BATCH_RECORDS = 1 << 24  # default of kfbench.Limits.batch_records


# Batches


def payload_section(messages: Sequence[Message], fields: Fields = UNSET) -> bytes:
    """Return the payload before compression: all keys, all values, all header bytes.

    The parameter `fields` has no effect.
    """
    keys = b"".join(message.key or b"" for message in messages)
    values = b"".join(message.value or b"" for message in messages)
    return keys + values + (encode_headers(messages).payload if any(message.headers for message in messages) else b"")


def _times_of(messages: Sequence[Message], fields: Fields) -> dict[int, int]:
    """Return the optional timestamps of a batch, by their attribute bits."""
    bases = bases_of(messages, fields)
    times = {}
    if fields.delete_horizon_ms is not None:
        times[HORIZON] = fields.delete_horizon_ms
    if bases.base_timestamp_ms != default_base_timestamp_ms(messages, fields.delete_horizon_ms):
        times[BASE_TIMESTAMP] = bases.base_timestamp_ms
    anchor = latest_ms(messages)
    is_known = any(message.timestamp_ms != NO_TIMESTAMP for message in messages)
    if is_known if fields.readers_see_append_time else messages and anchor != bases.max_timestamp_ms:
        times[ANCHOR] = anchor
    if not -(2**47) <= bases.max_timestamp_ms < 2**47:
        times[WIDE_MAX_TIMESTAMP] = bases.max_timestamp_ms
    return times


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
    for bit, contents in (
        (KEYS, [message.key for message in messages]),
        (VALUES, [message.value for message in messages]),
    ):
        if any(content is not None for content in contents):
            attributes |= bit
            columns += field_lengths(contents)
    if any(message.headers for message in messages):
        attributes |= HEADERS
        columns += encode_headers(messages).columns
    return Columns(attributes, last_delta, columns)


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """Return the batch with `payload`, which is the compressed payload section of `messages`."""
    if fields.is_control:
        check_control(messages)
    bases, times = bases_of(messages, fields), _times_of(messages, fields)
    attributes = flag_bits(fields) | (CODEC_NAMES.index(codec) if messages else 0) | sum(times)
    producer = b""
    if (fields.producer_id, fields.producer_epoch, fields.base_sequence) != (-1, -1, -1):
        attributes |= PRODUCER
        producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)

    columns = _columns_of(messages, bases)
    attributes |= columns.attributes
    covered = struct.pack(">H", attributes)
    covered += struct.pack(">q", 0 if WIDE_MAX_TIMESTAMP in times else bases.max_timestamp_ms)[2:]
    covered += producer + unsigned(len(messages)) + columns.last_delta
    covered += b"".join(struct.pack(">q", times[bit]) for bit in TIMES if bit in times) + columns.columns + payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, MAGIC, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", bases.base_offset, len(tail)) + tail


def encode(messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = payload_section(messages)
    return batch(messages, fields, codec, codecs.compress(codec, payload, 2) if payload else b"")


# Reading


def _read_field_lengths(reader: Reader, is_there: int, count: int) -> list[int | None]:
    if not is_there:
        return [None] * count
    return read_lengths(reader, count) if count > 1 else [reader.nullable_length()]


def _read_numbers(reader: Reader, count: int, nature: Literal["ages", "offsets"]) -> list[int]:
    return read_column(reader, count, nature) if count > 1 else [reader.zigzag()]


class Header(NamedTuple):
    """The fields of a batch before its columns."""

    base_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    max_timestamp_ms: int
    producer: tuple[int, int, int]
    record_count: int
    last_delta: int
    times: dict[int, int]


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
    if attributes & HORIZON and attributes & BASE_TIMESTAMP:
        raise RefusedError("base timestamp and delete horizon")
    times = {bit: reader.unpack("q")[0] for bit in TIMES if attributes & bit}
    max_timestamp_ms = times.get(WIDE_MAX_TIMESTAMP, max_timestamp_ms)
    left, columns = len(reader.data) - reader.at, AGES | KEYS | VALUES | HEADERS
    if not count and (attributes & columns or not attributes & OFFSETS or left):
        raise RefusedError(f"empty batch of attributes {attributes:#06x}, {left} bytes behind it")
    return Header(
        base_offset, leader_epoch, crc, attributes, max_timestamp_ms, (producer[0], producer[1], producer[2]), count,
        last_delta, times,
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
    key_lengths = _read_field_lengths(reader, attributes & KEYS, count)
    value_lengths = _read_field_lengths(reader, attributes & VALUES, count)
    headers_of = read_headers(reader, count, log_bytes) if attributes & HEADERS else None
    raw = reader.rest()
    if raw:
        raw = codecs.decompress(CODEC_NAMES[attributes & CODEC], raw, 2)
    payload = Reader(raw)
    keys = [payload.content(length) for length in key_lengths]
    contents = list(zip(keys, [payload.content(length) for length in value_lengths], strict=True))
    headers: list[Headers] = headers_of(payload) if headers_of else [()] * count
    payload.finish("the payload")
    anchor = header.times.get(ANCHOR, header.max_timestamp_ms)
    is_known = ANCHOR in header.times or not attributes & APPEND_TIME
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
    horizon = header.times.get(HORIZON)
    base_timestamp_ms = header.times.get(BASE_TIMESTAMP, default_base_timestamp_ms(messages, horizon))
    return Batch(
        position=at, size_bytes=reader.at - at, magic=MAGIC, crc=header.crc, attributes=header.attributes,
        base_offset=header.base_offset, last_offset=header.base_offset + header.last_delta,
        max_timestamp_ms=header.max_timestamp_ms, messages=messages, raw=raw, base_timestamp_ms=base_timestamp_ms,
        partition_leader_epoch=header.leader_epoch, producer_id=header.producer[0],
        producer_epoch=header.producer[1], base_sequence=header.producer[2], delete_horizon_ms=horizon,
    )  # fmt: skip
