"""The same formats in Java, timed by JMH, and our kernels on the same batches: do both find the same ratios?

`make jmh` measures both and writes datasets/second-opinion/jmh.json (docs/java.md). Its host may differ from the run's
host, so no time of the file is compared with a time of the run. JMH measures elapsed time. The JVM's compiler and
collector run on threads of their own, so no ratio includes their work.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import CONFIDENCE, paired_ratio
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import span
from kfbench.report.section import Answer
from kfbench.report.topics import published_iteration
from kfbench.report.topics.columnar.measured import NAME as COLUMNAR
from kfbench.report.topics.control import NO_TIMES
from kfbench.report.topics.java import Word, side_of_one, verdict
from kfbench.report.topics.published_iteration import iteration_sentence, iteration_table
from kfbench.shipped import DATASETS
from kfbench.tables import Cell, Column, Interval, Table, plain_columns

FILE: Final = DATASETS / "second-opinion" / "jmh.json"
OWN: Final = "v2-own"  # the arm that writes and reads v2 with the Java code of the other formats
AGAIN: Final = "v2-again"  # the same arm a second time (A/A)
AA: Final = "aa"  # v2 of our kernels, timed a second time
COMPARED: Final = (NEW, HEADERS_FIRST, COLUMNAR)
CLAIMED: Final = "claimed"  # the selection of cells behind claims, timed in several JVMs
NOISY: Final = 0.03  # the widest half of an interval, as a share, that is not marked

OurOperation = Literal["encode", "decode", "read-times", "append"]
OURS: Final[Mapping[str, OurOperation]] = {
    "write": "encode",
    "iterate": "decode",
    "skim": "read-times",
    "lookup": "read-times",
    "validate": "append",
}
"""Operation in Java -> the operation of our kernels beside it."""

HOW: Final = (
    "Java's formats were written from the specifications, in the style of Kafka's classes, and write the same bytes. "
    "Its base is v2 in the same Java code. JMH measures the elapsed time of one batch per call. Our kernels take many "
    "batches per call, and we measure CPU time. Ratios are medians over rounds. Java's intervals hold the "
    "median with at least 95 %, by the order of the rounds. A verdict is undecided if an interval holds 1, or if "
    "Kafka's own v2 as the base gives another answer. It is noisy if Java's interval is wider than 6 %."
)

REASONS: Final[Mapping[str, str]] = {
    "write": "Java writes record by record into a stream. Our kernels write one column after another.",
    "iterate": "Java makes an object per record, in each format. Our kernels fill columns, and check the CRC too.",
    "lookup": "Java stops at the record that it looks for, and opens the codec anew. Our kernels read all times.",
    "validate": "Java visits each record. Our kernels check columns of many batches at once, and the CRC too.",
}
"""Operation in Java -> the reason why its ratio differs from that of our kernels."""


class _JavaRow(msgspec.Struct, frozen=True):
    operation: str
    format: str
    codec: str
    records: int
    fork_ns: list[float]
    bytes_per_record: float


class _OurRow(msgspec.Struct, frozen=True):
    operation: OurOperation
    format: str
    codec: str
    records: int
    records_per_sample: int
    cpu_ns: list[int]


class _Run(msgspec.Struct, frozen=True):
    kafka: str
    cells: str
    measured: str
    environment: dict[str, Any]
    rows: list[_JavaRow]
    ours: list[_OurRow]


class _File(msgspec.Struct, frozen=True):
    runs: list[_Run]


class CellKey(NamedTuple):
    """A timed cell: the operation in Java's words, the codec and the records per batch."""

    operation: str
    codec: str
    records: int


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The time of a format relative to v2, in Java and in our kernels.

    Args:
        to_kafka: Java's time divided by that of Kafka's own classes for v2.
        java: Java's time divided by that of v2 in the same Java code.
        ours: the ratio of our kernels.
        allocated: bytes that Java allocates per record.
    """

    at: CellKey
    format: str
    to_kafka: Interval
    java: Interval
    ours: Interval
    allocated: float

    @property
    def is_noisy(self) -> bool:
        """True if the interval in Java is wider than NOISY to either side."""
        return (self.java.high - self.java.low) / 2 > NOISY * self.java.median

    @property
    def java_side(self) -> int:
        """1: dearer than v2 in Java, -1: cheaper. 0: an interval holds 1, or the two bases disagree."""
        sides = {side_of_one(self.java), side_of_one(self.to_kafka)}
        return sides.pop() if len(sides) == 1 else 0

    @property
    def word(self) -> Word:
        return verdict(self.java, self.ours) if self.java_side else "undecided"


@dataclass(frozen=True, kw_only=True)
class JavaRun:
    """A stored run.

    Args:
        java_again, our_again: v2 against itself (A/A), in Java and in our kernels.
        own: v2 in the code of the other formats, divided by Kafka's own v2.
    """

    kafka: str
    measured: str
    cpu: str
    ratios: Sequence[Ratio]
    java_again: Sequence[float]
    our_again: Sequence[float]
    own: Mapping[CellKey, float]

    def of(self, name: str, *operations: str) -> list[Ratio]:
        return [ratio for ratio in self.ratios if ratio.format == name and ratio.at.operation in operations]


@dataclass(frozen=True, kw_only=True)
class SecondOpinion:
    """The runs of the newest Kafka in the file.

    Args:
        claimed: cells behind claims.
        every: all cells, in one JVM each.
    """

    claimed: JavaRun | None
    every: JavaRun | None


@lru_cache(maxsize=1)
def load(path: Path = FILE) -> SecondOpinion | None:
    """Read the file of JMH's runs; None if there is none."""
    runs = msgspec.json.decode(path.read_bytes(), type=_File).runs if path.is_file() else []
    if not runs:
        return None
    kafka = max((run.kafka for run in runs), key=lambda version: [*map(int, version.split("."))])
    newest = {run.cells: _java_run(run) for run in runs if run.kafka == kafka}
    return SecondOpinion(claimed=newest.get(CLAIMED), every=newest.get("all"))


def _java_run(run: _Run) -> JavaRun:
    java = {(CellKey(row.operation, row.codec, row.records), row.format): row for row in run.rows}
    ours = _Ours(run.ours)
    return JavaRun(
        kafka=run.kafka,
        measured=run.measured[:10],
        cpu=run.environment["cpu"] or run.environment["machine"],
        ratios=[*_ratios(java, ours)],
        java_again=[_java_ratio(row, java[at, OWN]).median for (at, name), row in java.items() if name == AGAIN],
        our_again=ours.again,
        own={at: _java_ratio(row, java[at, BASE_FORMAT]).median for (at, name), row in java.items() if name == OWN},
    )


class _Ours:
    """The samples of our kernels, by operation, codec, records per batch and format."""

    def __init__(self, rows: Sequence[_OurRow]) -> None:
        self._ns: dict[tuple[OurOperation, str, int, str], NDArray[np.float64]] = {}
        for row in rows:
            ns = np.array(row.cpu_ns, np.float64) / row.records_per_sample
            self._ns[row.operation, row.codec, row.records, row.format] = ns

    def ratio(self, operation: OurOperation, codec: str, records: int, name: str) -> Interval:
        """Return a format's CPU time relative to v2."""
        ns, base_ns = (self._ns[operation, codec, records, each] for each in (name, BASE_FORMAT))
        median, low, high = paired_ratio(ns, base_ns)
        return Interval(median=median, low=low, high=high)

    @property
    def again(self) -> list[float]:
        return [self.ratio(*key).median for key in self._ns if key[-1] == AA]


def _ratios(java: Mapping[tuple[CellKey, str], _JavaRow], ours: _Ours) -> Iterator[Ratio]:
    for (at, name), row in java.items():
        if name not in COMPARED or at.operation not in OURS:
            continue
        own, kafka = java[at, OWN], java[at, BASE_FORMAT]
        yield Ratio(
            at=at,
            format=name,
            to_kafka=_java_ratio(row, kafka),
            java=_java_ratio(row, own),
            ours=ours.ratio(OURS[at.operation], at.codec, at.records, name),
            allocated=row.bytes_per_record,
        )


def _java_ratio(row: _JavaRow, base: _JavaRow) -> Interval:
    """Return the ratio of two times, paired by round: in a round, each has one JVM, within a minute.

    The interval is that of the sign test. With seven rounds it is their lowest and highest ratio (98 %). A bootstrap of
    so few rounds would be too narrow. Fewer than six rounds cannot reach 95 %.
    """
    ratios = np.sort(np.array(row.fork_ns) / np.array(base.fork_ns))
    # The probability that the median is below the lowest ratio, the second lowest, and so on.
    below = bdtr(np.arange(len(ratios)), len(ratios), 0.5)
    at = max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2)) - 1, 0)
    return Interval(median=float(np.median(ratios)), low=float(ratios[at]), high=float(ratios[-1 - at]))


def verdict_sentence(run: JavaRun) -> str:
    """Count the ratios in which Java and our kernels find the same format dearer."""
    words = Counter(ratio.word for ratio in run.ratios)
    noisy = sum(ratio.is_noisy for ratio in run.ratios)
    unsure = sum(ratio.is_noisy or ratio.word == "undecided" for ratio in run.ratios)
    return (
        f"{unsure} of {len(run.ratios)} ratios are undecided or noisy. "
        f"Java and kfbench agree on the dearer format in {words['agree']} of {len(run.ratios)} ratios. "
        f"They differ in {words['differ']}. The other {words['undecided']} are undecided. "
        f"Of all ratios, {noisy or 'none'} {'is' if noisy < 2 else 'are'} noisy."
    )


def v3_sentence(run: JavaRun) -> str:
    """Give the ratios of v3's encode and decode in Java."""
    ratios = run.of(NEW, "write", "iterate")
    if not ratios:
        return ""
    java, kafka = span([each.java.median for each in ratios]), span([each.to_kafka.median for each in ratios])
    own = span([run.own[each.at] for each in ratios])
    in_same = sum(side_of_one(ratio.java) > 0 for ratio in ratios)
    of_kafka = sum(side_of_one(ratio.to_kafka) > 0 for ratio in ratios)
    return (
        f"In Java (JMH, Kafka {run.kafka}, {run.cpu}), {NEW} takes {java} × {BASE_FORMAT}'s time in the same code. "
        f"Relative to Kafka's own {BASE_FORMAT} it takes {kafka} ×. "
        f"{BASE_FORMAT} in the same code takes {own} × the time of Kafka's own. "
        f"{NEW} is dearer in {in_same or 'none'} of {len(ratios)} cells in the same code, "
        f"and in {of_kafka or 'none'} against Kafka's own."
    )


def claimed_table(run: JavaRun) -> Table:
    """Return a table of the cells behind claims, with a verdict for each."""
    return Table(
        name="second-opinion",
        caption=f"Time relative to {BASE_FORMAT} in the same code: in Java (Kafka {run.kafka}) and in kfbench",
        columns=(
            *plain_columns("operation", "codec", "records per batch"),
            Column(name="format"),
            Column(name="Java", unit="×"),
            Column(name="kfbench", unit="×"),
            Column(name="which is dearer"),
            Column(name=f"Java, to Kafka's own {BASE_FORMAT}", unit="×"),
            Column(name="Java allocates", unit="bytes per record", digits=0),
        ),
        rows=tuple(
            (
                *ratio.at,
                ratio.format,
                ratio.java,
                ratio.ours,
                ratio.word + (" (noisy)" if ratio.is_noisy else ""),
                ratio.to_kafka,
                ratio.allocated,
            )
            for ratio in run.ratios
        ),
    )


def ranges_table(run: JavaRun) -> Table:
    """Return a table of the ranges of all ratios, by operation and format.

    Each of Java's times is of one JVM, so no ratio has a verdict.
    """
    rows: list[tuple[Cell, ...]] = []
    for operation in OURS:
        for name in COMPARED:
            if ratios := run.of(name, operation):
                of_each = [(each.java.median, each.to_kafka.median, each.ours.median) for each in ratios]
                rows.append((operation, name, *map(span, zip(*of_each, strict=True))))
    codecs, sizes = ({getattr(ratio.at, axis): None for ratio in run.ratios} for axis in ("codec", "records"))
    return Table(
        name="second-opinion-all",
        caption=f"Ranges of the time relative to {BASE_FORMAT} over {len(codecs)} codecs "
        f"and {len(sizes)} batch sizes. One JVM each ({run.measured}, {run.cpu})",
        columns=(
            Column(name="operation"),
            Column(name="format"),
            Column(name="Java", unit="×"),
            Column(name=f"Java, to Kafka's own {BASE_FORMAT}", unit="×"),
            Column(name="kfbench", unit="×"),
        ),
        rows=tuple(rows),
    )


def reasons_table(run: JavaRun) -> Table | None:
    """Return a table of the operations whose ratios differ, with the reason; None if none differs."""
    differing = Counter(ratio.at.operation for ratio in run.ratios if ratio.word == "differ")
    if not differing:
        return None
    return Table(
        name="second-opinion-reasons",
        caption="Why they differ",
        columns=plain_columns("operation", "differing ratios", "reason"),
        rows=tuple((name, count, REASONS[name]) for name, count in differing.items()),
    )


def second_opinion_answer(run: Views) -> Answer | str:
    found, published = load(), published_iteration.load()
    if run.results.cpu.empty:
        return NO_TIMES
    if found is None and published is None:
        return "no times of the Java implementation are stored"
    sentences, tables = list[str](), list[Table | None]()
    if found and (claimed := found.claimed):
        java, ours = span(claimed.java_again), span(claimed.our_again)
        again = f"{BASE_FORMAT} against itself is {java} in Java and {ours} in kfbench."
        sentences += [
            verdict_sentence(claimed),
            v3_sentence(claimed),
            again,
            f"Measured {claimed.measured} on {claimed.cpu}.",
        ]
        tables += [claimed_table(claimed), reasons_table(claimed)]
    if found and found.every:
        tables.append(ranges_table(found.every))
    if published:
        sentences.append(iteration_sentence(published))
        tables.append(iteration_table(published))
    return Answer(means=" ".join(sentences), prose=(HOW,) if found else (), tables=tuple(tables))
