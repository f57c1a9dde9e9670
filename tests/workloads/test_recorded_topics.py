"""Recorded topics are workloads: always the same records, never more than were recorded."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from kfbench import FORMATS
from kfbench.errors import InvalidConfig
from kfbench.log import read_log
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads.recorded import LINES_FOLDER, RECORDED_FOLDER, TOPICS, NotFetched, RecordedTopic, _read

TOPIC = RecordedTopic(name="lines-jvm-gc", batch_size=7)


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replace the folder of public data with an empty one, as on a machine without `make public`."""
    monkeypatch.setattr("kfbench.workloads.recorded.PUBLIC", tmp_path)
    _read.cache_clear()
    return tmp_path


def test_every_recorded_topic_is_a_workload_with_all_its_lines() -> None:
    index = json.loads((LINES_FOLDER / "index.json").read_text())
    for entry in index:
        assert sha256((LINES_FOLDER / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
    lines = {name for name in TOPICS if name.startswith("lines-")}
    assert {f"lines-{entry['file'].removesuffix('.log')}" for entry in index} == lines
    assert TOPIC.recorded == next(entry["lines"] for entry in index if entry["file"] == "jvm-gc.log")


def test_the_records_are_those_of_the_log_in_order() -> None:
    log = read_log(LINES_FOLDER / "jvm-gc.log").records
    sample = TOPIC.generate(records=100, seed=1)
    assert sample.records.values() == log.part(0, 100).values() and sample.bounds[-1] == 100
    assert np.array_equal(sample.records.timestamps_ms, log.timestamps_ms[:100])
    assert (np.diff(sample.bounds)[:-1] == 7).all()
    rest = TOPIC.generate(records=60, seed=2, start=40)
    assert rest.records == sample.records.part(40, 100) and rest.bounds[1] == 2


def test_more_lines_than_were_recorded_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="lines-jvm-gc"):
        TOPIC.generate(records=TOPIC.recorded, seed=0, start=1)
    for batch_size in (0, None):
        with pytest.raises(InvalidConfig, match=f"batch_size: {batch_size}"):
            RecordedTopic(name="lines-jvm-gc", batch_size=batch_size)


def test_segments_have_their_own_batches_and_their_own_bytes() -> None:
    topics = [topic for name, topic in TOPICS.items() if name.startswith("recorded-")]
    assert len(topics) >= 5
    for topic in topics:
        assert len(read_log(RECORDED_FOLDER / f"{topic.name.removeprefix('recorded-')}.log")) >= 40
    topic = TOPICS["recorded-consumer-offsets"]
    sample = topic.generate(records=topic.recorded, seed=0)
    log = FORMATS["v2"].encode(sample.records, sample.bounds, batch_fields=sample.batch_fields)
    assert log.data.tobytes() == (RECORDED_FOLDER / "consumer-offsets.log").read_bytes()


@pytest.mark.parametrize("name", ["recorded-consumer-offsets", "recorded-changelog-upgraded-uncompacted"])
def test_a_part_of_a_segment_has_a_part_of_its_batches(name: str) -> None:
    whole = TOPICS[name].generate(records=60, seed=0)
    part = TOPICS[name].generate(records=40, seed=0, start=20)
    assert part.records == whole.records.part(20, 60)
    inner = whole.bounds[whole.bounds > 20] - 20
    assert part.bounds.tolist() == [0, *inner.tolist()]
    rows, wanted = part.batch_fields.over(len(part.bounds) - 1), whole.batch_fields.over(len(whole.bounds) - 1)
    assert np.array_equal(rows[1:], wanted[-len(rows) + 1 :])


def test_rows_of_public_data_are_records_with_rising_times(cache_folder: Path) -> None:
    (cache_folder / "movies.jsonl").write_bytes(b'{"Title":"A"}\n{"Title":"B"}\n{"Title":"C"}\n')
    topic = TOPICS["public-json-movies"]
    sample = topic.generate(records=3, seed=0)
    assert topic.is_fetched and topic.recorded == 3
    assert sample.records.values() == [b'{"Title":"A"}', b'{"Title":"B"}', b'{"Title":"C"}']
    assert (np.diff(sample.records.timestamps_ms) >= 0).all() and sample.records.offsets.tolist() == [0, 1, 2]


def test_a_set_that_was_not_fetched_is_skipped_with_the_reason() -> None:
    topic = TOPICS["public-json-movies"]
    assert not topic.is_fetched
    with pytest.raises(NotFetched, match="make public"):
        topic.generate(records=3, seed=0)
    cells = [cell for cell in load_profile("dictionary").cells if cell.workload.name == "public-json-movies"]
    assert {cell.kind for cell in cells} == {"dictionary"}
    for cell in cells:
        rows = measure_cell(cell)
        assert {row["format"] for row in rows} == {"v2", "columnar"}
        assert all(row["status"] == "skipped" and "make public" in row["error"] for row in rows)


def test_a_sweep_takes_no_more_lines_than_there_are() -> None:
    cells = [cell for cell in load_profile("dictionary").cells if cell.workload.name.startswith("lines-")]
    assert {cell.workload.name for cell in cells} == {name for name in TOPICS if name.startswith("lines-")}
    for cell in cells:
        assert isinstance(cell.workload, RecordedTopic) and 0 < cell.records <= cell.workload.recorded
        assert cell.payload_bytes <= 8 << 20
