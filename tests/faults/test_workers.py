"""A sweep loses workers and executors, and has cells that fail or hang. It still measures all other cells."""

import time
from functools import partial
from pathlib import Path
from random import Random

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kfbench.store import Run
from kfbench.sweep.spark.session import TASK_ATTEMPTS
from tests.faults.sweeping import Sweeping
from tests.runs import deterministic

pytestmark = pytest.mark.spark


def test_python_workers_are_killed(tmp_path: Path, undisturbed: Run, moments: Random) -> None:
    with Sweeping(tmp_path / "out", "--master", "local[2]") as sweep:
        for _ in range(TASK_ATTEMPTS - 1):  # an attempt of a task may be killed each time
            sweep.until(sweep.parts() + moments.randint(1, 8), sweep.workers)
            time.sleep(moments.uniform(0, 0.1))
            with_daemons = moments.random() < 0.3
            sweep.kill_one(partial(sweep.others, "pyspark.daemon") if with_daemons else sweep.workers, moments)
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))


def test_executors_are_killed(tmp_path: Path, undisturbed: Run, moments: Random) -> None:
    with Sweeping(tmp_path / "out", "--master", "local-cluster[2,1,1024]") as sweep:
        for _ in range(2):
            sweep.until(sweep.parts() + moments.randint(1, 8), sweep.executors)
            time.sleep(moments.uniform(0, 0.1))
            sweep.kill_one(sweep.executors, moments)
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))


LIMIT_S = 5
FAULTY = f"""\
from dataclasses import replace
from pathlib import Path
from kfbench.sweep.definition import profile as profiles
from kfbench.sweep.run import runner
from tests.sweep import faulty
runner.LEAST_LIMIT_S = {LIMIT_S}
load = profiles.load_profile
def loaded(name, workloads=()):
    profile = load(name, workloads)
    cells = list(profile.cells)
    for i, kind in enumerate((faulty.Hangs, faulty.Deaf, faulty.Dies, faulty.Raises)):
        cells[i] = replace(cells[i], workload=kind.like(cells[i].workload, Path()))
    return replace(profile, cells=tuple(cells))
profiles.load_profile = loaded
"""
MARKS = f"TookTooLong: it took longer than {LIMIT_S} s", "no worker survived it: ", "RuntimeError: out of ideas"
FORMATS = 5  # the cell that raises has one error row per format


def test_cells_that_fail_are_rows_with_an_error(tmp_path: Path, undisturbed: Run) -> None:
    """One cell exceeds the time limit and is ended by its signal.

    Two cells lose their worker process: one blocks the interpreter's lock, one dies.

    A resumed sweep tries these three again, because the host may have been busy. It does not repeat a cell that raised
    an error.
    """
    out = tmp_path / "out"
    with Sweeping(out, "--master", "local[2,1]", patch=FAULTY) as sweep:
        sweep.until(undisturbed.manifest["stages"][0]["cells"] + 1)
        sweep.process.kill()
        sweep.until_nobody_is_left()
    parts = sweep.run().glob("measurements/*.parquet")
    failed = [row for part in parts for row in pq.read_table(part).to_pylist() if row["status"] == "error"]
    errors = [sorted({row["error"] for row in failed if mark in row["error"]}) for mark in MARKS]
    assert sum(map(len, errors)) == len({row["error"] for row in failed})
    assert [len(each) for each in errors] == [1, 2, FORMATS], errors
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        status, printed, err = sweep.finish()
    assert (status, printed) == (3, f"{sweep.run()}\n") and err.count("\n") == 1, err
    rows, whole = deterministic(sweep.run()), deterministic(undisturbed.path)
    raised = pc.equal(rows["status"], "error")
    assert rows.filter(pc.invert(raised)).equals(whole.filter(pc.invert(raised)))
    assert sorted(rows.filter(raised)["error"].to_pylist()) == errors[2]
