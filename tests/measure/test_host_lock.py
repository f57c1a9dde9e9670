"""The host lock lets one measuring task run at a time on a host, across processes.

If the process dies, the lock is free.
"""

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from kfbench.measure import host_lock as module
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable, HostLockWait, host_lock

MEASURES = """
import sys, time
from pathlib import Path
from kfbench.measure import host_lock
host_lock.LOCK = Path(sys.argv[1])
with host_lock.host_lock():
    print(time.monotonic_ns(), flush=True)
    time.sleep(float(sys.argv[2]))
    print(time.monotonic_ns(), flush=True)
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a lock of our own, because another process may be measuring on this host."""
    monkeypatch.setattr(module, "LOCK", tmp_path / "lock")
    return tmp_path / "lock"


def measuring(lock: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MEASURES, str(lock), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_take_turns(lock: Path) -> None:
    spans = []
    for process in [measuring(lock, 0.2) for _ in range(3)]:
        out, _ = process.communicate(timeout=60)
        begin, end = map(int, out.split())
        spans.append((begin, end))
    spans.sort()
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_one_that_is_killed_lets_go(lock: Path) -> None:
    with measuring(lock, 600) as process:
        assert process.stdout is not None and process.stdout.readline()
        process.kill()
        process.wait()
        began = time.monotonic()
        with host_lock():
            assert time.monotonic() - began < 5


def test_who_measures_is_named_and_not_waited_for_without_end(lock: Path) -> None:
    with measuring(lock, 600) as process:
        assert process.stdout is not None and process.stdout.readline()
        who = f"process {process.pid}" if Path("/proc/locks").exists() else "another process"
        with pytest.raises(HostLockHeld, match=f"^{who} measures on this host$"), host_lock(0.1):
            pass
        process.kill()


def test_a_lock_that_is_there_is_taken_without_a_right_to_write(lock: Path) -> None:
    lock.touch()
    lock.chmod(0o444)
    with host_lock():
        assert lock.read_bytes() == b""


def test_a_new_lock_can_be_taken_by_other_users(lock: Path) -> None:
    before = os.umask(0o077)
    try:
        with host_lock():
            assert lock.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_a_link_is_not_followed(lock: Path, tmp_path: Path) -> None:
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostLockUnusable, match=f"{lock}: nothing can be timed without it: ") as caught, host_lock():
        pass
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "elsewhere").exists()


RUN = Path("reports/runs/2026-11-22.1")
HELD = HostLockHeld("process 12 measures on this host")


class Waiting:
    """A sweep that waits for the host lock, on a simulated clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        self.lines: list[str] = []
        monkeypatch.setattr("kfbench.measure.host_lock.time.monotonic", lambda: self.now_s)
        self._wait = HostLockWait(self.lines.append, RUN)

    def refused(self, error: HostLockHeld | HostLockUnusable = HELD, *, has_measured: bool = False) -> None:
        self._wait.note(error, has_measured=has_measured, waited_s=5.0)

    def measured(self) -> None:
        self._wait.note(None, has_measured=True, waited_s=0.0)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    return Waiting(monkeypatch)


def test_the_holder_is_shown_once_per_wait(waiting: Waiting) -> None:
    waiting.measured()
    waiting.refused()
    waiting.refused()
    assert len(waiting.lines) == 1 and "process 12" in waiting.lines[0]
    waiting.measured()
    waiting.refused()
    waiting.refused(has_measured=True)
    assert len(waiting.lines) == 3


def test_a_wait_ends_after_30_minutes_and_a_turn_begins_it_anew(waiting: Waiting) -> None:
    for has_measured in (False, True):
        waiting.refused(has_measured=has_measured)
        waiting.now_s += 1_794
        waiting.refused()
    waiting.now_s += 2
    with pytest.raises(HostLockHeld, match="gave no turn in 30 minutes; --resume reports/runs/2026"):
        waiting.refused()


def test_a_lock_that_cannot_be_used_ends_the_sweep(waiting: Waiting) -> None:
    unusable = HostLockUnusable("/tmp/lock: nothing can be timed without it: Permission denied")
    with pytest.raises(HostLockUnusable, match="Permission denied; --resume reports/runs/2026"):
        waiting.refused(unusable, has_measured=True)
    assert waiting.lines == []
