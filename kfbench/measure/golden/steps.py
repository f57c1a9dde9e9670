"""The broker's step of a golden vector, taken by our own paths on the same source.

A step has Kafka's names, as tests/oracle/cases/ writes them into `spec.steps` of a sidecar.
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
    """The log that one of our paths made, and the counts that Kafka gives with its own, under Kafka's names."""

    data: bytes
    counts: Mapping[str, Any]


def append_options(step: Step) -> dict[str, Any]:
    """Return the keywords of `append`. Kafka's validator always drops what a format cannot carry."""
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
    """Return the keywords of `convert`. Kafka's down-conversion drops it, too."""
    return {"to": f"v{step['toMagic']}", "first_offset": step["firstOffset"], "keep_older": True, "lossy": True}


def filter_options(step: Step, source: bytes) -> dict[str, Any]:
    """Return the keywords of `filtered`, which takes positions of records where Kafka's filter takes offsets."""
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
    """The name of a check, and the function that takes the step on a source."""

    check: str
    remake: Callable[[bytes, Step], Remade]


# Regeneration steps per golden category.
REMADE: Final[Mapping[str, Regeneration]] = {
    "validate": Regeneration("appended", _appended),
    "downconvert": Regeneration("converted", _converted),
    "compaction": Regeneration("compacted", _compacted),
}

# Vectors on which we differ from Kafka, besides those where its broker throws an exception that it has no error for.
ON_PURPOSE: Final[Mapping[str, str]] = {
    "validate_v2_gzip_commit_to_zstd": "when Kafka rebuilds a compressed control batch, the result is no control batch",
}
