"""Kafka 4.4.0 writes and reads the golden vectors, which are of 3.9.1, except for what 4.x dropped or changed."""

import json
from collections import Counter
from typing import Any

import pytest

from kfbench import Records, read_log
from tests.oracle.cases import Vector, vectors
from tests.oracle.client import NEWER, Kafka
from tests.oracle.golden import GOLDEN, written
from tests.oracle.test_golden_written import same_everywhere

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CONVERSION, CLEANER = "down-conversion is gone", "the cleaner writes v2 instead of the older format"
SHORT_MARKER = "another exception refuses a transaction marker that is too short"


def records_of(data: bytes) -> Records:
    return read_log(data).source_records


def difference(kafka: Kafka, vector: Vector) -> str | None:
    """Return how this version of Kafka differs from the stored vector; None if it does not."""
    stored: dict[str, Any] = json.loads((GOLDEN / f"{vector.name}.json").read_text(encoding="utf-8"))
    before = (GOLDEN / f"{vector.name}.bin").read_bytes()
    data, notes = written(kafka, vector)
    seen = kafka.read(data)
    if "UnsupportedOperation" in str(notes.get("refused", {}).get("class")):
        return CONVERSION
    found = json.loads(json.dumps(notes | seen))
    if same_everywhere(found) == same_everywhere({name: stored[name] for name in found}):
        assert data == before or not stored["byteExact"]
        return None
    if vector.category == "compaction" and {batch["magic"] for batch in stored["batches"]} != {2}:
        assert {batch["magic"] for batch in seen["batches"]} == {2}
        assert records_of(data) == records_of(before)
        return CLEANER
    assert found["error"]["stage"] == stored["error"]["stage"] == "control", vector.name
    return SHORT_MARKER


@pytest.mark.parametrize("kafka", [NEWER], indirect=True)
def test_the_golden_vectors_of_older_kafka_are_those_of_today(kafka: Kafka, notes: list[str]) -> None:
    found = Counter(difference(kafka, vector) for vector in vectors())
    notes.append(f"Kafka 4.4.0 and the golden vectors: {dict(found)}")
    assert found == {None: 606, CONVERSION: 50, CLEANER: 27, SHORT_MARKER: 1}  # docs/broker.md has these numbers
