"""A sweep on a full or read-only disk fails with one line on stderr. Its run can be resumed later."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kfbench.store import Run
from tests.faults.sweeping import Sweeping
from tests.runs import deterministic

pytestmark = pytest.mark.spark


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a memory disk of 160 KiB. Return its path."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "none", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a disk of its own needs the right to mount: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


def test_a_full_and_then_read_only_disk(small_disk: Path, undisturbed: Run) -> None:
    out = small_disk / "out"
    with Sweeping(out, "--master", "local[2]") as sweep:
        status, printed, err = sweep.finish()
        sweep.until_nobody_is_left()
    assert (status, printed, err.count("\n")) == (1, "", 1), err
    assert ".parquet: cannot be written: No space left on device" in err
    assert f"--resume {sweep.run()} continues the run" in err
    assert 1 < sweep.parts() < undisturbed.manifest["counts"]["cells"]
    remount(small_disk, "size=16m,ro")
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        assert sweep.finish() == (1, "", f"kfbench: {sweep.run()}/lock: cannot be opened: Read-only file system\n")
    remount(small_disk, "rw")
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))


def test_no_room_for_temporary_files(small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep refuses to start. Otherwise the JVM would wait without end for disk space."""
    (small_disk / "full").write_bytes(bytes(156 << 10))
    monkeypatch.setenv("TMPDIR", str(small_disk))
    with Sweeping(tmp_path / "out", "--master", "local[2]") as sweep:
        status, printed, err = sweep.finish()
    message = f"kfbench: {small_disk}: no room for Spark's temporary files: No space left on device\n"
    assert (status, printed, err) == (1, "", message)
