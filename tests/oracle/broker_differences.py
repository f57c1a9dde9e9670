"""Intended differences between our broker paths and Kafka's: the reason of each, and a check that recognizes it."""

from collections.abc import Callable
from dataclasses import dataclass

from kfbench import read_log
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, Refused
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, V2_HEADER, position
from tests.formats.fuzz import sealed
from tests.oracle.broker_judge import Verdicts, other_log

ATTRIBUTES_END = position(V2_HEADER, "attributes") + 2


@dataclass(frozen=True, kw_only=True)
class Difference:
    name: str
    reason: str
    applies: Callable[[Verdicts], bool]


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


def _control_built_anew(found: Verdicts) -> bool:
    if found.case.op != "validate" or found.made is None or found.refused is not None:
        return False
    if not found.notes["validation"]["messageSizeMaybeChanged"]:
        return False
    if found.case.options["toMagic"] < 2:
        return not found.made.data and bool(read_log(found.case.source).batch_rows["is_control"].all())
    ours = bytearray(found.made.data)  # a request of v2 is one batch
    is_control = ours[ATTRIBUTES_END - 1] & CONTROL_BIT
    ours[ATTRIBUTES_END - 1] &= ~CONTROL_BIT
    return bool(is_control) and other_log(found.kafkas, sealed(bytes(ours))) is None


DIFFERENCES = (
    Difference(
        name="zstd before v2",
        reason="Kafka's validator validates, its builder then throws, and the client hears of an unknown error; we say "
        "UNSUPPORTED_COMPRESSION_TYPE, before all else.",
        applies=_zstd,
    ),
    Difference(
        name="headers before v2",
        reason="Kafka's builder throws, and the client hears of an unknown error. We drop headers where that is asked "
        "for, as Kafka's own down-conversion does.",
        applies=lambda found: _kafka_throws(found, "does not support record headers"),
    ),
    Difference(
        name="transactions before v2",
        reason="Uncompressed, Kafka makes its builder before it validates: an unknown error for what its validator "
        "calls UNSUPPORTED_FOR_MESSAGE_FORMAT. We validate first.",
        applies=lambda found: (
            _kafka_throws(found, "Transactional records are not supported for magic") and found.made is None
        ),
    ),
    Difference(
        name="producer state",
        reason="A coordinator's batch with half a producer (no epoch, no sequence) is taken as it is, but Kafka's "
        "builder throws where it is to be built anew; we build it.",
        applies=lambda found: _kafka_throws(
            found, "Invalid negative producer epoch", "Invalid negative sequence number", "without a valid producer ID"
        ),
    ),
    Difference(
        name="skipped keys",
        reason="Kafka reads compressed batches of v2 without keys and values while it hopes to assign in place; if "
        "their offsets have holes, it builds them anew from records that have none, and throws. We build them.",
        applies=lambda found: _kafka_throws(found, "is skipped in PartialDefaultRecord"),
    ),
    Difference(
        name="control built anew",
        reason="A control batch that Kafka's validator builds anew, for another codec or format, holds plain records "
        "then. Ours stays one, or is left out of v0 and v1 as in down-conversion. No coordinator sends any.",
        applies=_control_built_anew,
    ),
    Difference(
        name="control records",
        reason="Kafka's validator does not look into control records; its reader refuses those without a type, as "
        "we do.",
        applies=lambda found: found.refused is None and "control record" in str(found.error),
    ),
    Difference(
        name="empty before v2",
        reason="Kafka's filter throws where an empty batch is to be kept that its format cannot hold, which its "
        "cleaner never asks for; ours has nothing to keep.",
        applies=lambda found: _kafka_throws(found, "Empty batches are only supported"),
    ),
)


def difference(found: Verdicts) -> str | None:
    """Return the name of the difference that explains the two verdicts; None: no difference does."""
    return next((known.name for known in DIFFERENCES if known.applies(found)), None)
