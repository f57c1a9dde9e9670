"""Hypothesis strategies that draw logs for the compaction tests, in every format."""

import struct
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from kfbench.broker.compact import CompactResult
from kfbench.formats import FORMATS
from tests.common import reference_encode
from tests.reference.model import Batch, Fields, Message
from tests.reference.v23 import TAGGED_NAMES
from tests.strategies import NOW_MS, TAGGED_FIELDS

KEYS = st.sampled_from([None, b"", b"a", b"b", b"c", b"a key that is somewhat longer"])
VALUES = st.sampled_from([None, None, b"", b"1", b"v" * 70])
STEPS = st.sampled_from([1, 1, 1, 2, 70])
TIMES = st.sampled_from([-1, 0, 1000, 64_000, 8_192_000, -3_000])
PRODUCERS = st.sampled_from([None, 1, 2])
HORIZONS = st.sampled_from([None, None, None, NOW_MS - 1, NOW_MS, NOW_MS + 1])


@dataclass(frozen=True, kw_only=True)
class Written:
    messages: tuple[Message, ...]
    fields: Fields
    codec: str


@st.composite
def logs(draw: st.DrawFn, name: str, producers: bool = True) -> list[Written]:
    """Draw a log with batches of producers, transaction markers, and traces of earlier compactions.

    Each part is drawn only if the format can carry it.
    """
    can = FORMATS[name].capabilities
    offset, epochs, found = draw(st.sampled_from([0, 100, 2**40])), {1: 0, 2: 5}, []
    for _ in range(draw(st.integers(0, 9))):
        producer = draw(PRODUCERS) if producers and "producer_id" in can.batch_fields else None
        is_control = producer is not None and draw(st.integers(0, 2)) == 0
        given: dict[str, Any] = {}
        messages = []
        if is_control:
            kind, epoch = draw(st.sampled_from([0, 0, 1, 1, 2])), struct.pack(">hi", 0, 1)
            messages.append(Message(offset=offset, timestamp_ms=NOW_MS, key=struct.pack(">hh", 0, kind), value=epoch))
        else:
            for _ in range(draw(st.integers(1, 4))):
                headers = (("h", b"1"),) if can.headers and draw(st.booleans()) else ()
                stamp = -1
                if can.timestamps:
                    stamp = (
                        max(NOW_MS + draw(TIMES), -1) if draw(st.booleans()) else draw(st.sampled_from([-1, NOW_MS]))
                    )
                messages.append(
                    Message(offset=offset, timestamp_ms=stamp, key=draw(KEYS), value=draw(VALUES), headers=headers)
                )
                offset += draw(STEPS)
            offset = messages[-1].offset
        if producer is not None:
            epochs[producer] += draw(st.sampled_from([0, 0, 0, 1]))
            given |= {"producer_id": producer, "producer_epoch": epochs[producer], "is_control": is_control}
            given |= {"base_sequence": -1 if is_control else 7, "is_transactional": is_control or draw(st.booleans())}
        if "last_offset" in can.batch_fields and can.empty_batches:
            offset += draw(st.sampled_from([0, 0, 3]))
            given |= {"base_offset": messages[0].offset, "last_offset": offset}
            if draw(st.integers(0, 5)) == 0:
                messages, given["base_timestamp_ms"] = [], -1
        if "delete_horizon_ms" in can.batch_fields and messages:
            given["delete_horizon_ms"] = draw(HORIZONS)
        if "append_time_ms" in can.batch_fields and draw(st.integers(0, 3)) == 0:
            given["append_time_ms"] = NOW_MS + 5
            if name in TAGGED_NAMES:
                given["timestamp_type"] = draw(st.sampled_from([0, 1]))
        if "tagged_fields" in can.batch_fields:
            given["tagged_fields"] = draw(TAGGED_FIELDS)
        codec = draw(st.sampled_from(["none", "none", "gzip"])) if messages else "none"
        found.append(Written(messages=tuple(messages), fields=Fields(**given), codec=codec))
        offset += draw(STEPS)
    return found


def encoded(name: str, log: list[Written]) -> bytes:
    return b"".join(reference_encode(name, batch.messages, batch.fields, batch.codec) for batch in log)


def pieces(done: CompactResult) -> list[bytes]:
    data = bytes(done.data)
    return [data[start:end] for start, end in zip(done.positions[:-1], done.positions[1:], strict=True)]


def unlocated(batch: Batch) -> Batch:
    return replace(batch, position=0, size_bytes=0, crc=0)


def batch_of(*messages: tuple[int, bytes | None, bytes | None], codec: str = "none", **fields: Any) -> Written:
    made = tuple(
        Message(offset=offset, timestamp_ms=NOW_MS + offset, key=key, value=value) for offset, key, value in messages
    )
    return Written(messages=made, fields=Fields(**fields), codec=codec)


def marker(offset: int, kind: int, **fields: Any) -> Written:
    """Return a control batch that aborts (kind 0) or commits (kind 1) a transaction."""
    message = Message(offset=offset, timestamp_ms=NOW_MS, key=struct.pack(">hh", 0, kind), value=bytes(6))
    return Written(messages=(message,), fields=Fields(is_transactional=True, is_control=True, **fields), codec="none")
