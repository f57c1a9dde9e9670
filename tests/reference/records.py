"""The records section of v2 and v3: what a codec covers.

A record by itself: length varint, [attributes i8], timestampDelta varlong, offsetDelta varint, keyLength varint, key,
    valueLength varint, value, headerCount varint, {keyLength varint, key, valueLength varint, value}
Headers first: metadataLength uvarint, then of each record [attributes i8], timestampDelta, offsetDelta, keyLength,
    valueLength, headerCount, {headerKeyLength, headerValueLength}, then of each record key, value, {header key, value}
Unsigned: all but timestampDelta are uvarints, offsetDelta as the two's complement of an int32; the lengths that can be
    null (of key, value and header value) as one more, 0 for null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tests.reference.model import Message, RefusedError, signed
from tests.reference.varint import read_unsigned, read_zigzag, unsigned, zigzag

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, kw_only=True)
class Layout:
    with_attributes: bool
    is_unsigned: bool = False
    headers_first: bool = False

    # Integers

    def number(self, value: int) -> bytes:
        """Return the bytes of a length that cannot be null, or of a count."""
        return unsigned(value) if self.is_unsigned else zigzag(value)

    def read_number(self, data: bytes, at: int) -> tuple[int, int]:
        value, at = read_unsigned(data, at, 32) if self.is_unsigned else read_zigzag(data, at, 32)
        if value < 0:
            raise RefusedError(f"negative length or count {value}")
        return value, at

    def delta(self, value: int) -> bytes:
        return unsigned(value & 0xFFFFFFFF) if self.is_unsigned else zigzag(value)

    def read_delta(self, data: bytes, at: int) -> tuple[int, int]:
        if not self.is_unsigned:
            return read_zigzag(data, at, 32)
        value, at = read_unsigned(data, at, 32)
        return signed(value, 32), at

    def length(self, content: bytes | None) -> bytes:
        if self.is_unsigned:
            return unsigned(0 if content is None else len(content) + 1)
        return zigzag(-1 if content is None else len(content))

    def read_length(self, data: bytes, at: int) -> tuple[int | None, int]:
        if self.is_unsigned:
            value, at = read_unsigned(data, at, 32)
            return (value - 1 if value else None), at
        value, at = read_zigzag(data, at, 32)
        return (None if value < 0 else value), at  # Kafka writes -1 and reads any negative length as null

    # Byte strings and headers

    def nullable(self, content: bytes | None) -> bytes:
        return self.length(content) + (content or b"")

    def read_nullable(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        length, at = self.read_length(data, at)
        return _take(data, at, length)

    def headers(self, headers: Headers) -> bytes:
        out = self.number(len(headers))
        for key, value in headers:
            name = key.encode()
            out += self.number(len(name)) + name + self.nullable(value)
        return out

    def read_headers(self, data: bytes, at: int) -> tuple[Headers, int]:
        count, at = self.read_number(data, at)
        headers = []
        for _ in range(count):
            length, at = self.read_number(data, at)
            name, at = _take(data, at, length)
            value, at = self.read_nullable(data, at)
            headers.append((_text(name), value))
        return tuple(headers), at

    # Records

    def _front(self, message: Message, base_offset: int, base_timestamp_ms: int) -> bytes:
        attributes = b"\0" if self.with_attributes else b""
        timestamp_delta = zigzag(signed(message.timestamp_ms - base_timestamp_ms, 64))
        return attributes + timestamp_delta + self.delta(message.offset - base_offset)

    def _read_front(self, data: bytes, at: int, base_offset: int, base_timestamp_ms: int) -> tuple[int, int, int]:
        """Return offset, timestamp and the position after both."""
        if self.with_attributes:
            at += 1
        timestamp_delta, at = read_zigzag(data, at, 64)
        offset_delta, at = self.read_delta(data, at)
        return base_offset + offset_delta, signed(base_timestamp_ms + timestamp_delta, 64), at

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

    def read(self, raw: bytes, count: int, base_offset: int, base_timestamp_ms: int) -> tuple[list[Message], list[int]]:
        """Read all of `raw` as `count` records. Return them and the bytes that each takes."""
        if self.headers_first:
            return self._read_headers_first(raw, count, base_offset, base_timestamp_ms)
        messages, sizes, at = [], [], 0
        for _ in range(count):
            start = at
            length, at = self.read_number(raw, at)
            end = at + length
            if end > len(raw):
                raise RefusedError(f"record length {length}")
            body = raw[:end]
            offset, timestamp, at = self._read_front(body, at, base_offset, base_timestamp_ms)
            key, at = self.read_nullable(body, at)
            value, at = self.read_nullable(body, at)
            headers, at = self.read_headers(body, at)
            if at != end:
                raise RefusedError(f"{end - at} bytes left in the record")
            messages.append(Message(offset=offset, timestamp_ms=timestamp, key=key, value=value, headers=headers))
            sizes.append(end - start)
        if at != len(raw):
            raise RefusedError("bytes after the last record")
        return messages, sizes

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

    def _read_headers_first(
        self, raw: bytes, count: int, base_offset: int, base_timestamp_ms: int
    ) -> tuple[list[Message], list[int]]:
        size, at = read_unsigned(raw, 0, 32)
        payload_at = at + size
        if payload_at > len(raw):
            raise RefusedError(f"metadata of {size} bytes")
        metadata = raw[:payload_at]
        messages, sizes = [], []
        for _ in range(count):
            start, payload_start = at, payload_at
            offset, timestamp, at = self._read_front(metadata, at, base_offset, base_timestamp_ms)
            key_length, at = self.read_length(metadata, at)
            value_length, at = self.read_length(metadata, at)
            header_count, at = self.read_number(metadata, at)
            key, payload_at = _take(raw, payload_at, key_length)
            value, payload_at = _take(raw, payload_at, value_length)
            headers = []
            for _ in range(header_count):
                name_length, at = self.read_number(metadata, at)
                header_length, at = self.read_length(metadata, at)
                name, payload_at = _take(raw, payload_at, name_length)
                content, payload_at = _take(raw, payload_at, header_length)
                headers.append((_text(name), content))
            messages.append(
                Message(offset=offset, timestamp_ms=timestamp, key=key, value=value, headers=tuple(headers))
            )
            sizes.append(at - start + payload_at - payload_start)
        if at != len(metadata):
            raise RefusedError(f"{len(metadata) - at} bytes of metadata after the last record's")
        if payload_at != len(raw):
            raise RefusedError(f"{len(raw) - payload_at} bytes after the last record")
        return messages, sizes


def common_headers(messages: Sequence[Message]) -> Headers:
    """Return the longest list of headers that all records begin with."""
    if not messages:
        return ()
    columns = zip(*(message.headers for message in messages), strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def _take(data: bytes, at: int, length: int | None) -> tuple[bytes | None, int]:
    if length is None:
        return None, at
    if length > len(data) - at:
        raise RefusedError(f"length {length}")
    return data[at : at + length], at + length


def _text(name: bytes | None) -> str:
    assert name is not None  # its length cannot be null
    return name.decode(errors="replace")
