"""Decode a log with the reference codecs: one format, or mixed magics. Byte 16 of each batch is its magic."""

import struct
from collections.abc import Callable

from tests.reference import v01, v23
from tests.reference.model import Batch, RefusedError
from tests.research.columnar import reference as columnar


def decode_by_magic(data: bytes, at: int) -> Batch:
    magic = data[at + 16]
    if magic > columnar.MAGIC:
        raise RefusedError(f"magic {magic}")
    if magic == columnar.MAGIC:
        return columnar.decode_one(data, at)
    return v01.decode_one(data, at) if magic < 2 else v23.decode_one(data, at)


def decode(data: bytes, decode_one: Callable[[bytes, int], Batch] = decode_by_magic) -> tuple[list[Batch], int]:
    """Return the batches of a log, and the number of bytes of an incomplete last batch."""
    batches = []
    at = 0
    while len(data) - at >= 17:
        (size,) = struct.unpack_from(">i", data, at + 8)
        if size < 14:
            raise RefusedError(f"size {size}")
        if size > len(data) - at - 12:
            break
        batches.append(decode_one(data, at))
        at += batches[-1].size_bytes
    return batches, len(data) - at
