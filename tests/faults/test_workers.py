"""Python workers and executors that are killed while they measure, and cells that never come back: the others lose
nothing."""

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kfbench.measure.schema import DETERMINISTIC
from kfbench.store import open_run
from kfbench.sweep import runner
from kfbench.sweep.grid import load_profile
from kfbench.sweep.runner import run_sweep
from tests.faults.sweeping import Sweeping
from tests.runs import deterministic
from tests.sweep import faulty
from tests.sweep.test_spark import TINY

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow]


def test_python_workers_are_killed(tmp_path: Path, undisturbed: pa.Table) -> None:
    random = Random(3)
    with Sweeping(tmp_path / "out", "--master", "local[2]") as sweep:
        for _ in range(4):
            sweep.until(sweep.parts() + 1, sweep.workers)
            time.sleep(random.uniform(0, 0.3))
            with_daemons = random.random() < 0.3
            sweep.kill_one(partial(sweep.others, "pyspark.daemon") if with_daemons else sweep.workers, random)
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(undisturbed)


def test_executors_are_killed(tmp_path: Path, undisturbed: pa.Table) -> None:
    random = Random(4)
    with Sweeping(tmp_path / "out", "--master", "local-cluster[2,1,1024]") as sweep:
        for _ in range(2):
            sweep.until(sweep.parts() + 1, sweep.executors)
            time.sleep(random.uniform(0, 0.3))
            sweep.kill_one(sweep.executors, random)
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(undisturbed)


def test_cells_that_never_come_back_are_rows_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One hears the signal; the other holds the interpreter's lock, and its worker is ended, again and again."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    profile = load_profile(path)
    whole = deterministic(run_sweep(profile, tmp_path, "local[1]"))
    monkeypatch.setattr(runner, "LEAST_LIMIT_S", 6.0)
    cells = list(profile.cells)
    cells[2] = replace(cells[2], workload=faulty.Hangs.like(cells[2].workload, tmp_path))
    cells[5] = replace(cells[5], workload=faulty.Deaf.like(cells[5].workload, tmp_path))
    run = open_run(run_sweep(replace(profile, cells=tuple(cells)), tmp_path, "local[1]"))
    failed = pc.equal(run.table["status"], "error")
    assert run.table.select(list(DETERMINISTIC)).filter(pc.invert(failed)).equals(whole.filter(pc.invert(failed)))
    said = {(row["cell_id"], row["codec"]): row["error"] for row in run.table.filter(failed).to_pylist()}
    assert said.keys() == {(cell.cell_id, cell.codec) for cell in (cells[2], cells[5])}
    assert "TookTooLong: it took longer than 6 s" in said[cells[2].cell_id, cells[2].codec]
    assert "no worker survived it: " in said[cells[5].cell_id, cells[5].codec]
