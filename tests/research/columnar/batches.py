"""Batches and constants that the tests of the columnar format share."""

import struct
from typing import Any

from kfbench import FORMATS, BatchFields, Records
from kfbench.arrays import Int64, as_bytes
from kfbench.batches import EncodedLog
from kfbench.formats import Entries
from tests.common import records_of
from tests.formats.fuzz import sealed
from tests.reference.model import Fields, Message
from tests.research.columnar import reference as columnar
from tests.strategies import NOW_MS

COLUMNAR = FORMATS["columnar"]
CODECS = [name for name in COLUMNAR.capabilities.codecs if name != "none"]
CRC_AT, ATTRIBUTES_AT, MAX_TIME_AT, COUNT_AT = 17, 21, 23, 29
LATER_MS = NOW_MS + 10**9
ANCHOR_MS = NOW_MS + 4

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


def messages(count: int = 5) -> list[Message]:
    return [
        Message(
            offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % (i % 3), value=b"value %d" % i, headers=(("h", b"%d" % i),)
        )
        for i in range(count)
    ]


def encoded(codec: str = "none", count: int = 5, **fields: Any) -> EncodedLog:
    return COLUMNAR.encode(records_of(messages(count)), count, codec, batch_fields=BatchFields(**fields))


def with_payload(payload: bytes, codec: str = "none", **fields: Any) -> bytes:
    """Return a columnar batch with the header and columns of `messages()` around the given payload bytes."""
    return columnar.batch(messages(), Fields(**fields), codec, payload)


def aged(max_timestamp_ms: int) -> bytes:
    """Return a batch of one record whose timestamp is 4 ms before `max_timestamp_ms`.

    The batch has no anchor (a stored create-time maximum). No encoder writes this combination.
    """
    batch = bytearray(columnar.encode(messages(1)))
    batch[ATTRIBUTES_AT] |= columnar.AGES >> 8
    batch[MAX_TIME_AT:COUNT_AT] = struct.pack(">q", max_timestamp_ms)[2:]
    assert batch[COUNT_AT] == 1  # the number of records
    return sealed(bytes(batch[: COUNT_AT + 1]) + bytes([4 << 1]) + bytes(batch[COUNT_AT + 1 :]))
