"""A sweep whose driver process dies at any moment can be resumed, and no process of it survives."""

import json
import os
import signal
import time
from pathlib import Path
from random import Random
from shutil import which

import pyarrow.parquet as pq
import pytest

from kfbench.errors import RunError
from kfbench.store import Run, open_run
from tests.faults.sweeping import Sweeping
from tests.runs import deterministic

pytestmark = pytest.mark.spark


@pytest.mark.thorough
def test_a_driver_is_killed_again_and_again(tmp_path: Path, undisturbed: Run, moments: Random) -> None:
    """Kill the driver in the first session, then again after the run was resumed."""
    out = tmp_path / "out"
    with Sweeping(out, "--master", "local[2]") as sweep:
        sweep.until(moments.randint(1, undisturbed.manifest["counts"]["cells"] - 4))
        killed(sweep, moments.uniform(0, 0.2))
    resume = "--resume", sweep.run()
    with Sweeping(out, *resume) as sweep:
        sweep.until(0, lambda: "resumed" in json.loads((sweep.run() / "manifest.json").read_bytes()))
        killed(sweep, moments.uniform(0, 3))
    with pytest.raises(RunError, match="state: running"):
        open_run(sweep.run())
    with Sweeping(out, *resume) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))
    assert len(open_run(sweep.run()).manifest["resumed"]) == 2
    assert not list(sweep.run().rglob("*.tmp")) and not (sweep.run() / "lock").exists()
    with Sweeping(out, *resume) as again:
        status, _, err = again.finish()
    assert status == 1 and "state: complete; only a run that was interrupted can be resumed" in err


def killed(sweep: Sweeping, after_s: float) -> None:
    time.sleep(after_s)
    assert sweep.process.poll() is None
    sweep.process.kill()
    sweep.until_nobody_is_left()


def test_one_fault_after_another_is_one_line_each(tmp_path: Path, undisturbed: Run, moments: Random) -> None:
    """Kill the JVM, resume from a second process, damage part files, and make the folder read-only."""
    out = tmp_path / "out"
    through = without_root()
    with Sweeping(out, "--master", "local[2]", through=through) as sweep:
        sweep.until(moments.randint(3, 20))
        sweep.process.send_signal(signal.SIGSTOP)  # keeps the first sweep busy until the second process has started
        with Sweeping(out, "--resume", sweep.run()) as other:
            assert other.finish() == (1, "", f"kfbench: {sweep.run()}: another process is writing this run\n")
        sweep.process.send_signal(signal.SIGCONT)
        (jvm,) = sweep.others("java", "SparkSubmit")
        jvm.kill()
        status, printed, err = sweep.finish()
        assert (status, printed, err.count("\n")) == (1, "", 1), err
        assert err.startswith("kfbench: a Spark task failed in every attempt: ")
        sweep.until_nobody_is_left()
    measurements = sweep.run() / "measurements"
    damaged = sorted(moments.sample(sorted(measurements.glob("*.parquet")), 3))
    for part, damage in zip(damaged, moments.sample((turn_a_bit, cut, empty), 3), strict=True):
        part.write_bytes(damage(part, moments))
    damage_lines = "".join(
        f"kfbench: {part.with_suffix('.damaged')}: damaged and renamed; its cells are measured again\n"
        for part in damaged
    )
    with Sweeping(out, "--resume", sweep.run(), through=through) as sweep:
        sweep.until(sweep.parts() + moments.randint(1, 10))
        measurements.chmod(0o555)
        status, printed, err = sweep.finish()
    assert (status, printed) == (1, "") and err.startswith(damage_lines), err
    last = err.removeprefix(damage_lines)
    assert ".parquet: cannot be written: Permission denied; --resume" in last and last.count("\n") == 1
    measurements.chmod(0o755)
    with Sweeping(out, "--resume", sweep.run(), through=through) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(deterministic(undisturbed.path))


def without_root() -> list[str]:
    """Return a command prefix that takes away root's right to write everywhere."""
    if os.geteuid() != 0:
        return []
    if not which("setpriv"):
        pytest.skip("root may write everywhere: needs setpriv, which drops that right")
    return ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]


def turn_a_bit(part: Path, moments: Random) -> bytes:
    data = bytearray(part.read_bytes())
    column = (
        pq.ParquetFile(part).metadata.row_group(0).column(0)
    )  # the checksum covers the body of a Parquet page, so change its last byte
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1 << moments.randrange(8)
    return bytes(data)


def cut(part: Path, moments: Random) -> bytes:
    data = part.read_bytes()
    return data[: moments.randrange(1, len(data))]


def empty(part: Path, moments: Random) -> bytes:
    return b""
