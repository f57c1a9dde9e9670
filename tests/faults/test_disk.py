"""A disk that is full, or that nobody may write to: one line, and a run to resume once that is mended."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.faults.sweeping import Sweeping
from tests.runs import deterministic

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """256 KiB of memory as a disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a disk of its own needs the right to mount: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def remount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


def test_a_disk_that_is_full_and_then_not_to_be_written(small_disk: Path, undisturbed: pa.Table) -> None:
    out = small_disk / "out"
    with Sweeping(out, "--master", "local[2]") as sweep:
        status, printed, err = sweep.finish()
    assert (status, printed, err.count("\n")) == (1, "", 1), err
    assert ".parquet: cannot be written: No space left on device" in err
    assert f"--resume {sweep.run()} continues the run" in err
    assert sweep.parts() > 1
    remount(small_disk, "size=16m")
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        sweep.until(sweep.parts() + 1)
        remount(small_disk, "ro")
        status, printed, err = sweep.finish()
    assert (status, printed, err.count("\n")) == (1, "", 1), err
    assert ".parquet: cannot be written: Read-only file system" in err
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        status, printed, err = sweep.finish()
    assert (status, printed, err.count("\n")) == (1, "", 1) and "Read-only file system" in err, err
    with Sweeping(out) as sweep:
        status, printed, err = sweep.finish()
    assert (status, printed, err.count("\n")) == (1, "", 1)
    assert err == f"kfbench: {out / 'runs'}: no run can be written here: Read-only file system\n"
    remount(small_disk, "rw")
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(undisturbed)
