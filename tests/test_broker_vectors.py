"""The input of a broker vector, rebuilt from its description, equals Kafka's bytes.

Size and checksum of these bytes are in the vector's sidecar (the JSON file next to it).
"""

import pytest

from kfbench.log import read_log
from tests.broker_vectors import FURTHER, BrokerVector, broker_vectors

VECTORS = [vector for category in ("validate", "downconvert", "compaction") for vector in broker_vectors(category)]


@pytest.mark.sampled(60)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_records_of_the_result_come_from_the_input(vector: BrokerVector) -> None:
    if vector.refused:
        assert (vector.expected, vector.sidecar["batches"]) == (b"", [])
        return
    source, made = read_log(vector.source), read_log(vector.expected)
    given = {(source.records.key(i), source.records.value(i)) for i in range(len(source.records))}
    assert {(made.records.key(i), made.records.value(i)) for i in range(len(made.records))} <= given


def test_there_are_some_of_each_kind() -> None:
    assert {vector.name.split("_")[0] for vector in VECTORS} == {"validate", "downconvert", "compaction"}
    assert len(VECTORS) >= (100 if FURTHER else 70)
