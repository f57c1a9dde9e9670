"""Helpers for specs of golden vectors: batches for Kafka's writer, and steps that change the bytes afterwards.

A key or value is a text, {"hex": ...}, {"repeat": text, "times": n}, {"json": bytes, "seed": n} or null. `expand` turns
it into the hexadecimal that Kafka's side takes. Steps are a broker's (stamp, convert, compact, validate) or done by
hand (`hand.py`).
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.oracle.client import Spec

OLD_CODECS: Final = ("none", "gzip", "snappy", "lz4")
CODECS: Final[dict[int, tuple[str, ...]]] = {0: OLD_CODECS, 1: OLD_CODECS, 2: (*OLD_CODECS, "zstd")}  # by magic
T0: Final = 1_700_000_000_000
APPENDED: Final = T0 + 123_456
INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
APPEND: Final[Spec] = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
IDEMPOTENT: Final[Spec] = {"producerId": 4711, "producerEpoch": 3, "baseSequence": 0}
SEAL: Final[Spec] = {"op": "seal"}


@dataclass(frozen=True, kw_only=True)
class Vector:
    """One golden vector: batches that Kafka writes, then steps that change the bytes.

    refused: Kafka's reader must refuse the result. declined: error name with which Kafka's broker must refuse the last
    step. Nothing is written in that case.
    """

    name: str
    batches: list[Spec]
    steps: list[Spec] = field(default_factory=list)
    refused: bool = False
    declined: str = ""
    note: str = ""

    @property
    def category(self) -> str:
        return self.name.split("_", 1)[0]


def expand(content: Any) -> str | None:
    match content:
        case None:
            return None
        case str():
            return content.encode().hex()
        case {"hex": str(digits)}:
            return digits
        case {"repeat": str(text), "times": int(times)}:
            return (text.encode() * times).hex()
        case {"json": int(size), "seed": int(seed)}:
            return _json(size, seed).hex()
    raise ValueError(content)


def _json(size: int, seed: int) -> bytes:
    """Return text of `size` bytes that compresses like a log of events."""
    draw, text = random.Random(seed), ""
    while len(text) < size:
        event = {"user": f"u-{draw.randrange(10**5):06}", "event": draw.choice(["click", "view", "cart"])}
        text += json.dumps(event | {"ms": draw.randrange(10**4)}) + "\n"
    return text.encode()[:size]


def record(key: Any, value: Any, timestamp: int = T0, **fields: Any) -> Spec:
    return {"timestamp": timestamp, "key": key, "value": value} | fields


def series(count: int, step_ms: int = 7) -> list[Spec]:
    return [record(f"key-{i}", f"value-{i}-of-{count}", T0 + step_ms * i) for i in range(count)]


def batch(magic: int, codec: str, records: list[Spec], **fields: Any) -> Spec:
    """Return the spec of a batch. Timestamps are left out for v0, which has none."""
    if magic == 0:
        records = [{name: value for name, value in each.items() if name != "timestamp"} for each in records]
    return {"magic": magic, "compression": codec, "records": records} | fields


def marker(offset: int, kind: str, producer: int = 4711, **fields: Any) -> Spec:
    spec = {"kind": "marker", "type": kind, "baseOffset": offset, "timestamp": T0 + offset, "coordinatorEpoch": 15}
    return spec | {"producerId": producer, "producerEpoch": 3} | fields


def inner_set(*entries: tuple[int, int], magic: int = 1, codec: str = "gzip", **fields: int) -> Spec:
    """Return the spec of a compressed set with one message per (offset, magic) in `entries`.

    Kafka's own writer would refuse some sets.
    """
    records = [
        {"timestamp": T0 + i if own else -1, "key": f"k{i}", "value": f"v{i}", "offset": offset, "magic": own}
        for i, (offset, own) in enumerate(entries)
    ]
    return {"magic": magic, "compression": codec, "unchecked": True} | fields | {"records": records}


def patch(at: int, digits: str) -> Spec:
    """Return the step that overwrites bytes from position `at`. A negative `at` counts from the end."""
    return {"op": "patch", "at": at, "hex": digits}


def sealed_patch(at: int, digits: str) -> list[Spec]:
    """Return the steps that overwrite bytes from position `at` and then correct the checksum."""
    return [patch(at, digits), SEAL]


def cut(size: int | str) -> Spec:
    """Return the step that removes `size` bytes at the end. "all" removes every byte."""
    return {"op": "cut", "bytes": size}


def add(digits: str) -> Spec:
    return {"op": "add", "hex": digits}


def inside(*steps: Spec) -> Spec:
    """Return the step that applies `steps` to the decompressed bytes."""
    return {"op": "inside", "steps": list(steps)}


def pack(how: str) -> Spec:
    """Return the step that compresses the payload again in another way. how: a name in `hand.py`."""
    return {"op": "inside", "pack": how}


def every(least: int = 0) -> Iterator[tuple[int, str]]:
    """Yield each magic from `least` to 2 with each of its codecs."""
    return ((magic, codec) for magic in range(least, 3) for codec in CODECS[magic])
