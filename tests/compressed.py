"""Samples for codecs. Find compressed payloads, and decide if our compressed bytes must equal Kafka's."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import zstandard

from kfbench.codecs import Gzip, codec_names

REAL: Final = ("gzip", "snappy", "lz4", "zstd")
TEXT: Final = b"".join(b'{"user":%d,"page":"/item/%d"}' % (i % 97, i * i % 1009) for i in range(6000))
NOISE: Final = bytes((i * 2654435761 >> 13) & 0xFF for i in range(100_000))
"""The codecs that compress, and two inputs: text, which compresses, and noise, which does not."""
MOST_OFF: Final = {"gzip": 0.1, "lz4": 0.0, "zstd": 0.001, "snappy": 0.01}
"""How far our total may be from Kafka's, as a share of it, by codec. Of gzip it counts where zlib is not classic."""
HEADER_BYTES: Final = (26, 34, 61)  # bytes before the payload, by magic
LZ4_MID: Final = (1, 9)
"""lz4-java from this version on has lz4 1.10, which writes other bytes at levels 1 and 2. Our lz4 is 1.9."""


class Libraries(NamedTuple):
    """The versions of Kafka's compression libraries: zstd inside zstd-jni, and lz4-java."""

    zstd: tuple[int, ...]
    lz4_java: tuple[int, ...]


def is_exact(codec: str, kafkas: Libraries, level: int | None = None) -> bool:
    """Return True if our compressed bytes must equal Kafka's."""
    match codec:
        case "gzip":
            return Gzip().is_classic
        case "zstd":
            return kafkas.zstd == zstandard.ZSTD_VERSION
        case "lz4":
            return kafkas.lz4_java < LZ4_MID or level not in (1, 2)
    return codec == "none"


def payloads(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield magic, codec and compressed bytes per batch of v0, v1 or v2. Plain and empty batches are left out."""
    at = 0
    while at < len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        magic = data[at + 16]
        codec = codec_names()[data[at + 22 if magic == 2 else at + 17] & 7]
        payload = data[at + HEADER_BYTES[magic] : end]
        if codec != "none" and payload:
            yield magic, codec, payload
        at = end
