"""Broker steps of golden vectors (append, conversion, compaction), repeated with our own paths on the same source.

A step is a mapping under Kafka's names. tests/oracle/cases/ writes it into `spec.steps` of a sidecar.
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
    """The result of one of our paths. data: the log; counts: the counts that Kafka reports, too, by Kafka's name."""

    data: bytes
    counts: Mapping[str, Any]


def append_options(step: Step) -> dict[str, Any]:
    """Return the keyword arguments of `append`. lossy: Kafka's validator always drops what a format cannot carry."""
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
    """Return the keyword arguments of `convert`. lossy: Kafka's down-conversion drops what a format cannot carry."""
    return {"to": f"v{step['toMagic']}", "first_offset": step["firstOffset"], "keep_older": True, "lossy": True}


def filter_options(step: Step, source: bytes) -> dict[str, Any]:
    """Return the keyword arguments of `filtered`. Kafka's filter selects records by offset, `filtered` by position."""
    retention = step["batchRetention"]
    retained = [] if retention == "DELETE" else step["retain"]
    return {
        "keep": np.isin(read_log(source).records.offsets, np.array(retained, np.int64)),
        "retain_empty": retention == "RETAIN_EMPTY",
        "emptied_transaction": step["markerOfEmptyTransaction"],
        "now_ms": step["now"],
        "delete_retention_ms": step["deleteRetentionMs"],
    }


def _appended(source: bytes, step: Step) -> Remade:
    made = append(source, None, **append_options(step))
    counts = {
        "maxTimestampMs": int(made.max_timestamp_ms[0]),
        "messageSizeMaybeChanged": made.work.rewritten > 0,
        "nextOffset": made.next_offset,
        "numRecordsConverted": made.converted_records,
    }
    return Remade(data=made.data.tobytes(), counts=counts)


def _converted(source: bytes, step: Step) -> Remade:
    made = convert(source, **convert_options(step))
    return Remade(data=made.data.tobytes(), counts={"numRecordsConverted": made.converted_records})


def _compacted(source: bytes, step: Step) -> Remade:
    return Remade(data=filtered(source, **filter_options(step, source)).data.tobytes(), counts={})


class Regeneration(NamedTuple):
    """A check's name, and the function that repeats a step on a source log."""

    check: str
    remake: Callable[[bytes, Step], Remade]


# How the step of a vector is repeated, by the vector's category.
REMADE: Final[Mapping[str, Regeneration]] = {
    "validate": Regeneration("appended", _appended),
    "downconvert": Regeneration("converted", _converted),
    "compaction": Regeneration("compacted", _compacted),
}

# Vectors on which kfbench differs from Kafka on purpose, and the reasons. Not listed: vectors on which Kafka's broker
# throws an exception that has no error in its protocol.
ON_PURPOSE: Final[Mapping[str, str]] = {
    "validate_v2_gzip_commit_to_zstd": "when Kafka rebuilds a compressed control batch, the result is no control batch",
}
