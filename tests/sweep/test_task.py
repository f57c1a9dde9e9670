"""A task runs cells one after another. It handles errors of a busy host, time limits and the host lock."""

import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kfbench.measure import host_lock
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.kinds.base import TookTooLong
from kfbench.measure.schema import SCHEMA
from kfbench.sweep.run import task as task_module
from kfbench.sweep.run.task import measure_task, time_limit
from kfbench.workloads import Sample
from kfbench.workloads.grid import GridPoint
from tests.sweep.cells import a_cell


def test_a_task_measures_the_cells_that_it_gets() -> None:
    found = measure_task([a_cell(), a_cell(formats=("v1",))])
    assert found.rows.schema.equals(SCHEMA) and found.rows["format"].to_pylist() == ["v0", "v2", "v3", "v1"]
    assert found.busy_s > 0
    assert measure_task([]).rows.equals(SCHEMA.empty_table())


@dataclass(frozen=True, kw_only=True)
class Hanging(GridPoint):
    """A workload that sleeps for 60 s.

    The time limit interrupts it with an exception that `except Exception` does not catch.
    """

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        time.sleep(60)
        return super().generate(records=records, seed=seed, start=start)


def test_a_cell_that_takes_too_long_is_rows_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "LIMIT_ESTIMATES", 0)
    slow = a_cell("cpu", workload=Hanging(), grids={"a": ("v0",), "b": ("v2", "v3")})
    found = measure_task([slow, a_cell()], least_limit_s=3.0)
    failed = found.passing
    assert [(row["grid"], row["format"], row["operation"]) for row in failed.to_pylist()] == [
        (grid, name, operation) for grid, name in (("a", "v0"), ("b", "v2"), ("b", "v3")) for operation in OPERATIONS
    ]
    assert set(failed["error"].to_pylist()) == {
        "cpu cell c0ffee (grid: defaults; none): TookTooLong: it took longer than 3 s"
    }
    assert found.rows["status"].to_pylist() == ["ok"] * 3


def test_cells_that_get_no_turn_are_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host_lock, "LOCK", tmp_path / "lock")
    cells = [a_cell(), a_cell("cpu"), a_cell(formats=("v1",))]
    with host_lock.host_lock():
        found = measure_task(cells, patience_s=0.1)
    assert found.rows["kind"].to_pylist() == ["bytes"] * 3 and found.passing.num_rows == 0
    assert (
        found.left == (cells[1], cells[2])
        and isinstance(found.refused, host_lock.HostLockHeld)
        and found.waited_s > 0.1
    )
    again = pickle.loads(pickle.dumps(found))  # pickled, as between Spark's worker and driver
    assert str(again.refused) == str(found.refused) and again.left == found.left
    assert measure_task(found.left).left == ()
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path)
    found = measure_task(cells)
    assert found.left == (cells[1], cells[2]) and isinstance(found.refused, host_lock.HostLockUnusable)


# The time limit


def _go_on() -> None:
    while True:
        try:
            time.sleep(30)
        except Exception:
            continue


def test_a_limit_ends_what_catches_every_exception_and_leaves_nothing_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    with pytest.raises(TookTooLong, match=r"it took longer than 2 s"), time_limit(2):
        _go_on()
    assert time.monotonic() - began < 20
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0) and signal.getsignal(signal.SIGALRM) is before


def test_what_is_in_time_is_left_alone() -> None:
    with time_limit(0.4):
        found = 1
    time.sleep(1)  # neither the timer signal nor the watchdog thread is left
    assert found == 1


def test_another_thread_has_no_limit() -> None:
    found = []

    def run() -> None:
        with time_limit(1e-3):
            time.sleep(0.05)
            found.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [1]


DEAF = """\
from collections import deque
from itertools import repeat
from kfbench.sweep.run.task import time_limit
with time_limit(0.5):
    deque(repeat(None), maxlen=0)  # for ever, with the interpreter's lock, as a compiled kernel does
"""


def test_what_hears_no_signal_ends_with_its_process() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "") and time.monotonic() - began < 30
