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


def test_the_holder_is_named_and_lets_go_when_it_is_killed(lock: Path) -> None:
    with measuring(lock, 600) as process:
        assert process.stdout is not None and process.stdout.readline()
        who = f"process {process.pid}" if Path("/proc/locks").exists() else "another process"
        with pytest.raises(HostLockHeld, match=f"^{who} measures on this host$"), host_lock(0.1):
            pass
        process.kill()
        process.wait()
        began = time.monotonic()
        with host_lock():
            assert time.monotonic() - began < 5


def test_a_lock_of_another_user_is_taken_without_a_right_to_write(lock: Path) -> None:
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


def test_the_holder_is_shown_once_per_wait_which_ends_after_30_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, lines = 1_000.0, list[str]()
    monkeypatch.setattr("kfbench.measure.host_lock.time.monotonic", lambda: now_s)
    wait = HostLockWait(lines.append, RUN)
    wait.note(None, has_measured=True, waited_s=0.0)
    # A task that measured something had a turn, so the wait begins anew.
    for has_measured, shown in ((False, 1), (True, 2)):
        wait.note(HELD, has_measured=has_measured, waited_s=5.0)
        now_s += 1_794
        wait.note(HELD, has_measured=False, waited_s=5.0)
        assert len(lines) == shown and "process 12" in lines[-1]
    now_s += 2
    with pytest.raises(HostLockHeld, match="gave no turn in 30 minutes; --resume reports/runs/2026"):
        wait.note(HELD, has_measured=False, waited_s=5.0)


def test_a_lock_that_cannot_be_used_ends_the_sweep() -> None:
    unusable, lines = HostLockUnusable("/tmp/lock: nothing can be timed without it: Permission denied"), list[str]()
    with pytest.raises(HostLockUnusable, match="Permission denied; --resume reports/runs/2026"):
        HostLockWait(lines.append, RUN).note(unusable, has_measured=True, waited_s=5.0)
    assert lines == []
