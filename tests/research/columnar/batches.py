"""Batches and constants that the tests of the columnar format share."""

import struct

from kfbench import FORMATS, Records
from kfbench.arrays import Int64, as_bytes
from kfbench.formats import Entries
from tests.formats.fuzz import sealed
from tests.reference.model import Message
from tests.strategies import NOW_MS

COLUMNAR = FORMATS["columnar"]
CODECS = ["gzip", "snappy", "lz4", "zstd"]
CRC_AT, ATTRIBUTES_AT, MAX_TIME_AT, COUNT_AT = 17, 21, 23, 29

HEADED = [
    Message(
        offset=i,
        timestamp_ms=NOW_MS + i * i,
        key=b"k" * (i % 3),
        value=b"v" * 7 * i,
        headers=(
            ("same", b"x"),
            ("plain", b"p" * (9 * i % 7)),
            ("null", None if i % 2 else b"n" * i),
            ("few", (b"accepted" * 4, b"refused" * 4)[i % 2]),
            ("id", b"%08x-%08x" % (i * 2654435761 % 2**32, i * 40503)),
        ),
    )
    for i in range(6)
]


def positions_of(log: bytes) -> Int64:
    return Entries.of(as_bytes("log", log)).positions


def batch_of(bits: int, body: str, count: str = "02") -> bytes:
    """Return a columnar batch with a valid length and CRC.

    bits: the attribute bits. count, body: the record count and the bytes after it, in hexadecimal.
    """
    return sealed(bytes(16) + b"\x05" + bytes(4) + struct.pack(">H", bits) + bytes(6) + bytes.fromhex(count + body))


def with_headers(values: list[bytes | None]) -> Records:
    return Records.from_lists([b""] * len(values), headers=[[("h", value)] for value in values])
