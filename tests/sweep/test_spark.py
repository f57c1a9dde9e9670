"""The runner on a real Spark: the same rows whatever the master, runs that are whole or say that they are not."""

import gc
import io
import os
import unittest.mock
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

from kfbench.errors import KfbenchError, RunError
from kfbench.measure.schema import DETERMINISTIC
from kfbench.store import open_run
from kfbench.sweep import runner, whatif
from kfbench.sweep.cell import estimate_s, measure_recipes
from kfbench.sweep.grid import Profile, load_profile
from kfbench.sweep.progress import counting
from kfbench.sweep.runner import grouped, run_sweep
from kfbench.sweep.spark.session import SweepFailed, retrying
from tests.recorded import FOLDER

TINY = """\
title = "tiny"
analysis = "a"
seed = 3
[bytes]
records = 200
[cpu]
records = 200
rounds = 3
sample_us = 20
[[grid]]
name = "sizes"
title = "Sizes"
analysis = "what it says"
measure = ["bytes"]
formats = ["v0", "v1", "v2", "v3"]
codecs = { none = [], zstd = [3] }
illegal = "skip"
axes = { batch_size = [1, 10, 100], timestamp_spread_ms = [0, 1000] }
[[grid]]
name = "times"
title = "Times"
analysis = "a"
measure = ["cpu"]
formats = ["v2", "v3"]
axes = { batch_size = [10] }
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    path = tmp_path_factory.mktemp("profile") / "tiny.toml"
    path.write_text(TINY)
    return load_profile(path)


def deterministic(run: Path) -> pa.Table:
    return open_run(run).table.select(list(DETERMINISTIC))


@pytest.mark.spark
@pytest.mark.slow
def test_rows_are_the_same_whatever_the_master_and_the_partitioning(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = run_sweep(profile, tmp_path, "local[1]")
    monkeypatch.setattr(runner, "TASK_S", 1e-9)  # every cell a task of its own
    two = run_sweep(profile, tmp_path, "local[2]")
    assert one != two and len(list((one / "measurements").iterdir())) < len(list((two / "measurements").iterdir()))
    assert deterministic(one).equals(deterministic(two))


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_is_whole_and_says_how_it_came_about(
    profile: Profile, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    path = run_sweep(profile, tmp_path, "local[2]", command="kfbench sweep tiny.toml", console=terminal)
    run = open_run(path)
    assert path.parent == tmp_path / "runs"
    manifest = run.manifest
    assert manifest["command"] == "kfbench sweep tiny.toml" and manifest["master"] == "local[2,4]"
    assert manifest["profile"] == "tiny" and manifest["profile_text"] == TINY and manifest["seed"] == 3
    assert manifest["grids"][0] == {
        "name": "sizes", "title": "Sizes", "analysis": "what it says", "measure": ["bytes"],
    }  # fmt: skip
    assert manifest["environment"]["python"] and manifest["spark"]["version"]
    assert manifest["hosts"] == [manifest["environment"]["host"]]
    table = run.table
    statuses = dict.fromkeys(["ok", "skipped", "error"], 0)
    statuses |= {each["values"]: each["counts"] for each in table["status"].value_counts().to_pylist()}
    assert manifest["counts"] == {"cells": len(profile.cells), **statuses}
    # 5 points x 2 codecs x 4 formats; one CPU cell x 2 operations x 3 arms
    assert table.num_rows == manifest["rows"] == 5 * 2 * 4 + 6
    assert statuses == {"ok": 5 * 6 + 6, "skipped": 5 * 2, "error": 0}
    shown = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "bytes" in shown and "10/10" in shown and "1/1" in shown
    out, err = capfd.readouterr()
    assert out == err == ""  # neither Spark nor the JVM writes over the progress


@pytest.mark.spark
@pytest.mark.slow
def test_an_interrupted_run_says_so_and_what_it_has_is_sound(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TASK_S", 1e-9)
    store, stored = runner._store, []

    def interrupted(*args: object) -> None:
        store(*args)  # type: ignore[arg-type]
        stored.append(args)
        if len(stored) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_store", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(profile, tmp_path, "local[1]")
    (run,) = (tmp_path / "runs").iterdir()
    assert len(list((run / "measurements").glob("*.parquet"))) == 3
    with pytest.raises(RunError, match="state: running"):
        open_run(run)


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_worker_costs_nothing(profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died = tmp_path / "died"

    def once_fatal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not died.exists():
            died.touch()
            os._exit(9)
        yield from measure_recipes(batches)

    whole = run_sweep(profile, tmp_path, "local[1]")
    monkeypatch.setattr(runner, "measure_recipes", once_fatal)
    assert deterministic(run_sweep(profile, tmp_path, "local[1]")).equals(deterministic(whole))
    assert died.exists()


@pytest.mark.spark
@pytest.mark.slow
def test_cells_that_fail_are_rows_and_are_counted(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_v1(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kfbench.formats import FORMATS
        from kfbench.sweep import cell

        few = {name: fmt for name, fmt in FORMATS.items() if name != "v1"}
        with unittest.mock.patch.object(cell, "FORMATS", few):
            yield from measure_recipes(batches)

    monkeypatch.setattr(runner, "measure_recipes", without_v1)
    run = open_run(run_sweep(profile, tmp_path, "local[1]"))
    failed = run.table.filter(pc.equal(run.table["status"], "error"))
    assert set(failed["format"].to_pylist()) == {"v1"} and len(failed) == run.manifest["counts"]["error"] == 5
    assert all(error.endswith("v1: KeyError: 'v1'") for error in failed["error"].to_pylist())


@pytest.mark.spark
@pytest.mark.slow
def test_when_spark_gives_up_it_is_one_line_and_half_a_run(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ZeroDivisionError("no way")

    def fatal(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os._exit(9)

    for task, said in ((broken, "ZeroDivisionError: no way"), (fatal, "Python worker exited unexpectedly")):
        monkeypatch.setattr(runner, "measure_recipes", task)
        with pytest.raises(SweepFailed, match=said) as caught:
            run_sweep(profile, tmp_path, "local[1]")
        assert "\n" not in str(caught.value)
    runs = list((tmp_path / "runs").iterdir())
    assert len(runs) == 2
    for run in runs:
        with pytest.raises(RunError, match="state: running"):
            open_run(run)


# PySpark starts a JVM, gives it up and leaves its pipe to whoever collects the garbage: here, not in another test.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_is_not_there_is_one_clear_line(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(SweepFailed, match=r"Spark did not start on nowhere://1") as caught:
        run_sweep(profile, tmp_path, "nowhere://1")
    assert isinstance(caught.value, KfbenchError) and "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()
    del caught
    gc.collect()


def test_progress_is_quiet_when_nobody_watches() -> None:
    file = io.StringIO()
    with counting(Console(file=file)) as progress:
        bar = progress.add_task("bytes", total=3, failed=0)
        progress.update(bar, advance=3)
    assert file.getvalue() == ""


def test_tasks_are_alike_and_the_longest_come_first() -> None:
    cells = load_profile("default").cells
    tasks = grouped(cells)
    assert sorted(cell.title for task in tasks for cell in task) == sorted(cell.title for cell in cells)
    costs = [sum(map(estimate_s, task)) for task in tasks]
    assert costs == sorted(costs, reverse=True)
    assert all(cost <= runner.TASK_S or len(task) == 1 for cost, task in zip(costs, tasks, strict=True))
    assert grouped([]) == []


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_local_masters_try_again(given: str, used: str) -> None:
    assert retrying(given) == used


@pytest.mark.spark
@pytest.mark.slow
def test_what_if_is_the_same_by_spark_whatever_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, name in enumerate(["telemetry.log", "edges.log", "transactions.log"]):
        path = tmp_path / f"orders-{i}" / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes((FOLDER / name).read_bytes())
    (path.parent / "00000000000000000500.log").write_bytes(b"no log at all" * 9)
    asked: dict[str, Any] = {"formats": ["v2", "v3"], "codecs": ["none", "lz4"], "sample_bytes": 30_000, "seed": 5}
    here = whatif.what_if(tmp_path, **asked)
    monkeypatch.setattr(whatif, "TASK_BYTES", 1)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    assert whatif.what_if(tmp_path, **asked, master="local[2]", console=terminal) == here
    assert "what-if" in (shown := terminal.file.getvalue()) and "4/4" in shown  # type: ignore[attr-defined]
    assert here.lost_bytes == 9 * 13
