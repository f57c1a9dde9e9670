"""Run Kafka's broker code and ours on the same bytes. Compare the errors, or the batches, bytes and counts."""

from collections.abc import Sequence
from dataclasses import dataclass

from kfbench import KfbenchError, read_log
from kfbench.errors import CorruptLog, Refused
from kfbench.measure.golden.differences import decompressed, first_difference
from kfbench.measure.golden.steps import REMADE, Remade
from tests.oracle.broker_cases import OPS, BrokerCase
from tests.oracle.client import Kafka, Spec

LIBRARY_COLUMNS = {"position", "size_bytes", "crc"}  # these columns depend on the compression library

DAMAGE = {"CorruptRecordException": "CORRUPT_MESSAGE", "InvalidRecordException": "INVALID_RECORD"}
"""A broker's errors by the exceptions of its reader."""


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The results of one case.

    kafkas, notes: Kafka's bytes and notes. made, error: our result; exactly one of these two is None.
    """

    case: BrokerCase
    kafkas: bytes
    notes: Spec
    made: Remade | None
    error: KfbenchError | None

    @property
    def refused(self) -> Spec | None:
        return self.notes.get("refused")


def ask_both(kafka: Kafka, cases: Sequence[BrokerCase]) -> list[Verdicts]:
    """Run Kafka's broker code and ours on cases of one operation."""
    answers = kafka.change_each(cases[0].op, [(case.source, case.options) for case in cases])
    return [_verdicts(case, *answer) for case, answer in zip(cases, answers, strict=True)]


def _verdicts(case: BrokerCase, kafkas: bytes, notes: Spec) -> Verdicts:
    _, remake = REMADE[OPS[case.op]]
    made: Remade | None = None
    error: KfbenchError | None = None
    try:
        made = remake(case.source, case.options)
    except KfbenchError as refusal:
        error = refusal
    return Verdicts(case=case, kafkas=kafkas, notes=notes, made=made, error=error)


def disagreement(kafka: Kafka, found: Verdicts) -> str | None:
    """Describe how the two results differ, or return None if they agree.

    If both refuse with a broker's error, the errors must be equal. One exception: if the source is damaged and also
    breaks a rule, one may report the damage and the other the rule.
    """
    if found.refused is None and found.made is None:
        return f"Kafka takes it, kfbench does not: {type(found.error).__name__}: {found.error}"
    if found.refused is not None:
        kafkas = f"Kafka: {found.refused['error']}: {found.refused['message']}"
        if found.error is None:
            return f"{kafkas}; kfbench takes it"
        if isinstance(found.error, Refused) and found.error.error == found.refused["error"]:
            return None
        if _both_see_damage(kafka, found):
            return None
        return f"{kafkas}; kfbench: {type(found.error).__name__}: {found.error}"
    assert found.made is not None
    counts = found.notes.get("validation", found.notes)
    if differ := {name: (counts[name], ours) for name, ours in found.made.counts.items() if counts[name] != ours}:
        return f"counts (Kafka's, ours): {differ}"
    return other_log(found.kafkas, found.made.data)


def _both_see_damage(kafka: Kafka, found: Verdicts) -> bool:
    """Return True if the source is damaged, which excuses different errors.

    Kafka's reader must refuse the source, too. If our error is a broker's error, it or Kafka's must name the damage.
    """
    assert found.refused is not None
    unreadable = kafka.read(found.case.source)["error"]
    if not unreadable or not isinstance(found.error, Refused):
        return bool(unreadable) and isinstance(found.error, CorruptLog)
    damage = DAMAGE.get(unreadable["class"].rpartition(".")[2])
    return damage in (found.refused["error"], found.error.error)


def other_log(kafkas: bytes, ours: bytes) -> str | None:
    """Describe the first difference between our log and Kafka's, or return None.

    Compressed bytes may differ if the decompressed bytes are equal.
    """
    if kafkas == ours:
        return None
    wanted, found = read_log(kafkas), read_log(ours)
    if len(wanted) != len(found):
        return f"Kafka writes {len(wanted)} batches, kfbench {len(found)}"
    for i, (theirs, own) in enumerate(zip(wanted.batch_rows, found.batch_rows, strict=True)):
        entries = [
            log[row["position"] : row["position"] + row["size_bytes"]] for log, row in ((kafkas, theirs), (ours, own))
        ]
        if not theirs["codec"] or not own["codec"]:
            if difference := first_difference(*entries):
                return f"batch {i}: {difference}"
            continue
        for name in theirs.dtype.names:
            if name not in LIBRARY_COLUMNS and theirs[name] != own[name]:
                return f"batch {i}: {name}: Kafka writes {theirs[name]}, kfbench {own[name]}"
        if difference := first_difference(*map(decompressed, entries)):
            return f"batch {i}, decompressed: {difference}"
    return None
