"""Intended differences between our reader and Kafka's. Each has a reason, and a check that recognizes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kfbench.errors import CorruptLog

Seen = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Difference:
    name: str
    reason: str
    applies: Callable[..., bool]
    """Return True if this difference explains what both sides say of a log."""


def _kafka_refuses(seen: Seen, *words: str) -> bool:
    return seen["error"] is not None and any(word in str(seen["error"]) for word in words)


def _empty_with_codec(seen: Seen, refusal: CorruptLog | None) -> bool:
    if seen["error"] is None or seen["error"]["stage"] != "iterate":
        return False
    batch = seen["batches"][-1]
    return bool(batch["magic"] == 2 and batch["count"] == 0 and batch["compression"] != "none")


def _cut_after_a_stream(seen: Seen, refusal: CorruptLog | None) -> bool:
    cut = ("cut short", "past the end", "not a zstd frame", "frame header", "frame parameters")
    return refusal is not None and any(words in refusal.promise for words in cut)


DIFFERENCES = (
    Difference(
        name="memory",
        reason="Kafka 3.9 allocates the size that an inner message of v0 or v1 claims, without checking it. With more "
        "memory it would read a set that is cut short, as we do. Kafka 4.4 refuses sizes above 2,147,483,639 first.",
        applies=lambda seen, refusal: (
            refusal is None and _kafka_refuses(seen, "OutOfMemoryError", "maximum record size")
        ),
    ),
    Difference(
        name="empty with a codec",
        reason="Kafka's streaming iterator opens the codec's stream of an empty batch. gzip, snappy and lz4 need a "
        "header there, zstd does not. We open no stream.",
        applies=_empty_with_codec,
    ),
    Difference(
        name="cut after a whole stream",
        reason="Too few bytes follow a whole zstd frame or snappy block. Kafka's libraries end there "
        "(zstd-jni depending on its buffers). We report a stream that is cut short.",
        applies=lambda seen, refusal: seen["error"] is None and _cut_after_a_stream(seen, refusal),
    ),
    Difference(
        name="reserved gzip flags",
        reason="RFC 1952 says that readers refuse reserved flags, as zlib does. Java 17 ignores them.",
        applies=lambda seen, refusal: (
            seen["error"] is None and refusal is not None and "unknown header flags" in refusal.promise
        ),
    ),
)


def difference(seen: Seen, refusal: CorruptLog | None) -> str | None:
    """Return the name of the listed difference that explains why only one reader refuses, or None."""
    return next((known.name for known in DIFFERENCES if known.applies(seen, refusal)), None)
