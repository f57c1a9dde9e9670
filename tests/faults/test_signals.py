"""A sweep that gets a signal prints at most two lines, leaves no process, and can be resumed."""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kfbench.errors import RunError
from kfbench.measure.host_lock import host_lock
from kfbench.store import Run, open_run
from kfbench.sweep.spark.executors import await_job
from kfbench.sweep.spark.session import session
from tests.faults.sweeping import Sweeping, wait_until
from tests.runs import deterministic

pytestmark = pytest.mark.spark

TERM = signal.SIGTERM, 143, ""
INT = (
    signal.SIGINT,
    130,
    "kfbench: the rows so far are stored; to continue this run: --resume {run}\nkfbench: interrupted\n",
)
Sent = tuple[signal.Signals, int, str]
ENDLESS_S = 3_600
COMPILES = """\
import os, time
from kfbench.sweep.run import runner
runner.compilations = lambda cells: [(os.mkdir, {mark!r}), (time.sleep, {endless_s})]
"""


def ended_by(sweep: Sweeping, sent: Sent) -> None:
    number, status, message = sent
    assert sweep.process.poll() is None
    sweep.process.send_signal(number)
    assert sweep.finish() == (status, "", message.format(run=sweep.run()))
    sweep.until_nobody_is_left()


def test_while_it_measures(tmp_path: Path, undisturbed: Run, moments: Random) -> None:
    out = tmp_path / "out"
    cells = undisturbed.manifest["counts"]["cells"]
    first, second = sorted(moments.sample(range(1, cells - 8), 2))
    with Sweeping(out, "--master", "local[2]") as sweep:
        sweep.until(first)
        ended_by(sweep, TERM)
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        sweep.until(second)
        ended_by(sweep, INT)
    with pytest.raises(RunError, match="state: running"):
        open_run(sweep.run())
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))


@pytest.mark.parametrize("sent", [pytest.param(TERM, marks=pytest.mark.thorough), INT])
def test_while_it_waits_for_a_turn(tmp_path: Path, moments: Random, sent: Sent) -> None:
    with Sweeping(tmp_path / "out", "--master", "local[2]", "--filter", "kind=cpu") as sweep, host_lock():
        assert sweep.process.stderr is not None
        assert any(": waiting for a turn, " in line for line in iter(sweep.process.stderr.readline, ""))
        time.sleep(moments.uniform(0, 6))  # a task waits five seconds for the lock, then the next one does
        ended_by(sweep, sent)


@pytest.mark.parametrize("sent", [TERM, pytest.param(INT, marks=pytest.mark.thorough)])
def test_while_a_cluster_compiles(tmp_path: Path, sent: Sent) -> None:
    mark = tmp_path / "compiling"
    patch = COMPILES.format(mark=str(mark), endless_s=ENDLESS_S)
    with Sweeping(tmp_path / "out", "--master", "local-cluster[1,1,1024]", patch=patch) as sweep:
        sweep.until(0, mark.exists)
        ended_by(sweep, sent)


class Stopped(Exception):
    pass


def endless(mark: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    mark.touch()
    time.sleep(ENDLESS_S)
    yield from batches


def collected(spark: SparkSession, mark: Path) -> Callable[[], Any]:
    return spark.sparkContext.parallelize([mark], 1).map(lambda mark: list(endless(mark, []))).collect


def mapped(spark: SparkSession, mark: Path) -> Callable[[], Any]:
    return spark.range(1).mapInArrow(partial(endless, mark), "id long").toArrow


@pytest.mark.parametrize("job", [collected, mapped])
def test_while_a_job_is_awaited(
    tmp_path: Path, job: Callable[[SparkSession, Path], Callable[[], Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt a Spark job that waits for a result, as a topic reader does.

    Without cancellation this test would not end.
    """
    mark = tmp_path / "begun"

    def stop(*_: object) -> None:
        raise Stopped

    def send() -> None:
        wait_until(mark.exists)
        signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with session("local[1]") as spark:
            sending = threading.Thread(target=send)
            sending.start()
            with pytest.raises(Stopped):
                await_job(spark, job(spark, mark))
            sending.join()
    finally:
        signal.signal(signal.SIGTERM, before)
