"""Paired CPU ratios of Kafka's Java and of kfbench, and whether they agree."""

from pathlib import Path

import pytest

from kfbench.report.topics import java
from kfbench.report.topics.java import Pair
from kfbench.tables import Interval
from tests.report.peers_file import V0, V1, write_peers


def test_javas_ratios_are_paired_and_stand_next_to_ours(tmp_path: Path) -> None:
    found = write_peers(tmp_path)
    assert {(pair.format, pair.operation) for pair in java.pairs(found)} == {
        (name, operation) for name in ("v0", "v1") for operation in ("encode", "decode")
    }
    for pair in java.pairs(found):
        wanted = {"v0": V0, "v1": V1}[pair.format]
        assert pair.java.median == pytest.approx(wanted, rel=1e-4) == pair.ours.median and pair.word == "agree"


def test_where_they_differ_it_is_stated(tmp_path: Path) -> None:
    found = write_peers(tmp_path, ours_v0=0.7)
    assert [pair.word for pair in java.pairs(found) if pair.format == "v0"] == ["differ", "differ"]


@pytest.mark.parametrize(
    ("theirs", "ours", "word"),
    [
        ((1.1, 1.2), (1.01, 2.0), "agree"),
        ((0.8, 0.9), (0.7, 0.99), "agree"),
        ((1.1, 1.2), (0.7, 0.99), "differ"),
        ((0.8, 0.9), (1.01, 2.0), "differ"),
        ((1.1, 1.2), (0.9, 1.3), "undecided"),
        ((0.9, 1.1), (0.8, 0.9), "undecided"),
        ((0.9, 1.1), (0.9, 1.1), "undecided"),
        ((1.0, 1.2), (1.1, 1.2), "undecided"),
    ],
)
def test_an_interval_that_holds_one_decides_nothing(
    theirs: tuple[float, float], ours: tuple[float, float], word: str
) -> None:
    java_ratio, our_ratio = (Interval(median=sum(ends) / 2, low=ends[0], high=ends[1]) for ends in (theirs, ours))
    pair = Pair(operation="encode", batch_size=1, value_bytes=1, format="v0", java=java_ratio, ours=our_ratio)
    assert pair.word == word
