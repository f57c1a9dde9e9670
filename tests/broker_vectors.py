"""Golden vectors of Kafka's broker code, with their input: validation, down-conversion and compaction.

for vector in broker_vectors("validate"):
    made = append(vector.source, None, **vector.options)

`vector.options` are keyword arguments of `append` (validate), `convert` (downconvert) or `filtered` (compaction). See
`kfbench.measure.golden.steps`.

`vector.expected` are Kafka's bytes. Our codecs may pack differently. So compare `vector.sidecar["batches"]` with
`tests.sidecars.check_sidecar`, which ignores size, position and crc there. Compare bytes if
`vector.sidecar["byteExact"]`.

Kafka's counts are `vector.sidecar["numRecordsConverted"]` and `vector.sidecar["validation"]` (maxTimestampMs,
messageSizeMaybeChanged, numRecordsConverted, nextOffset).

`vector.refused` is None, or {error, class, message, recordErrors} of the exception in Kafka's broker. Then `expected`
is empty. `error` is the `error` of our `errors.Refused`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kfbench.formats import FORMATS
from kfbench.measure.golden.steps import append_options, convert_options, filter_options
from kfbench.measure.golden.vectors import GOLDEN, vectors
from tests.common import batch_fields_of, bounds_of, records_of
from tests.reference.model import Fields, Message
from tests.strategies import Case

FURTHER = os.environ.get("KFBENCH_GOLDEN")
"""A folder of further vectors, which describe their input instead of holding it."""

Spec = dict[str, Any]
LATER_MS = 1_700_000_500_000  # default of the additional vectors
CLEANED_MS = 1_700_000_100_000
RETENTION_MS = 86_400_000


class BrokerVector(NamedTuple):
    name: str
    source: bytes
    options: Spec
    expected: bytes
    sidecar: Spec

    @property
    def refused(self) -> Spec | None:
        return self.sidecar.get("refused")

    def __str__(self) -> str:
        return self.name


def broker_vectors(category: str) -> list[BrokerVector]:
    """Return the vectors of one category, to pass to `pytest.mark.parametrize(..., ids=str)`.

    category: validate, downconvert or compaction.
    """
    return [*_of(GOLDEN, category), *(_of(Path(FURTHER), category) if FURTHER else ())]


def _of(folder: Path, category: str) -> Iterator[BrokerVector]:
    for entry in vectors(folder):
        if entry["category"] == category:
            name = entry["name"]
            sidecar = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            spec = sidecar["spec"]
            if "source" in sidecar:
                step, source = spec["steps"][-1], bytes.fromhex(sidecar["source"])
            else:
                step, source = _completed(spec["post"][-1]), _built(spec["steps"])
            expected = (folder / f"{name}.bin").read_bytes()
            yield BrokerVector(name, source, _options(category, step, source), expected, sidecar)


def _options(category: str, step: Spec, source: bytes) -> Spec:
    if category == "validate":
        return append_options(step)
    return convert_options(step) if category == "downconvert" else filter_options(step, source)


def _completed(step: Spec) -> Spec:
    """Return a step of an additional vector under our key names, with all defaults filled in."""
    given = step | {"timestampType": step.get("tsType", "CREATE_TIME"), "origin": step.get("origin", "CLIENT")}
    match step["op"]:
        case "validate":
            return {"now": LATER_MS, "compacted": False, "beforeMaxMs": None, "afterMaxMs": None} | given
        case "filter":
            cleaned = {"now": step.get("currentTime", CLEANED_MS), "deleteRetentionMs": RETENTION_MS}
            cleaned["markerOfEmptyTransaction"] = step.get("markerForEmptyTxn", False)
            return {"batchRetention": "DELETE_EMPTY"} | cleaned | given
    return given


# Build the input of an additional vector from its description, with our encoders. Other vectors show that these write
# the same bytes as Kafka.


def _built(steps: list[Spec]) -> bytes:
    return b"".join(map(_batch, steps))


def _batch(step: Spec) -> bytes:
    first = step.get("baseOffset", 0)
    match step["op"]:
        case "build":
            messages, codec, magic = _messages(step, first), step.get("compression", "none"), step["magic"]
        case "endTxn":
            kind = {"ABORT": 0, "COMMIT": 1}[step["type"]]
            key, value = kind.to_bytes(4, "big"), step["coordinatorEpoch"].to_bytes(6, "big")
            messages, codec, magic = (
                [Message(offset=first, timestamp_ms=step["timestamp"], key=key, value=value)],
                "none",
                2,
            )
        case "emptyHeader":
            messages, codec, magic = [], "none", 2
        case other:
            raise ValueError(other)
    case = Case(batches=(tuple(messages),), fields=(Fields(**_fields(step, magic)),))
    log = FORMATS[f"v{magic}"].encode(
        records_of(case.messages), bounds_of(case), codec=codec, batch_fields=batch_fields_of(case)
    )
    return bytes(log)


def _fields(step: Spec, magic: int) -> Spec:
    given: Spec = {}
    if step.get("tsType") == "LOG_APPEND_TIME":
        given["append_time_ms"] = step["logAppendTime"]
    if magic < 2:
        return given
    for ours, theirs in {
        "producer_id": "producerId",
        "producer_epoch": "producerEpoch",
        "base_sequence": "baseSequence",
        "is_transactional": "transactional",
        "partition_leader_epoch": "partitionLeaderEpoch",
        "last_offset": "lastOffset",
    }.items():
        if theirs in step:
            given[ours] = step[theirs]
    if step["op"] == "endTxn":
        given |= {"is_control": True, "is_transactional": True}
    if step["op"] == "emptyHeader":
        given |= {"base_offset": step["baseOffset"], "max_timestamp_ms": step["timestamp"]}
    return given


def _messages(step: Spec, first: int) -> list[Message]:
    messages, offset = [], first
    stamped = step["magic"] == 1 and step.get("tsType") == "LOG_APPEND_TIME"  # Kafka's builder also does inner ones
    for record in step["records"]:
        offset = record.get("offset", offset)
        messages.append(
            Message(
                offset=offset,
                timestamp_ms=step["logAppendTime"] if stamped else record["timestamp"],
                key=_content(record["key"]),
                value=_content(record["value"]),
                headers=tuple((name, _content(content)) for name, content in record.get("headers", ())),
            )
        )
        offset += 1
    return messages


def _content(text: str | None) -> bytes | None:
    if text is None:
        return None
    return bytes.fromhex(text.removeprefix("hex:")) if text.startswith("hex:") else text.encode()
