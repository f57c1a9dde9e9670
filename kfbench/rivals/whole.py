"""Compress a container as a whole, with the codec that also compresses v2.

Containers compress each page or buffer alone. Small batches have many small pages, and their metadata stays
uncompressed. One compressed frame around all of them is smaller. The first four bytes of a frame identify the codec.
"""

from typing import Final

from kfbench.codecs import CODECS
from kfbench.rivals.base import zstd_level

_CODEC_OF_MAGIC: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


def compress(container: bytes, codec: str, level: int | None) -> bytes:
    return CODECS[codec].compress(container, zstd_level(codec, level))


def decompress(data: bytes) -> bytes:
    return CODECS[_CODEC_OF_MAGIC.get(data[:4], "none")].decompress(data)
