"""Times Apache Kafka's own writer and reader beside ours, on one host and the same records: `make java-cpu`.

usage: java_cpu.py [--rounds N] [--out FILE]

Cells are those of the default profile at POINTS, so that a report's own rows have the same records. Each log that Java
writes must be ours byte for byte, or nothing is kept. Every sample goes into datasets/java/cpu.json, with what the host
is; a report shows the ratios of both writers beside each other and names the host.
"""

import argparse
import hashlib
import json
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kfbench.formats import FORMATS
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.alone import alone
from kfbench.measure.environment import environment
from kfbench.records import Records
from kfbench.sweep.cell import measure_cell
from kfbench.sweep.grid import Cell, load_profile
from kfbench.workloads import Sample
from tools import jvm

ROOT: Final = Path(__file__).resolve().parents[1]
OUT: Final = ROOT / "datasets" / "java" / "cpu.json"
SOURCES: Final = (ROOT / "tools" / "java" / "KafkaCpu.java",)
POM: Final = ROOT / "tests" / "oracle" / "pom.xml"
POINTS: Final = {"batch_size": (1, 10, 100), "value_bytes": (10, 100, 1000), "key_bytes": (16,)}
BLOCK: Final = "cpu-value"
MAGICS: Final = ("v0", "v1", "v2")
ROUNDS: Final = 49
SAMPLE_US: Final = 1_000
LEAST_WARM_UP_S, MOST_WARM_UP_S = 2.0, 8.0  # of Java: an operation of a cell
KEPT: Final = ("operation", "format", "arm", "inner_loops", "cpu_ns", "wall_ns")


class DiffersError(Exception):
    """Java wrote other bytes than ours."""


def cells() -> list[Cell]:
    """Of the default profile's block of value sizes, without a codec, for the formats that Kafka writes."""
    found = [
        replace(cell, formats=MAGICS, grids={BLOCK: MAGICS}, rounds=ROUNDS, sample_us=SAMPLE_US)
        for cell in load_profile("default").cells
        if BLOCK in cell.grids and all(cell.axes[axis] in levels for axis, levels in POINTS.items())
    ]
    return sorted(found, key=lambda cell: (cell.axes["batch_size"], cell.axes["value_bytes"]))


def request(asked: Sequence[tuple[Cell, Sample]], rounds: int) -> bytes:
    """What KafkaCpu.java reads."""
    warm_up = (int(each * 1e9) for each in (LEAST_WARM_UP_S, MOST_WARM_UP_S))
    parts = [struct.pack(">iiqqq", len(asked), rounds, SAMPLE_US * 1_000, *warm_up)]
    for cell, sample in asked:
        parts.append(struct.pack(">ii", len(sample.records), int(cell.axes["batch_size"])))
        parts += _entries(sample.records)
    return b"".join(parts)


def _entries(records: Records) -> Iterator[bytes]:
    for i, (offset, timestamp) in enumerate(zip(records.offsets.tolist(), records.timestamps_ms.tolist(), strict=True)):
        yield struct.pack(">qq", offset, timestamp)
        for item in (records.key(i), records.value(i)):
            yield struct.pack(">i", NULL_LENGTH) if item is None else struct.pack(">i", len(item)) + item


def java_times(asked: Sequence[tuple[Cell, Sample]], rounds: int) -> tuple[dict[str, str], list[list[dict[str, Any]]]]:
    """(versions, arms of each cell). Raises DiffersError, jvm.ToolError."""
    jars = jvm.fetched(POM)
    command = jvm.java("timing.KafkaCpu", class_path=[jvm.compiled(SOURCES, jars), f"{jars}/*"])
    done = subprocess.run(command, input=request(asked, rounds), stdout=subprocess.PIPE, check=True)
    versions, *lines = map(json.loads, done.stdout.splitlines())
    arms: list[list[dict[str, Any]]] = [[] for _ in asked]
    for line in lines:
        cell, sample = asked[line["cell"]]
        if "sha256" in line:
            ours = FORMATS[f"v{line['magic']}"].encode(sample.records, sample.bounds, lossy=True).data
            if hashlib.sha256(ours.data).hexdigest() != line["sha256"]:
                raise DiffersError(f"{cell.title}: v{line['magic']}: Java wrote {line['bytes']} other bytes than ours")
        else:
            arms[line["cell"]].append({"writer": "java"} | {name: line[name] for name in KEPT})
    return versions, arms


def our_times(cell: Cell) -> list[dict[str, Any]]:
    rows = measure_cell(cell)
    if wrong := [row for row in rows if row["status"] != "ok"]:
        raise DiffersError(str(wrong[0]["error"]))
    return [{"writer": "kfbench"} | {name: row[name] for name in KEPT} for row in rows]


def measured(asked: Sequence[Cell], rounds: int) -> dict[str, Any]:
    """Ours, then Java's, with nothing else beside them that measures."""
    samples = [cell.workload.generate(records=cell.records, seed=cell.seed) for cell in asked]
    with alone():
        ours = [our_times(replace(cell, rounds=rounds)) for cell in asked]
        versions, java = java_times(list(zip(asked, samples, strict=True)), rounds)
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **versions,
        "environment": environment(),
        "cells": [
            {"cell_id": cell.cell_id, "records": cell.records}
            | {axis: cell.axes[axis] for axis in POINTS}
            | {"arms": both + others}
            for cell, both, others in zip(asked, ours, java, strict=True)
        ],
    }


def text(found: dict[str, Any]) -> str:
    """JSON with a line an arm."""
    head = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found if name != "cells"]
    cells = []
    for cell in found["cells"]:
        row = json.dumps({name: cell[name] for name in cell if name != "arms"})
        arms = ",\n   ".join(json.dumps(arm, separators=(",", ":")) for arm in cell["arms"])
        cells.append(f'{row[:-1]}, "arms": [\n   {arms}]}}')
    return "{" + ",\n ".join(head) + ',\n "cells": [\n  ' + ",\n  ".join(cells) + "]}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Kafka's own writer and reader beside ours")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    try:
        found = measured(cells(), asked.rounds)
    except (DiffersError, jvm.ToolError) as error:
        raise SystemExit(f"make java-cpu: {error}") from None
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(text(found), encoding="utf-8")
    sys.stderr.write(f"{len(found['cells'])} cells in {asked.out}\n")


if __name__ == "__main__":
    main()
