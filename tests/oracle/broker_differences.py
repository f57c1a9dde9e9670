"""Intended differences between our broker code and Kafka's. Each has a reason, and a check that recognizes it."""

from kfbench import read_log
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, Refused
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, V2_HEADER, position
from tests.formats.fuzz import sealed
from tests.oracle.broker_judge import Verdicts, other_log
from tests.oracle.differences import Difference

ATTRIBUTES_END = position(V2_HEADER, "attributes") + 2


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


DIFFERENCES = (
    Difference(
        name="zstd before v2",
        reason="Kafka's validator accepts it, its builder throws, and the client gets an unknown error. We refuse "
        "first, with UNSUPPORTED_COMPRESSION_TYPE.",
        applies=_zstd,
    ),
    Difference(
        name="headers before v2",
        reason="Kafka's builder throws, and the client gets an unknown error. We drop headers on request, as Kafka's "
        "down-conversion does.",
        applies=lambda found: _kafka_throws(found, "does not support record headers"),
    ),
    Difference(
        name="transactions before v2",
        reason="Without a codec Kafka makes its builder before it validates, and the client gets an unknown error. We "
        "validate first and report UNSUPPORTED_FOR_MESSAGE_FORMAT.",
        applies=lambda found: (
            _kafka_throws(found, "Transactional records are not supported for magic") and found.made is None
        ),
    ),
    Difference(
        name="producer state",
        reason="A coordinator's batch may have a producer without epoch or sequence. Kafka's builder throws if it has "
        "to build that batch again; we build it.",
        applies=lambda found: _kafka_throws(
            found, "Invalid negative producer epoch", "Invalid negative sequence number", "without a valid producer ID"
        ),
    ),
    Difference(
        name="skipped keys",
        reason="Kafka reads compressed v2 batches without keys and values to assign offsets in place. If offsets have "
        "holes, it builds the batch from these records and throws. We build it.",
        applies=lambda found: _kafka_throws(found, "is skipped in PartialDefaultRecord"),
    ),
    Difference(
        name="control built again",
        reason="Kafka's validator makes plain records of a control batch that it builds for another codec or format. "
        "Ours stays a control batch; v0 and v1 leave it out. No coordinator sends one.",
        applies=_control_built_again,
    ),
    Difference(
        name="control records",
        reason="Kafka's validator does not read control records. Its reader refuses those without a type, as we do.",
        applies=lambda found: found.refused is None and "control record" in str(found.error),
    ),
    Difference(
        name="empty before v2",
        reason="Kafka's filter throws if it has to keep an empty batch in a format without empty batches. Its cleaner "
        "never requests that. Ours keeps nothing.",
        applies=lambda found: _kafka_throws(found, "Empty batches are only supported"),
    ),
)


def difference(found: Verdicts) -> str | None:
    """Return the name of the listed difference that explains why the two results differ, or None."""
    return next((known.name for known in DIFFERENCES if known.applies(found)), None)
