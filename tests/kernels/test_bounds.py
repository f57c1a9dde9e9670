"""No kernel reads or writes a byte outside its buffers, for any input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kfbench import FORMATS, kernels

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")


def run(**environment: str) -> None:
    names = [*FORMATS, "templates"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.within_bounds", *names],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [f"within bounds: {name}" for name in names]


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="guards memory with Linux's mprotect")
def test_guarded_memory() -> None:
    run(KFBENCH_PORTABLE="0")


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="guards memory with Linux's mprotect")
def test_every_array_index(pytestconfig: pytest.Config) -> None:
    """Run portable kernels with Numba's check of array indices. Vector intrinsics have no indices to check.

    Both Numba settings share one process and one cache, because a second one would compile every kernel again.
    """
    cache = pytestconfig.cache
    folder = str(cache.mkdir("kernels-with-bounds-checks")) if cache else ""
    apart = {"KFBENCH_CACHE_DIR": folder} if folder else {}
    run(KFBENCH_PORTABLE="1", NUMBA_BOUNDSCHECK="1", **apart)
