"""A run tells the vector instructions of its kernels, and kernels for other instructions have another cache folder."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kfbench.kernels import COMPILED
from kfbench.kernels.instructions import vectors_for
from tests.kernels.test_jit import AVX2, BASELINE, needs_avx2

on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86-64 processors")
CODE = """
import json, sys
from kfbench.kernels import CACHE_FOLDER
from kfbench.measure.environment import kernel_features
json.dump(kernel_features() | {"folder": CACHE_FOLDER.name}, sys.stdout)
"""


def features(**switches: str) -> dict[str, Any]:
    """Return the kernel features of a process with these environment variables, and the name of its cache folder."""
    unset = ("KFBENCH_PORTABLE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    environment = inherited | {"PYTHONPATH": str(Path(__file__).parents[2])} | switches
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@on_x86
@pytest.mark.parametrize(
    ("cpu_name", "cpu_features", "vectors"),
    [
        ("skylake-avx512", "", "AVX-512"),
        ("znver4", "", "AVX-512"),
        ("haswell", "", "AVX2"),
        ("generic", "+avx2", "AVX2"),
        ("sandybridge", "", "AVX"),
        ("generic", "", "SSE2"),
    ],
)
def test_vectors_are_those_of_the_machine_code(cpu_name: str, cpu_features: str, vectors: str) -> None:
    """A name alone implies features that are in no list."""
    assert vectors_for(cpu_name, cpu_features) == vectors


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
@pytest.mark.slow
@needs_avx2
def test_settings_are_recorded_and_kept_apart() -> None:
    """KFBENCH_PORTABLE alone replaces checksums by tables. Numba still vectorises for the host."""
    native, portable, avx2, baseline = (
        features(),
        features(KFBENCH_PORTABLE="1"),
        features(**AVX2),
        features(**BASELINE),
    )
    host = native["host_vectors"]
    assert [each["vectors"] for each in (native, portable, avx2, baseline)] == [host, host, "AVX2", "SSE2"]
    assert [each["fast_crc"] for each in (portable, avx2, baseline)] == [False, True, False]
    assert not avx2["wide_crc"]
    assert {each["host_vectors"] for each in (native, portable, avx2, baseline)} == {host}
    assert len({each["folder"] for each in (native, portable, avx2, baseline)}) == 4
