"""Small stored runs with known CPU ratios, and their files of machines."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.machines.contribute import machine_file
from kfbench.machines.file import MachineFile, Ratio
from kfbench.measure.schema import SCHEMA
from kfbench.store import Run
from kfbench.workloads.grid import GridPoint
from tests.runs import stored

NS: Final[Mapping[str, int]] = {"v2": 1_000, "v3": 1_100, "columnar": 400}
ENVIRONMENT: Final[Mapping[str, Any]] = {
    "host": "host-0badcafe",
    "system": "Linux 6.18, glibc 2.36",
    "machine": "x86_64",
    "cpu": "AMD EPYC 9R14",
    "cpu_model": "family 25, model 17",
    "cores": 2,
    "physical_cores": 2,
    "logical_cores": 4,
    "virtual": True,
    "cache": {"L2 unified": "1024K", "L3 unified": "32768K"},
    "kernel_features": {"fast_crc": True, "wide_crc": False, "vectors": "AVX2", "host_vectors": "AVX-512"},
    "python": "3.11.7",
    "packages": {"kfbench": "0.1.0", "numpy": "2.4.6"},
    "codecs": {"none": "-", "zstd": "zstandard 0.25.0 (zstd 1.5.7)"},
    "git_revision": "5b99012e2e71d99deaa090bf04906775f7c5fbb4",
}


def axes(**changed: Any) -> dict[str, Any]:
    point = GridPoint(**changed)
    return {axis.name: getattr(point, axis.name) for axis in fields(point) if axis.name in SCHEMA.names}


def cpu_rows(ns: Mapping[str, int] = NS, batch_size: int = 10, **changed: Any) -> list[dict[str, Any]]:
    """Return rows of one timed cell. ns: format -> ns per call, to which the rounds add 0 to 4."""
    common = {
        "kind": "cpu", "cell_id": f"{batch_size:016x}", "status": "ok", "grid": "g", "workload": "grid", "seed": 0,
        "codec": "none", "operation": "encode", "arm": "measure", "host": "host-0badcafe", "records": 100,
        "inner_loops": 1, "cache": "resident",
    }  # fmt: skip
    rows = common | axes(batch_size=batch_size) | changed
    return [
        rows | {"format": name, "cpu_ns": [each + i % 5 for i in range(19)], "wall_ns": [each] * 19}
        for name, each in ns.items()
    ]


def size_rows(sizes: Mapping[str, int], batch_size: int = 10, **changed: Any) -> list[dict[str, Any]]:
    common = {
        "kind": "bytes", "cell_id": f"{batch_size:016x}", "status": "ok", "grid": "g", "workload": "grid", "seed": 0,
        "codec": "none", "host": "host-0badcafe", "records": 100, "batches": 10,
    }  # fmt: skip
    return [common | axes(batch_size=batch_size) | {"format": n, "size_bytes": s} | changed for n, s in sizes.items()]


def run_of(
    folder: Path, rows: Sequence[dict[str, Any]], environment: Mapping[str, Any] = ENVIRONMENT, **facts: Any
) -> Run:
    return stored(folder, list(rows), **{"profile": "machine", "code": "0" * 16, "environment": environment} | facts)


def file_of(folder: Path, ratios: Mapping[str, int] = NS, **changed: Any) -> MachineFile:
    """Return the file of a machine with one cell. changed: fields to replace."""
    run = run_of(folder, [*cpu_rows(ratios), *size_rows({"v2": 900, "v3": 800})])
    return msgspec.structs.replace(machine_file(run), **changed)


def ratio_of(found: MachineFile, name: str) -> Ratio:
    (ratio,) = (each for each in found.ratios if each.format == name)
    return ratio
