"""Raw snappy blocks, and the stream format of xerial (snappy-java) in which Kafka wraps them."""

import struct

from tests.reference.model import RefusedError
from tests.reference.varint import read_unsigned, unsigned

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version of the stream, and oldest version that can read it
XERIAL_BLOCK_BYTES = 32 * 1024


def compress_raw(data: bytes) -> bytes:
    """Return a valid raw block that contains only literals (uncompressed bytes). No library writes blocks this way."""
    out = unsigned(len(data))
    for at in range(0, len(data), 65536):
        piece = data[at : at + 65536]
        size = len(piece) - 1
        out += bytes([size << 2]) if size < 60 else b"\xf4" + struct.pack("<H", size)
        out += piece
    return out


def decompress_raw(data: bytes) -> bytes:
    expected, at = read_unsigned(data, 0, 32)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at : at + extra], "little")
                at += extra
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, distance = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, distance = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little")
            at += width
        if not 0 < distance <= len(out):
            raise RefusedError(f"copy from {distance} bytes back at {len(out)}")
        for _ in range(length):
            out.append(out[-distance])
    if len(out) != expected:
        raise RefusedError(f"{len(out)} bytes where {expected} were announced")
    return bytes(out)


def compress_xerial(data: bytes) -> bytes:
    out = XERIAL_HEADER
    for at in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = compress_raw(data[at : at + XERIAL_BLOCK_BYTES])
        out += struct.pack(">i", len(block)) + block
    return out


def xerial_blocks(data: bytes) -> list[bytes]:
    """Return the decompressed blocks of a xerial stream."""
    if not data.startswith(XERIAL_MAGIC) or len(data) < len(XERIAL_HEADER):
        raise RefusedError("no xerial header")
    at = len(XERIAL_HEADER)
    blocks = []
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if length < 0 or length > len(data) - at:
            raise RefusedError(f"xerial block of {length} bytes")
        blocks.append(decompress_raw(data[at : at + length]))
        at += length
    return blocks


def decompress(data: bytes) -> bytes:
    """Decompress a xerial stream, or a single raw block."""
    return b"".join(xerial_blocks(data)) if data.startswith(XERIAL_MAGIC) else decompress_raw(data)
