"""The driver of JMH computes JMH's own interval, stores one run per selection, and stops if Java writes other bytes."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kfbench.formats import FORMATS
from kfbench.present.stored_times import AA, OUR_OPERATIONS
from tools import java_formats, jmh, jvm
from tools.jmh import BLOCKS, NAMES, Block, Plan

RESULT: dict[str, Any] = {
    "benchmark": "kfbench.FormatsBenchmark.write",
    "params": {"format": "v3", "codec": "zstd", "records": "50", "tasks": "/tmp/x"},
    "primaryMetric": {"rawData": [[1000.0, 1100.0], [1200.0, 1100.0]]},
    "secondaryMetrics": {"gc.alloc.rate.norm": {"rawData": [[500.0, 500.0], [500.0, 500.0]]}},
}
ONE = Block(("skim",), ("columnar",), ("zstd",), (10,))


def test_selections_have_the_stated_number_of_cells() -> None:
    assert sum(map(len, BLOCKS["all"])) == 5 * 5 * 3 * 4 + 3 * 4
    assert sum(map(len, BLOCKS["claimed"])) == 36


def test_a_row_has_the_mean_and_its_interval() -> None:
    row = jmh.row(RESULT)
    assert (row["operation"], row["format"], row["records"], row["samples"]) == ("write", "v3", 50, 4)
    assert (row["ns_per_op"], row["ns_per_record"], row["bytes_per_record"]) == (1100.0, 22.0, 10.0)
    low, high = row["ns_per_op_interval"]
    assert low == pytest.approx(
        1100 - 3.182446 * 81.64966 / 2, abs=0.01
    )  # t of 3 degrees of freedom, and the deviation
    assert high == pytest.approx(2200 - low, abs=0.02)


def test_with_three_jvms_the_interval_is_that_of_their_means() -> None:
    forks = [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]
    mean, low, high = jmh.interval(forks)
    assert mean == 2
    assert high - mean == mean - low == pytest.approx(4.302653 / 3**0.5, rel=1e-6)  # t of 2 degrees of freedom
    assert jmh.interval(forks[:2]).high - 1.5 == pytest.approx(2.570582 * 0.223607, rel=1e-5)  # of 6 iterations


@pytest.mark.parametrize("options", [["--cells", "smoke"], ["--forks", "2"], ["--cells", "claimed", "--forks", "1"]])
def test_a_short_run_needs_a_file_of_its_own(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["jmh", *options])
    with pytest.raises(SystemExit, match="2"):
        jmh.main()


def test_a_run_replaces_the_earlier_one_of_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "second-opinion" / "jmh.json"
    for kafka, cells, ns in (("4.4.0", "all", 1), ("4.4.0", "claimed", 2), ("3.9.2", "all", 3), ("4.4.0", "all", 4)):
        jmh.store({"kafka": kafka, "cells": cells, "rows": [{"ns_per_op": ns}], "ours": []}, path)
    runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
    assert sorted(run["rows"][0]["ns_per_op"] for run in runs) == [2, 3, 4]


def test_every_batch_of_a_task_has_its_records() -> None:
    task = jmh.task(10)
    assert [len(batch["records"]) for batch in task["batches"]] == [10] * jmh.BATCHES
    assert [record["offset"] for record in task["batches"][1]["records"]] == list(range(10))
    assert len(set(task["sha256"].values())) == (len(NAMES) - 1) * 3  # v2 is there more than once


def test_samples_of_several_jvms_are_pooled_by_cell() -> None:
    results: dict[str, dict[str, Any]] = {}
    for ns in (1.0, 2.0, 3.0):
        fork = copy.deepcopy(RESULT)
        fork["primaryMetric"]["rawData"] = [[ns]]
        other = copy.deepcopy(fork)
        other["params"]["codec"] = "none"
        jmh.add_fork(results, [fork, other])
    rows = [jmh.row(result) for result in results.values()]
    assert [(row["codec"], row["forks"], row["ns_per_op"]) for row in rows] == [("zstd", 3, 2.0), ("none", 3, 2.0)]


def test_our_kernels_are_timed_on_the_same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jmh, "OUR_ROUNDS", 3)
    monkeypatch.setattr(jmh, "OUR_RECORDS", 100)
    for operation in sorted(set(OUR_OPERATIONS.values())):
        rows = [*jmh.timed(operation, "zstd", jmh.generated(10), java_formats.FORMATS)]
        assert [row["format"] for row in rows] == [*java_formats.FORMATS, AA]
        assert {row["records"] for row in rows} == {10}
        (per_sample,) = {row["records_per_sample"] for row in rows}
        assert per_sample % (10 * jmh.BATCHES) == 0  # whole repetitions of all batches
        assert all(len(row["cpu_ns"]) == 3 and min(row["cpu_ns"]) > 0 for row in rows)


def test_repeated_batches_are_the_same_batches() -> None:
    once = jmh.generated(10)
    often = once.repeated(700)
    log = FORMATS["v2"].encode(once.records, once.bounds)
    assert bytes(FORMATS["v2"].encode(often.records, often.bounds)) == 3 * bytes(log)


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("line", java_formats.VERSIONS)
def test_jmh_times_a_cell_and_refuses_other_bytes(fetched: Callable[..., Path], line: str, tmp_path: Path) -> None:
    built = java_formats.built(line, ("formats", "jmh"), fetched)
    task = jmh.task(10)
    file = tmp_path / "10.json"
    file.write_text(json.dumps(task), encoding="utf-8")
    (result,) = jmh.jmh(built, ONE, Plan(1, 0, 3), tmp_path)
    assert jmh.interval(result["primaryMetric"]["rawData"], 0.999).high == pytest.approx(
        result["primaryMetric"]["scoreConfidence"][1]
    )
    assert jmh.row(result)["bytes_per_op"] > 0
    task["batches"][7]["records"][3]["value"] = "00"
    file.write_text(json.dumps(task), encoding="utf-8")
    with pytest.raises(jvm.ToolError, match="columnar zstd: other bytes than ours"):
        jmh.jmh(built, ONE, Plan(1, 0, 3), tmp_path)
