"""The checks of a golden vector: a log that Apache Kafka's own classes wrote.

kfbench must read, write and refuse the same bytes as Kafka. A JSON file next to each log (the sidecar) has the values
that Kafka's reader found.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, InvalidConfig, KfbenchError, Refused, WouldLose
from kfbench.formats import BY_MAGIC
from kfbench.layouts import MAGIC_AT
from kfbench.log import read_log, write_log
from kfbench.measure.golden.differences import decompressed_differences, first_difference, log_differences
from kfbench.measure.golden.steps import ON_PURPOSE, REMADE, Remade
from kfbench.measure.golden.vectors import GoldenVector, Sidecar, read_vector
from kfbench.measure.verify import CheckOutcome, wrong_checksum

CHECKS: Final = {
    "sha256": "the file is the one that the index and the sidecar name",
    "fields": "every field of every batch and record reads as Kafka's own reader gives it",
    "checksums": "a second witness (the crc32c package, binascii) computes the checksum that every batch has",
    "same bytes": "written anew, it is Kafka's byte for byte",
    "decompressed": "written anew under a codec, it decompresses to Kafka's bytes",
    "same records": "made by hand, as Kafka would not write it: written anew, it holds the same records",
    "not rewritable": "made by hand with what its format cannot carry: writing it anew is refused, nothing is left out",
    "refused": "what Kafka's reader refuses is refused, at the same batch",
    "appended": "a request becomes Kafka's batches, or is refused for its reason; so do its counts",
    "converted": "a log down-converted is Kafka's, and so is the number of converted records",
    "compacted": "a log filtered is Kafka's",
    "differs on purpose": "a known difference from Kafka's broker is still there",
}
MADE_BY_HAND: Final = ("corrupt", "wrapper", "dictionary")  # categories of logs that Kafka never writes

_NO_ERROR: Final = "UNKNOWN_SERVER_ERROR"  # the error that clients see for an exception without an error of its own
_DAMAGE: Final = ("CORRUPT_MESSAGE", "INVALID_RECORD")
_CODEC_DEPENDENT: Final = {"position", "size", "crc"}  # not compared: another version of a codec writes other bytes


def check_vector(folder: Path, entry: Mapping[str, Any]) -> Iterator[CheckOutcome]:
    """Run every check that applies to one golden vector, and yield the outcomes. A check stops at its first difference.

    Args:
        folder: the folder with the vector's files.
        entry: the vector's entry in the folder's index.json.
    """
    subject = str(entry["name"])
    try:
        vector = read_vector(folder, subject)
    except InvalidConfig as error:
        yield CheckOutcome(check="sha256", format="–", subject=subject, problem=f"{error}")
        return
    data, sidecar = vector
    magics = {batch["magic"] for batch in sidecar["batches"]} or set(data[MAGIC_AT : MAGIC_AT + 1])
    names = [BY_MAGIC[magic].name if magic in BY_MAGIC else f"magic {magic}" for magic in sorted(magics)]
    formats = "+".join(names) or "empty"

    def outcome(check: str, problem: str | None) -> CheckOutcome:
        return CheckOutcome(check=check, format=formats, subject=subject, problem=problem or "")

    digest = hashlib.sha256(data).hexdigest()
    wrong = next((wanted for wanted in (entry["sha256"], sidecar["sha256"]) if wanted != digest), None)
    yield outcome("sha256", wrong and f"{len(data)} bytes with {digest[:16]}…, not {wrong[:16]}…")
    if sidecar["error"] is not None:
        yield outcome("refused", next(_refusal_differences(data, sidecar), None))
        return
    if "source" in sidecar:
        yield outcome(*_check_step(data, sidecar))
    try:
        log = read_log(data)
    except KfbenchError as error:
        yield outcome("fields", f"Kafka reads it, kfbench refuses it: {error}")
        return
    difference = next(log_differences(log, sidecar["batches"], sidecar["trailingBytes"]), None)
    yield outcome("fields", difference)
    yield outcome("checksums", wrong_checksum(data))
    if difference is None:  # else the JSON file does not describe these bytes
        yield outcome(*_check_rewriting(log, vector, is_made_by_hand=entry["category"] in MADE_BY_HAND))


def _check_rewriting(log: DecodedLog, vector: GoldenVector, *, is_made_by_hand: bool) -> tuple[str, str | None]:
    """Encode the decoded log again, and compare the result with the vector.

    The bytes must be the same. Under a codec, the decompressed bytes must be the same. For a vector made by hand, the
    records must be the same. Return the name of the check, and the difference; None if there is none.
    """
    data, sidecar = vector
    try:
        again = bytes(write_log(log))
    except KfbenchError as error:
        if isinstance(error, WouldLose) and is_made_by_hand:  # such as times inside a v0 wrapper
            return "not rewritable", None
        return "same bytes", f"cannot be written anew: {error}"
    if is_made_by_hand:
        is_same = read_log(again).source_records == log.source_records
        return "same records", None if is_same else "other records are read from what was written anew"
    if not log.batch_rows["canonical"].all():
        return "same bytes", "Kafka's own writer wrote it, and kfbench says that it is not canonical"
    if sidecar["byteExact"]:
        return "same bytes", first_difference(data[: sidecar["validBytes"]], again)
    return "decompressed", next(decompressed_differences(data, again, sidecar["batches"]), None)


def _refusal_differences(data: bytes, sidecar: Sidecar) -> Iterator[str]:
    """Yield the differences between the batch that kfbench refuses and the batch that Kafka refuses.

    kfbench must refuse the same batch, and must read all earlier batches as Kafka does.
    """
    number, batches = sidecar["error"]["batch"], sidecar["batches"]
    where = batches[number]["position"] if number < len(batches) else sum(batch["size"] for batch in batches)
    kafkas = f"Kafka refuses batch {number} at byte {where} ({sidecar['error']['message']})"
    try:
        read_log(data)
    except CorruptLog as error:
        if error.position != where:
            yield f"{kafkas}, kfbench another: {error}"
    except KfbenchError as error:
        yield f"{kafkas}, kfbench says no batch: {error}"
    else:
        yield f"{kafkas}, kfbench reads it"
        return
    log = read_log(data, on_error="skip")
    if log.errors[0].position != where:
        yield f"{kafkas}, kfbench leaves out the one at byte {log.errors[0].position}"
    yield from log_differences(log, batches[:number])


def _check_step(data: bytes, sidecar: Sidecar) -> tuple[str, str | None]:
    """Repeat the broker step of a vector (append, conversion or compaction) with kfbench's broker code.

    The result, or the refusal, must be the same as Kafka's. Return as `_check_rewriting` does.
    """
    check, remake = REMADE[sidecar["category"]]
    refused = sidecar.get("refused")
    kafkas = refused and f"Kafka's broker says {refused['error']}: {refused['message']}"
    problem: str | None
    try:
        made = remake(bytes.fromhex(sidecar["source"]), sidecar["spec"]["steps"][-1])
    except KfbenchError as error:
        problem = _other_refusal(refused, kafkas, error)
    else:
        problem = f"{kafkas}, kfbench takes it" if refused else next(_result_differences(data, sidecar, made), None)
    if sidecar["name"] not in ON_PURPOSE and (refused is None or refused["error"] != _NO_ERROR):
        return check, problem
    return "differs on purpose", None if problem else "no longer"


def _other_refusal(refused: Sidecar | None, kafkas: str | None, error: KfbenchError) -> str | None:
    """Return the difference between kfbench's refusal and Kafka's; None if both refuse for the same reason.

    kfbench's CorruptLog matches each of Kafka's errors in _DAMAGE.

    Args:
        refused: Kafka's error from the JSON file next to the log; None: Kafka does not refuse.
        kafkas: Kafka's error as text for the message.
        error: kfbench's error.
    """
    if refused is None:
        return f"Kafka's broker takes it, kfbench refuses it: {error}"
    if isinstance(error, CorruptLog):
        is_same = refused["error"] in _DAMAGE
    else:
        is_same = refused["error"] == (error.error if isinstance(error, Refused) else None)
    return None if is_same else f"{kafkas}, kfbench: {error}"


def _result_differences(data: bytes, sidecar: Sidecar, made: Remade) -> Iterator[str]:
    counts = sidecar.get("validation", sidecar)
    for name, ours in made.counts.items():
        if counts[name] != ours:
            yield f"{name}: Kafka counts {counts[name]}, kfbench {ours}"
    if sidecar["byteExact"]:
        if difference := first_difference(data, made.data):
            yield difference
        return
    batches = sidecar["batches"]
    comparable = [{name: batch[name] for name in batch.keys() - _CODEC_DEPENDENT} for batch in batches]
    yield from log_differences(read_log(made.data), comparable, 0)
    yield from decompressed_differences(data, made.data, batches)
