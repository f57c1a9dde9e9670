"""Kafka 3.9.1 writes the golden vectors as they are committed, and 4.4.0 with listed differences."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records, read_log
from tests.oracle.client import NEWER, OLDER, Kafka, Spec
from tests.oracle.golden import GOLDEN, category_of, vectors, write, written

pytestmark = pytest.mark.oracle

# Fields that depend on the compression library or its error messages.
FROM_LIBRARY = {"size", "sha256", "validBytes", "position", "crc", "message", "cause", "decompressError"}
CONVERSION, CLEANER = "down-conversion is gone", "the cleaner writes v2 instead of the older format"
SHORT_MARKER = "another exception refuses a transaction marker that is too short"


def same_everywhere(value: Any) -> Any:
    match value:
        case dict():
            return {name: same_everywhere(inner) for name, inner in value.items() if name not in FROM_LIBRARY}
        case list():
            return [same_everywhere(inner) for inner in value]
    return value


@pytest.mark.parametrize("kafka", [OLDER], indirect=True)
def test_a_second_writing_gives_the_same_vectors(kafka: Kafka, tmp_path: Path) -> None:
    write(kafka, tmp_path)
    names = {path.name for path in GOLDEN.iterdir()} - {"README.md"}
    assert {path.name for path in tmp_path.iterdir()} == names
    for name in sorted(name for name in names if name.endswith(".json")):
        texts = [(folder / name).read_text(encoding="utf-8") for folder in (GOLDEN, tmp_path)]
        committed, fresh = map(json.loads, texts)
        if name != "index.json" and committed["byteExact"]:
            assert texts[0] == texts[1]
            data = name.replace(".json", ".bin")
            assert (tmp_path / data).read_bytes() == (GOLDEN / data).read_bytes()
        else:
            assert same_everywhere(fresh) == same_everywhere(committed), name


def difference(kafka: Kafka, stored: Spec) -> str | None:
    """Return how this version of Kafka differs from the stored vector; None if it does not."""
    before = (GOLDEN / f"{stored['name']}.bin").read_bytes()
    data, notes = written(kafka, stored)
    seen = kafka.read(data)
    if "UnsupportedOperation" in str(notes.get("refused", {}).get("class")):
        return CONVERSION
    found = json.loads(json.dumps(notes | seen))
    if same_everywhere(found) == same_everywhere({name: stored[name] for name in found}):
        assert data == before or not stored["byteExact"]
        return None
    if category_of(stored) == "compaction" and {batch["magic"] for batch in stored["batches"]} != {2}:
        assert {batch["magic"] for batch in seen["batches"]} == {2}
        ours: list[Records] = [read_log(each).source_records for each in (data, before)]
        assert ours[0] == ours[1]
        return CLEANER
    assert found["error"]["stage"] == stored["error"]["stage"] == "control", stored["name"]
    return SHORT_MARKER


@pytest.mark.slow
@pytest.mark.parametrize("kafka", [NEWER], indirect=True)
def test_the_golden_vectors_of_older_kafka_are_those_of_today(kafka: Kafka, notes: list[str]) -> None:
    found = Counter(difference(kafka, vector) for vector in vectors())
    notes.append(f"Kafka 4.4.0 and the golden vectors: {dict(found)}")
    assert found == {None: 606, CONVERSION: 50, CLEANER: 27, SHORT_MARKER: 1}  # docs/broker.md has these numbers
