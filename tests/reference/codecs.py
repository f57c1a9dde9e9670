"""Compress and decompress with Kafka's framing, by other libraries than kfbench uses."""

import gzip
import struct
import zlib

import cramjam

from tests.reference import dictionaries, lz4, snappy
from tests.reference.model import RefusedError


def compress(codec: str, data: bytes, magic: int) -> bytes:
    match codec:
        case "none":
            return data
        case "gzip":
            return gzip.compress(data, mtime=0)
        case "snappy":
            return snappy.compress_xerial(data)
        case "lz4":
            return lz4.compress(data, magic)
        case "zstd" if magic > 1:
            return bytes(cramjam.zstd.compress(data))
    raise RefusedError(f"{codec} in magic {magic}")


def decompress(codec: str, data: bytes, magic: int) -> bytes:
    match codec:
        case "none":
            return data
        case "gzip":
            try:
                return gzip.decompress(data)
            except (EOFError, OSError, zlib.error) as error:
                raise RefusedError(f"gzip: {error}") from None
        case "snappy" | "lz4":
            try:
                return snappy.decompress(data) if codec == "snappy" else lz4.decompress(data, magic)
            except (IndexError, struct.error) as error:
                raise RefusedError(f"{codec}: cut short: {error}") from None
        case "zstd" if magic > 1:
            try:
                return bytes(cramjam.zstd.decompress(data))
            except cramjam.DecompressionError as error:
                raise RefusedError(f"zstd: {error}") from None
        case "zstd-dictionary" if magic > 1:
            return dictionaries.decompress(data, dictionaries.known)
    raise RefusedError(f"{codec} in magic {magic}")
