"""Batches of v0, v1 and v2 as tests/strategies.py draws them, each also as a spec for Kafka's writer.

They are the same on every machine and under every codec. If a chunk of batches fails, the judge tests each batch
alone.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import hypothesis
from hypothesis import HealthCheck, Phase, settings

from kfbench import FORMATS, EncodedLog
from tests.common import batch_fields_of, bounds_of, records_of
from tests.oracle.client import Spec
from tests.reference.model import UNSET, Fields, Message
from tests.strategies import INT32, INT64, Case, cases_of

MAGICS = {"v0": 0, "v1": 1, "v2": 2}
LEVELS: dict[str, range] = {"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(-7, 23)}
BIG_BYTES = 70_000  # over two blocks of snappy's framing, and over one of lz4's
KRAFT_VOTERS = 6
"""The last type of control record that Kafka's writer takes."""
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
DrawnBatch = tuple[tuple[Message, ...], Fields]


@dataclass(frozen=True, kw_only=True)
class BatchChunk:
    """Batches in one format, codec and level.

    kafka: per batch the spec for Kafka's writer, or None if Kafka cannot write the batch.
    """

    name: str
    codec: str
    level: int | None
    case: Case
    kafka: tuple[Spec | None, ...]

    def __len__(self) -> int:
        return len(self.kafka)

    def encoded(self) -> EncodedLog:
        fields = batch_fields_of(self.case)
        log: EncodedLog = FORMATS[self.name].encode(
            records_of(self.case.messages), bounds_of(self.case), self.codec, self.level, batch_fields=fields
        )
        assert not log.losses
        return log

    def part(self, chosen: Sequence[int]) -> "BatchChunk":
        """Return a chunk with only the batches of these indexes."""
        case = Case(
            batches=tuple(self.case.batches[i] for i in chosen), fields=tuple(self.case.fields[i] for i in chosen)
        )
        return replace(self, case=case, kafka=tuple(self.kafka[i] for i in chosen))


def chunks(name: str, codec: str, seed: int, batches: int, size: int = 40) -> Iterator[BatchChunk]:
    draw = random.Random(f"{name} {codec} {seed}")
    drawn = drawn_batches(name, seed, batches)
    for first in range(0, batches, size):
        part = [
            _extreme(draw, messages, _stored(name, codec, fields)) for messages, fields in drawn[first : first + size]
        ]
        level = draw.choice(LEVELS[codec]) if codec in LEVELS and draw.random() < 0.5 else None
        packing = {"compression": codec} | ({} if level is None else {"level": level})
        specs = [writer_spec(name, codec, *batch) for batch in part]
        case = Case(batches=tuple(messages for messages, _ in part), fields=tuple(fields for _, fields in part))
        asked = tuple(spec and spec | packing for spec in specs)
        yield BatchChunk(name=name, codec=codec, level=level, case=case, kafka=asked)


@cache
def drawn_batches(name: str, seed: int, count: int) -> list[DrawnBatch]:
    found: list[DrawnBatch] = []
    limits = settings(
        max_examples=count // 2 + 10, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    for number in itertools.count(seed):

        @hypothesis.seed(number)
        @limits
        @hypothesis.given(cases_of(name))
        def collect(case: Case) -> None:
            found.extend(zip(case.batches, case.fields, strict=True))

        collect()
        if len(found) >= count:
            break
    return found[:count]


def _stored(name: str, codec: str, fields: Fields) -> Fields:
    """Return the fields that the format stores: messages without a wrapper no offsets, and a wrapper one time."""
    if name == "v2":
        return fields
    if codec == "none":
        return Fields(append_time_ms=fields.append_time_ms)
    return fields if fields.append_time_ms is None else replace(fields, max_timestamp_ms=None)


def _extreme(draw: random.Random, messages: tuple[Message, ...], fields: Fields) -> DrawnBatch:
    """Move one batch in ten to far offsets, and give one in a hundred a value of several blocks of a codec."""
    if draw.random() < 0.1:
        by = draw.choice([INT32, INT64 - 2**41])  # strategies begin at 2**40 at most
        messages = tuple(replace(message, offset=message.offset + by) for message in messages)
        base, last = (None if each is None else each + by for each in (fields.base_offset, fields.last_offset))
        fields = replace(fields, base_offset=base, last_offset=last)
    if messages and not fields.is_control and draw.random() < 0.01:
        few = draw.randbytes(draw.choice([7, BIG_BYTES]))
        value = (few * (BIG_BYTES // len(few) + 1))[:BIG_BYTES]
        messages = (replace(messages[0], value=value), *messages[1:])
    return messages, fields


def writer_spec(name: str, codec: str, messages: Sequence[Message], fields: Fields) -> Spec | None:
    """Return the batch as a spec for Kafka's writer (`Writer.java`), or None if Kafka cannot write it."""
    given = {
        kafkas: getattr(fields, field)
        for field, kafkas in KAFKAS_NAMES.items()
        if getattr(fields, field) != getattr(UNSET, field)
    }
    spec: Spec = {"magic": MAGICS[name], "records": [record_spec(message) for message in messages]}
    if fields.append_time_ms is not None:
        spec["timestampType"] = "LOG_APPEND_TIME"
    if messages:
        spec["baseOffset"] = messages[0].offset
    if name != "v2":
        return _legacy_spec(name, codec, messages, fields, spec | given)
    has_state = min(fields.producer_id, fields.producer_epoch, fields.base_sequence) >= 0
    if not messages:
        stamp = -1 if fields.append_time_ms is None else fields.append_time_ms
        return None if fields.delete_horizon_ms is not None else spec | given | {"kind": "empty", "timestamp": stamp}
    if (fields.producer_id >= 0 or fields.is_transactional) and not has_state:
        return None
    kinds = [int.from_bytes((message.key or b"")[2:4], "big") for message in messages]
    return None if fields.is_control and max(kinds) > KRAFT_VOTERS else spec | given


def _legacy_spec(name: str, codec: str, messages: Sequence[Message], fields: Fields, spec: Spec) -> Spec | None:
    if codec == "none" or name == "v0":
        return spec
    spec.pop("lastOffset", None)  # a v1 reader counts offsets back from the wrapper's, which is its last message's
    stamp = {"timestampType": "CREATE_TIME", "maxTimestamp": fields.max_timestamp_ms}
    if fields.append_time_ms is not None:  # a broker leaves inner messages as they are
        if any(message.timestamp_ms == fields.append_time_ms for message in messages):
            return None  # we take such a message for one that Kafka's builder gave the append time
        stamp = {"timestampType": "LOG_APPEND_TIME", "maxTimestamp": spec.pop("appendTime")}
        del spec["timestampType"]
    return spec if stamp["maxTimestamp"] is None else spec | {"stamp": stamp}


def record_spec(message: Message) -> Spec:
    def hexed(content: bytes | None) -> str | None:
        return None if content is None else content.hex()

    return {
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
        "key": hexed(message.key),
        "value": hexed(message.value),
        "headers": [[name, hexed(content)] for name, content in message.headers],
    }
