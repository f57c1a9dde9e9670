"""Variable-length integers of 7 bits per byte, lowest bits first: zig-zag (varint, varlong) and unsigned."""

import struct
from dataclasses import dataclass
from typing import Any, Self

from tests.reference.model import RefusedError, signed


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return unsigned(value * 2 if value >= 0 else -value * 2 - 1)


def read_unsigned(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Read an unsigned varint at byte `at`. Return its value and the byte position after it.

    Raise RefusedError if it has more bytes than `bits` bits need, or if it runs past the end.
    """
    value = shift = 0
    while True:
        if at >= len(data):
            raise RefusedError("varint runs past the end")
        if shift >= bits:
            raise RefusedError(f"varint of more than {-(-bits // 7)} bytes")
        group = data[at]
        at += 1
        value |= (group & 0x7F) << shift
        shift += 7
        if group < 0x80:
            return value & ((1 << bits) - 1), at


def read_zigzag(data: bytes, at: int, bits: int) -> tuple[int, int]:
    value, at = read_unsigned(data, at, bits)
    return signed((value >> 1) ^ -(value & 1), bits), at


@dataclass
class Reader:
    """Reads fields one after another from byte `at`. A read past the end raises RefusedError."""

    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise RefusedError(f"{size} bytes wanted, {len(self.data) - self.at} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def part(self, size: int) -> Self:
        """Skip the next `size` bytes and return a reader for only these bytes."""
        self.take(size)
        return type(self)(self.data[: self.at], self.at - size)

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def finish(self, what: str) -> None:
        """Raise RefusedError if bytes are left. what: the part that should end here."""
        if self.at != len(self.data):
            raise RefusedError(f"{len(self.data) - self.at} bytes after {what}")

    def unpack(self, layout: str) -> tuple[Any, ...]:
        """Read big-endian fields. layout: struct format without byte order."""
        return struct.unpack(f">{layout}", self.take(struct.calcsize(f">{layout}")))

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, bits: int = 32) -> int:
        value, self.at = read_unsigned(self.data, self.at, bits)
        return value

    def zigzag(self, bits: int = 64) -> int:
        value, self.at = read_zigzag(self.data, self.at, bits)
        return value
