"""Apache Kafka's own classes judge batches as they are drawn: no round trip of ours can hide a fault from them."""

from collections import Counter

import pytest

from kfbench import FORMATS, KfbenchError
from tests.oracle.client import Kafka
from tests.oracle.generate import MAGICS, chunks
from tests.oracle.judge import disagreement, judge_kafkas, judge_ours

SEED = 20261121
BATCHES = {"v0": 800, "v1": 800, "v2": 1400}  # a codec; each is judged in both directions where Kafka's writer takes it
COMBINATIONS = [(name, codec) for name in MAGICS for codec in FORMATS[name].capabilities.codecs]

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_kafka_reads_what_we_write_and_we_what_it_writes(
    name: str, codec: str, kafka: Kafka, verdicts: Counter[str]
) -> None:
    disagreements = []
    for chunk in chunks(name, codec, SEED, BATCHES[name]):
        for what, judge in (("written by us", judge_ours), ("written by Kafka", judge_kafkas)):
            try:
                verdicts[f"batches {what}"] += judge(kafka, chunk)
            except (AssertionError, KfbenchError):
                disagreements.append(f"{what}: {disagreement(judge, kafka, chunk)}")
    assert not disagreements, f"{len(disagreements)} chunks; the smallest:\n{min(disagreements, key=len)}"


def test_enough_is_judged() -> None:
    assert sum(BATCHES[name] for name, _ in COMBINATIONS) >= 10_000
