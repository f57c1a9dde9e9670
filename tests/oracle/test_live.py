"""Compare kfbench with Apache Kafka's classes on generated batches. This finds faults that our own round trip hides."""

from collections import Counter

import pytest

from kfbench import FORMATS, KfbenchError
from tests.oracle.client import Kafka
from tests.oracle.generate import MAGICS, chunks
from tests.oracle.judge import disagreement, judge_kafkas, judge_ours

SEED = 20261121
BATCHES = {"v0": 800, "v1": 800, "v2": 1400}  # batches per codec; Kafka also writes them if it can
LEAST_BY_KAFKA = 0.85  # share of the batches that Kafka's writer can write
OURS, KAFKAS = "written by us and read by Apache Kafka", "written by Apache Kafka and read by us"
COMBINATIONS = [(name, codec) for name in MAGICS for codec in FORMATS[name].capabilities.codecs]

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_more_than_ten_thousand_batches_are_compared() -> None:
    assert LEAST_BY_KAFKA * sum(BATCHES[name] for name, _ in COMBINATIONS) > 10_000


@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_each_side_reads_what_the_other_writes(name: str, codec: str, kafka: Kafka, verdicts: Counter[str]) -> None:
    held, disagreements = Counter[str](), []
    for chunk in chunks(name, codec, SEED, BATCHES[name]):
        for direction, judge in ((OURS, judge_ours), (KAFKAS, judge_kafkas)):
            try:
                held[direction] += judge(kafka, chunk)
            except (AssertionError, KfbenchError):
                disagreements.append(f"{direction}: {disagreement(judge, kafka, chunk)}")
    verdicts.update({f"batches {direction}": count for direction, count in held.items()})
    assert not disagreements, f"{len(disagreements)} chunks; the smallest:\n{min(disagreements, key=len)}"
    assert held[OURS] == BATCHES[name] and held[KAFKAS] >= LEAST_BY_KAFKA * BATCHES[name]
