"""Broker steps of golden vectors (append, conversion, compaction), repeated with kfbench's broker code.

A step is a mapping with Kafka's names for parameters, an item of `spec.steps` of the vector's
JSON file. Kafka and kfbench start from the same source log.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.broker.append import append
from kfbench.broker.compact import filtered
from kfbench.broker.convert import convert
from kfbench.log import read_log

Step = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Remade:
    """The result of a step that kfbench repeated. data: the log. counts: Kafka's name of a count -> kfbench's count."""

    data: bytes
    counts: Mapping[str, Any]


def append_options(step: Step) -> dict[str, Any]:
    """Return the keyword arguments of `append` for this step.

    lossy is True, because Kafka's validator always drops fields that a format cannot carry.
    """
    codec = step["targetCompression"]
    return {
        "to": f"v{step['toMagic']}",
        "codec": None if codec == "producer" else codec,
        "base_offset": step["baseOffset"],
        "timestamp_type": "append" if step["timestampType"] == "LOG_APPEND_TIME" else "create",
        "now_ms": step["now"],
        "partition_leader_epoch": step["partitionLeaderEpoch"],
        "origin": step["origin"].lower(),
        "before_max_ms": step["beforeMaxMs"],
        "after_max_ms": step["afterMaxMs"],
        "compacted": step["compacted"],
        "lossy": True,
    }


def convert_options(step: Step) -> dict[str, Any]:
    """Return the keyword arguments of `convert` for this step.

    lossy is True, because Kafka's down-conversion drops fields that a format cannot carry.
    """
    return {"to": f"v{step['toMagic']}", "first_offset": step["firstOffset"], "keep_older": True, "lossy": True}


def filter_options(step: Step, source: bytes) -> dict[str, Any]:
    """Return the keyword arguments of `filtered` for this step.

    Kafka's step lists the offsets of the records to keep. `filtered` needs bool[records], one item per record of
    `source`.
    """
    retention = step["batchRetention"]
    retained = [] if retention == "DELETE" else step["retain"]
    return {
        "keep": np.isin(read_log(source).records.offsets, np.array(retained, np.int64)),
        "retain_empty": retention == "RETAIN_EMPTY",
        "emptied_transaction": step["markerOfEmptyTransaction"],
        "now_ms": step["now"],
        "delete_retention_ms": step["deleteRetentionMs"],
    }


def _append(source: bytes, step: Step) -> Remade:
    made = append(source, None, **append_options(step))
    counts = {
        "maxTimestampMs": int(made.max_timestamp_ms[0]),
        "messageSizeMaybeChanged": made.work.rewritten > 0,
        "nextOffset": made.next_offset,
        "numRecordsConverted": made.converted_records,
    }
    return Remade(data=made.data.tobytes(), counts=counts)


def _convert(source: bytes, step: Step) -> Remade:
    made = convert(source, **convert_options(step))
    return Remade(data=made.data.tobytes(), counts={"numRecordsConverted": made.converted_records})


def _compact(source: bytes, step: Step) -> Remade:
    return Remade(data=filtered(source, **filter_options(step, source)).data.tobytes(), counts={})


class Regeneration(NamedTuple):
    """The name of a check, and the function that repeats its broker step on a source log."""

    check: str
    remake: Callable[[bytes, Step], Remade]


# The category of a vector -> how its broker step is repeated.
REMADE: Final[Mapping[str, Regeneration]] = {
    "validate": Regeneration("appended", _append),
    "downconvert": Regeneration("converted", _convert),
    "compaction": Regeneration("compacted", _compact),
}

# Vectors on which kfbench differs from Kafka on purpose, and the reasons. Not listed: vectors on which Kafka's broker
# throws an exception that has no error in its protocol.
ON_PURPOSE: Final[Mapping[str, str]] = {
    "validate_v2_gzip_commit_to_zstd": "when Kafka rebuilds a compressed control batch, the result is no control batch",
}
