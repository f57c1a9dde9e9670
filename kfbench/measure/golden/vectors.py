"""Vectors written by Apache Kafka's own classes, beside what its own reader says of them: does kfbench agree?

A folder of vectors holds index.json ([{name, category, sha256}, ...]) and, for each name, NAME.bin (a log segment) and
NAME.json, its sidecar: every field of every batch and record under Kafka's names; the stage and the batch at which
Kafka refuses the log, if it does; and `byteExact`, whether the same bytes must come out when the log is written anew
(under a codec only the decompressed bytes must). tests/oracle writes such folders.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import DecodedLog, timestamp_types
from kfbench.codecs import CODEC_NAMES, LEGACY_LZ4, Undecodable, codec_of
from kfbench.errors import CorruptLog, InvalidConfig, KfbenchError, Refused, WouldLose
from kfbench.formats import BY_MAGIC
from kfbench.layouts import CODEC_MASK, LEGACY_FIXED_BYTES, MAGIC_AT, NO_TIMESTAMP, V0_MESSAGE, V2_HEADER, position
from kfbench.log import read_log, write_log
from kfbench.log.inspect import CONTROL_TYPES
from kfbench.measure.checksums import wrong_checksum
from kfbench.measure.golden.steps import ON_PURPOSE, REMADE, Remade
from kfbench.measure.verify import Outcome
from kfbench.shipped import DATASETS

GOLDEN: Final = DATASETS / "golden"
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
MADE_BY_HAND: Final = ("corrupt", "wrapper")  # categories that Kafka's reader takes and its writer would not write

# Kafka's names in a sidecar, ours in DecodedLog.batch_rows.
_BATCH: Final = {
    "position": "position",
    "magic": "magic",
    "size": "size_bytes",
    "crc": "crc",
    "compression": "codec",
    "timestampType": "timestamp_type",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "maxTimestamp": "max_timestamp_ms",
    "count": "count",
    "attributes": "attributes",
    "baseTimestamp": "base_timestamp_ms",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "isTransactional": "is_transactional",
    "isControlBatch": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "decompressedSize": "records_size_bytes",
}
# What is looked up in a sidecar whatever it says; all else in a batch or record is compared if it is there.
_SIDECAR: Final = {
    "sha256": str, "error": object, "byteExact": bool, "validBytes": int, "trailingBytes": int, "batches": list
}  # fmt: skip
_ERROR: Final = {"batch": int, "message": object}
_BATCH_AT: Final = {"position": int, "size": int, "magic": int}
_BATCH_READ: Final = {"compression": str, "records": list}
# Size, checksum and magic of single records are in the bytes, which are compared as such.
_NOT_COMPARED: Final = {"isValid", "decompressedSha256", "decompressError", "records"}
_RECORD_NOT_COMPARED: Final = {"size", "crc", "magic"}
_TIMESTAMP_TYPES: Final = {"NO_TIMESTAMP_TYPE": "none", "CREATE_TIME": "create", "LOG_APPEND_TIME": "append"}
_ABSENT: Final = {"delete_horizon_ms": -1}  # what we say where Kafka says null
_NO_ERROR: Final = "UNKNOWN_SERVER_ERROR"  # what a client hears of an exception that Kafka has no error for
_DAMAGE: Final = ("CORRUPT_MESSAGE", "INVALID_RECORD")
_PACKED_OTHERWISE: Final = {"position", "size", "crc"}  # by another build of a codec
_SEQUENCES: Final = 1 << 31  # they start again at 0 after the largest int32


def vectors(folder: Path = GOLDEN) -> list[dict[str, Any]]:
    """The entries of the folder's index. Raises InvalidConfig."""
    index = folder / "index.json"
    try:
        entries = json.loads(index.read_text(encoding="utf-8"))
        if not entries or not all({"name", "category", "sha256"} <= entry.keys() for entry in entries):
            raise InvalidConfig(f"{index}: a list of name, category and sha256 is wanted")
    except OSError as error:
        raise InvalidConfig(f"{index}: {error.strerror}: is this a folder of golden vectors?") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidConfig(f"{index}: {error}") from None
    return list(entries)


def check_vector(folder: Path, entry: dict[str, Any]) -> Iterator[Outcome]:
    """Every check that the vector allows; each stops at its first difference."""
    name = str(entry["name"])
    try:
        data, sidecar = _read(folder, name)
    except InvalidConfig as error:
        yield Outcome(check="sha256", format="–", subject=name, problem=f"{error}")
        return
    formats = _formats(data, sidecar["batches"])

    def outcome(check: str, problem: str | None) -> Outcome:
        return Outcome(check=check, format=formats, subject=name, problem=problem or "")

    found = hashlib.sha256(data).hexdigest()
    wrong = next((said for said in (entry["sha256"], sidecar["sha256"]) if said != found), None)
    yield outcome("sha256", wrong and f"{len(data)} bytes with {found[:16]}…, not {wrong[:16]}…")
    if sidecar["error"] is not None:
        yield outcome("refused", next(_taken(data, sidecar), None))
        return
    if "source" in sidecar:
        yield outcome(*_remade(data, sidecar))
    try:
        log = read_log(data)
    except KfbenchError as error:
        yield outcome("fields", f"Kafka reads it, kfbench refuses it: {error}")
        return
    difference = next(_differences(log, sidecar["batches"], sidecar["trailingBytes"]), None)
    yield outcome("fields", difference)
    yield outcome("checksums", wrong_checksum(data))
    if difference:  # the sidecar does not describe these bytes, and could not say where they differ from ours
        return
    try:
        again = bytes(write_log(log))
    except KfbenchError as error:
        if isinstance(error, WouldLose) and entry["category"] in MADE_BY_HAND:  # such as times inside a v0 wrapper
            yield outcome("not rewritable", None)
        else:
            yield outcome("same bytes", f"cannot be written anew: {error}")
        return
    if entry["category"] in MADE_BY_HAND:
        same = read_log(again).source_records == log.source_records
        yield outcome("same records", None if same else "other records are read from what was written anew")
    elif not log.batch_rows["canonical"].all():
        yield outcome("same bytes", "Kafka's own writer wrote it, and kfbench says that it is not canonical")
    elif sidecar["byteExact"]:
        yield outcome("same bytes", first_difference(data[: sidecar["validBytes"]], again))
    else:
        yield outcome("decompressed", next(_changed_when_plain(data, again, sidecar["batches"]), None))


def _read(folder: Path, name: str) -> tuple[bytes, dict[str, Any]]:
    """The log and its sidecar. Raises InvalidConfig, which names the file and what it lacks."""
    file = f"{name}.bin"
    try:
        data = (folder / file).read_bytes()
        file = f"{name}.json"
        sidecar = json.loads((folder / file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidConfig(f"{file}: {error}") from None
    if lacking := next(_lacking(sidecar), None):
        raise InvalidConfig(f"{file}: {lacking}")
    return data, sidecar


def _lacking(sidecar: Any) -> Iterator[str]:
    """What a sidecar needs to be checked at all; that its figures are right is the checks' own question."""
    yield from _unlike(sidecar, _SIDECAR, "")
    batches, error = sidecar["batches"], sidecar["error"]
    if error is not None:
        yield from _unlike(error, _ERROR, "error: ")
    for i, batch in enumerate(batches):
        yield from _unlike(batch, _BATCH_AT, f"batch {i}: ")
        if error is not None and i >= error["batch"]:  # Kafka got no further
            continue
        yield from _unlike(batch, _BATCH_READ, f"batch {i}: ")
        for k, record in enumerate(batch["records"]):
            yield from _unlike(record, {}, f"batch {i}: record {k}: ")
            headers = record.get("headers", [])
            if not isinstance(headers, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in headers):
                yield f"batch {i}: record {k}: headers: a list of pairs is wanted"


def _unlike(given: Any, wanted: Mapping[str, type], where: str) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"{where}an object is wanted, not {type(given).__name__}"
    elif missing := [name for name in wanted if name not in given]:
        yield f"{where}{', '.join(missing)}: missing"
    else:
        for name, kind in wanted.items():
            if not isinstance(given[name], kind):
                yield f"{where}{name}: {kind.__name__} is wanted, not {type(given[name]).__name__}"


def _formats(data: bytes, batches: list[dict[str, Any]]) -> str:
    magics = {batch["magic"] for batch in batches} or set(data[MAGIC_AT : MAGIC_AT + 1])
    return (
        "+".join(BY_MAGIC[magic].name if magic in BY_MAGIC else f"magic {magic}" for magic in sorted(magics)) or "empty"
    )


def _taken(data: bytes, sidecar: dict[str, Any]) -> Iterator[str]:
    """How our refusal differs from Kafka's: it names the same batch, and all before that one is read as Kafka does."""
    at, batches = sidecar["error"]["batch"], sidecar["batches"]
    where = batches[at]["position"] if at < len(batches) else sum(batch["size"] for batch in batches)
    said = f"Kafka refuses batch {at} at byte {where} ({sidecar['error']['message']})"
    try:
        read_log(data)
    except CorruptLog as error:
        if error.position != where:
            yield f"{said}, kfbench another: {error}"
    except KfbenchError as error:
        yield f"{said}, kfbench says no batch: {error}"
    else:
        yield f"{said}, kfbench reads it"
        return
    kept = read_log(data, on_error="skip")
    if kept.errors[0].position != where:
        yield f"{said}, kfbench leaves out the one at byte {kept.errors[0].position}"
    yield from _differences(kept, batches[:at])


def _remade(data: bytes, sidecar: dict[str, Any]) -> tuple[str, str | None]:
    """(check, problem): the broker's step taken by us."""
    check, remake = REMADE[sidecar["category"]]
    refused = sidecar.get("refused")
    said = refused and f"Kafka's broker says {refused['error']}: {refused['message']}"
    problem: str | None
    try:
        made = remake(bytes.fromhex(sidecar["source"]), sidecar["spec"]["steps"][-1])
    except KfbenchError as error:
        problem = _other_refusal(refused, said, error)
    else:
        problem = f"{said}, kfbench takes it" if refused else next(_other_result(data, sidecar, made), None)
    if sidecar["name"] not in ON_PURPOSE and (refused is None or refused["error"] != _NO_ERROR):
        return check, problem
    return "differs on purpose", None if problem else "no longer"


def _other_refusal(refused: dict[str, Any] | None, said: str | None, error: KfbenchError) -> str | None:
    """Damage has a name of its own here; to Kafka's broker it is a bad checksum or a record that cannot be read."""
    if refused is None:
        return f"Kafka's broker takes it, kfbench refuses it: {error}"
    same = refused["error"] in _DAMAGE if isinstance(error, CorruptLog) else refused["error"] == _error_of(error)
    return None if same else f"{said}, kfbench: {error}"


def _error_of(error: KfbenchError) -> str | None:
    return error.error if isinstance(error, Refused) else None


def _other_result(data: bytes, sidecar: dict[str, Any], made: Remade) -> Iterator[str]:
    counts = sidecar.get("validation", sidecar)
    for name, ours in made.counts.items():
        if counts[name] != ours:
            yield f"{name}: Kafka counts {counts[name]}, kfbench {ours}"
    if sidecar["byteExact"]:
        if difference := first_difference(data, made.data):
            yield difference
        return
    batches = sidecar["batches"]
    packed = [{name: batch[name] for name in batch.keys() - _PACKED_OTHERWISE} for batch in batches]
    yield from _differences(read_log(made.data), packed, 0)
    yield from _changed_when_plain(data, made.data, batches)


def _differences(log: DecodedLog, batches: list[dict[str, Any]], trailing_bytes: int | None = None) -> Iterator[str]:
    """trailing_bytes: None where Kafka has stopped early; what we read after that is none of its business."""
    if len(log) < len(batches) or (trailing_bytes is not None and len(log) > len(batches)):
        yield f"Kafka reads {len(batches)} batches, kfbench {len(log)}"
    if trailing_bytes not in (None, log.trailing_bytes):
        yield f"Kafka leaves {trailing_bytes} bytes over, kfbench {log.trailing_bytes}"
    for i, (batch, row) in enumerate(zip(batches, log.batch_rows, strict=False)):
        where = f"batch {i} at byte {row['position']}"
        for name, kafkas, ours in _batch_fields(batch, row):
            if kafkas != ours:
                yield f"{where}: {name}: Kafka reads {kafkas}, kfbench {ours}"
        first, end = int(log.bounds[i]), int(log.bounds[i + 1])
        if end - first != len(batch["records"]):
            yield f"{where}: Kafka reads {len(batch['records'])} records, kfbench {end - first}"
        for k, record in zip(range(first, end), batch["records"], strict=False):
            for name, kafkas, ours in _record_fields(record, log, k, row):
                if kafkas != ours:
                    yield f"{where}: record {k - first}: {name}: Kafka reads {kafkas}, kfbench {ours}"


def _batch_fields(batch: dict[str, Any], row: NDArray[np.void]) -> Iterator[tuple[str, Any, Any]]:
    """(Kafka's name, what Kafka reads, what we read); a field that is unknown here is one that differs."""
    for name in batch.keys() - _NOT_COMPARED:
        kafkas: Any = batch[name]
        if name == "nextOffset":
            yield name, kafkas, _after(int(row["last_offset"]))
        elif name == "timestampType":
            yield name, _TIMESTAMP_TYPES.get(kafkas, kafkas), timestamp_types(np.atleast_1d(row))[0]
        elif name == "compression":
            yield name, kafkas, CODEC_NAMES[row["codec"]]
        elif name == "count" and kafkas is None:  # Kafka does not count v0 and v1
            yield name, len(batch["records"]), row["count"]
        elif name in _BATCH:
            yield name, _ABSENT.get(_BATCH[name]) if kafkas is None else kafkas, row[_BATCH[name]]
        else:
            yield name, kafkas, "has no such field"


def _timestamp_type(log: DecodedLog, k: int, row: NDArray[np.void]) -> str:
    """The timestamp type of record k, in the batch of this row."""
    if row["mixed_magic"] and log.records.timestamps_ms[k] == NO_TIMESTAMP:  # a message of v0
        return "none"
    return str(timestamp_types(np.atleast_1d(row))[0])


def _record_fields(
    record: dict[str, Any], log: DecodedLog, k: int, row: NDArray[np.void]
) -> Iterator[tuple[str, Any, Any]]:
    records, key, value = log.records, log.records.key(k), log.records.value(k)
    for name in record.keys() - _RECORD_NOT_COMPARED:
        kafkas: Any = record[name]
        ours: Any
        match name:
            case "offset":
                ours = int(records.offsets[k])
            case "timestamp":
                ours = int(records.timestamps_ms[k])
            case "timestampType":
                kafkas, ours = _TIMESTAMP_TYPES.get(kafkas, kafkas), _timestamp_type(log, k, row)
            case "key":
                ours = _hex(key)
            case "value":
                ours = _hex(value)
            case "headers":
                kafkas = [(header, said) for header, said in kafkas]
                ours = [(header, _hex(content)) for header, content in records.headers(k)]
            case "sequence":
                base = int(row["base_sequence"])
                distance = int(records.offsets[k] - row["base_offset"])
                ours = -1 if base == -1 else (base + distance) % _SEQUENCES
            case "controlType":
                number = int.from_bytes((key or b"")[2:4], "big")
                ours = CONTROL_TYPES.get(number, "unknown").upper().replace(" ", "_")
            case "coordinatorEpoch":
                ours = int.from_bytes((value or b"")[2:6], "big", signed=True)
            case _:
                ours = "has no such field"
        yield name, kafkas, ours


def _after(offset: int) -> int:
    """The next offset; Java's wraps after the largest."""
    return offset + 1 if offset < 2**63 - 1 else -(2**63)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def first_difference(wanted: bytes, found: bytes) -> str | None:
    if wanted == found:
        return None
    pairs = enumerate(zip(wanted, found, strict=False))
    at = next((i for i, (one, other) in pairs if one != other), min(len(wanted), len(found)))
    return f"byte {at} differs: Kafka writes {len(wanted)} bytes, kfbench {len(found)}"


def _changed_when_plain(data: bytes, again: bytes, batches: list[dict[str, Any]]) -> Iterator[str]:
    """Kafka's bytes and ours, decompressed, each beside the sha256 that Kafka gives."""
    written = read_log(again).batch_rows
    if len(written) != len(batches):
        yield f"Kafka writes {len(batches)} batches, kfbench {len(written)}"
    for i, (batch, row) in enumerate(zip(batches, written, strict=False)):
        kafkas, ours = (
            source[start : start + size]
            for source, start, size in (
                (data, batch["position"], batch["size"]),
                (again, int(row["position"]), int(row["size_bytes"])),
            )
        )
        where = f"batch {i} at byte {batch['position']}"
        if batch["compression"] == "none":
            if difference := first_difference(kafkas, ours):
                yield f"{where}: {difference}"
            continue
        wanted = str(batch.get("decompressedSha256"))
        for whose, entry in (("Kafka's", kafkas), ("kfbench's", ours)):
            try:
                found = hashlib.sha256(plain(entry)).hexdigest()
            except Undecodable as error:
                yield f"{where}: {whose} bytes: {error}"
                continue
            if found != wanted:
                yield f"{where}: {whose} bytes decompress to {found[:16]}…, not {wanted[:16]}…"


def plain(entry: bytes) -> bytes:
    """What a codec covers in a compressed batch: the records of v2, the value of a v0 or v1 wrapper."""
    magic = entry[MAGIC_AT]
    layout = V0_MESSAGE if magic < 2 else V2_HEADER
    attributes = position(layout, "attributes") + layout["attributes"].itemsize - 1  # the codec is in the last byte
    codec = entry[attributes] & CODEC_MASK
    body = entry[LEGACY_FIXED_BYTES[magic] if magic < 2 else V2_HEADER.itemsize :]
    return (LEGACY_LZ4 if magic == 0 and codec == LEGACY_LZ4.id else codec_of(codec)).decompress(body)
