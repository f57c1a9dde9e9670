"""Run sweeps on a real Spark: the rows are equal for every master, and incomplete runs are marked."""

import gc
import io
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import kfbench
from kfbench.errors import KfbenchError, RunError
from kfbench.measure.host_lock import host_lock
from kfbench.measure.schema import DETERMINISTIC, IDENTITY, table
from kfbench.progress import counting
from kfbench.store import RunWriter, open_run
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.run import plan, runner
from kfbench.sweep.run.runner import RunOptions, run_sweep
from kfbench.sweep.run.task import measure_cell
from kfbench.sweep.spark.executors import Executors
from kfbench.sweep.spark.session import SweepFailed, retrying, session
from kfbench.whatif import ask, tally
from tests.recorded import FOLDER
from tests.runs import deterministic, private_names_in, tiny
from tests.sweep import faulty

TINY = tiny(["v0", "v1", "v2", "v3"], timed=["v2", "v3"], batch_sizes=[10])


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    path = tmp_path_factory.mktemp("profile") / "tiny.toml"
    path.write_text(TINY)
    return load_profile(path)


@pytest.mark.spark
@pytest.mark.slow
def test_rows_are_the_same_whatever_the_master_and_the_partitioning(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = run_sweep(profile, tmp_path, RunOptions(master="local[1]"))
    monkeypatch.setattr(plan, "TASK_S", 1e-9)  # every cell becomes a task of its own
    two = run_sweep(profile, tmp_path, RunOptions(master="local[2]"))
    assert one != two and len(list((one / "measurements").iterdir())) < len(list((two / "measurements").iterdir()))
    assert deterministic(one).equals(deterministic(two))


TWO_SESSIONS = """
from kfbench.sweep.spark.session import session
for more in {"spark.cores.max": "1"}, {}:
    with session("local[1]", more) as spark:
        print(spark.sparkContext.getConf().get("spark.cores.max"))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_has_no_setting_of_the_one_that_started_the_jvm() -> None:
    """The second session has no settings of the first, which started the JVM.

    A new process is needed, because a JVM may already run in this one.
    """
    done = subprocess.run([sys.executable, "-c", TWO_SESSIONS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "None"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_worker_on_this_machine_with_other_code_is_refused(tmp_path: Path) -> None:
    ours = Path(kfbench.__file__).parent
    shutil.copytree(ours, tmp_path / "kfbench", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "datasets").symlink_to(ours.parent / "datasets")
    with (tmp_path / "kfbench/measure/bytes.py").open("a") as file:
        file.write("# other code\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    settings = {"spark.executorEnv.PYTHONPATH": path}
    with session("local[1]", settings) as spark, pytest.raises(SweepFailed, match="code"):
        Executors(spark, "local[1]").run((abs, -1))


DIES = """
import os
import sys
from contextlib import contextmanager
import psutil
from pyspark.core import rdd
from kfbench.sweep.spark.executors import map_tasks

opened = rdd._load_from_socket
@contextmanager
def stopped(address, serializer):
    if sys.argv[1] == "before":  # what it takes away at its end first: it still answers
        os.unlink(address[0])
    with opened(address, serializer) as rows:
        for each in psutil.Process().children():
            each.kill()
            each.wait()
        yield rows
rdd._load_from_socket = stopped
next(map_tasks(bytes, [64 << 20], "rows"))  # more than a socket holds
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("before", "[CANNOT_OPEN_SOCKET] "),
        pytest.param("meanwhile", "the JVM ended: it returned 0 of 1 results\n", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.slow
def test_a_jvm_that_dies_before_its_result_is_reported(moment: str, said: str) -> None:
    """The sweep must report that the JVM died.

    PySpark returns the rows received so far as if they were all. Without any row, it raises its own error.
    """
    environment = os.environ | {"TMPDIR": "/tmp"}  # short, so that the JVM answers on a socket in a folder
    done = subprocess.run(
        [sys.executable, "-c", DIES, moment], env=environment, capture_output=True, text=True, check=False
    )
    assert f"SweepFailed: a Spark task failed in every attempt: {said}" in done.stderr, done.stderr


def measuring_until(terminal: Console, words: str) -> None:
    """Hold the host lock, as another sweep would, until the terminal shows `words` (at most 120 s)."""
    with host_lock():
        deadline = time.monotonic() + 120
        while words not in terminal.file.getvalue() and time.monotonic() < deadline:  # type: ignore[attr-defined]
            time.sleep(0.02)


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_is_whole_and_says_how_it_came_about(
    profile: Profile, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "PATIENCE_S", 0.1)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    measuring = threading.Thread(target=measuring_until, args=(terminal, "waiting for a turn"))
    measuring.start()
    path = run_sweep(profile, tmp_path, RunOptions(master="local[2]", command="kfbench sweep tiny.toml"), terminal)
    measuring.join()
    run = open_run(path)
    assert path.parent == tmp_path / "runs"
    manifest = run.manifest
    page = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    assert [key for key in manifest if f"`{key}`" not in page] == []
    assert manifest["command"] == "kfbench sweep tiny.toml" and manifest["master"] == "local[2,4]"
    assert manifest["profile"] == "tiny" and manifest["profile_text"] == TINY and manifest["seed"] == 3
    assert manifest["grids"][0] == {
        "name": "sizes", "title": "Sizes", "analysis": "what it says", "measure": ["bytes"],
    }  # fmt: skip
    assert manifest["environment"]["python"] and manifest["spark"]["version"]
    assert manifest["hosts"] == [manifest["environment"]["host"]] == list(manifest["noise"]["hosts"])
    table = run.table
    statuses = dict.fromkeys(["ok", "skipped", "error"], 0)
    statuses |= {each["values"]: each["counts"] for each in table["status"].value_counts().to_pylist()}
    assert manifest["counts"] == {"cells": len(profile.cells), **statuses}
    # 5 points x 2 codecs x 4 formats; one CPU cell x 2 operations x 3 arms (timed calls); 3 floors
    assert table.num_rows == manifest["rows"] == 5 * 2 * 4 + 6 + 3
    assert statuses == {"ok": 5 * 6 + 6 + 3, "skipped": 5 * 2, "error": 0}
    shown = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert "bytes" in shown and "13/13" in shown and "1/1" in shown
    assert re.search(r"process( \d+)? measures on this host: waiting for a turn, 30 minutes at most", shown)
    out, err = capfd.readouterr()
    assert out == err == ""  # neither Spark nor the JVM may print over the progress bar


@pytest.mark.spark
def test_an_interrupted_run_says_so_and_is_resumed(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan, "TASK_S", 1e-9)
    add, stored = RunWriter.add, []

    def interrupted(writer: RunWriter, rows: pa.Table, **options: Any) -> None:
        add(writer, rows, **options)
        stored.extend([rows] if rows.num_rows else [])
        if len(stored) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunWriter, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(profile, tmp_path, RunOptions(master="local[1]"))
    (run,) = (tmp_path / "runs").iterdir()
    parts = sorted((run / "measurements").glob("*.parquet"))
    assert len(parts) == 3
    with pytest.raises(RunError, match="state: running"):
        open_run(run)
    parts[1].write_bytes(b"PAR1")
    first = {part: part.read_bytes() for part in (parts[0], parts[2])}
    with pytest.raises(RunError, match="cell_budget_s: "):
        run_sweep(profile, tmp_path, RunOptions(master="local[1]", resume=run, budget_s=1))
    assert run_sweep(profile, tmp_path, RunOptions(master="local[1]", command="again", resume=run)) == run
    assert "part-00001.damaged: damaged and renamed; its cells are measured again" in capsys.readouterr().err
    assert {part: part.read_bytes() for part in first} == first
    rows = [row for cell in profile.cells for row in measure_cell(cell)]
    whole = table(rows).sort_by([(name, "ascending") for name in IDENTITY]).select(list(DETERMINISTIC))
    assert deterministic(run).equals(whole)
    assert open_run(run).manifest["resumed"][0]["command"] == "again"
    stages = open_run(run).manifest["stages"]
    assert {stage["session"] for stage in stages} == {0, 1}
    assert sum(stage["cells"] for stage in stages if stage["session"]) == len(profile.cells) - 2


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
def test_failing_cells_do_not_cost_others_their_rows(profile: Profile, tmp_path: Path) -> None:
    """All bytes cells are in one task. It is tried again, then split until the failing cell is found."""
    whole = deterministic(run_sweep(profile, tmp_path, RunOptions(master="local[1]")))
    cells = list(profile.cells)
    for i, kind in enumerate((faulty.DiesOnce, faulty.Dies, faulty.Raises)):
        cells[i] = replace(cells[i], workload=kind.like(cells[i].workload, tmp_path))
    run = open_run(run_sweep(replace(profile, cells=tuple(cells)), tmp_path, RunOptions(master="local[1]")))
    assert (tmp_path / "DiesOnce").exists()
    failed = pc.equal(run.table["status"], "error")
    assert deterministic(run.path).filter(pc.invert(failed)).equals(whole.filter(pc.invert(failed)))
    lost = [(row["cell_id"], row["codec"], row["format"], row["error"]) for row in run.table.filter(failed).to_pylist()]
    assert {each[:3] for each in lost} == {(c.cell_id, c.codec, name) for c in cells[1:3] for name in c.formats}
    assert len(lost) == run.manifest["counts"]["error"] == 8
    dead = f"{cells[1].title}: no worker survived it: its Python worker ended"
    assert {each[3] for each in lost} == {dead} | {
        f"{cells[2].title}: {name}: RuntimeError: out of ideas" for name in cells[2].formats
    }
    (passing,) = (run.path / "measurements").glob("passing-*.parquet")
    assert pq.read_table(passing)["error"].to_pylist() == [dead] * 4
    assert private_names_in(run) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.thorough
def test_when_no_worker_can_work_it_is_one_line_and_half_a_run(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "measure_task", faulty.broken)
    with pytest.raises(SweepFailed, match="ZeroDivisionError: no way") as caught:
        run_sweep(profile, tmp_path, RunOptions(master="local[1]"))
    assert "\n" not in str(caught.value)
    (run,) = (tmp_path / "runs").iterdir()
    with pytest.raises(RunError, match="state: running"):
        open_run(run)


# PySpark leaves the pipe of its dead JVM to the garbage collector. Collect it here, not in a later test.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.spark
@pytest.mark.slow
def test_a_master_that_is_not_there_is_one_clear_line(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(SweepFailed, match=r"Spark did not start on nowhere://1") as caught:
        run_sweep(profile, tmp_path, RunOptions(master="nowhere://1"))
    assert isinstance(caught.value, KfbenchError) and "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()
    del caught
    gc.collect()


def test_a_place_that_cannot_be_written_is_said_before_spark_starts(profile: Profile, tmp_path: Path) -> None:
    (tmp_path / "reports").touch()
    with pytest.raises(RunError, match="no run can be written here: Not a directory"):
        run_sweep(profile, tmp_path / "reports", RunOptions(master="nowhere://1"))


def test_progress_is_quiet_when_nobody_watches() -> None:
    file = io.StringIO()
    with counting(Console(file=file)) as progress:
        bar = progress.add_task("bytes", total=3, failed=0)
        progress.update(bar, advance=3)
    assert file.getvalue() == ""


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
@pytest.mark.thorough
def test_what_if_is_the_same_by_spark_whatever_the_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, name in enumerate(["telemetry.log", "edges.log", "transactions.log"]):
        path = tmp_path / f"orders-{i}" / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes((FOLDER / name).read_bytes())
    (path.parent / "00000000000000000500.log").write_bytes(b"no log at all" * 9)
    asked: dict[str, Any] = {"formats": ["v2", "v3"], "codecs": ["none", "lz4"], "sample_bytes": 30_000, "seed": 5}
    here = ask.what_if(tmp_path, **asked)
    monkeypatch.setattr(tally, "TASK_BYTES", 1)
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    assert ask.what_if(tmp_path, **asked, master="local[2]", console=terminal) == here
    assert "what-if" in (shown := terminal.file.getvalue()) and "4/4" in shown  # type: ignore[attr-defined]
    assert here.lost_bytes == 9 * 13
