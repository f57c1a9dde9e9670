"""Ratios of v0 and v1 to v2 in Apache Kafka's own Java classes, beside ours on the same records and the same host.

Read from datasets/java/cpu.json, which `make java-cpu` writes. Its host is named and may be another than the run's: no
time of one stands beside a time of the other.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec
import numpy as np

from kfbench.measure.cpu import paired_ratio
from kfbench.report.render import Cell, Column, Interval, Table, listed, number
from kfbench.report.results import BASE
from kfbench.shipped import DATASETS

FILE: Final = DATASETS / "java" / "cpu.json"
WRITERS: Final = {"java": "Kafka's Java", "kfbench": "kfbench"}
OTHERS: Final = ("v0", "v1")
Word = Literal["agree", "differ", "undecided"]
WORDS: Final = {"encode": "writes", "decode": "reads"}


class _Arm(msgspec.Struct):
    writer: str
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
    java: str
    kafka: str
    environment: dict[str, Any]
    cells: list[_Cell]


def _side(ratio: Interval) -> int:
    """1: dearer than v2; -1: cheaper; 0: the interval holds 1."""
    return (ratio.low > 1) - (ratio.high < 1)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One format, operation and cell: CPU time to v2's by both, round by round."""

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


@dataclass(frozen=True, kw_only=True)
class Java:
    """What the file holds. load: of the host's last minute, this measurement in it.

    ns: (operation, batch_size, value_bytes) -> median ns a record of v2, by Java and by us.
    """

    host: str
    cpu: str
    load: float | None
    measured: str
    java: str
    kafka: str
    pairs: tuple[Pair, ...]
    ns: dict[tuple[str, int, int], tuple[float, float]]
    again: dict[str, tuple[float, float]]


@lru_cache(maxsize=1)
def load(path: Path = FILE) -> Java | None:
    """None where nothing was measured."""
    if not path.is_file():
        return None
    file = msgspec.json.decode(path.read_bytes(), type=_File)
    pairs, ns, again = [], {}, dict[str, list[float]]()
    for operation in WORDS:
        for cell in file.cells:
            arms = {(arm.writer, arm.format, arm.arm): arm for arm in cell.arms if arm.operation == operation}
            found = {
                (writer, name): _ratio(arms[writer, name, "measure"], arms[writer, BASE, "measure"])
                for writer in WRITERS
                for name in OTHERS
            }
            pairs += [
                Pair(
                    operation=operation,
                    batch_size=cell.batch_size,
                    value_bytes=cell.value_bytes,
                    format=name,
                    java=found["java", name],
                    ours=found["kfbench", name],
                )
                for name in OTHERS
            ]
            java, ours = (_ns(arms[writer, BASE, "measure"], cell.records) for writer in WRITERS)
            ns[operation, cell.batch_size, cell.value_bytes] = java, ours
            for writer in WRITERS:
                both = _ratio(arms[writer, BASE, "aa"], arms[writer, BASE, "measure"])
                again.setdefault(writer, []).append(both.median)
    return Java(
        host=file.environment["host"],
        cpu=file.environment["cpu"] or file.environment["machine"],
        load=file.environment.get("load_1_min"),
        measured=file.measured[:10],
        java=file.java,
        kafka=file.kafka,
        pairs=tuple(pairs),
        ns=ns,
        again={writer: (min(medians), max(medians)) for writer, medians in again.items()},
    )


def _ratio(arm: _Arm, base: _Arm) -> Interval:
    median, low, high = paired_ratio(np.array(arm.cpu_ns), np.array(base.cpu_ns))
    return Interval(median=median, low=low, high=high)


def _ns(arm: _Arm, records: int) -> float:
    return float(np.median(arm.cpu_ns)) / arm.inner_loops / records


def sentence(found: Java) -> str:
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
    low, high = found.again["java"]
    said.append(f"{BASE} against itself reads {low:.2f} to {high:.2f} in Java. No claim goes beyond what both show.")
    return " ".join(said)


def _span(medians: list[float]) -> str:
    return f"{min(medians):.2f} to {max(medians):.2f}"


def _worded(pairs: Mapping[str, Pair], word: Word) -> list[str]:
    return [name for name in OTHERS if pairs[name].word == word]


def table(found: Java, hosts: list[str]) -> Table:
    """hosts: those of the run beside which it is printed."""
    body: list[tuple[Cell, ...]] = []
    for operation, batch, value in found.ns:
        pairs = {
            pair.format: pair
            for pair in found.pairs
            if (pair.operation, pair.batch_size, pair.value_bytes) == (operation, batch, value)
        }
        java_ns, our_ns = found.ns[operation, batch, value]
        ratios = [cell for name in OTHERS for cell in (pairs[name].java, pairs[name].ours)]
        verdict = [f"{word}: {listed(names)}" for word in get_args(Word) if (names := _worded(pairs, word))]
        body.append((operation, batch, value, *ratios, java_ns, our_ns, "; ".join(verdict)))
    same = "so was this run" if hosts == [found.host] else "this run was not"
    note = (
        f"Measured {found.measured} on {found.host} ({found.cpu}; load {number(found.load, 1)} as it ended; {same}), "
        f"{found.java}; no row of the run enters. "
        f"Both write and read the same logs, byte for byte, of {number(len(found.ns) // len(WORDS))} cells. Java "
        "makes an object a record as it reads, kfbench columns. The JVM's compiler and collector run on threads of "
        "their own, which are not counted."
    )
    return Table(
        name="java",
        caption=f"CPU time relative to {BASE}: Apache Kafka {found.kafka} and kfbench on the same plain records",
        columns=(
            Column(name="operation"),
            Column(name="records a batch"),
            Column(name="value", unit="bytes"),
            *(Column(name=f"{name}, {words}", unit="×") for name in OTHERS for words in WRITERS.values()),
            *(Column(name=f"{BASE}, {words}", unit="ns a record", digits=1) for words in WRITERS.values()),
            Column(name="which is dearer"),
        ),
        rows=tuple(body),
        notes=(note,),
    )
