"""The runner without Spark measures real cells. Spark's runner is compared with it."""

import pyarrow.compute as pc
import pytest

from kfbench.comparison.agreement import agreement
from kfbench.store import Run, open_run
from tests.sweep.profiles import block, load_in
from tools.serial import is_met, serial


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("serial")
    two_cells = load_in(folder, "cpu = {records = 20, rounds = 3, sample_us = 1}\n", block(measure='["cpu"]'))
    return serial(two_cells, folder, "python -m tools.serial two.toml")


def test_the_manifest_describes_the_run(run: Run) -> None:
    manifest = open_run(run.path).manifest
    assert (manifest["command"], manifest["master"]) == ("python -m tools.serial two.toml", "none: one process")
    assert manifest["counts"] == {"cells": 2, "ok": 2 * 2 * 3, "skipped": 0, "error": 0}
    assert "spark" not in manifest and "resumed" not in manifest
    assert manifest["hosts"] == [manifest["environment"]["host"]] == list(manifest["host_facts"])
    assert list(manifest["noise"]["hosts"]) == manifest["hosts"]
    (stage,) = manifest["stages"]
    assert (stage["kind"], stage["cells"], stage["slots"]) == ("cpu", 2, 1)


def test_missing_rows_fail_the_comparison(run: Run) -> None:
    assert is_met(agreement(run.table, run.table, 0.03))
    without = run.table.filter(pc.not_equal(run.table["format"], "v3"))
    assert not is_met(agreement(run.table, without, 0.03))
