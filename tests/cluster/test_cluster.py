"""The same sweeps on a cluster of real processes: the same bytes, hosts that are known, CPU times of one of them."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyspark
import pytest

from kfbench.measure.environment import without_hosts
from kfbench.store import open_run
from kfbench.sweep import whatif
from kfbench.sweep.packing import code_digest
from kfbench.sweep.spark import session as sessions
from kfbench.sweep.spark.executors import prepare_hosts, stay_on_one_host
from kfbench.sweep.spark.session import SweepFailed, session, slots
from kfbench.sweep.spark.tasks import done
from tests.recorded import FOLDER
from tests.runs import deterministic
from tools.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

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
formats = ["v2", "v3"]
codecs = { none = [], zstd = [3] }
axes = { batch_size = [1, 10, 100], timestamp_spread_ms = [0, 1000] }
[[grid]]
name = "times"
title = "Times"
analysis = "a"
measure = ["cpu"]
formats = ["v2", "v3"]
axes = { batch_size = [10, 100] }
"""
IMPORTS = """
import pathlib, sys
import kfbench.kernels
from kfbench.sweep.cell import measure_task
from kfbench.sweep.packing import code_digest
print(code_digest(), kfbench.kernels.__file__, sep="\\n")
print(*sorted({module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}), sep="\\n")
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="module")
def undisturbed(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return deterministic(swept(tiny, tmp_path_factory.mktemp("here"), "--master", "local[1]"))


def swept(profile: Path, out: Path, *options: str | Path) -> Path:
    """A sweep in a process of its own, as a user starts it: a JVM keeps the environment that it began with."""
    command = [sys.executable, "-m", "kfbench", "sweep", profile, "--out", out, *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return Path(done.stdout.strip())


def where(_: int) -> str:
    """The worker's folder, of the executor that asks."""
    time.sleep(0.2)
    return next(part for part in Path.cwd().parts if part.startswith("worker-"))


def executors(cluster: Cluster) -> list[psutil.Process]:
    """Not what is left of the shell that became the worker."""
    children = [child for worker in cluster.workers for child in psutil.Process(worker.pid).children()]
    return [child for child in children if child.status() != psutil.STATUS_ZOMBIE]


def test_a_cluster_gives_the_bytes_of_one_machine(
    cluster: Cluster, archive: Path, tiny: Path, undisturbed: pa.Table, tmp_path: Path
) -> None:
    run = swept(tiny, tmp_path, "--master", cluster.url, "--archive", archive)
    assert deterministic(run).equals(undisturbed)
    manifest = open_run(run).manifest
    assert manifest["master"] == without_hosts(cluster.url) and "127.0.0.1" not in json.dumps(manifest)
    facts = manifest["host_facts"]
    assert sorted(facts) == manifest["hosts"] and all(each["code"] == code_digest() for each in facts.values())
    for i in range(2):  # both took part, in the environment that was shipped
        assert list((cluster.folder / f"worker-{i}").glob("app-*/*/kfbench/bin/python"))


def test_a_local_cluster_gives_them_too_and_writes_nothing_into_pyspark(
    tiny: Path, undisturbed: pa.Table, tmp_path: Path
) -> None:
    run = swept(tiny, tmp_path, "--master", "local-cluster[2,1,1024]")
    assert deterministic(run).equals(undisturbed)
    assert not Path(pyspark.__file__).with_name("work").exists()


def test_what_if_is_the_same_on_a_cluster(cluster: Cluster, archive: Path) -> None:
    asked = {"formats": ["v3"], "codecs": ["none", "lz4"], "sample_bytes": 30_000, "seed": 5}
    path = FOLDER / "telemetry.log"
    here = whatif.what_if(path, **asked)  # type: ignore[arg-type]
    assert whatif.what_if(path, **asked, master=cluster.url, archive=archive) == here  # type: ignore[arg-type]


def test_cpu_stays_on_one_host_and_outlives_its_executor(cluster: Cluster) -> None:
    with session(cluster.url) as spark:
        assert slots(spark) == 2
        calls = [(where, i) for i in range(8)]
        assert {found for _, found in done(spark, calls, 2)} == {"worker-0", "worker-1"}
        stay_on_one_host(spark)
        assert len({found for _, found in done(spark, calls, 2)}) == 1
        before = {each.pid for each in executors(cluster)}
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert len({found for _, found in done(spark, calls, 2)} & {"worker-0", "worker-1"}) == 1
        assert not before & {each.pid for each in executors(cluster)}


def test_a_host_with_other_code_is_refused(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    with tarfile.open(archive) as packed:
        members = [each for each in packed if each.name.startswith("code/")]
        packed.extractall(tmp_path, members, filter="data")
    with (tmp_path / "code/kfbench/sweep/cell.py").open("a") as file:
        file.write("# another line\n")
    older = {"spark.executorEnv.PYTHONPATH": str(tmp_path / "code")}
    with (
        session(cluster.url, older) as spark,
        pytest.raises(SweepFailed, match=r"host-\w+ would measure other bytes: its kfbench is of other code") as caught,
    ):
        prepare_hosts(spark)
    assert "kfbench pack" in str(caught.value) and "\n" not in str(caught.value)


def test_a_host_without_kfbench_is_refused(cluster: Cluster) -> None:
    with session(cluster.url) as spark:
        spark.sparkContext.pythonExec = sys._base_executable  # type: ignore[attr-defined]
        with pytest.raises(SweepFailed, match=r"an executor cannot work: .*No module named.*kfbench pack"):
            prepare_hosts(spark)


def test_a_cluster_without_room_is_one_clear_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "EXECUTORS_S", 2.0)
    with (
        pytest.raises(SweepFailed, match=r"no executor in 2 s: it has no worker with a free core and 999424 MiB"),
        session(cluster.url, {"spark.executor.memory": "976g"}),
    ):
        pass


def test_the_archive_stands_on_its_own_and_keeps_its_kernels_in_one_place(archive: Path, tmp_path: Path) -> None:
    said = []
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.defpath}
    for name in ("first", "second"):
        with tarfile.open(archive) as packed:
            packed.extractall(tmp_path / name, filter="tar")
        start = tmp_path / name / "bin" / "python"
        command = [str(start), "-c", IMPORTS]
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
        digest, kernels, *modules = done.stdout.split("\n")[:-1]
        assert digest == code_digest()
        assert {path for path in modules if not path.startswith(str(tmp_path))} == set()
        said.append(kernels)
    assert said == [str(tmp_path / "home/.cache/kfbench" / f"code-{code_digest()}" / "kfbench/kernels/__init__.py")] * 2
