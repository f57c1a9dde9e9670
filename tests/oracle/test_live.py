"""Compare kfbench with Apache Kafka's classes on generated batches. This finds faults that our own round trip hides."""

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from kfbench import FORMATS, KfbenchError
from tests.oracle.client import Kafka
from tests.oracle.generate import MAGICS, chunks
from tests.oracle.judge import disagreement, judge_kafkas, judge_ours

SEED = 20261121
BATCHES = {"v0": 800, "v1": 800, "v2": 1400}  # batches per codec; Kafka also writes them if it can
LEAST = 10_000  # least number of batches to compare in each direction
OURS, KAFKAS = "written by us and read by Apache Kafka", "written by Apache Kafka and read by us"
COMBINATIONS = [(name, codec) for name in MAGICS for codec in FORMATS[name].capabilities.codecs]

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


Judged = Callable[[Kafka, str, str], Counter[str]]


@pytest.fixture(scope="module")
def judged(verdicts: Counter[str]) -> Judged:
    """Return a function that compares the batches of a format and codec once per version of Kafka.

    It counts batches that agree, per direction.
    """

    @cache
    def judge_both(kafka: Kafka, name: str, codec: str) -> tuple[Counter[str], list[str]]:
        held, disagreements = Counter[str](), []
        for chunk in chunks(name, codec, SEED, BATCHES[name]):
            for direction, judge in ((OURS, judge_ours), (KAFKAS, judge_kafkas)):
                try:
                    held[direction] += judge(kafka, chunk)
                except (AssertionError, KfbenchError):
                    disagreements.append(f"{direction}: {disagreement(judge, kafka, chunk)}")
        verdicts.update({f"batches {direction}": count for direction, count in held.items()})
        return held, disagreements

    def judged(kafka: Kafka, name: str, codec: str) -> Counter[str]:
        held, disagreements = judge_both(kafka, name, codec)
        assert not disagreements, f"{len(disagreements)} chunks; the smallest:\n{min(disagreements, key=len)}"
        return held

    return judged


@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_each_side_reads_what_the_other_writes(name: str, codec: str, kafka: Kafka, judged: Judged) -> None:
    assert judged(kafka, name, codec)[OURS] == BATCHES[name]


def test_enough_is_judged(kafka: Kafka, judged: Judged) -> None:
    total = sum((judged(kafka, name, codec) for name, codec in COMBINATIONS), Counter[str]())
    assert min(total[OURS], total[KAFKAS]) >= LEAST
    assert total.total() >= 2 * LEAST
