"""Generated cases for a broker: the incoming bytes, and the broker's options under Kafka's names.

Most requests are valid, as a producer writes them. The others break a rule, and Kafka reports the rule.
"""

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kfbench import FORMATS, read_log
from kfbench.layouts import V2_HEADER
from tests.common import batch_fields_of, bounds_of, records_of
from tests.formats.fuzz import sealed
from tests.oracle.client import Spec
from tests.oracle.generate import LEVELS, MAGICS, BatchChunk, chunks
from tests.reference.model import Fields, Message, signed
from tests.strategies import BOUNDARY_LENGTHS, INT32, INT64, NOW_MS, Case

CHUNK = 40
OPS = {"validate": "validate", "convert": "downconvert", "compact": "compaction"}
"""The category of golden vectors that holds the same."""
SPOILED = ("base_offset", "attributes", *(V2_HEADER.names or ())[6:])
"""Fields of a v2 header that no producer writes as `_spoiled` does."""


@dataclass(frozen=True, kw_only=True)
class BrokerCase:
    op: str
    source: bytes
    options: Spec


def broker_cases(op: str, seed: int, count: int) -> Iterator[BrokerCase]:
    """Yield `count` cases of one broker operation (validate, convert or compact).

    The same seed gives the same cases on every machine.
    """
    made = {"validate": _requests, "convert": _conversions, "compact": _cleanings}[op]
    number = left = 0
    for number in range(count):
        draw = random.Random(f"{op} {seed} {number}")
        for case in made(draw, number):
            if left == count:
                return
            left += 1
            yield case


# Requests of producers: offsets start at 0 and rise by one


def _requests(draw: random.Random, number: int) -> Iterator[BrokerCase]:
    name = draw.choices(list(MAGICS), [2, 3, 5])[0]
    codec = draw.choice(("none", *FORMATS[name].capabilities.codecs))
    base_ms = draw.choice([NOW_MS, NOW_MS, -1, 0, INT64 - 2**40])
    drawn = [_request(draw, name, codec, base_ms) for _ in range(CHUNK)]
    case = Case(batches=tuple(messages for messages, _ in drawn), fields=tuple(fields for _, fields in drawn))
    level = draw.choice(LEVELS[codec]) if codec in LEVELS and draw.random() < 0.3 else None
    log = FORMATS[name].encode(
        records_of(case.messages), bounds_of(case), codec, level, batch_fields=batch_fields_of(case)
    )
    requests = [log.data[start:end].tobytes() for start, end in zip(log.positions[:-1], log.positions[1:], strict=True)]
    for i, request in enumerate(requests):
        source = request if draw.random() < 0.75 else _spoiled(draw, MAGICS[name], request, requests[i - 1])
        yield BrokerCase(op="validate", source=source, options=_leader(draw, MAGICS[name], base_ms))


def _request(draw: random.Random, name: str, codec: str, base_ms: int) -> tuple[tuple[Message, ...], Fields]:
    count = draw.choice([1, 1, 2, 3, 5, draw.randrange(1, 30)])
    with_headers = name == "v2" and draw.random() < 0.3
    keyless = draw.random() < 0.15
    messages = tuple(
        Message(
            offset=offset,
            timestamp_ms=-1 if name == "v0" else _near(draw, base_ms),
            key=None if keyless and draw.random() < 0.5 else _payload(draw),
            value=None if draw.random() < 0.1 else _payload(draw),
            headers=_headers(draw) if with_headers else (),
        )
        for offset in range(count)
    )
    if name != "v0" and codec != "none" and draw.random() < 0.1:  # offsets with gaps, as old clients wrote them
        steps = [draw.choice((1, 1, 2)) for _ in messages]
        messages = tuple(replace(one, offset=sum(steps[: i + 1]) - 1) for i, one in enumerate(messages))
    given: dict[str, Any] = {}
    if name == "v2":
        if draw.random() < 0.4:
            sequence = draw.choice([0, 7, INT32 - 1, INT32])
            given = {"producer_id": draw.choice([0, 4711, INT64]), "producer_epoch": 3, "base_sequence": sequence}
            given["is_transactional"] = draw.random() < 0.5
        if draw.random() < 0.1:
            given["partition_leader_epoch"] = draw.choice([0, 12])
        if draw.random() < 0.05:
            messages, given["last_offset"] = _marker(draw), 0
            given |= {"is_control": True, "base_offset": 0}
    if name != "v0" and draw.random() < 0.06:
        given["append_time_ms"] = max(base_ms, 0)
    elif name == "v2" and draw.random() < 0.1:
        given["max_timestamp_ms"] = draw.choice([-1, NOW_MS, INT64])
    return messages, Fields(**given)


def _marker(draw: random.Random) -> tuple[Message, ...]:
    key = struct.pack(">hh", 0, draw.randrange(2))
    return (Message(offset=0, timestamp_ms=NOW_MS, key=key, value=struct.pack(">hi", 0, 15)),)


def _payload(draw: random.Random) -> bytes:
    length = draw.choice(BOUNDARY_LENGTHS) if draw.random() < 0.3 else draw.randrange(24)
    return draw.randbytes(length) if draw.random() < 0.3 else (draw.randbytes(draw.randrange(1, 8)) * length)[:length]


def _headers(draw: random.Random) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((draw.choice(("", "trace", "größe")), draw.choice((None, b"", b"v" * 64))) for _ in range(2))


def _near(draw: random.Random, base_ms: int) -> int:
    if base_ms == -1:
        return -1
    step = draw.choice([0, 1, 64, 8192, -1, -500, -8193, 10**6, -(10**6)])
    return max(base_ms + step, -1) if draw.random() < 0.97 else -1


def _leader(draw: random.Random, magic: int, base_ms: int) -> Spec:
    to_magic = magic if draw.random() < 0.6 else draw.randrange(3)
    codecs = ("none", "gzip", "snappy", "lz4", *(("zstd",) if to_magic == 2 or draw.random() < 0.05 else ()))
    codec = "producer" if draw.random() < 0.5 else draw.choice(codecs)
    limited = draw.random() < 0.25
    return {
        "toMagic": to_magic,
        "targetCompression": codec,
        "baseOffset": draw.choice([0, 1, 500, 2**40, INT64 - 2**31]),
        "partitionLeaderEpoch": draw.choice([0, 7, INT32]),
        "timestampType": "LOG_APPEND_TIME" if draw.random() < 0.3 else "CREATE_TIME",
        "now": max(base_ms, 0) + draw.choice([0, 499, 500, 501, 10**6]),
        "origin": "CLIENT" if draw.random() < 0.85 else "COORDINATOR",
        "compacted": draw.random() < 0.2,
        "beforeMaxMs": draw.choice([0, 500, 10**6, 2 * 10**6]) if limited else None,
        "afterMaxMs": draw.choice([0, 500, 10**6]) if limited else None,
    }


def _spoiled(draw: random.Random, magic: int, request: bytes, other: bytes) -> bytes:
    """Return the request with one change that no producer makes. Kafka decides if it refuses the result."""
    kind = draw.randrange(5)
    if kind == 0:
        return request + other
    if kind == 1:  # wrong checksum
        at = draw.randrange(12, len(request))
        return request[:at] + bytes([request[at] ^ 1 << draw.randrange(8)]) + request[at + 1 :]
    if magic == 2:
        header, name = np.frombuffer(request, V2_HEADER, 1).copy(), draw.choice(SPOILED)
        was = int(header[name][0])
        value = draw.choice((was + 1, was - 1, -1, 0, 5))
        if name == "attributes":
            value = was ^ draw.choice((8, 16, 32, 64, 128, 0x4000))
        header[name] = np.int64(signed(value, 64)).astype(header[name].dtype)
        return sealed(header.tobytes() + request[V2_HEADER.itemsize :])
    at, now = (0, struct.pack(">q", draw.choice((0, 1, 5, 2**33)))) if kind < 4 else (17, bytes([request[17] ^ 8]))
    patched = request[:at] + now + request[at + len(now) :]
    return sealed(patched) if at else patched  # the checksum does not cover the offset


# Logs: any batches that a partition may contain


def _logs(draw: random.Random, number: int, names: Sequence[str]) -> list[bytes]:
    """Return logs with one to three batches each, of several formats and codecs."""
    found: list[bytes] = []
    for name in names:
        codec = draw.choice(("none", *FORMATS[name].capabilities.codecs))
        (chunk,) = chunks(name, codec, draw.randrange(2**32), CHUNK // len(names))
        found += _batches_of(chunk)
    draw.shuffle(found)
    logs = []
    while found:
        size = draw.choice((1, 1, 1, 2, 3))
        logs.append(b"".join(found[:size]))
        found = found[size:]
    return logs


def _batches_of(chunk: BatchChunk) -> list[bytes]:
    """Return the chunk's batches as bytes.

    Leave out those that Kafka's writer cannot write, because the test lets Kafka rewrite them.
    """
    log = chunk.encoded()
    return [
        log.data[log.positions[i] : log.positions[i + 1]].tobytes()
        for i in range(len(chunk))
        if chunk.kafka[i] is not None
    ]


def _offsets(log: bytes) -> list[int]:
    return [int(offset) for offset in read_log(log).records.offsets]


def _conversions(draw: random.Random, number: int) -> Iterator[BrokerCase]:
    for log in _logs(draw, number, draw.choice((("v2",), ("v1",), ("v2", "v1"), ("v0", "v1", "v2")))):
        first = 0
        if draw.random() < 0.3:
            first = draw.choice([0, INT64, *_offsets(log)])
        yield BrokerCase(
            op="convert", source=log, options={"toMagic": draw.choice((0, 0, 1, 1, 1, 2)), "firstOffset": first}
        )


def _cleanings(draw: random.Random, number: int) -> Iterator[BrokerCase]:
    for log in _logs(draw, number, draw.choice((("v2",), ("v2",), ("v1",), ("v0",), ("v0", "v1", "v2")))):
        share = draw.choice((0, 0.2, 0.5, 0.9, 1))
        kept = sorted({offset for offset in _offsets(log) if draw.random() < share})
        yield BrokerCase(
            op="compact",
            source=log,
            options={
                "retain": kept,
                "now": draw.choice([0, NOW_MS, INT64 - 2**40]),
                "deleteRetentionMs": draw.choice([0, 86_400_000]),
                "batchRetention": draw.choice(
                    ("DELETE_EMPTY", "DELETE_EMPTY", "DELETE_EMPTY", "RETAIN_EMPTY", "DELETE")
                ),
                "markerOfEmptyTransaction": draw.random() < 0.3,
            },
        )
