"""Compress and decompress with Kafka's framing, by other libraries than kfbench uses."""

import gzip
import struct
import zlib

import cramjam
import pyarrow as pa

from tests.reference import dictionaries, lz4
from tests.reference.model import RefusedError
from tests.reference.varint import read_unsigned, unsigned

XERIAL_MAGIC = b"\x82SNAPPY\x00"  # of the stream format of snappy-java, in which Kafka wraps raw snappy blocks
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version of the stream, and oldest version that can read it
XERIAL_BLOCK_BYTES = 32 * 1024


def compress(codec: str, data: bytes, magic: int) -> bytes:
    match codec:
        case "none":
            return data
        case "gzip":
            return gzip.compress(data, mtime=0)
        case "snappy":
            starts = range(0, len(data), XERIAL_BLOCK_BYTES)
            blocks = [snappy_of_literals(data[at : at + XERIAL_BLOCK_BYTES]) for at in starts]
            return XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        case "lz4":
            return lz4.compress(data, magic)
        case "zstd" if magic > 1:
            return bytes(cramjam.zstd.compress(data))
    raise RefusedError(f"{codec} in magic {magic}")


def decompress(codec: str, data: bytes, magic: int) -> bytes:
    try:
        match codec:
            case "none":
                return data
            case "gzip":
                return gzip.decompress(data)
            case "snappy":
                return b"".join(xerial_blocks(data) if data.startswith(XERIAL_MAGIC) else [_raw_block(data)])
            case "lz4":
                return lz4.decompress(data, magic)
            case "zstd" if magic > 1:
                return bytes(cramjam.zstd.decompress(data))
            case "zstd-dictionary" if magic > 1:
                return dictionaries.decompress(data, dictionaries.known)
    except (
        EOFError,
        OSError,
        zlib.error,
        pa.ArrowInvalid,
        IndexError,
        struct.error,
        cramjam.DecompressionError,
    ) as error:
        raise RefusedError(f"{codec}: {error}") from None
    raise RefusedError(f"{codec} in magic {magic}")


def snappy_of_literals(data: bytes) -> bytes:
    """Return a valid raw block that contains only literals (uncompressed bytes). No library writes blocks this way."""
    out = unsigned(len(data))
    for at in range(0, len(data), 65536):
        piece = data[at : at + 65536]
        size = len(piece) - 1
        out += bytes([size << 2]) if size < 60 else b"\xf4" + struct.pack("<H", size)
        out += piece
    return out


def _raw_block(data: bytes) -> bytes:
    size, _ = read_unsigned(data, 0, 32)
    if size > 64 * len(data):  # a copy of 64 bytes takes 3
        raise RefusedError(f"{len(data)} bytes that announce {size}")
    return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))


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
        blocks.append(_raw_block(data[at : at + length]))
        at += length
    return blocks
