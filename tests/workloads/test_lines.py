"""Recorded lines are a workload: always the same records, never more than were recorded."""

import json

import numpy as np
import pytest

from kfbench.errors import InvalidConfig
from kfbench.log import read_log
from kfbench.sweep.definition.profile import load_profile
from kfbench.workloads.recorded.lines import FOLDER, LINES, RecordedLines

TOPIC = RecordedLines(name="lines-jvm-gc", batch_size=7)


def test_every_recorded_topic_is_a_workload_with_all_its_lines() -> None:
    index = json.loads((FOLDER / "index.json").read_text())
    assert {f"lines-{entry['file'].removesuffix('.log')}" for entry in index} == set(LINES)
    assert TOPIC.recorded == next(entry["lines"] for entry in index if entry["file"] == "jvm-gc.log")


def test_the_records_are_those_of_the_log_in_order() -> None:
    log = read_log(FOLDER / "jvm-gc.log").records
    sample = TOPIC.generate(records=100, seed=1)
    assert sample.records.values() == log.part(0, 100).values() and sample.bounds[-1] == 100
    assert np.array_equal(sample.records.timestamps_ms, log.timestamps_ms[:100])
    assert (np.diff(sample.bounds)[:-1] == 7).all()
    rest = TOPIC.generate(records=60, seed=2, start=40)
    assert rest.records == sample.records.part(40, 100) and rest.bounds[1] == 2


def test_more_lines_than_were_recorded_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="lines-jvm-gc"):
        TOPIC.generate(records=TOPIC.recorded, seed=0, start=1)
    with pytest.raises(InvalidConfig, match="batch_size: 0"):
        RecordedLines(name="lines-jvm-gc", batch_size=0)


def test_a_sweep_takes_no_more_lines_than_there_are() -> None:
    cells = [cell for cell in load_profile("dictionary").cells if cell.workload.name.startswith("lines-")]
    assert {cell.workload.name for cell in cells} == set(LINES)
    for cell in cells:
        assert isinstance(cell.workload, RecordedLines) and 0 < cell.records <= cell.workload.recorded
        assert cell.payload_bytes <= 8 << 20
