"""Sweeps on a cluster of real processes give the bytes of one machine, known hosts, and CPU times of one host."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyspark
import pytest

import kfbench
from kfbench.errors import RunError
from kfbench.measure.environment import host, without_hosts
from kfbench.store import RunWriter, open_run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.host.packing import code_digest
from kfbench.sweep.run.runner import RunOptions, run_sweep
from kfbench.sweep.spark import session as sessions
from kfbench.sweep.spark.executors import Executors, run_calls
from kfbench.sweep.spark.session import SweepFailed, session
from kfbench.whatif import ask
from tests.cluster.sweeping import TINY, cli, measured_here
from tests.recorded import FOLDER
from tests.runs import deterministic
from tools.cluster import Cluster, hosts_can_be_named
from tools.loopback import wait_for

two_hosts = pytest.mark.skipif(not hosts_can_be_named(), reason="no process may have a host name of its own here")

HOSTS = {host("worker-0"), host("worker-1")}
IMPORTS = """
import pathlib, sys
import kfbench.kernels
from kfbench.sweep.run.task import measure_task
from kfbench.sweep.host.packing import code_digest
print(code_digest(), kfbench.kernels.__file__, sep="\\n")
print(*sorted({module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}), sep="\\n")
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def undisturbed(tiny: Path) -> pa.Table:
    return measured_here(tiny)


def where(_: int) -> str:
    """Return the host name of the executor that runs this Spark task."""
    time.sleep(0.2)
    return host()


def executors(cluster: Cluster) -> list[psutil.Process]:
    """Return the executor processes. Leave out the zombie of the shell that started a worker."""
    children = [child for worker in cluster.workers for child in psutil.Process(worker.pid).children()]
    return [child for child in children if _is_alive(child)]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended since it was listed
        return False


def kill_executors(cluster: Cluster) -> None:
    for each in executors(cluster):
        os.kill(each.pid, signal.SIGKILL)


def test_a_cluster_gives_the_bytes_of_one_machine_in_the_environment_that_is_shipped(
    cluster: Cluster, archive: Path, tiny: Path, undisturbed: pa.Table, tmp_path: Path
) -> None:
    run = Path(cli("sweep", tiny, "--out", tmp_path, "--master", cluster.url, "--archive", archive))
    assert deterministic(run).equals(undisturbed)
    manifest = open_run(run).manifest
    assert manifest["master"] == without_hosts(cluster.url) and "127.0.0.1" not in json.dumps(manifest)
    facts = manifest["host_facts"]
    assert sorted(facts) == manifest["hosts"] and all(each["code"] == code_digest() for each in facts.values())
    if hosts_can_be_named():
        assert set(facts) <= HOSTS
        assert len(set(open_run(run).table.filter(pc.field("kind") == "cpu")["host"].to_pylist())) == 1
    for i in range(2):
        assert list((cluster.folder / f"worker-{i}").glob("app-*/*/kfbench/bin/python"))


def test_a_local_cluster_gives_them_too_and_writes_nothing_into_pyspark(
    tiny: Path, undisturbed: pa.Table, tmp_path: Path
) -> None:
    run = Path(cli("sweep", tiny, "--out", tmp_path, "--master", "local-cluster[2,1,1024]"))
    assert deterministic(run).equals(undisturbed)
    assert not Path(pyspark.__file__).with_name("work").exists()


def test_what_if_is_the_same_on_a_cluster(cluster: Cluster) -> None:
    options: dict[str, Any] = {"formats": ["v3"], "codecs": ["none", "lz4"], "sample_bytes": 30_000, "seed": 5}
    path = FOLDER / "telemetry.log"
    assert ask.what_if(path, **options, master=cluster.url) == ask.what_if(path, **options)


@two_hosts
def test_all_times_come_from_one_host_also_after_its_executor_is_lost(cluster: Cluster) -> None:
    with session(cluster.url) as spark:
        running = Executors(spark, cluster.url)
        running.prepare()
        assert set(running.hosts) == HOSTS and running.slots() == 2
        calls = [(where, i) for i in range(8)]
        assert {found for _, found in run_calls(running, calls, 2)} == HOSTS
        for chosen in sorted(HOSTS):  # the second host has no executor left
            running.stay_on(chosen)
            wait_for("one executor", lambda: len(executors(cluster)) == 1, 60)
            assert {running.run(call, chosen) for call in calls[:4]} == {chosen}
        running._request(2)  # as Spark does it: an executor on the other host replaces a lost one
        wait_for("two executors", lambda: running.slots() == 2, 60)
        before = {each.pid for each in executors(cluster)}
        kill_executors(cluster)
        assert {running.run(call, chosen) for call in calls} == {chosen}
        assert not before & {each.pid for each in executors(cluster)}


@two_hosts
def test_a_host_that_gives_no_executor_any_more_is_one_clear_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(cluster.url, {"spark.cores.max": "1"}) as spark:
        running = Executors(spark, cluster.url)
        running.prepare()
        monkeypatch.setattr(sessions, "EXECUTORS_S", 1.0)
        (here,) = running.hosts
        (elsewhere,) = HOSTS - {here}
        with pytest.raises(SweepFailed, match=f"{elsewhere} has no executor any more.*resume the run"):
            running.run((where, 0), elsewhere)


@two_hosts
def test_a_run_is_resumed_where_it_was_timed(
    cluster: Cluster, tiny: Path, undisturbed: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = load_profile(tiny)
    add = RunWriter.add

    def interrupted(writer: RunWriter, rows: pa.Table, *, passing: bool = False) -> None:
        add(writer, rows, passing=passing)
        if "cpu" in rows["kind"].to_pylist():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("kfbench.sweep.run.plan.ALONE_TASK_S", 1e-9)  # one Spark task per timed cell
        patched.setattr(RunWriter, "add", interrupted)
        patched.setattr(
            "kfbench.sweep.run.runner.min", max, raising=False
        )  # this session times on another host than the next one
        with pytest.raises(KeyboardInterrupt):
            run_sweep(profile, tmp_path, RunOptions(master=cluster.url))
    (run,) = (tmp_path / "runs").iterdir()
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    began = json.loads((run / "manifest.json").read_text())
    assert set(began["host_facts"]) == HOSTS
    assert [(each["session"], each["kind"]) for each in began["stages"]] == [(0, "bytes"), (0, "cpu")]
    with pytest.raises(RunError, match=r"cells were timed on host-.* host-.*: times of two hosts"):
        run_sweep(profile, tmp_path, RunOptions(master="local[1]", resume=run))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files
    assert run_sweep(profile, tmp_path, RunOptions(master=cluster.url, resume=run)) == run
    assert deterministic(run).equals(undisturbed)
    manifest = open_run(run).manifest
    assert set(manifest["host_facts"]) == set(manifest["hosts"]) <= HOSTS
    assert [(each["session"], each["kind"]) for each in manifest["stages"]] == [(0, "bytes"), (0, "cpu"), (1, "cpu")]
    timed = open_run(run).table.filter(pc.field("kind") == "cpu")
    assert len(set(timed["cell_id"].to_pylist())) == 2 and len(set(timed["host"].to_pylist())) == 1


def test_an_executor_with_other_code_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """Change the installed code of the executors during a run. Executors that start later load it and are refused."""
    code = tmp_path / "code"
    here = Path(kfbench.__file__).parents[1]
    shutil.copytree(here / "kfbench", code / "kfbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(here / "datasets", code / "datasets")
    with session(cluster.url, {"spark.executorEnv.PYTHONPATH": f"{code}{os.pathsep}{here}"}) as spark:
        running = Executors(spark, cluster.url)
        running.prepare()
        assert running.run((where, 0)) in running.hosts
        with (code / "kfbench/sweep/run/task.py").open("a") as file:
            file.write("# another line\n")
        kill_executors(cluster)
        for asks in (lambda: running.run((where, 0)), running.prepare):
            with pytest.raises(SweepFailed, match=r"host-\w+ would not measure the same: its kfbench has") as caught:
                asks()
            assert "kfbench pack" in str(caught.value) and "\n" not in str(caught.value)


def test_an_executor_without_kfbench_is_refused(cluster: Cluster) -> None:
    with session(cluster.url) as spark:
        running = Executors(spark, cluster.url)
        spark.sparkContext.pythonExec = sys._base_executable  # type: ignore[attr-defined]
        for asks in (running.prepare, lambda: running.run((where, 0))):
            with pytest.raises(SweepFailed, match=r"an executor cannot work: .*No module named.*kfbench pack"):
                asks()


def test_a_cluster_without_room_is_one_clear_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "EXECUTORS_S", 2.0)
    with (
        pytest.raises(SweepFailed, match=r"no executor in 2 s: .* 999424 MiB"),
        session(cluster.url, {"spark.executor.memory": "976g"}),
    ):
        pass


def test_the_archive_needs_nothing_else_and_has_one_kernel_cache(archive: Path, tmp_path: Path) -> None:
    folders = []
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.defpath}
    for name in ("first", "second"):
        with tarfile.open(archive) as packed:
            packed.extractall(tmp_path / name, filter="tar")
        start = tmp_path / name / "bin" / "python"
        command = [str(start), "-c", IMPORTS]
        found = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
        digest, kernels, *modules = found.stdout.split("\n")[:-1]
        assert digest == code_digest()
        assert {path for path in modules if not path.startswith(str(tmp_path))} == set()
        folders.append(kernels)
    assert (
        folders == [str(tmp_path / "home/.cache/kfbench" / f"code-{code_digest()}" / "kfbench/kernels/__init__.py")] * 2
    )
