"""gzip, lz4 and one-shot zstd with a dictionary, to measure. They are no wire formats, and no log has them.

Each keeps the frame that Kafka writes. With a dictionary, its number and check stand in front, as in codec 5. The arm
"lean" has the frame of codec 5 without a dictionary: it shows what the frame saves alone.
"""

import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

import lz4.block
import zstandard

from kfbench.codecs.base import Codec
from kfbench.codecs.dictionary import Dictionary
from kfbench.codecs.gzip_members import Gzip
from kfbench.codecs.lz4_frames import Lz4
from kfbench.codecs.zstd_dictionary import LEAN, LeanFrames, ZstdDictionary
from kfbench.codecs.zstd_frames import Zstd

LEAN_ARM: Final = "lean"
DICTIONARY_ARMS: Final = ("stream", LEAN_ARM, "one-shot", "gzip", "lz4")
_PLAIN: Final[dict[str, Codec]] = {"stream": Zstd(), "gzip": Gzip(), "lz4": Lz4()}


class DictionaryArm(NamedTuple):
    """compress: from the plain bytes. decompress: from the compressed bytes and the number of plain bytes."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]
    version: str


def dictionary_arm(name: str, level: int | None, dictionary: Dictionary | None) -> DictionaryArm:
    """Return one of the DICTIONARY_ARMS. level: of zstd; gzip and lz4 use their default level.

    "lean" has no dictionary: with one, it would be "stream".
    """
    if name == "one-shot":
        return _one_shot(level or Zstd.default_level, dictionary)
    if name == LEAN_ARM:
        frames = LeanFrames(None, level or Zstd.default_level)
        return DictionaryArm(frames.compress, frames.decompress, frames.version)
    codec, level = _PLAIN[name], level if name == "stream" else None
    if dictionary is None or name == "stream":
        used = codec if dictionary is None else ZstdDictionary.of(dictionary)
        return DictionaryArm(lambda body: used.compress(body, level), used.decompress, codec.version)
    coder = _gzip if name == "gzip" else _lz4
    return coder(dictionary.head, dictionary.data, codec.version)


def _one_shot(level: int, dictionary: Dictionary | None) -> DictionaryArm:
    """zstd in one call, which knows the size and chooses parameters for it. Alone, the frame also has the size."""
    if dictionary is None:
        return DictionaryArm(
            zstandard.ZstdCompressor(level=level).compress,
            lambda payload, size: zstandard.ZstdDecompressor().decompress(payload, max_output_size=size + 1),
            Zstd().version,
        )
    wanted = zstandard.ZstdCompressionParameters(
        compression_level=level, format=LEAN, write_content_size=0, write_dict_id=0
    )
    compressor = zstandard.ZstdCompressor(compression_params=wanted, dict_data=dictionary.digest(level))
    decompressor = zstandard.ZstdDecompressor(dict_data=dictionary.digest(None), format=LEAN)
    head = dictionary.head
    return DictionaryArm(
        lambda body: head + compressor.compress(body),
        lambda payload, size: decompressor.decompress(payload[len(head) :], max_output_size=size + 1),
        Zstd().version,
    )


def _gzip(head: bytes, data: bytes, version: str) -> DictionaryArm:
    """gzip at its default level. It sees the last 32 KiB of the dictionary."""

    def compress(body: bytes) -> bytes:
        deflate = zlib.compressobj(Gzip.default_level, zlib.DEFLATED, -15, zdict=data)
        end = zlib.crc32(body).to_bytes(4, "little") + len(body).to_bytes(4, "little")
        return head + Gzip.HEADER + deflate.compress(body) + deflate.flush() + end

    def decompress(payload: bytes, size: int) -> bytes:
        inflate = zlib.decompressobj(-15, zdict=data)
        return inflate.decompress(payload[len(head) + len(Gzip.HEADER) : -8], size + 1)

    return DictionaryArm(compress, decompress, version)


def _lz4(head: bytes, data: bytes, version: str) -> DictionaryArm:
    """lz4's fast compressor, as Kafka uses by default. Each block of 64 KiB begins with the dictionary."""

    def compress(body: bytes) -> bytes:
        parts = [head, Lz4.HEADER]
        for start in range(0, len(body), Lz4.BLOCK_BYTES):
            plain = body[start : start + Lz4.BLOCK_BYTES]
            block = lz4.block.compress(plain, store_size=False, dict=data)
            is_smaller = len(block) < len(plain)
            size = len(block) if is_smaller else len(plain) | Lz4.STORED
            parts += [size.to_bytes(4, "little"), block if is_smaller else plain]
        return b"".join([*parts, bytes(4)])

    def decompress(payload: bytes, size: int) -> bytes:  # noqa: ARG001
        at, parts = len(head) + len(Lz4.HEADER), []
        while word := int.from_bytes(payload[at : at + 4], "little"):
            at, block_bytes = at + 4, word & ~Lz4.STORED
            block = payload[at : at + block_bytes]
            if not word & Lz4.STORED:
                block = lz4.block.decompress(block, uncompressed_size=Lz4.BLOCK_BYTES, dict=data)
            parts.append(block)
            at += block_bytes
        return b"".join(parts)

    return DictionaryArm(compress, decompress, version)
