"""CPU times stored in datasets/: other implementations, and Java (JMH).

`make peers` timed other implementations (peers) and kfbench on the same records, in the same rounds, on one host. `make
jmh` timed the same formats in Java, and our kernels on the same batches. Their hosts may differ from a run's host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.noise import noise_facts, spreads
from kfbench.measure.schema import table as rows_of
from kfbench.shipped import DATASETS
from kfbench.text import percent

PEERS_FILE: Final = DATASETS / "peers" / "cpu.json"
OURS: Final = "kfbench"
LIMIT: Final = "limit"
KAFKA_FORMATS: Final = ("v0", "v1", BASE_FORMAT)  # the formats that Kafka writes, in the order of their magic

JMH_FILE: Final = DATASETS / "second-opinion" / "jmh.json"
OWN: Final = "v2-own"  # the arm that writes and reads v2 with the Java code of the other formats
AGAIN: Final = "v2-again"  # the same arm a second time (A/A)
AA: Final = "aa"  # v2 of our kernels, timed a second time
CLAIMED: Final = "claimed"  # the selection of cells behind claims, timed in several JVMs
NOISY: Final = 0.03  # the widest half of an interval, as a share, that is not marked

OurOperation = Literal["encode", "decode", "read-times", "append"]
OUR_OPERATIONS: Final[Mapping[str, OurOperation]] = {
    "write": "encode",
    "iterate": "decode",
    "skim": "read-times",
    "lookup": "read-times",
    "validate": "append",
}
"""Operation in Java -> the operation of our kernels beside it."""


class _PeerArm(msgspec.Struct):
    peer: str
    operation: str
    format: str
    arm: str
    inner_loops: int
    cpu_ns: list[int]
    wall_ns: list[int]


class PeerDifference(msgspec.Struct, frozen=True):
    """An implementation's output that differs from ours for the described records."""

    peer: str
    records: str
    difference: str


class _PeerCell(msgspec.Struct):
    batch_size: int
    value_bytes: int
    records: int
    arms: list[_PeerArm]


class _PeersFile(msgspec.Struct):
    measured: str
    peers: dict[str, str]
    environment: dict[str, Any]
    cells: list[_PeerCell]
    differences: list[PeerDifference] = []
    other_threads: dict[str, float] = {}


class ArmKey(NamedTuple):
    """The key of a measurement: implementation (peer), operation, format, batch size and value size.

    again: True for the second timing of BASE_FORMAT (A/A).
    """

    peer: str
    operation: str
    format: str
    batch_size: int
    value_bytes: int
    again: bool


@dataclass(frozen=True, kw_only=True)
class Peers:
    """The contents of the file with the times of other implementations (peers).

    Args:
        manifest: as in a run: `profile`, `title`, `started`, `environment`, `noise`.
        versions: peer -> its version, in the order of the table's columns.
        spread: the spread between arms, which widens the intervals of ratios.
        other_threads: peer -> CPU time of its process's other threads, as a share of the timed thread's.
        ns: CPU time per record in ns, float64[rounds]. All measurements of an operation were timed in the same rounds.
    """

    manifest: Mapping[str, Any]
    versions: Mapping[str, str]
    spread: float
    ns: Mapping[ArmKey, NDArray[np.float64]]
    differences: Sequence[PeerDifference]
    other_threads: Mapping[str, float]

    def ratio(self, arm: ArmKey, base: ArmKey) -> Interval:
        return paired_ratio(self.ns[arm], self.ns[base]).widened(self.spread)


@lru_cache(maxsize=1)
def load_peers(path: Path = PEERS_FILE) -> Peers | None:
    """Read the file with the times of other implementations; None if there is no file."""
    if not path.is_file():
        return None
    file = msgspec.json.decode(path.read_bytes(), type=_PeersFile)
    rows = _peer_rows(file)
    ns = {
        ArmKey(arm.peer, arm.operation, arm.format, cell.batch_size, cell.value_bytes, arm.arm == "aa"): np.array(
            arm.cpu_ns, np.float64
        )
        / arm.inner_loops
        / cell.records
        for cell in file.cells
        for arm in cell.arms
    }
    facts = {"started": file.measured, "environment": file.environment, "noise": noise_facts(rows)}
    return Peers(
        manifest={"profile": "clients", "title": "Implementations of Kafka's formats: CPU"} | facts,
        versions=file.peers,
        spread=spreads(rows).get("cpu", 0.0),
        ns=ns,
        differences=file.differences,
        other_threads=file.other_threads,
    )


def _peer_rows(file: _PeersFile) -> pa.Table:
    """Return the samples as rows of a run, for its noise checks and its spread between arms.

    Times are divided by the number of calls per sample, because the second timing (A/A) may have another number.
    """
    rows = [
        {
            "kind": "cpu",
            "status": "ok",
            "host": file.environment["host"],
            "cell_id": f"{arm.peer}, {cell.batch_size} records per batch, {cell.value_bytes} bytes",
            "operation": arm.operation,
            "format": arm.format,
            "arm": arm.arm,
            "cpu_ns": [round(ns / arm.inner_loops) for ns in arm.cpu_ns],
            "wall_ns": [round(ns / arm.inner_loops) for ns in arm.wall_ns],
        }
        for cell in file.cells
        for arm in cell.arms
    ]
    return rows_of(rows)


class JavaRow(msgspec.Struct, frozen=True):
    """The times of one arm and cell in Java. fork_ns: one per JVM. noisy: the interval is wider than 2 × NOISY."""

    operation: str
    format: str
    codec: str
    records: int
    ns_per_op: float
    ns_per_op_interval: tuple[float, float]
    fork_ns: list[float]
    bytes_per_record: float
    noisy: bool


class OurRow(msgspec.Struct, frozen=True):
    """The times of one arm and cell in our kernels."""

    operation: OurOperation
    format: str
    codec: str
    records: int
    records_per_sample: int
    cpu_ns: list[int]


class JmhRun(msgspec.Struct, frozen=True):
    """A stored run of JMH, and of our kernels beside it."""

    kafka: str
    cells: str
    measured: str
    environment: dict[str, Any]
    rows: list[JavaRow]
    ours: list[OurRow]

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The facts as in a run's manifest. The run is noisy if most intervals are."""
        noisy, count = sum(row.noisy for row in self.rows), len(self.rows)
        seen = [f"{noisy} of {count} intervals are wider than ±{percent(NOISY, 0)}"]
        return {
            "profile": f"java, {self.cells}", "title": f"Formats in Java: JMH on Kafka {self.kafka}",
            "started": self.measured, "environment": self.environment,
            "noise": {"noisy": 2 * noisy > count, "seen": seen, "hosts": {}},
        }  # fmt: skip


class _JmhFile(msgspec.Struct, frozen=True):
    runs: list[JmhRun]


def jmh_runs(path: Path = JMH_FILE) -> list[JmhRun]:
    """Read the file of JMH's runs; empty if there is none."""
    return msgspec.json.decode(path.read_bytes(), type=_JmhFile).runs if path.is_file() else []
