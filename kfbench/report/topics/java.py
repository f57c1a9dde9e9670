"""Compare Apache Kafka's Java code with kfbench: do both find the same format more expensive in CPU time?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.views import Views
from kfbench.report.data.words import span
from kfbench.report.section import Answer
from kfbench.report.topics import peers
from kfbench.report.topics.control import NO_TIMES
from kfbench.report.topics.peers import JAVA, OTHERS, OURS, WORDS, Peers
from kfbench.tables import Cell, Column, Interval, Table, listed, plain_columns

Word = Literal["agree", "differ", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The CPU time of one format and operation relative to v2, measured in Kafka's Java code and in kfbench."""

    operation: str
    batch_size: int
    value_bytes: int
    format: str
    java: Interval
    ours: Interval

    @property
    def word(self) -> Word:
        return verdict(self.java, self.ours)


def verdict(java: Interval, ours: Interval) -> Word:
    """Return "agree" if both intervals are on the same side of 1, "differ" if they are on different sides.

    "undecided" if at least one interval contains 1.
    """
    sides = {side_of_one(java), side_of_one(ours)}
    return "undecided" if 0 in sides else "agree" if len(sides) == 1 else "differ"


def side_of_one(ratio: Interval) -> int:
    """Return 1 if the ratio is greater than 1, -1 if it is less, and 0 if the interval contains 1."""
    return (ratio.low > 1) - (ratio.high < 1)


def pairs(found: Peers) -> list[Pair]:
    """Return one comparison per format, operation, batch size and value size.

    The list is empty if Kafka's Java code was not measured.
    """
    return [
        Pair(
            operation=operation,
            batch_size=arm.batch_size,
            value_bytes=arm.value_bytes,
            format=arm.format,
            java=java,
            ours=found.ratio(arm._replace(peer=OURS), arm._replace(peer=OURS, format=BASE_FORMAT)),
        )
        for operation in WORDS
        for arm, java in found.to_base(JAVA, operation)
    ]


def java_sentence(found: Peers, every: Sequence[Pair]) -> str:
    """Give the number of comparisons in which both implementations agree on the more expensive format.

    every: the result of `pairs`.
    """
    if not every:
        return ""
    words = Counter(pair.word for pair in every)
    return (
        f"{JAVA} and {OURS} agree on the dearer format in {words['agree']} of {len(every)} pairs. "
        f"They differ in {words['differ']}. "
        f"The other {words['undecided']} are undecided, because an interval holds 1. "
        f"In Java, {BASE_FORMAT} against itself is {span(found.again(JAVA))}. Claims use only what both show."
    )


def java_table(found: Peers, every: Sequence[Pair]) -> Table | None:
    """Return a table with a row per operation, batch size and value size; None without Kafka's Java code.

    every: the result of `pairs`.
    """
    by_cell: dict[tuple[str, int, int], dict[str, Pair]] = {}
    for pair in every:
        by_cell.setdefault((pair.operation, pair.batch_size, pair.value_bytes), {})[pair.format] = pair
    if not by_cell:
        return None
    body: list[tuple[Cell, ...]] = []
    for cell, of_cell in by_cell.items():
        ratios = [ratio for name in OTHERS for ratio in (of_cell[name].java, of_cell[name].ours)]
        words = [f"{word}: {listed(names)}" for word in get_args(Word) if (names := _formats_of(of_cell, word))]
        body.append((*cell, *ratios, "; ".join(words)))
    return Table(
        name="java",
        caption=f"CPU time relative to {BASE_FORMAT}: Apache Kafka {found.versions[JAVA]} and kfbench",
        columns=(
            *plain_columns("operation", "records per batch", "value (bytes)"),
            *(Column(name=f"{name}, {peer}", unit="×") for name in OTHERS for peer in (JAVA, OURS)),
            Column(name="which is dearer"),
        ),
        rows=tuple(body),
    )


def _formats_of(of_cell: Mapping[str, Pair], word: Word) -> list[str]:
    return [name for name in OTHERS if of_cell[name].word == word]


def peers_answer(run: Views) -> Answer | str:
    cpu = run.results.cpu
    found = None if cpu.empty else peers.load()
    if found is None:
        return NO_TIMES if cpu.empty else "no times of peers are stored"
    of_java = pairs(found)
    answers = (
        peers.noise_sentence(found),
        peers.peers_sentence(found),
        peers.faster_sentence(found),
        java_sentence(found, of_java),
    )
    return Answer(
        means=" ".join(filter(None, answers)),
        tables=(peers.peers_table(found), peers.differences_table(found), java_table(found, of_java)),
    )
