"""Run sweeps for the cluster tests by the command, as a user does."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from kfbench.measure.schema import DETERMINISTIC, IDENTITY, table
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell
from tests.runs import tiny, without_progress

TINY = tiny(["v2"], timed=["v2"], batch_sizes=[10, 100])


def cli(*arguments: str | Path) -> str:
    """Run kfbench in a new process and return its output.

    A new process is needed, because a JVM keeps its first environment.
    """
    command = [sys.executable, "-m", "kfbench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert (done.returncode, without_progress(done.stderr)) == (0, ""), done.stderr
    return done.stdout.strip()


def measured_here(path: Path) -> pa.Table:
    """Measure the profile in this process, without Spark.

    Return the columns that are equal on every machine, in the order of a run.
    """
    rows = [row for cell in load_profile(path).cells for row in measure_cell(cell)]
    return table(rows).sort_by([(name, "ascending") for name in IDENTITY]).select(list(DETERMINISTIC))
