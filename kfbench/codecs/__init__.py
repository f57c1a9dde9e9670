"""Compression with the framing that Kafka uses: gzip, snappy (xerial stream), lz4 (frame), zstd. One file per codec.

Sources: `Compression` and `CompressionType` in `org.apache.kafka.common`. Each codec uses the library that is fastest
at small batches (docs/adr/0002). gzip, lz4 and zstd write the same bytes as Kafka if the library's version is Kafka's.
snappy writes other bytes than snappy-java. Compressed bytes depend on the library's version, so benchmark runs record
it. `make oracle` compares the bytes with Kafka's. Decompression never allocates much more than its limit, whatever the
bytes claim.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.codecs.allowance import Allowance
from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Codec, Level, NoCodec, Stream, Undecodable
from kfbench.codecs.dictionary import Dictionary, TrainedOn
from kfbench.codecs.gzip_members import Gzip
from kfbench.codecs.lz4_frames import LegacyLz4, Lz4
from kfbench.codecs.xerial_snappy import Snappy
from kfbench.codecs.zstd_dictionary import UnknownDictionary, ZstdDictionary, dictionary_number
from kfbench.codecs.zstd_frames import Zstd
from kfbench.errors import IllegalCombination
from kfbench.plugins import OURS, PluginClash, Registry

CODECS: Final[Registry[Codec]] = Registry(
    "codecs", "CODECS", Codec, lambda: (NoCodec(), Gzip(), Snappy(), Lz4(), Zstd())
)
FREE_NUMBERS: Final = (6, 7)  # in the attributes of a batch; Kafka has codecs 0 to 4, and 5 is zstd with a dictionary


@cache
def codec_names() -> tuple[str, ...]:
    """Return the names of codecs: item i is that of number i in the attributes of a batch.

    Raises PluginClash if a plug-in's codec has the number of another one.
    """
    found = {ZstdDictionary.id: ZstdDictionary.name}
    for codec in CODECS.values():
        package, holder = CODECS.package(codec.name), found.setdefault(codec.id, codec.name)
        if holder != codec.name or (package != OURS and codec.id not in FREE_NUMBERS):
            owner = OURS if holder in (codec.name, ZstdDictionary.name) else CODECS.package(holder)
            raise PluginClash(
                f"{codec.name} of {package}: number {codec.id} is {owner}'s; free ones are {FREE_NUMBERS}"
            )
    return tuple(found.get(number, str(number)) for number in range(max(FREE_NUMBERS) + 1))


def rebuilt_as() -> tuple[str, ...]:
    """Return with which codec a broker writes a batch again, by number: zstd loses its dictionary."""
    return tuple("zstd" if each == ZstdDictionary.name else each for each in codec_names())


LEGACY_LZ4: Final = LegacyLz4()


def codec_of(number: int) -> Codec:
    """Return the codec with this number in a batch's attributes. Raises KeyError if there is none."""
    return CODECS[codec_names()[number]]


def find(name: str, level: int | None = None) -> Codec:
    """Return the codec with this name.

    Raise IllegalCombination if there is no such codec, or it does not have this level.
    """
    codec = CODECS.get(name)
    if codec is None:
        raise IllegalCombination(f"no codec {name!r} (codecs: {', '.join(CODECS)})")
    codec.check_level(level)
    return codec


@contextmanager
def new_contexts() -> Iterator[None]:
    """Within the `with` body, let formats compress and decompress each batch with a new context, as Kafka's clients do.

    v0's lz4 frames are the exception: LEGACY_LZ4 stays as it is.
    """
    with CODECS.replacing([codec.with_new_contexts() for codec in CODECS.values()]):
        yield


class Payloads(NamedTuple):
    """n compressed payloads in one buffer: payload i is data[bounds[i]:bounds[i + 1]]. bounds: int64[n + 1]."""

    data: Bytes
    bounds: Int64


def join_payloads(parts: list[bytes]) -> Payloads:
    """Concatenate payloads into one buffer."""
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return Payloads(np.frombuffer(b"".join(parts), np.uint8), bounds)


__all__ = [
    "CODECS",
    "DEFAULT_LIMIT_BYTES",
    "LEGACY_LZ4",
    "Allowance",
    "Codec",
    "Dictionary",
    "Gzip",
    "Level",
    "Payloads",
    "Stream",
    "TrainedOn",
    "Undecodable",
    "UnknownDictionary",
    "Zstd",
    "ZstdDictionary",
    "codec_names",
    "codec_of",
    "dictionary_number",
    "find",
    "join_payloads",
    "new_contexts",
    "rebuilt_as",
]
