"""No kernel reads or writes a byte outside its buffers, for any input."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from kfbench import FORMATS, kernels
from tests.sampling import SAME_BRANCHES

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")


def run(formats: Iterable[str], **environment: str) -> None:
    names = [*formats, "templates"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.within_bounds", *names],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [f"within bounds: {name}" for name in names]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="guards memory with Linux's mprotect")
def test_guarded_memory() -> None:
    run(FORMATS, KFBENCH_PORTABLE="0")


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="guards memory with Linux's mprotect")
def test_every_array_index() -> None:
    """Run kernels as plain Python, where an index below 0 or beyond the end raises IndexError."""
    run((name for name in FORMATS if name not in SAME_BRANCHES), NUMBA_DISABLE_JIT="1")
