"""A topic whose records change: those of another recorded topic come first."""

from dataclasses import replace
from typing import Any

import pytest

from kfbench.errors import InvalidConfig
from kfbench.research.dictionaries.kinds import DictionarySettings, topic_of
from kfbench.sweep.definition import sweep_file
from kfbench.sweep.definition.profile import cells_of_grid
from kfbench.sweep.definition.sweep_file import Grid
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads.recorded.topics import TOPICS
from tests.sweep.cells import dictionary_cell

SETTINGS = {"trained_share": (0.5, 0.75), "parts": 2, "preceded_by": "lines-jvm-gc"}
NEW = replace(TOPICS["lines-kafka-broker"], batch_size=7)


def test_the_records_change_in_the_middle_at_a_batch_boundary() -> None:
    cell = replace(dictionary_cell(settings=SETTINGS, records=1_000), workload=NEW)
    sample = topic_of(cell)
    parts = [replace(TOPICS["lines-jvm-gc"], batch_size=7), NEW]
    old, new = (part.generate(records=1_000, seed=0) for part in parts)
    assert sample.records.values() == old.records.values() + new.records.values()
    assert 1_000 in sample.bounds and sample.bounds[-1] == len(sample.records) == 2_000
    rows = measure_cell(replace(cell, formats=("v2",), grids={"g": ("v2",)}))
    (first, second) = (row for row in rows if row["trained_share"] == 0.5 and row["dictionary"] == "plain")
    assert first["records"] + second["records"] == 1_000
    trained = {row["trained_share"]: row["trained_records"] for row in rows if row["dictionary"] == "trained"}
    assert trained[0.5] == 1_000 and 1_500 <= trained[0.75] < 1_507


@pytest.mark.parametrize(
    ("before", "workloads", "reason"),
    [
        ("lines-none", ["lines-jvm-gc"], "'lines-none'"),
        ("recorded-telemetry", ["lines-jvm-gc"], "'recorded-telemetry'"),
        ("lines-jvm-gc", ["user-activity"], "'user-activity'"),
        ("lines-jvm-gc", ["lines-*"], r"'lines-\*'"),
        ("lines-jvm-gc", ["lines-jvm-gc"], "itself"),
    ],
)
def test_only_other_topics_of_lines_can_follow(before: str, workloads: list[str], reason: str) -> None:
    given: dict[str, Any] = {"workloads": workloads, "dictionary": DictionarySettings(preceded_by=before)}
    grid = Grid(
        name="g", title="", analysis="", measure=["dictionary"], formats=["v2"], codecs={"zstd": [3]}, **given
    )  # fmt: skip
    with pytest.raises(InvalidConfig, match=f"preceded_by.*{reason}"):
        cells_of_grid("here", grid, sweep_file.read("dictionary").file)
