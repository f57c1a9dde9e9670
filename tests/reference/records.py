"""The records section of v2 and v3. This is the part of a batch that a codec compresses.

One record: length varint, [attributes i8], timestampDelta varlong, offsetDelta varint, keyLength varint, key,
    valueLength varint, value, headerCount varint, {keyLength varint, key, valueLength varint, value}
Headers first: metadataLength uvarint, then per record [attributes i8], timestampDelta, offsetDelta, keyLength,
    valueLength, headerCount, {headerKeyLength, headerValueLength}, then per record key, value, {header key, value}
Unsigned: all but timestampDelta are uvarints, offsetDelta as the two's complement of an int32; the lengths that can be
    null (of key, value and header value) as one more, 0 for null.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from tests.reference.model import Message, RefusedError, signed
from tests.reference.varint import Reader, unsigned, zigzag

Headers = tuple[tuple[str, bytes | None], ...]


class RecordsSection(NamedTuple):
    """Decoded records. record_sizes: bytes per record, including its length field."""

    messages: list[Message]
    record_sizes: list[int]


@dataclass(frozen=True, kw_only=True)
class Layout:
    with_attributes: bool
    is_unsigned: bool = False
    headers_first: bool = False

    # Integers

    def number(self, value: int) -> bytes:
        """Return the varint of a count, or of a length that cannot be null."""
        return unsigned(value) if self.is_unsigned else zigzag(value)

    def read_number(self, reader: Reader) -> int:
        value = reader.number() if self.is_unsigned else reader.zigzag(32)
        if value < 0:
            raise RefusedError(f"negative length or count {value}")
        return value

    def delta(self, value: int) -> bytes:
        return unsigned(value & 0xFFFFFFFF) if self.is_unsigned else zigzag(value)

    def read_delta(self, reader: Reader) -> int:
        return signed(reader.number(), 32) if self.is_unsigned else reader.zigzag(32)

    def length(self, content: bytes | None) -> bytes:
        if self.is_unsigned:
            return unsigned(0 if content is None else len(content) + 1)
        return zigzag(-1 if content is None else len(content))

    def read_length(self, reader: Reader) -> int | None:
        value = reader.number() - 1 if self.is_unsigned else reader.zigzag(32)
        return None if value < 0 else value  # Kafka writes -1 for null, and reads any negative length as null

    # Byte strings and headers

    def nullable(self, content: bytes | None) -> bytes:
        return self.length(content) + (content or b"")

    def read_nullable(self, reader: Reader) -> bytes | None:
        return _take(reader, self.read_length(reader))

    def headers(self, headers: Headers) -> bytes:
        out = self.number(len(headers))
        for key, value in headers:
            name = key.encode()
            out += self.number(len(name)) + name + self.nullable(value)
        return out

    def read_headers(self, reader: Reader) -> Headers:
        headers = []
        for _ in range(self.read_number(reader)):
            name = reader.take(self.read_number(reader))
            headers.append((_text(name), self.read_nullable(reader)))
        return tuple(headers)

    # Records

    def _front(self, message: Message, base_offset: int, base_timestamp_ms: int) -> bytes:
        attributes = b"\0" if self.with_attributes else b""
        timestamp_delta = zigzag(signed(message.timestamp_ms - base_timestamp_ms, 64))
        return attributes + timestamp_delta + self.delta(message.offset - base_offset)

    def _read_front(self, reader: Reader, base_offset: int, base_timestamp_ms: int) -> Message:
        """Read the attributes, offset and timestamp of a record. Return a message with only these."""
        if self.with_attributes:
            reader.byte()
        timestamp_ms = signed(base_timestamp_ms + reader.zigzag(), 64)
        return Message(offset=base_offset + self.read_delta(reader), timestamp_ms=timestamp_ms)

    def write(self, messages: Sequence[Message], base_offset: int, base_timestamp_ms: int) -> bytes:
        if not messages:
            return b""
        if self.headers_first:
            return self._write_headers_first(messages, base_offset, base_timestamp_ms)
        out = b""
        for message in messages:
            body = self._front(message, base_offset, base_timestamp_ms)
            body += self.nullable(message.key) + self.nullable(message.value) + self.headers(message.headers)
            out += self.number(len(body)) + body
        return out

    def read(self, raw: bytes, count: int, base_offset: int, base_timestamp_ms: int) -> RecordsSection:
        """Read `raw` as exactly `count` records. Raise RefusedError if bytes are left."""
        if self.headers_first:
            return self._read_headers_first(raw, count, base_offset, base_timestamp_ms)
        reader, section = Reader(raw), RecordsSection([], [])
        for _ in range(count):
            start = reader.at
            body = reader.part(self.read_number(reader))
            message = self._read_front(body, base_offset, base_timestamp_ms)
            key, value, headers = self.read_nullable(body), self.read_nullable(body), self.read_headers(body)
            body.finish("the headers of a record")
            section.messages.append(replace(message, key=key, value=value, headers=headers))
            section.record_sizes.append(reader.at - start)
        reader.finish("the last record")
        return section

    def _write_headers_first(self, messages: Sequence[Message], base_offset: int, base_timestamp_ms: int) -> bytes:
        metadata = payload = b""
        for message in messages:
            metadata += self._front(message, base_offset, base_timestamp_ms)
            metadata += self.length(message.key) + self.length(message.value) + self.number(len(message.headers))
            payload += (message.key or b"") + (message.value or b"")
            for key, value in message.headers:
                metadata += self.number(len(key.encode())) + self.length(value)
                payload += key.encode() + (value or b"")
        return unsigned(len(metadata)) + metadata + payload

    def _read_headers_first(self, raw: bytes, count: int, base_offset: int, base_timestamp_ms: int) -> RecordsSection:
        payload, section = Reader(raw), RecordsSection([], [])
        metadata = payload.part(payload.number())
        for _ in range(count):
            start = metadata.at + payload.at
            message = self._read_front(metadata, base_offset, base_timestamp_ms)
            key_length, value_length = self.read_length(metadata), self.read_length(metadata)
            header_count = self.read_number(metadata)
            key, value, headers = _take(payload, key_length), _take(payload, value_length), []
            for _ in range(header_count):
                name_length, header_length = self.read_number(metadata), self.read_length(metadata)
                headers.append((_text(payload.take(name_length)), _take(payload, header_length)))
            section.messages.append(replace(message, key=key, value=value, headers=tuple(headers)))
            section.record_sizes.append(metadata.at + payload.at - start)
        metadata.finish("the metadata of the last record")
        payload.finish("the last record")
        return section


def common_headers(messages: Sequence[Message]) -> Headers:
    """Return the longest list of headers with which all records start."""
    if not messages:
        return ()
    columns = zip(*(message.headers for message in messages), strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def _take(reader: Reader, length: int | None) -> bytes | None:
    return None if length is None else reader.take(length)


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
