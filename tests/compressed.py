"""Find compressed payloads. Decide if our compressed bytes must equal Kafka's."""

import struct
from collections.abc import Iterator
from typing import Final

import zstandard

from kfbench.codecs import CODEC_NAMES, Gzip

MOST_OFF: Final = {"gzip": 0.1, "lz4": 0.0, "zstd": 0.001, "snappy": 0.01}
"""How far our total may be from Kafka's, as a share of it, by codec. Of gzip it counts where zlib is not classic."""
HEADER_BYTES: Final = (26, 34, 61)  # bytes before the payload, by magic


def is_exact(codec: str, kafkas_zstd: tuple[int, ...]) -> bool:
    """Return True if our compressed bytes must equal Kafka's. `kafkas_zstd` is the version of Kafka's zstd library."""
    match codec:
        case "gzip":
            return Gzip().is_classic
        case "zstd":
            return kafkas_zstd == zstandard.ZSTD_VERSION
    return codec in ("none", "lz4")


def payloads(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Yield magic, codec and compressed bytes per batch of v0, v1 or v2. Plain and empty batches are left out."""
    at = 0
    while at < len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        magic = data[at + 16]
        codec = CODEC_NAMES[data[at + 22 if magic == 2 else at + 17] & 7]
        payload = data[at + HEADER_BYTES[magic] : end]
        if codec != "none" and payload:
            yield magic, codec, payload
        at = end
