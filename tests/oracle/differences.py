"""Intended differences between Kafka and us, of readers and of brokers: the reason, and a check that recognizes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kfbench import read_log
from kfbench.batches import DecodedLog
from kfbench.codecs import CODECS
from kfbench.errors import CorruptLog, IllegalCombination, Refused
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, V2_HEADER, position
from tests.formats.fuzz import sealed
from tests.oracle.broker_judge import Verdicts, other_log

ATTRIBUTES_END = position(V2_HEADER, "attributes") + 2
Seen = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class KnownDifference:
    name: str
    reason: str
    applies: Callable[..., bool]
    """Return True if this difference explains the outcome of both sides."""


def _kafka_refuses(seen: Seen, *words: str) -> bool:
    return seen["error"] is not None and any(word in str(seen["error"]) for word in words)


def _empty_with_codec(seen: Seen, refusal: CorruptLog | None, log: DecodedLog) -> bool:
    if seen["error"] is None or seen["error"]["stage"] != "iterate":
        return False
    batch = seen["batches"][-1]
    return bool(batch["magic"] == 2 and batch["count"] == 0 and batch["compression"] != "none")


def _empty_with_codec_5(seen: Seen, refusal: CorruptLog | None, log: DecodedLog) -> bool:
    if refusal is not None or not _kafka_refuses(seen, "Unknown compression type id: 5"):
        return False
    return bool(log.batch_rows["count"][len(seen["batches"]) - 1] == 0)  # Kafka gave up before it read the count


def _cut_after_a_stream(seen: Seen, refusal: CorruptLog | None) -> bool:
    cut = ("cut short", "past the end", "not a zstd frame", "frame header", "frame parameters")
    return refusal is not None and any(words in refusal.promise for words in cut)


OF_READERS = (
    KnownDifference(
        name="memory",
        reason="Kafka 3.9 allocates the size that an inner message of v0 or v1 claims, without checking it. With more "
        "memory it would read a set that is cut short, as we do. Kafka 4.4 refuses sizes above 2,147,483,639 first.",
        applies=lambda seen, refusal, log: (
            refusal is None and _kafka_refuses(seen, "OutOfMemoryError", "maximum record size")
        ),
    ),
    KnownDifference(
        name="empty with a codec",
        reason="Kafka's streaming iterator opens the codec's stream of an empty batch. gzip, snappy and lz4 need a "
        "header there, zstd does not. We open no stream.",
        applies=_empty_with_codec,
    ),
    KnownDifference(
        name="empty with codec 5",
        reason="Kafka has no codec 5, which is ours of dictionaries. We look at a codec only where there is a payload.",
        applies=_empty_with_codec_5,
    ),
    KnownDifference(
        name="cut after a whole stream",
        reason="Too few bytes follow a whole zstd frame or snappy block. Kafka's libraries end there "
        "(zstd-jni depending on its buffers). We report a stream that is cut short.",
        applies=lambda seen, refusal, log: seen["error"] is None and _cut_after_a_stream(seen, refusal),
    ),
    KnownDifference(
        name="reserved gzip flags",
        reason="RFC 1952 says that readers refuse reserved flags, as zlib does. Java 17 ignores them.",
        applies=lambda seen, refusal, log: (
            seen["error"] is None and refusal is not None and "unknown header flags" in refusal.promise
        ),
    ),
)


def _kafka_throws(found: Verdicts, *words: str) -> bool:
    return found.refused is not None and any(word in found.refused["message"] for word in words)


def _zstd(found: Verdicts) -> bool:
    options, source = found.case.options, found.case.source
    if found.case.op != "validate" or options["toMagic"] > 1 or found.refused is None:
        return False
    codec = options["targetCompression"]
    is_zstd = source[16] == 2 and source[ATTRIBUTES_END - 1] & CODEC_MASK == CODECS["zstd"].id
    if codec != "zstd" and not (codec == "producer" and is_zstd):
        return False
    refusal = found.error
    if isinstance(refusal, Refused):
        return refusal.error == "UNSUPPORTED_COMPRESSION_TYPE"
    return isinstance(refusal, IllegalCombination) and codec == "zstd"


def _control_built_again(found: Verdicts) -> bool:
    if found.case.op != "validate" or found.made is None or found.refused is not None:
        return False
    if not found.notes["validation"]["messageSizeMaybeChanged"]:
        return False
    if found.case.options["toMagic"] < 2:
        return not found.made.data and bool(read_log(found.case.source).batch_rows["is_control"].all())
    ours = bytearray(found.made.data)  # a v2 request has exactly one batch
    is_control = ours[ATTRIBUTES_END - 1] & CONTROL_BIT
    ours[ATTRIBUTES_END - 1] &= ~CONTROL_BIT
    return bool(is_control) and other_log(found.kafkas, sealed(bytes(ours))) is None


OF_BROKERS = (
    KnownDifference(
        name="zstd before v2",
        reason="Kafka's validator accepts it, its builder throws, and the client gets an unknown error. We refuse "
        "first, with UNSUPPORTED_COMPRESSION_TYPE.",
        applies=_zstd,
    ),
    KnownDifference(
        name="headers before v2",
        reason="Kafka's builder throws, and the client gets an unknown error. We drop headers on request, as Kafka's "
        "down-conversion does.",
        applies=lambda found: _kafka_throws(found, "does not support record headers"),
    ),
    KnownDifference(
        name="transactions before v2",
        reason="Without a codec Kafka makes its builder before it validates, and the client gets an unknown error. We "
        "validate first and report UNSUPPORTED_FOR_MESSAGE_FORMAT.",
        applies=lambda found: (
            _kafka_throws(found, "Transactional records are not supported for magic") and found.made is None
        ),
    ),
    KnownDifference(
        name="producer state",
        reason="A coordinator's batch may have a producer without epoch or sequence. Kafka's builder throws if it has "
        "to build that batch again; we build it.",
        applies=lambda found: _kafka_throws(
            found, "Invalid negative producer epoch", "Invalid negative sequence number", "without a valid producer ID"
        ),
    ),
    KnownDifference(
        name="skipped keys",
        reason="Kafka reads compressed v2 batches without keys and values to assign offsets in place. If offsets have "
        "holes, it builds the batch from these records and throws. We build it.",
        applies=lambda found: _kafka_throws(found, "is skipped in PartialDefaultRecord"),
    ),
    KnownDifference(
        name="control built again",
        reason="Kafka's validator makes plain records of a control batch that it builds for another codec or format. "
        "Ours stays a control batch; v0 and v1 leave it out. No coordinator sends one.",
        applies=_control_built_again,
    ),
    KnownDifference(
        name="control records",
        reason="Kafka's validator does not read control records. Its reader refuses those without a type, as we do.",
        applies=lambda found: found.refused is None and "control record" in str(found.error),
    ),
    KnownDifference(
        name="empty before v2",
        reason="Kafka's filter throws if it has to keep an empty batch in a format without empty batches. Its cleaner "
        "never requests that. Ours keeps nothing.",
        applies=lambda found: _kafka_throws(found, "Empty batches are only supported"),
    ),
)


def difference(listed: Sequence[KnownDifference], *outcome: Any) -> str | None:
    """Return the name of the listed difference that explains this outcome of both sides, or None."""
    return next((known.name for known in listed if known.applies(*outcome)), None)
