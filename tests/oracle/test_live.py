"""Compare kfbench with Apache Kafka's classes on generated batches. This finds faults that our own round trip hides.

The judges raise AssertionError for a difference.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from kfbench import FORMATS, KfbenchError, read_log, write_log
from tests.compressed import is_exact
from tests.oracle.client import Kafka
from tests.oracle.generate import KAFKAS_NAMES, MAGICS, BatchChunk, chunks
from tests.reference.model import Fields
from tests.sidecars import check_sidecar, message_of

SEED = 20261121
BATCHES = {"v0": 800, "v1": 800, "v2": 1500}  # batches per codec; Kafka also writes them if it can
LEAST_BY_KAFKA = {"v0": 0.95, "v1": 0.8, "v2": 0.6}  # share of the batches that Kafka's writer can write
OURS, KAFKAS = "written by us and read by Apache Kafka", "written by Apache Kafka and read by us"
COMBINATIONS = [(name, codec) for name in MAGICS for codec in FORMATS[name].capabilities.codecs]

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

# Fields that depend on the compression library.
COMPRESSED_ONLY = {"position", "size", "crc"}
SIDECAR_NAMES = {name: kafkas for name, kafkas in KAFKAS_NAMES.items() if name != "append_time_ms"} | {
    "is_transactional": "isTransactional",
    "is_control": "isControlBatch",
    "max_timestamp_ms": "maxTimestamp",
}


def judge_ours(kafka: Kafka, chunk: BatchChunk) -> int:
    """Check that Kafka reads our bytes as kfbench does, and finds the drawn records and fields.

    Return the number of batches.
    """
    data = bytes(chunk.encoded())
    seen = kafka.read(data)
    assert (seen["error"], seen["trailingBytes"]) == (None, 0)
    check_sidecar(read_log(data), seen["batches"])
    rows = iter(seen["batches"])
    for messages, fields in zip(chunk.case.batches, chunk.case.fields, strict=True):
        plain = chunk.name != "v2" and chunk.codec == "none"
        for part in [[message] for message in messages] if plain else [messages]:
            _check_given(next(rows), part, fields, chunk)
    assert next(rows, None) is None
    return len(chunk)


def _check_given(row: dict[str, Any], messages: Any, fields: Fields, chunk: BatchChunk) -> None:
    append = fields.append_time_ms
    if (
        chunk.name == "v2" and append is not None and fields.max_timestamp_ms is not None
    ):  # readers take it from the maximum timestamp
        append = fields.max_timestamp_ms
    assert row["compression"] == (chunk.codec if messages else "none") or (not messages and chunk.name == "v2")
    assert [message_of(record) for record in row["records"]] == [
        message if append is None else replace(message, timestamp_ms=append) for message in messages
    ]
    assert (row["timestampType"] == "LOG_APPEND_TIME") == (append is not None)
    if chunk.name == "v2":
        for field, kafkas in SIDECAR_NAMES.items():
            given = getattr(fields, field)
            if given is not None or field == "delete_horizon_ms":
                assert row[kafkas] == given, field


def judge_kafkas(kafka: Kafka, chunk: BatchChunk) -> int:
    """Check that kfbench reads what Kafka writes for the same specs, and writes the same bytes.

    If our compression library is not Kafka's, only the decompressed bytes must be equal. Return the number of batches.
    """
    chosen = [i for i, spec in enumerate(chunk.kafka) if spec]
    if not chosen:
        return 0
    part = chunk.part(chosen)
    data = kafka.write(*(spec for spec in part.kafka if spec))
    ours = bytes(part.encoded())
    seen = kafka.read(data)
    assert (seen["error"], seen["trailingBytes"]) == (None, 0)
    log = read_log(data)
    check_sidecar(log, seen["batches"])
    assert log.batches["canonical"].all()
    again = bytes(write_log(log))
    if is_exact(part.codec, kafka.libraries, part.level):
        assert ours == data
    if part.codec == "none":
        assert again == data
        return len(part)
    assert _columns(kafka.read(ours)) == _columns(seen)
    # If the first messages of a v1 set were compacted away, its base offset is unknown.
    but = {"decompressedSha256"} if part.name == "v1" else set()
    assert _columns(kafka.read(again), but) == _columns(seen, but)
    return len(part)


def _columns(seen: dict[str, Any], but: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the fields of each batch that do not depend on its compressed bytes.

    Fields named in `but` are left out, too.
    """
    assert seen["error"] is None
    return [{name: row[name] for name in row.keys() - COMPRESSED_ONLY - set(but)} for row in seen["batches"]]


def disagreement(judge: Callable[[Kafka, BatchChunk], int], kafka: Kafka, chunk: BatchChunk) -> str:
    """Describe the failure of a chunk: the shortest description of a batch that fails alone, or of the whole chunk."""
    found = []
    for one in [chunk.part([i]) for i in range(len(chunk))] + [chunk]:
        try:
            judge(kafka, one)
        except (AssertionError, KfbenchError) as error:
            kind = f"{type(error).__name__}: {error}"[:2000]
            found.append(f"{one.name} {one.codec} {one.level}\n{one.case}\n{one.kafka}\n{kind}")
    return min(found, key=len, default="only as a whole, and not again")


@pytest.mark.thorough
def test_more_than_ten_thousand_batches_are_compared() -> None:
    assert sum(LEAST_BY_KAFKA[name] * BATCHES[name] for name, _ in COMBINATIONS) > 10_000


@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_each_side_reads_what_the_other_writes(
    name: str, codec: str, kafka: Kafka, part: int, verdicts: Counter[str]
) -> None:
    held, disagreements, batches = Counter[str](), [], BATCHES[name] // part
    for chunk in chunks(name, codec, SEED, batches):
        for direction, judge in ((OURS, judge_ours), (KAFKAS, judge_kafkas)):
            try:
                held[direction] += judge(kafka, chunk)
            except (AssertionError, KfbenchError):
                disagreements.append(f"{direction}: {disagreement(judge, kafka, chunk)}")
    verdicts.update({f"batches {direction}": count for direction, count in held.items()})
    assert not disagreements, f"{len(disagreements)} chunks; the smallest:\n{min(disagreements, key=len)}"
    assert held[OURS] == batches and held[KAFKAS] >= LEAST_BY_KAFKA[name] * batches
