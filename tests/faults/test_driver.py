"""A driver that dies at any moment leaves a run that can be resumed, and nobody who works on."""

import time
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kfbench.errors import RunError
from kfbench.store import open_run
from tests.faults.sweeping import Sweeping
from tests.runs import deterministic

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_driver_is_killed_again_and_again(tmp_path: Path, undisturbed: pa.Table, seed: int) -> None:
    random = Random(seed)
    out = tmp_path / "out"
    options: tuple[str | Path, ...] = ()
    for kill in range(3):
        with Sweeping(out, "--master", "local[2]", *options) as sweep:
            sweep.until(sweep.parts() + random.randint(1, 6))
            if kill == 1:  # while it is written, nobody else may
                with Sweeping(out, "--resume", sweep.run()) as other:
                    status, _, err = other.finish()
                assert status == 1 and err == f"kfbench: {sweep.run()}: another process is writing this run\n"
            time.sleep(random.uniform(0, 0.5))
            sweep.process.kill()
            sweep.until_nobody_is_left()
            options = ("--resume", sweep.run())
        with pytest.raises(RunError, match="state: running"):
            open_run(sweep.run())
    damaged = random.choice(sorted(out.glob("runs/*/measurements/*.parquet")))
    data = bytearray(damaged.read_bytes())
    column = pq.ParquetFile(damaged).metadata.row_group(0).column(0)  # checksums are of pages' bodies: its last byte
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1 << random.randrange(8)
    damaged.write_bytes(data)
    with Sweeping(out, *options) as sweep:
        status, printed, err = sweep.finish()
    assert (status, printed) == (0, f"{sweep.run()}\n")
    moved = damaged.with_suffix(".damaged")
    assert err == f"kfbench: {moved}: damaged, and set aside; its cells are measured again\n" and moved.exists()
    assert deterministic(sweep.run()).equals(undisturbed)
    assert len(open_run(sweep.run()).manifest["resumed"]) == 3
    assert not list(sweep.run().rglob("*.tmp")) and not (sweep.run() / "lock").exists()
    with Sweeping(out, *options) as again:
        status, _, err = again.finish()
    assert status == 1 and "state: complete; only a run that was interrupted can be resumed" in err


def test_a_jvm_that_is_killed_is_one_line_and_a_run_to_resume(tmp_path: Path, undisturbed: pa.Table) -> None:
    out = tmp_path / "out"
    with Sweeping(out, "--master", "local[2]") as sweep:
        sweep.until(3)
        (jvm,) = sweep.others("java", "SparkSubmit")
        jvm.kill()
        status, printed, err = sweep.finish()
        assert (status, printed, err.count("\n")) == (1, "", 1), err
        assert err.startswith("kfbench: Spark gave a task up: ")
        sweep.until_nobody_is_left()
    with Sweeping(out, "--resume", sweep.run()) as sweep:
        assert sweep.finish() == (0, f"{sweep.run()}\n", "")
    assert deterministic(sweep.run()).equals(undisturbed)
