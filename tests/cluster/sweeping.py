"""What tests of clusters sweep, and how: as a user does."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from kfbench.measure.schema import DETERMINISTIC, IDENTITY, table
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.cell import measure_cell
from tests.runs import tiny, without_progress

TINY = tiny(["v2"], timed=["v2"], batch_sizes=[10, 100])


def cli(*arguments: str | Path) -> str:
    """What kfbench prints, in a process of its own: a JVM keeps the environment that it began with."""
    command = [sys.executable, "-m", "kfbench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert (done.returncode, without_progress(done.stderr)) == (0, ""), done.stderr
    return done.stdout.strip()


def measured_here(path: Path) -> pa.Table:
    """The deterministic columns of a profile's rows, without Spark, as a run has them."""
    rows = [row for cell in load_profile(path).cells for row in measure_cell(cell)]
    return table(rows).sort_by([(name, "ascending") for name in IDENTITY]).select(list(DETERMINISTIC))
