"""Valid and damaged batches of the columnar format, for the broker tests."""

import struct
from typing import Any

import numpy as np

from kfbench import FORMATS, BatchFields
from kfbench.batches import EncodedLog
from tests.common import records_of
from tests.formats.fuzz import sealed
from tests.reference.model import Fields, Message
from tests.research.columnar import reference as columnar
from tests.strategies import NOW_MS

COLUMNAR = FORMATS["columnar"]
CODECS = [name for name in COLUMNAR.capabilities.codecs if name != "none"]
LATER_MS = NOW_MS + 10**9
ANCHOR_MS = NOW_MS + 4
ATTRIBUTES, FIXED = 21, 29


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
    batch[ATTRIBUTES] |= columnar.AGES >> 8
    batch[23:29] = struct.pack(">q", max_timestamp_ms)[2:]
    assert batch[FIXED] == 1  # the number of records
    return sealed(bytes(batch[: FIXED + 1]) + bytes([4 << 1]) + bytes(batch[FIXED + 1 :]))


def changed(before: Any, after: Any) -> set[int]:
    return set(np.flatnonzero(np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)).tolist())
