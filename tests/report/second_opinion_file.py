"""Write a file of JMH runs with known CPU time ratios."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kfbench.report.topics import second_opinion
from kfbench.report.topics.second_opinion import AA, AGAIN, CLAIMED, OURS, OWN, SecondOpinion

JAVA: Mapping[str, float] = {
    "v2": 80.0,
    OWN: 100.0,
    AGAIN: 102.0,
    "v3": 90.0,
    "v3-headers-first": 110.0,
    "columnar": 50.0,
}
KERNELS: Mapping[str, int] = {"v2": 1000, "v3": 1100, "v3-headers-first": 1200, "columnar": 400, AA: 1000}


def run(
    kafka: str = "4.4.0",
    cells: str = CLAIMED,
    java: Mapping[str, float] = JAVA,
    kernels: Mapping[str, int] = KERNELS,
    spread: float = 0.01,
    operations: tuple[str, ...] = ("write", "iterate"),
) -> dict[str, Any]:
    """Return a run with one cell per operation.

    Args:
        java: format -> ns per batch. spread: the formats differ from it by this share, each in other rounds.
        kernels: format -> ns per sample.
    """
    return {
        "kafka": kafka,
        "cells": cells,
        "measured": "2026-11-26T10:00:00+00:00",
        "environment": {"cpu": "a processor", "machine": "x86_64"},
        "rows": [
            {
                "operation": operation,
                "format": name,
                "codec": "none",
                "records": 50,
                "fork_ns": [ns * (1 + spread * ((fork + place) % 3 - 1)) for fork in range(7)],
                "bytes_per_record": 48.0,
            }
            for operation in operations
            for place, (name, ns) in enumerate(java.items())
        ],
        "ours": [
            {
                "operation": operation,
                "format": name,
                "codec": "none",
                "records": 50,
                "records_per_sample": 100,
                "cpu_ns": [ns + drift for drift in range(-3, 4)],
            }
            for operation in dict.fromkeys(OURS[each] for each in operations)
            for name, ns in kernels.items()
        ],
    }


def write(folder: Path, *runs: dict[str, Any]) -> SecondOpinion:
    """Write the runs into a file and load it."""
    path = folder / "jmh.json"
    path.write_text(json.dumps({"runs": runs or [run()]}), encoding="utf-8")
    second_opinion.load.cache_clear()
    found = second_opinion.load(path)
    assert found
    return found
