"""Compression with Kafka's framing: gzip, snappy (xerial stream), lz4 (frame), zstd. One file per framing.

Sources: `Compression` and `CompressionType` in `org.apache.kafka.common`. Each codec uses the library that is fastest
at small batches (docs/adr/0002). gzip, lz4 and zstd write the same bytes as Kafka if the library's version is
Kafka's. snappy writes other bytes than snappy-java. Runs record `version`, because compressed bytes depend on it;
`make oracle` compares them with Kafka's. Decompression never allocates much past its limit, whatever the bytes claim.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.codecs.allowance import Allowance
from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Codec, Level, NoCodec, Stream, Undecodable
from kfbench.codecs.gzip_members import Gzip
from kfbench.codecs.lz4_frames import LegacyLz4, Lz4
from kfbench.codecs.xerial_snappy import Snappy
from kfbench.codecs.zstd_frames import Zstd
from kfbench.errors import IllegalCombination

CODECS: Final[Mapping[str, Codec]] = MappingProxyType(
    {codec.name: codec for codec in (NoCodec(), Gzip(), Snappy(), Lz4(), Zstd())}
)
CODEC_NAMES: Final = (*CODECS, "5", "6", "7")  # by the number in the attributes
LEGACY_LZ4: Final = LegacyLz4()


def codec_of(number: int) -> Codec:
    """Return the codec with this number in the attributes, 0 to 4."""
    return CODECS[CODEC_NAMES[number]]


def find(name: str, level: int | None = None) -> Codec:
    """Return the codec of this name. Raise IllegalCombination unless it exists and has this level."""
    if name not in CODECS:
        raise IllegalCombination(f"no codec {name!r} (codecs: {', '.join(CODECS)})")
    CODECS[name].check_level(level)
    return CODECS[name]


class Payloads(NamedTuple):
    """Payloads of n batches in one buffer: payload i is data[bounds[i]:bounds[i + 1]]. bounds: int64[n + 1]."""

    data: Bytes
    bounds: Int64


def join_payloads(parts: list[bytes]) -> Payloads:
    """Return the payloads one after another."""
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Payloads(np.frombuffer(b"".join(parts), np.uint8), bounds)


__all__ = [
    "CODECS",
    "CODEC_NAMES",
    "DEFAULT_LIMIT_BYTES",
    "LEGACY_LZ4",
    "Allowance",
    "Codec",
    "Gzip",
    "Level",
    "Payloads",
    "Stream",
    "Undecodable",
    "Zstd",
    "codec_of",
    "find",
    "join_payloads",
]
