"""Other implementations beside ours, on the same records, in the same rounds and on one host.

Read from datasets/peers/cpu.json, which `make peers` writes. Its host is named and may be another than the run's: no
time of one stands beside a time of the other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from kfbench.measure.cpu import paired_ratio
from kfbench.report.render import Cell, Column, Interval, Table, listed, number
from kfbench.report.results import BASE
from kfbench.shipped import DATASETS

FILE: Final = DATASETS / "peers" / "cpu.json"
OURS: Final = "kfbench"
JAVA: Final = "Kafka's Java"
LIMIT: Final = "limit"
OTHERS: Final = ("v0", "v1")
Word = Literal["agree", "differ", "undecided"]
WORDS: Final = {"encode": "writes", "decode": "reads"}
ALIKE: Final = (
    "Before anything was timed, each wrote the same records as the same bytes, but for a batch's leader epoch, which "
    "is the broker's to fill, and read them back; checksums are computed and checked. The limit is a copy of the "
    "finished batches and their checksums. aiokafka, kafka-python and Java take and make an object a record, kfbench "
    "columns: what a program then does with them is not in it. The JVM's compiler and collector run on threads of "
    "their own, which are not counted."
)


class _Arm(msgspec.Struct):
    peer: str
    operation: str
    format: str
    arm: str
    inner_loops: int
    cpu_ns: list[int]


class _Cell(msgspec.Struct):
    batch_size: int
    value_bytes: int
    records: int
    arms: list[_Arm]


class _File(msgspec.Struct):
    measured: str
    peers: dict[str, str]
    environment: dict[str, Any]
    cells: list[_Cell]


class Timed(NamedTuple):
    """One peer, operation and format on one cell's records. again: BASE a second time."""

    peer: str
    operation: str
    format: str
    batch_size: int
    value_bytes: int
    again: bool


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One format, operation and cell: CPU time to v2's by Kafka's Java and by us, round by round."""

    operation: str
    batch_size: int
    value_bytes: int
    format: str
    java: Interval
    ours: Interval

    @property
    def word(self) -> Word:
        """agree: both intervals lie on one side of 1; differ: on different ones; undecided: one of them holds 1."""
        sides = {_side(self.java), _side(self.ours)}
        return "undecided" if 0 in sides else "agree" if len(sides) == 1 else "differ"


def _side(ratio: Interval) -> int:
    """1: dearer than v2; -1: cheaper; 0: the interval holds 1."""
    return (ratio.low > 1) - (ratio.high < 1)


@dataclass(frozen=True, kw_only=True)
class Peers:
    """What the file holds. versions: peer -> version, in the order of the columns. load: of the host's last minute,
    this measurement in it. ns: CPU time a record, float64[rounds]; round i of an operation's belongs together."""

    host: str
    cpu: str
    load: float | None
    measured: str
    versions: Mapping[str, str]
    ns: Mapping[Timed, NDArray[np.float64]]

    def ratio(self, arm: Timed, base: Timed) -> Interval:
        median, low, high = paired_ratio(self.ns[arm], self.ns[base])
        return Interval(median=median, low=low, high=high)

    def to_base(self, peer: str, operation: str) -> Iterator[tuple[Timed, Interval]]:
        """Each arm of OTHERS with its ratio to the same peer's BASE."""
        for arm in self.ns:
            if (arm.peer, arm.operation) == (peer, operation) and arm.format in OTHERS:
                yield arm, self.ratio(arm, arm._replace(format=BASE))

    @property
    def pairs(self) -> list[Pair]:
        """None where Kafka's Java was not there."""
        return [
            Pair(
                operation=operation,
                batch_size=arm.batch_size,
                value_bytes=arm.value_bytes,
                format=arm.format,
                java=java,
                ours=self.ratio(arm._replace(peer=OURS), arm._replace(peer=OURS, format=BASE)),
            )
            for operation in WORDS
            for arm, java in self.to_base(JAVA, operation)
        ]

    def again(self, peer: str) -> list[float]:
        """What a peer's BASE reads against itself."""
        return [self.ratio(arm, arm._replace(again=False)).median for arm in self.ns if arm.peer == peer and arm.again]


@lru_cache(maxsize=1)
def load(path: Path = FILE) -> Peers | None:
    """None where nothing was measured."""
    if not path.is_file():
        return None
    file = msgspec.json.decode(path.read_bytes(), type=_File)
    ns = {
        Timed(arm.peer, arm.operation, arm.format, cell.batch_size, cell.value_bytes, arm.arm == "aa"): np.array(
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
        ns=ns,
    )


def sentence(found: Peers) -> str:
    """How many times our CPU time the others take for BASE."""
    said = []
    for operation in WORDS:
        parts = []
        for peer in found.versions:
            arms = [arm for arm in found.ns if (arm.peer, arm.operation, arm.format) == (peer, operation, BASE)]
            if peer != OURS and arms:
                ratios = [found.ratio(arm, arm._replace(peer=OURS)).median for arm in arms if not arm.again]
                parts.append(f"{peer} {_span(ratios)}")
        said.append(f"to {operation} {BASE} {listed(parts)}")
    return f"CPU time in multiples of kfbench's, the least and the most of all cells: {'; '.join(said)}."


def java_sentence(found: Peers) -> str:
    said = []
    for operation, does in WORDS.items():
        pairs = [pair for pair in found.pairs if pair.operation == operation]
        words = Counter(pair.word for pair in pairs)
        ranges = [_span([pair.java.median for pair in pairs if pair.format == name]) for name in OTHERS]
        own = [_span([pair.ours.median for pair in pairs if pair.format == name]) for name in OTHERS]
        said.append(
            f"Kafka {does} v0 in {ranges[0]} and v1 in {ranges[1]} times the CPU time of {BASE}, kfbench in {own[0]} "
            f"and {own[1]}; of {len(pairs)} pairs the two agree on which is dearer in {words['agree']}, differ in "
            f"{words['differ']}, and are undecided in {words['undecided']} (an interval holds 1)."
        )
    said.append(f"{BASE} against itself reads {_span(found.again(JAVA))} in Java. No claim goes beyond what both show.")
    return " ".join(said)


def _span(medians: Sequence[float]) -> str:
    return f"{min(medians):.2f} to {max(medians):.2f}"


def table(found: Peers, hosts: list[str]) -> Table:
    """hosts: those of the run beside which it is printed."""
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
    again = "; ".join(f"{peer} {_span(found.again(peer))}" for peer in found.versions)
    return Table(
        name="peers",
        caption="CPU time of other implementations in multiples of kfbench's, plain records",
        columns=(
            Column(name="operation"),
            Column(name="format"),
            Column(name="records a batch"),
            Column(name="value", unit="bytes"),
            Column(name=OURS, unit="ns a record", digits=1),
            *(Column(name=_named(found, peer), unit="×") for peer in others),
        ),
        rows=tuple(body),
        notes=(
            _measured(found, hosts),
            ALIKE,
            f"{BASE} against itself reads, lowest and highest: {again}.",
        ),
    )


def _named(found: Peers, peer: str) -> str:
    return peer if peer == LIMIT else f"{peer} {found.versions[peer]}"


def _measured(found: Peers, hosts: list[str]) -> str:
    same = "so was this run" if hosts == [found.host] else "this run was not"
    return (
        f"Measured {found.measured} on {found.host} ({found.cpu}; load {number(found.load, 1)} as it ended; {same}), "
        f"all in the same rounds, each in a fresh random order; no row of the run enters."
    )


def _worded(pairs: Mapping[str, Pair], word: Word) -> list[str]:
    return [name for name in OTHERS if pairs[name].word == word]


def java_table(found: Peers) -> Table:
    by_cell: dict[tuple[str, int, int], dict[str, Pair]] = {}
    for pair in found.pairs:
        by_cell.setdefault((pair.operation, pair.batch_size, pair.value_bytes), {})[pair.format] = pair
    body: list[tuple[Cell, ...]] = []
    for cell, pairs in by_cell.items():
        ratios = [ratio for name in OTHERS for ratio in (pairs[name].java, pairs[name].ours)]
        verdict = [f"{word}: {listed(names)}" for word in get_args(Word) if (names := _worded(pairs, word))]
        body.append((*cell, *ratios, "; ".join(verdict)))
    return Table(
        name="java",
        caption=f"CPU time relative to {BASE}: Apache Kafka {found.versions[JAVA]} and kfbench",
        columns=(
            Column(name="operation"),
            Column(name="records a batch"),
            Column(name="value", unit="bytes"),
            *(Column(name=f"{name}, {peer}", unit="×") for name in OTHERS for peer in (JAVA, OURS)),
            Column(name="which is dearer"),
        ),
        rows=tuple(body),
    )
