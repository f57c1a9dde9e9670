"""CPU time of other implementations compared with kfbench, on the same records, in the same rounds, on one host.

A peer is an implementation in the comparison, such as aiokafka. `make peers` measures them and writes
datasets/peers/cpu.json. Its host may differ from the run's host, so no time of the file is compared with a time of the
run. The samples are checked against the same noise limits as the samples of a run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.noise import noise_facts, spreads
from kfbench.measure.schema import table as rows_of
from kfbench.report.data.words import percent, span, upper_first
from kfbench.shipped import DATASETS
from kfbench.tables import Cell, Column, Interval, Table, listed, number, plain_columns

FILE: Final = DATASETS / "peers" / "cpu.json"
OURS: Final = "kfbench"
JAVA: Final = "Kafka's Java"
LIMIT: Final = "limit"
OTHERS: Final = ("v0", "v1")
FORMATS: Final = (*OTHERS, BASE_FORMAT)  # the formats that Kafka writes, in the order of their magic
WORDS: Final = {"encode": "writes", "decode": "reads"}
SAME_WORK: Final = (
    "Before the timing, each implementation wrote the same records as the same bytes. Only a batch's leader epoch may "
    "differ, because the broker fills it. Each read them back with the same offsets, timestamps (v0 has none), keys "
    "and values. Checksums are computed and checked. The limit is a copy of the finished batches with their checksums. "
    "It reads nothing. The others make one object per record, kfbench makes columns. A program's work on them is not "
    "included. The clients in Python write into new memory each time, all others into one buffer again and again. "
    "Python's collector is off for all that run in Python. The JVM's compiler and collector, and Go's collector, run "
    "on threads of their own, which are not counted. So no number includes their work on these objects. Rust frees "
    "its objects inside the timed call."
)

NOT_TIMED: Final = (
    "An implementation is not timed on records for which its output differs. Besides the timed records, a few rare "
    "ones are compared: null keys, times that go back, time 0."
)


class _Arm(msgspec.Struct):
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


class _Cell(msgspec.Struct):
    batch_size: int
    value_bytes: int
    records: int
    arms: list[_Arm]


class _File(msgspec.Struct):
    measured: str
    peers: dict[str, str]
    machines: dict[str, str]
    environment: dict[str, Any]
    cells: list[_Cell]
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
        load: the load average of the host over one minute at the end. It includes this measurement.
        versions: peer -> its version, in the order of the table's columns.
        machines: peer that does not run in Python -> its virtual machine.
        noise: the failed noise checks in words.
        spread: the spread between arms, which widens the intervals of ratios.
        other_threads: peer -> CPU time of its process's other threads, as a share of the timed thread's.
        ns: CPU time per record in ns, float64[rounds]. All measurements of an operation were timed in the same rounds.
    """

    host: str
    cpu: str
    load: float | None
    measured: str
    versions: Mapping[str, str]
    machines: Mapping[str, str]
    noise: Sequence[str]
    spread: float
    ns: Mapping[ArmKey, NDArray[np.float64]]
    differences: Sequence[PeerDifference]
    other_threads: Mapping[str, float]

    def ratio(self, arm: ArmKey, base: ArmKey) -> Interval:
        median, low, high = paired_ratio(self.ns[arm], self.ns[base]).widened(self.spread)
        return Interval(median=median, low=low, high=high)

    def to_base(self, peer: str, operation: str) -> Iterator[tuple[ArmKey, Interval]]:
        """Yield each v0 and v1 measurement of an implementation, with its ratio to BASE_FORMAT.

        Both times are of the same implementation.
        """
        for arm in self.ns:
            if (arm.peer, arm.operation) == (peer, operation) and arm.format in OTHERS:
                yield arm, self.ratio(arm, arm._replace(format=BASE_FORMAT))

    def again(self, peer: str) -> list[float]:
        """Return the ratios of BASE_FORMAT to its second timing (A/A) for one implementation."""
        return [self.ratio(arm, arm._replace(again=False)).median for arm in self.ns if arm.peer == peer and arm.again]


@lru_cache(maxsize=1)
def load(path: Path = FILE) -> Peers | None:
    """Read the file with the times of other implementations; None if there is no file."""
    if not path.is_file():
        return None
    file = msgspec.json.decode(path.read_bytes(), type=_File)
    rows = _rows(file)
    ns = {
        ArmKey(arm.peer, arm.operation, arm.format, cell.batch_size, cell.value_bytes, arm.arm == "aa"): np.array(
            arm.cpu_ns, np.float64
        )
        / arm.inner_loops
        / cell.records
        for cell in file.cells
        for arm in cell.arms
    }
    return Peers(
        host=file.environment["host"],
        cpu=file.environment["cpu"] or file.environment["machine"],
        load=file.environment.get("load_1_min"),
        measured=file.measured[:10],
        versions=file.peers,
        machines=file.machines,
        noise=noise_facts(rows)["seen"],
        spread=spreads(rows).get("cpu", 0.0),
        ns=ns,
        differences=file.differences,
        other_threads=file.other_threads,
    )


def _rows(file: _File) -> pa.Table:
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


def noise_sentence(found: Peers) -> str:
    """Return the warning at the start of the section; empty if no noise check failed."""
    if not found.noise:
        return ""
    return f"Noisy: {'. '.join(map(upper_first, found.noise))}. Read the times of others with that in mind."


def faster_sentence(found: Peers) -> str:
    """Name the rows in which another implementation takes less CPU than kfbench, with the lowest ratio of each."""
    faster: dict[str, list[Interval]] = {}
    rows: set[ArmKey] = set()
    for arm in found.ns:
        if arm.peer in (OURS, LIMIT) or arm.again:
            continue
        ratio = found.ratio(arm, ours := arm._replace(peer=OURS))
        if ratio.high < 1:
            rows.add(ours)
            faster.setdefault(arm.peer, []).append(ratio)
    compared = sum(arm.peer == OURS and not arm.again for arm in found.ns)
    if not faster:
        return f"No other is faster than {OURS} in any of {compared} rows."
    best = [
        f"{peer} in {len(ratios)} (to {number(min(each.median for each in ratios), 2)} ×)"
        for peer, ratios in faster.items()
    ]
    return f"Others are faster than {OURS} in {len(rows)} of {compared} rows. They are {listed(best)}."


def differences_table(found: Peers) -> Table | None:
    """Return a table of the implementations whose output differs from ours; None if the file has none."""
    if not found.differences:
        return None
    return Table(
        name="peer-differences",
        caption="Implementations whose output differs from Kafka's for some records",
        columns=plain_columns("implementation", "records", "difference"),
        rows=tuple((each.peer, each.records, each.difference) for each in found.differences),
        notes=(NOT_TIMED,),
    )


def peers_sentence(found: Peers) -> str:
    """Give the CPU time of the other implementations for BASE_FORMAT, in multiples of kfbench's."""
    sentences = []
    for operation in WORDS:
        arms = [arm for arm in found.ns if (arm.operation, arm.format, arm.again) == (operation, BASE_FORMAT, False)]
        ratios = [found.ratio(arm, arm._replace(peer=OURS)).median for arm in arms if arm.peer not in (OURS, LIMIT)]
        if ratios:
            sentences.append(f"Others {operation} {BASE_FORMAT} in {span(ratios)} × {OURS}'s CPU.")
    return " ".join(sentences)


def peers_table(found: Peers) -> Table:
    """Return a table of kfbench's CPU time in ns per record, and of the others' times in multiples of it."""
    others = [peer for peer in found.versions if peer != OURS]
    body: list[tuple[Cell, ...]] = []
    for arm in found.ns:
        if arm.peer != OURS or arm.again:
            continue
        ratios = [
            found.ratio(theirs, arm) if (theirs := arm._replace(peer=peer)) in found.ns else None for peer in others
        ]
        ours_ns = float(np.median(found.ns[arm]))
        body.append((arm.operation, arm.format, arm.batch_size, arm.value_bytes, ours_ns, *ratios))
    body.sort(key=lambda row: (list(WORDS).index(str(row[0])), str(row[1])))
    again = span([ratio for peer in found.versions for ratio in found.again(peer)])
    machines = [f"{peer} ran on {machine}." for peer, machine in found.machines.items()]
    return Table(
        name="peers",
        caption="CPU time of other implementations in multiples of kfbench's, plain records",
        columns=(
            *plain_columns("operation", "format", "records per batch", "value (bytes)"),
            Column(name=OURS, unit="ns per record", digits=1),
            *(Column(name=_title(found, peer), unit="×") for peer in others),
        ),
        rows=tuple(body),
        notes=(
            _measured_note(found),
            *machines,
            SAME_WORK,
            *_other_threads_notes(found),
            f"For all implementations, {BASE_FORMAT} against itself is {again}.",
        ),
    )


def _other_threads_notes(found: Peers) -> list[str]:
    shares = [f"{peer} {percent(share)}" for peer, share in found.other_threads.items() if share]
    if not shares:
        return []
    relative = f"Relative to the timed thread's it is {listed(shares)}."
    return [f"Other threads, such as Go's collector, took CPU time too. {relative}"]


def _title(found: Peers, peer: str) -> str:
    return peer if peer == LIMIT else f"{peer} {found.versions[peer]}"


def _measured_note(found: Peers) -> str:
    return (
        f"Measured {found.measured} on {found.cpu}, perhaps not the run's machine. The load was "
        f"{number(found.load, 1)} at the end. All ran in the same rounds, in a new random order per round. No row of "
        "the run is included."
    )
