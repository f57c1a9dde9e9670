"""Logs that several tests of broker paths use."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, Records
from kfbench.arrays import Bytes
from kfbench.batches import BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.source import headers
from kfbench.errors import Refused
from kfbench.formats import Format
from kfbench.layouts import FIXED_HEADER_BIT, TAGGED_BIT
from kfbench.log.writing import chained
from tests.common import MESSAGES, ON_BROKERS, records_of
from tests.reference.model import Message
from tests.strategies import NOW_MS

NAMES = list(ON_BROKERS)
SEALED = [name for name in NAMES if name not in MESSAGES]
# In these formats the maximum timestamp is a varlong and no tag stores the append time.
VARIABLE = [
    name for name, fmt in ON_BROKERS.items() if fmt.magic == 3 and not fmt.features & (FIXED_HEADER_BIT | TAGGED_BIT)
]
FIXED = [name for name in SEALED if name not in VARIABLE]
LATER_MS = NOW_MS + 10**9
COMPRESSED = [(name, codec) for name, fmt in ON_BROKERS.items() for codec in fmt.capabilities.codecs if codec != "none"]


def records(count: int, value: int = 5, per_batch: int = 5, key: bytes | None = b"key") -> Records:
    """Return records with timestamps in whole seconds. Offsets start at 0 in every batch."""
    first_ms = NOW_MS // 1000 * 1000
    return records_of(
        [
            Message(offset=i % per_batch, timestamp_ms=first_ms + 1000 * i, key=key, value=bytes([i % 251]) * value)
            for i in range(count)
        ]
    )


def encoded(name: str, codec: str = "none", count: int = 10, value: int = 5, **fields: Any) -> EncodedLog:
    fmt = FORMATS[name]
    return fmt.encode(records(count, value), 5, codec, batch_fields=BatchFields(**fields), lossy=name == "v0")


def joined(*logs: EncodedLog) -> EncodedLog:
    return EncodedLog(
        data=np.concatenate([log.data for log in logs]), positions=chained([log.positions for log in logs])
    )


def refused(log: Any, fmt: str, error: str, promise: str, position: int = 0, **options: Any) -> None:
    with pytest.raises(Refused, match=promise) as refusal:
        append(log, fmt, **options)
    assert (refusal.value.error, refusal.value.position) == (error, position)


def steady(keys: Sequence[bytes | None] | None = None, count: int = 1000) -> Records:
    """Return records with 100 random bytes each and one timestamp per second."""
    noise = np.random.default_rng(3).integers(97, 110, (count, 100), np.uint8)
    stamps = NOW_MS + 1000 * np.arange(count)
    return Records.from_lists([row.tobytes() for row in noise], keys=keys, timestamps_ms=stamps)


def poisoned(log: EncodedLog, fmt: Format, sound_position: int = -1) -> Bytes:
    """Return the log with damage behind each header, except in the batch at `sound_position`."""
    broken = log.data.copy()
    for row in headers(log.data, fmt):
        if row["position"] != sound_position:
            broken[row["position"] + row["header_bytes"] : row["position"] + row["size_bytes"]] ^= 0xFF
    return broken
