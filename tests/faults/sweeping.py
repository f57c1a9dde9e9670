"""Run a real sweep in its own process, for tests that kill it. Many small tasks ensure that some are always half done.

All processes of a sweep inherit an environment variable. Tests find surviving processes by it.
"""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

import psutil

from tests.runs import without_progress

SWEEP = """\
title = "faults"
analysis = "a"
[bytes]
records = 1000
payload_bytes = 100000
[cpu]
records = 500
rounds = 9
sample_us = 1000
[[grid]]
name = "sizes"
title = "Sizes"
analysis = "a"
measure = ["bytes"]
formats = ["v0", "v1", "v2", "v3", "v3-full"]
codecs = { none = [], gzip = [6], zstd = [3] }
illegal = "skip"
axes = { batch_size = [1, 3, 10, 100], key_bytes = ["null", 16], timestamp_spread_ms = [0, 1000] }
[[grid]]
name = "times"
title = "Times"
analysis = "a"
measure = ["cpu"]
formats = ["v1", "v2", "v3"]
axes = { batch_size = [1, 10, 100], key_bytes = ["null", 16] }
"""
DRIVER = """\
import sys
from kfbench import cli
from kfbench.sweep.run import plan
plan.TASK_S = plan.ALONE_TASK_S = 1e-9  # every cell is a task
"""
RUN = "sys.exit(cli.main())"
ROOT = Path(__file__).parents[2]
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # halves the run time of a short-lived JVM
MARK = "KFBENCH_TEST_MARK"
PATIENCE_S = 600.0


class Finished(NamedTuple):
    """The result of a finished sweep.

    stderr: without progress lines, and without lines about other measurements on this host.
    """

    status: int
    stdout: str
    stderr: str


class Sweeping:
    """A running sweep, as a context manager. Leaving it ends all processes that the sweep started.

    patch: Python code that the process runs first. through: a command prefix that starts the sweep.
    """

    def __init__(self, out: Path, *options: str | Path, patch: str = "", through: Sequence[str] = ()) -> None:
        out.mkdir(parents=True, exist_ok=True)
        profile = out.parent / "faults.toml"
        if not profile.exists():  # the disk of a resumed sweep may be read-only
            profile.write_text(SWEEP)
        self.out = out
        self.mark = uuid.uuid4().hex
        code = DRIVER + patch + RUN
        environ = os.environ | {MARK: self.mark, "JDK_JAVA_OPTIONS": JAVA}
        command = [*through, sys.executable, "-c", code, "sweep", str(profile), "--out", str(out), *map(str, options)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environ
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        for each in self.others():
            each.kill()
        self.process.communicate()

    def others(self, *words: str) -> list[psutil.Process]:
        """Return the other processes of this sweep whose command line has all these words."""
        return [each for each in _marked(self.mark) if each.pid != self.process.pid and _has(each, words)]

    def workers(self) -> list[psutil.Process]:
        """Return the Python worker processes.

        Their daemons, which the JVM starts, are left out. Workers can outlive the daemons.
        """
        jvms = {each.pid for each in self.others("java")}
        return [each for each in self.others("pyspark.daemon") if _parent(each) not in jvms | {None}]

    def executors(self) -> list[psutil.Process]:
        return self.others("CoarseGrainedExecutorBackend")

    def run(self) -> Path:
        (run,) = (self.out / "runs").iterdir()
        return run

    def parts(self) -> int:
        """Count the stored part files. The sweep writes one per cell."""
        return len(list(self.out.glob("runs/*/measurements/*.parquet")))

    def until(self, parts: int, reached: Callable[[], object] = lambda: True) -> None:
        """Wait until `parts` part files are stored and `reached` returns True. Fail if the sweep ends before."""
        wait_until(lambda: (self.parts() >= parts and reached()) or self.process.poll() is not None)
        if self.process.poll() is not None:
            out, err = self.process.communicate()
            raise AssertionError(f"it ended with {self.process.returncode}, and {self.parts()} parts: {out}{err}")

    def kill_one(self, of: Callable[[], Sequence[psutil.Process]], random: Random) -> None:
        """Wait until `of` returns processes, then kill one at random."""

        def killed() -> bool:
            victims = of()
            with suppress(psutil.Error, IndexError):
                random.choice(victims).kill()
                return True
            return False

        wait_until(lambda: killed() or self.process.poll() is not None)
        assert self.process.poll() is None

    def until_nobody_is_left(self) -> None:
        wait_until(lambda: not self.others())

    def finish(self) -> Finished:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        lines = without_progress(err).splitlines(keepends=True)
        rest = "".join(line for line in lines if ": waiting for a turn, " not in line)
        return Finished(self.process.returncode, out, rest)


def wait_until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for each in psutil.process_iter():
        try:
            if each.environ().get(MARK) == mark and each.status() != psutil.STATUS_ZOMBIE:
                yield each
        except psutil.Error:
            continue


def _parent(process: psutil.Process) -> int | None:
    try:
        return process.ppid()
    except psutil.Error:
        return None


def _has(process: psutil.Process, words: Sequence[str]) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return all(word in line for word in words)
