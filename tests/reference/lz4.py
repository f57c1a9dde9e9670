"""lz4 frames as Kafka writes them: independent blocks, no content checksum, a wrong header checksum in v0."""

import struct
from dataclasses import dataclass

import cramjam
from xxhash import xxh32_intdigest as xxh32

from tests.reference.model import RefusedError

MAGIC = bytes.fromhex("04224d18")
STORED = 1 << 31


def header_checksum(descriptor: bytes, magic: int) -> int:
    """Return the header checksum: the second byte of xxHash32 over the frame descriptor.

    For magic 0, Kafka's hash also covers the frame magic.
    """
    return xxh32((MAGIC if magic == 0 else b"") + descriptor) >> 8 & 0xFF


def compress(data: bytes, magic: int = 2) -> bytes:
    """Return a valid lz4 frame that stores the data uncompressed, in blocks of 64 KiB."""
    descriptor = bytes([0x60, 0x40])
    out = MAGIC + descriptor + bytes([header_checksum(descriptor, magic)])
    for at in range(0, len(data), 65536):
        block = data[at : at + 65536]
        out += struct.pack("<I", len(block) | STORED) + block
    return out + struct.pack("<I", 0)


@dataclass(frozen=True, kw_only=True)
class Frame:
    data: bytes
    block_independent: bool
    has_content_checksum: bool
    block_max_bytes: int
    block_bytes: list[int]
    header_checksum: int
    descriptor: bytes


def read_frame(data: bytes) -> Frame:
    """Return the content of the first frame. As in Kafka's reader, later bytes are ignored."""
    if data[:4] != MAGIC or len(data) < 7:
        raise RefusedError("no lz4 frame")
    flags, block_max_bytes, at = data[4], 1 << 8 + 2 * (data[5] >> 4 & 7), 6
    if flags >> 6 != 1 or flags & 0b1:
        raise RefusedError(f"lz4 flags {flags:#04x}")
    if flags & 0b1000:
        at += 8
    descriptor = data[4:at]
    checksum = data[at]
    at += 1
    blocks, plain = list[bytes](), bytearray(block_max_bytes)
    while True:
        if len(data) - at < 4:
            raise RefusedError("lz4 frame without an end mark")
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
        if not size:
            break
        length = size & ~STORED
        if length > len(data) - at:
            raise RefusedError(f"lz4 block of {length} bytes")
        block = data[at : at + length]
        at += length
        if flags & 0b10000:
            if struct.unpack_from("<I", data, at)[0] != xxh32(block):
                raise RefusedError("lz4 block checksum")
            at += 4
        if not size & STORED:
            try:
                size = cramjam.lz4.decompress_block_into(block, plain, output_len=block_max_bytes)
            except cramjam.DecompressionError as error:
                raise RefusedError(f"lz4 block: {error}") from None
            block = bytes(plain[:size])
        blocks.append(block)
    content = b"".join(blocks)
    if flags & 0b100 and struct.unpack_from("<I", data, at)[0] != xxh32(content):
        raise RefusedError("lz4 content checksum")
    return Frame(
        data=content, block_independent=bool(flags & 0b100000), has_content_checksum=bool(flags & 0b100),
        block_max_bytes=block_max_bytes, block_bytes=[len(block) for block in blocks],
        header_checksum=checksum, descriptor=descriptor,
    )  # fmt: skip


def decompress(data: bytes, magic: int) -> bytes:
    frame = read_frame(data)
    if not frame.block_independent:
        raise RefusedError("lz4 blocks that depend on one another")
    if magic > 0 and frame.header_checksum != header_checksum(frame.descriptor, magic):
        raise RefusedError("lz4 header checksum")
    return frame.data
