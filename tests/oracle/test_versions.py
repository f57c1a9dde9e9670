"""Kafka 4.4.0 writes and reads the golden vectors, which are of 3.9.1, except for what 4.x dropped or changed."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records, read_log
from tests.oracle.cases import Vector, vectors
from tests.oracle.client import Kafka
from tests.oracle.golden import GOLDEN, written
from tests.oracle.test_golden_written import same_everywhere

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CONVERSION, CLEANER = "down-conversion is gone", "the cleaner writes v2 instead of the older format"
SHORT_MARKER = "another exception refuses a transaction marker that is too short"


@pytest.fixture(scope="module")
def today(fetched: Callable[..., Path]) -> Iterator[Kafka]:
    with Kafka("4.4", fetched) as running:
        yield running


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


def test_the_golden_vectors_of_older_kafka_are_those_of_today(today: Kafka, notes: list[str]) -> None:
    found = Counter(difference(today, vector) for vector in vectors())
    notes.append(f"Kafka 4.4.0 and the golden vectors: {dict(found)}")
    assert found.keys() == {None, CONVERSION, CLEANER, SHORT_MARKER}
    assert found[None] > 600
