"""Commands in unusual surroundings: foreign files in the working folder, no temporary folder, no more threads.

Also the end of a process in which threads of a library still run.
"""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kfbench.cli.app import _failure
from kfbench.kernels import CACHE_FOLDER
from kfbench.store import open_run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell
from tests.cli.command import SWEEP
from tests.recorded import FOLDER

ROOT = Path(__file__).parents[2]
RUN = "import sys; from kfbench.cli import run; sys.argv[0] = 'kfbench'; run()"
NAMES = ("numpy", "pandas", "py4j", "pyspark", "random", "signal", "sitecustomize", "socket", "struct")


def command(
    *arguments: str | Path, cwd: Path, env: dict[str, str] | None = None, code: str = RUN
) -> subprocess.CompletedProcess[str]:
    """Run the command as its script does: without the working folder on Python's path."""
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def foreign_folder(folder: Path) -> Path:
    """Return a folder with another kfbench, and with modules that are called like others."""
    (folder / "kfbench").mkdir(parents=True)
    (folder / "kfbench/__init__.py").write_text('__version__ = "of another time"\n')
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"raise RuntimeError('{name} of the working folder')\n")
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


REDIRECTIONS = {
    "PYSPARK_SUBMIT_ARGS": "--driver-memory 2g", "PYSPARK_PYTHON": "/nowhere/python", "SPARK_API_MODE": "connect",
    "SPARK_CONF_DIR": "/nowhere", "SPARK_CONNECT_MODE_ENABLED": "1", "SPARK_HOME": "/nowhere",
    "SPARK_MASTER": "spark://nowhere:7077", "SPARK_REMOTE": "sc://nowhere",
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_stores_the_same_rows_whatever_folder_and_variables_say(tmp_path: Path) -> None:
    folder, long = foreign_folder(tmp_path / "foreign"), tmp_path / ("long" * 30)
    long.mkdir()
    redirected = REDIRECTIONS | {"JAVA_TOOL_OPTIONS": f'"-Djava.io.tmpdir={long}"'}
    done = command("sweep", "sweep.toml", "--out", "out", cwd=folder, env=redirected)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "SPARK_REMOTE" in line and "PYSPARK_SUBMIT_ARGS" in line]
    (run,) = (folder / "out/runs").iterdir()
    here = [row for cell in load_profile(folder / "sweep.toml").cells for row in measure_cell(cell)]
    sizes = {(row["cell_id"], row["format"]): row["size_bytes"] for row in here}
    stored = open_run(run).table.to_pylist()
    assert {(row["cell_id"], row["format"]): row["size_bytes"] for row in stored} == sizes


def test_python_m_kfbench_imports_nothing_of_the_working_folder(tmp_path: Path) -> None:
    folder = foreign_folder(tmp_path / "foreign")
    shutil.rmtree(folder / "kfbench")
    done = subprocess.run(
        [sys.executable, "-m", "kfbench", "inspect", FOLDER / "activity-none.log"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


LATE_THREAD = """
import io, sys, time
import pyarrow as pa, pyarrow.csv
from kfbench.cli import run

class Slow(io.RawIOBase):
    reads = 0
    def readable(self): return True
    def read(self, size=-1):
        self.reads += 1
        if self.reads > 2: time.sleep(1)  # Arrow reads ahead in a thread of its own
        return b"1\\n" * 600_000

reader = pa.csv.open_csv(Slow())
sys.argv = ["kfbench", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["inspect", "none.log"], 1), (["--none"], 2)])
def test_a_thread_that_calls_python_late_does_not_abort_the_command(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    done = command(*arguments, cwd=tmp_path, code=LATE_THREAD)
    assert (done.returncode, len(done.stderr.splitlines())) == (status, min(status, 1))
    assert bool(done.stdout) == (status == 0)


IN_READ_ONLY = """
mount --bind "$1" /mnt && mount -t tmpfs -o ro none /tmp || exit 77
mount -t tmpfs -o ro none /var/tmp && mount -t tmpfs -o ro none /dev/shm || exit 77
cd /proc && unset TMPDIR TEMP TMP && shift && exec "$@"
"""


def in_namespace(
    script: str, folder: Path, *arguments: str | Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the command in a namespace of mounts, which `script` changes for a folder."""
    if not shutil.which("unshare"):
        pytest.skip("needs unshare")
    if script is IN_READ_ONLY and any(Path("/tmp") in path.parents for path in (ROOT, Path(sys.prefix))):
        pytest.skip("this checkout is in /tmp, which is empty here")
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", folder,
         sys.executable, "-P", "-c", RUN, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77 or done.stderr.startswith("unshare: "):
        pytest.skip("may not make a namespace of mounts")
    return done


@pytest.mark.parametrize(
    "arguments",
    [
        ["doctor"],
        ["what-if", str(FOLDER / "activity-none.log"), "--codec", "none", "--format", "v2"],
        pytest.param(
            ["sweep", "/mnt/sweep.toml", "--out", "/mnt/out"], marks=[pytest.mark.spark, pytest.mark.slow]
        ),
    ],
)  # fmt: skip
def test_commands_work_without_a_temporary_folder(tmp_path: Path, arguments: list[str]) -> None:
    """Only the cache is writable, as in a container whose root is read-only."""
    if Path("/tmp") in CACHE_FOLDER.parents:
        pytest.skip("the cache is in /tmp, which is read-only here")
    (tmp_path / "sweep.toml").write_text(SWEEP)
    done = in_namespace(IN_READ_ONLY, tmp_path, *arguments, env={"KFBENCH_CACHE_DIR": str(CACHE_FOLDER.parents[1])})
    assert done.returncode == 0, done.stderr


DELETED = """
import shutil
from kfbench.kernels import CACHE_FOLDER
shutil.rmtree(CACHE_FOLDER.parents[1])
"""


@pytest.mark.parametrize(
    ("environment", "code", "words"),
    [
        pytest.param({"KFBENCH_CACHE_DIR": "/proc/none"}, RUN, "are stored in", id="cannot be written"),
        pytest.param({}, DELETED + RUN, None, id="deleted meanwhile", marks=pytest.mark.slow),
    ],
)
def test_a_command_answers_without_the_folder_for_compiled_kernels(
    tmp_path: Path, environment: dict[str, str], code: str, words: str | None
) -> None:
    log = FOLDER / "append-time.log"
    own = {"KFBENCH_CACHE_DIR": str(tmp_path / "cache"), "XDG_CACHE_HOME": ""}
    answer = command("inspect", log, cwd=tmp_path)
    done = command("inspect", log, cwd=tmp_path, env=own | environment, code=code)
    assert (done.returncode, done.stdout) == (0, answer.stdout)
    assert len(done.stderr.splitlines()) == bool(words) and (words or "") in done.stderr
    assert bool([*tmp_path.rglob("*.nbc")]) == (words is None)


ON_A_FULL_DISK = 'mount -t tmpfs -o size=64k none /mnt || exit 77; shift; exec "$@"'


@pytest.mark.parametrize(
    ("namespace", "cache", "why"),
    [
        pytest.param(ON_A_FULL_DISK, "/mnt", "No space left on device", id="full", marks=pytest.mark.thorough),
        pytest.param(IN_READ_ONLY, "/proc/none", "No such file or directory", id="read-only"),
    ],
)
@pytest.mark.slow
def test_a_command_says_once_why_compiled_kernels_are_not_stored(
    namespace: str, cache: str, why: str, tmp_path: Path
) -> None:
    done = in_namespace(
        namespace, tmp_path, "what-if", FOLDER / "append-time.log", "--format", "v2",
        env={"HOME": "/proc", "XDG_CACHE_HOME": "", "KFBENCH_CACHE_DIR": cache, "KFBENCH_COMPILE": "0"},
    )  # fmt: skip
    assert (done.returncode, "What Kafka can do today" in done.stdout) == (0, True)
    told = [line for line in done.stderr.splitlines() if "are not stored" in line]
    assert len(told) == 1 and why in told[0]


@pytest.mark.thorough
def test_kernels_are_compiled_for_the_next_call_without_shared_memory(tmp_path: Path) -> None:
    done = in_namespace(
        IN_READ_ONLY, tmp_path, "what-if", FOLDER / "append-time.log", "--format", "v2",
        env={"KFBENCH_CACHE_DIR": "/mnt", "KFBENCH_COMPILE": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.rglob("compiled-what-if-v2")]


@pytest.mark.parametrize(
    "error", [RuntimeError("can't start new thread"), BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")]
)
def test_a_user_who_may_start_no_more_threads_reads_what_to_raise(error: Exception) -> None:
    """Both are what Python raises then, at a thread and at a process."""
    failure = _failure(error)
    assert failure.status == 1 and "ulimit -u" in failure.message
