"""One measuring task a host at a time, across processes; one that dies holds nobody up."""

import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from kfbench.measure import host_lock as module
from kfbench.measure.host_lock import NotAlone, SomeoneMeasures, alone

MEASURES = """
import sys, time
from pathlib import Path
from kfbench.measure import host_lock
host_lock.LOCK = Path(sys.argv[1])
with host_lock.alone():
    print(time.monotonic_ns(), flush=True)
    time.sleep(float(sys.argv[2]))
    print(time.monotonic_ns(), flush=True)
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of our own: somebody may be measuring here."""
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
        with alone():
            assert time.monotonic() - began < 5


def test_who_measures_is_named_and_not_waited_for_without_end(lock: Path) -> None:
    with measuring(lock, 600) as process:
        assert process.stdout is not None and process.stdout.readline()
        who = f"process {process.pid}" if Path("/proc/locks").exists() else "another process"
        with pytest.raises(SomeoneMeasures, match=f"^{who} measures on this host$"), alone(0.1):
            pass
        process.kill()


def test_a_lock_that_is_there_is_taken_without_a_right_to_write(lock: Path) -> None:
    lock.touch()
    lock.chmod(0o444)
    with alone():
        assert lock.read_bytes() == b""


def test_a_link_is_not_followed(lock: Path, tmp_path: Path) -> None:
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAlone, match=f"{lock}: nothing can be timed without it: ") as caught, alone():
        pass
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "elsewhere").exists()
