"""Generated batches at the limits of v0, v1 and v2, each as our messages and as a spec for Kafka's writer.

They are drawn from a seed, faster than by hypothesis, and are the same on every machine. If a chunk of batches fails,
the judge tests each batch alone.
"""

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.reference.model import Fields, Message
from tests.strategies import (
    BOUNDARY_LENGTHS,
    DELTA_STEPS,
    HOLE_STEPS,
    INT16,
    INT32,
    INT64,
    LONG_LENGTHS,
    NOW_MS,
    Case,
)

MAGICS = {"v0": 0, "v1": 1, "v2": 2}
LEVELS: dict[str, range] = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-7, 23)}
HEADER_KEYS = ("", "a", "trace", "trace", "größe", "ключ-鍵-🔑-é", "h" * 63, "h" * 64)
MARKERS, KRAFT_TYPES = (0, 1), (2, 3, 4, 5, 6)
BIG_BYTES = 70_000  # over two blocks of snappy's framing, and over one of lz4's
APPEND_TIME = NOW_MS + 123_457  # no record has this time, which would set a bit in inner messages of v1


@dataclass(frozen=True, kw_only=True)
class BatchChunk:
    """Batches in one format, codec and level.

    kafka: per batch the spec for Kafka's writer, or None if Kafka cannot write the batch.
    """

    name: str
    codec: str
    level: int | None
    case: Case
    kafka: tuple[dict[str, Any] | None, ...]

    def __len__(self) -> int:
        return len(self.kafka)

    def part(self, chosen: Sequence[int]) -> "BatchChunk":
        """Return a chunk with only the batches of these indexes."""
        case = Case(
            batches=tuple(self.case.batches[i] for i in chosen), fields=tuple(self.case.fields[i] for i in chosen)
        )
        return replace(self, case=case, kafka=tuple(self.kafka[i] for i in chosen))


def chunks(name: str, codec: str, seed: int, batches: int, size: int = 40) -> Iterator[BatchChunk]:
    for number in range(-(-batches // size)):
        draw = random.Random(f"{name} {codec} {seed} {number}")
        level = draw.choice(LEVELS[codec]) if codec in LEVELS and draw.random() < 0.5 else None
        drawn = [_batch(draw, name, codec != "none") for _ in range(min(size, batches - number * size))]
        case = Case(batches=tuple(messages for messages, *_ in drawn), fields=tuple(fields for _, fields, _ in drawn))
        asked = tuple(
            spec and spec | {"compression": codec} | ({} if level is None else {"level": level}) for *_, spec in drawn
        )
        yield BatchChunk(name=name, codec=codec, level=level, case=case, kafka=asked)


Drawn = tuple[tuple[Message, ...], Fields, dict[str, Any] | None]


def _batch(draw: random.Random, name: str, compressed: bool) -> Drawn:
    magic = MAGICS[name]
    first = draw.choice([0, 1, 100, INT32, 2**40, INT64 - 2**31, draw.randrange(2**62)])
    if magic == 2:
        kind = draw.choices([_records, _control, _empty, _odd], [70, 12, 10, 8])[0]
        return kind(draw, first)
    messages = _messages(draw, magic, first)
    return _legacy(draw, magic, messages, compressed)


def _payload(draw: random.Random, lengths: Sequence[int]) -> bytes | None:
    shape = draw.random()
    if shape < 0.12:
        return None
    length = draw.choice(lengths) if shape < 0.6 else draw.randrange(24)
    if draw.random() < 0.3:
        return draw.randbytes(length)  # random bytes do not compress
    return (draw.randbytes(draw.randrange(1, 8)) * length)[:length]


def _headers(draw: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    count = draw.choice([1, 1, 2, 3, 64]) if draw.random() < 0.1 else draw.randrange(4)
    return tuple((draw.choice(HEADER_KEYS), _payload(draw, (0, 1, 63, 64))) for _ in range(count))


def _timestamp(draw: random.Random) -> int:
    return draw.choice([-1, 0, 1, NOW_MS, INT64, draw.randrange(2**45)])


def _messages(draw: random.Random, magic: int, offset: int) -> tuple[Message, ...]:
    count = draw.choice([1, 1, 2, 3, 5, 8, draw.randrange(1, 40)])
    lengths = BOUNDARY_LENGTHS + (LONG_LENGTHS if draw.random() < 0.05 else ())
    if draw.random() < 0.01:
        count, lengths = 2, (BIG_BYTES,)
    base, extreme = _timestamp(draw), draw.random() < 0.2
    steady, with_headers = draw.random() < 0.5, magic == 2 and draw.random() < 0.5
    messages = []
    for _ in range(count):
        near = min(max(base + draw.choice(DELTA_STEPS), -1), INT64)
        messages.append(
            Message(
                offset=offset,
                timestamp_ms=-1 if magic == 0 else _timestamp(draw) if extreme else near,
                key=_payload(draw, lengths),
                value=_payload(draw, lengths),
                headers=_headers(draw) if with_headers else (),
            )
        )
        offset += 1 if steady else draw.choice(HOLE_STEPS)
    return tuple(messages)


def _producer(draw: random.Random) -> dict[str, Any]:
    """Draw producer fields: none, an idempotent producer, or a transactional one.

    Kafka's writer refuses other combinations.
    """
    kind = draw.randrange(3)
    if kind == 0:
        return {}
    return {
        "producer_id": draw.choice([0, 4711, INT64]),
        "producer_epoch": draw.choice([0, 3, INT16]),
        "base_sequence": draw.choice([0, 100, INT32 - 1, INT32]),
        "is_transactional": kind == 2,
    }


def _range(draw: random.Random, first: int, last: int) -> dict[str, Any]:
    """Draw the offset range of a batch whose first and last records were compacted away."""
    given = {}
    if draw.random() < 0.3:
        given["base_offset"] = max(first - draw.randrange(100), 0)
    if draw.random() < 0.3:
        given["last_offset"] = min(last + draw.randrange(100), INT64)
    return given


KAFKAS_NAMES = {
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "base_sequence": "baseSequence",
    "is_transactional": "transactional",
    "is_control": "control",
    "delete_horizon_ms": "deleteHorizonMs",
    "partition_leader_epoch": "partitionLeaderEpoch",
    "base_offset": "baseOffset",
    "last_offset": "lastOffset",
    "append_time_ms": "appendTime",
}


def _spec(magic: int, messages: Sequence[Message], given: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"magic": magic} | {KAFKAS_NAMES[name]: value for name, value in given.items()}
    if "append_time_ms" in given:
        spec["timestampType"] = "LOG_APPEND_TIME"
    if messages:
        spec.setdefault("baseOffset", messages[0].offset)
    return spec | {"records": [record_spec(message) for message in messages]}


def record_spec(message: Message) -> dict[str, Any]:
    def hexed(content: bytes | None) -> str | None:
        return None if content is None else content.hex()

    return {
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
        "key": hexed(message.key),
        "value": hexed(message.value),
        "headers": [[name, hexed(content)] for name, content in message.headers],
    }


def _records(draw: random.Random, first: int) -> Drawn:
    messages = _messages(draw, 2, first)
    given = _producer(draw) | _range(draw, messages[0].offset, messages[-1].offset)
    given["partition_leader_epoch"] = draw.choice([-1, 0, 7, INT32])
    stamp = {}
    match draw.randrange(6):
        case 0:
            given["append_time_ms"] = draw.choice([0, NOW_MS, INT64])
        case 1:
            given["delete_horizon_ms"] = draw.choice([0, NOW_MS + 86_400_000, INT64])
        case 2:  # the leader overwrites the maximum timestamp of the batch
            stamp = {"maxTimestamp": draw.choice([0, NOW_MS, INT64]), "timestampType": "CREATE_TIME"}
    spec = _spec(2, messages, given)
    if stamp:
        given["max_timestamp_ms"], spec["stamp"] = stamp["maxTimestamp"], stamp
    return messages, Fields(**given), spec


def _control(draw: random.Random, first: int) -> Drawn:
    messages = []
    for i in range(draw.choice([1, 1, 1, 2])):
        kind = draw.choice(MARKERS + KRAFT_TYPES)
        value = _payload(draw, (0, 5, 64))
        if kind in MARKERS:
            value = struct.pack(">hi", draw.choice([0, 1, INT16]), draw.choice([-1, 0, 15, INT32])) + (value or b"")
        messages.append(
            Message(
                offset=first + i,
                timestamp_ms=_timestamp(draw),
                key=struct.pack(">hh", draw.choice([0, 1, INT16]), kind) + draw.randbytes(draw.choice([0, 0, 3])),
                value=value,
                headers=_headers(draw) if draw.random() < 0.1 else (),
            )
        )
    given: dict[str, Any] = {"is_control": True, "partition_leader_epoch": draw.choice([-1, 4])}
    if draw.random() < 0.7:
        given |= {"producer_id": 4711, "producer_epoch": draw.choice([0, INT16])}
        given["is_transactional"] = draw.random() < 0.8
    if draw.random() < 0.2:
        given["delete_horizon_ms"] = NOW_MS + 1
    return tuple(messages), Fields(**given), _spec(2, messages, given)


def _empty(draw: random.Random, first: int) -> Drawn:
    given = _producer(draw) | {
        "base_offset": first,
        "last_offset": first + draw.choice([0, 1, 100, 2**31 - 1]),
        "partition_leader_epoch": draw.choice([-1, 0, INT32]),
        "is_control": draw.random() < 0.2,
    }
    spec = _spec(2, (), given) | {"kind": "empty"}
    match draw.randrange(3):
        case 0:
            given["append_time_ms"] = NOW_MS
            spec |= {"timestamp": NOW_MS, "timestampType": "LOG_APPEND_TIME"}
        case 1:
            spec["timestamp"] = given["max_timestamp_ms"] = draw.choice([0, NOW_MS, INT64])
    return (), Fields(**given), spec


def _odd(draw: random.Random, first: int) -> Drawn:
    """Draw a batch that the format can store but Kafka's writer cannot write."""
    messages = _messages(draw, 2, first) if draw.random() < 0.8 else ()
    last = messages[-1].offset if messages else first
    fields = Fields(
        producer_id=draw.choice([-1, 0, -(2**63)]),
        producer_epoch=draw.choice([-1, 0, -INT16]),
        base_sequence=draw.choice([-1, 0, -(2**31), -2, INT32]),
        is_transactional=draw.random() < 0.5,
        append_time_ms=draw.choice([None, 0, NOW_MS]),
        delete_horizon_ms=draw.choice([None, 0, NOW_MS]),
        partition_leader_epoch=draw.choice([-1, -(2**31)]),
        base_offset=draw.choice([None, max(first - 5, 0)]) if messages else first,
        last_offset=draw.choice([None, last + 5, last - 1]) if messages else first,
        max_timestamp_ms=draw.choice([None, -1, INT64]),
    )
    return messages, fields, None


def _legacy(draw: random.Random, magic: int, messages: tuple[Message, ...], compressed: bool) -> Drawn:
    given: dict[str, Any] = {}
    stamp: dict[str, Any] = {}
    if compressed:
        # A v1 reader counts inner offsets back from the wrapper's. So only a v0 wrapper may have a later offset.
        given = _range(draw, messages[0].offset, messages[-1].offset)
        if magic == 1:
            given.pop("last_offset", None)
    if magic == 1:
        match draw.randrange(4):
            case 0:
                given["append_time_ms"] = APPEND_TIME
                if compressed and draw.random() < 0.5:  # a broker leaves inner messages as they are
                    stamp = {"timestampType": "LOG_APPEND_TIME", "maxTimestamp": APPEND_TIME}
                elif compressed:  # Kafka's builder writes the append time into them
                    messages = tuple(replace(message, timestamp_ms=APPEND_TIME) for message in messages)
            case 1 if compressed:
                stamp = {"timestampType": "CREATE_TIME", "maxTimestamp": draw.choice([-1, 0, NOW_MS, INT64])}
    if not stamp:
        return messages, Fields(**given), _spec(magic, messages, given)
    spec = _spec(magic, messages, {name: value for name, value in given.items() if name != "append_time_ms"})
    if stamp["timestampType"] == "CREATE_TIME":
        given["max_timestamp_ms"] = stamp["maxTimestamp"]
    return messages, Fields(**given), spec | {"stamp": stamp}
