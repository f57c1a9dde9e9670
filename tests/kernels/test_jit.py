"""Kernels have no reference counting when compiled, and write the same bytes on every host."""

import json
import os
import platform
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

from kfbench import FORMATS, kernels
from kfbench.kernels.jit import _CacheFiles, host_vectors, vectors_for
from kfbench.kernels.wire import varint
from tests.kernels.results import digests

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")


def called_from_python() -> dict[str, Any]:
    """Return all kernels that Python code calls, by `module.kernel` without the folder."""
    modules = [import_module(found.name) for found in walk_packages(kernels.__path__, "kfbench.kernels.")]
    return {
        f"{module.__name__.removeprefix('kfbench.kernels.').partition('.')[2]}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, CPUDispatcher)
        and value.py_func.__module__ == module.__name__
        and not value.targetoptions.get("forceinline")
    }


def test_no_compiled_kernel_counts_references() -> None:
    """Machine code that counts references calls NRT_incref, so its cache file has this name among its symbols."""
    found = called_from_python()
    assert [name for name, dispatcher in found.items() if dispatcher.targetoptions["_nrt"] is not False] == []
    assert written()  # compile the kernels of all formats
    files = [*kernels.CACHE_FOLDER.glob("**/*.nbc")]
    assert len(files) > len(FORMATS)
    assert [file.name for file in files if b"NRT_incref" in file.read_bytes()] == []


COUNTED = """
import numba
import numpy as np

@numba.njit(cache=True)
def counted(arrays, out):
    for array in arrays:
        out[0] += array.sum()

counted((np.zeros(1, np.int64),) * 3, np.zeros(1, np.int64))
"""


@pytest.mark.slow
def test_without_the_option_there_are_reference_counts(tmp_path: Path) -> None:
    """Without our Numba option, compiled code counts references. Otherwise the test above would prove nothing."""
    program = tmp_path / "counted.py"
    program.write_text(COUNTED)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(program)], check=True, env=environment)
    (file,) = tmp_path.rglob("*.nbc")
    assert b"NRT_incref" in file.read_bytes()


def test_a_leaf_has_no_entry_from_python() -> None:
    """A kernel that only kernels may call raises TypeError in Python.

    Without this check, Numba would jump to address 0.
    """
    with pytest.raises(TypeError, match="put_varint has no entry from Python"):
        varint.put_varint(np.zeros(10, np.uint8), 0, 5)


def test_compiled_signatures_share_no_file(tmp_path: Path) -> None:
    """Two processes may compile one function for two signatures at once.

    They cannot overwrite each other's cache file or index.
    """
    files: Any = _CacheFiles  # Numba's class has no type annotations
    one, other = (files(str(tmp_path), "module.function-1", "stamp") for _ in range(2))
    one.save("(int64,)", "one")
    other.save("(float64,)", "other")
    assert len([*tmp_path.iterdir()]) == 2
    assert [other.load(key) for key in ("(int64,)", "(float64,)", "(int8,)")] == ["one", "other", None]


SCRIPT = """
import json, sys
from kfbench import kernels
from kfbench.measure.environment import kernel_features
from tests.kernels.test_wire import LENGTHS, check_checksums
from tests.kernels.test_jit import written

for start in (0, 1, 7, 16, 23):
    check_checksums(LENGTHS, start)
found = {"features": kernel_features(), "folder": str(kernels.CACHE_FOLDER), "digests": written()}
json.dump(found, sys.stdout)
"""


# A processor with AVX2 and without AVX-512.
AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse4.2,+crc32,+pclmul,+avx2,+bmi,+bmi2,+fma,+lzcnt,+popcnt,+movbe,+f16c",
}
BASELINE = {"KFBENCH_PORTABLE": "1", "NUMBA_CPU_NAME": "generic"}
needs_avx2 = pytest.mark.skipif(host_vectors() not in ("AVX2", "AVX-512"), reason="this host has no AVX2")


def written() -> dict[str, str]:
    """Return digests of what each format writes and reads for fixed records. To compile all its kernels, call this."""
    return {key: value for name in FORMATS for key, value in digests(name).items()}


SLOW = [pytest.mark.slow, pytest.mark.thorough]
HOST = host_vectors()


@pytest.mark.parametrize(
    ("switch", "tiers", "vectors"),
    [
        pytest.param({"KFBENCH_PORTABLE": "1"}, [False, False], HOST, marks=SLOW),
        pytest.param({"NUMBA_ENABLE_AVX": "0"}, [kernels.FAST_CRC, False], None, marks=SLOW),
        pytest.param(AVX2, [True, False], "AVX2", marks=[*SLOW, needs_avx2]),
        pytest.param(BASELINE, [False, False], "SSE2", marks=[*SLOW, needs_avx2]),
        pytest.param(
            {"KFBENCH_PORTABLE": "0"},
            [kernels.FAST_CRC, kernels.WIDE_CRC],
            HOST,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(os.environ.get("KFBENCH_PORTABLE") == "1", reason="KFBENCH_PORTABLE is set"),
            ],
        ),
    ],
)
def test_kernels_write_the_same_whatever_the_host_can_do(
    switch: dict[str, str], tiers: list[bool], vectors: str | None
) -> None:
    """Each switch turns off CPU features. It is read at import, so another process with its own kernel cache runs.

    KFBENCH_PORTABLE alone replaces checksums by tables. Numba still vectorises for the host.
    """
    environment = os.environ | switch | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["digests"] == written()
    features = found["features"]
    assert [features["fast_crc"], features["wide_crc"]] == tiers
    assert features["host_vectors"] == HOST and vectors in (None, features["vectors"])
    assert (found["folder"] == str(kernels.CACHE_FOLDER)) == (switch == {"KFBENCH_PORTABLE": "0"})


@pytest.mark.slow
@needs_avx2
def test_settings_have_cache_folders_of_their_own(tmp_path: Path) -> None:
    code = "from kfbench.kernels import CACHE_FOLDER; print(CACHE_FOLDER.name)"
    native = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "KFBENCH_"))}
    native |= {"PYTHONPATH": str(ROOT), "KFBENCH_CACHE_DIR": str(tmp_path)}
    folders = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=native | switch).stdout
        for switch in ({}, {"KFBENCH_PORTABLE": "1"}, AVX2, BASELINE)
    }
    assert len(folders) == 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("damage", [b"\x80\x05", b"", b"no pickle"], ids=["cut short", "empty", "foreign"])
def test_a_damaged_cache_file_is_written_again(damage: bytes, tmp_path: Path) -> None:
    code = (
        "import kfbench; records = kfbench.Records.from_lists([b'value'] * 9); "
        "print(kfbench.FORMATS['v2'].size(records, batch_size=3).sum())"
    )
    environment = os.environ | {"KFBENCH_CACHE_DIR": str(tmp_path)}

    def size() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    found = size()
    files = sorted(tmp_path.rglob("*.nbc"))
    assert files
    for file in files:
        file.write_bytes(damage)
    assert size() == found
    assert all(file.read_bytes() != damage for file in files)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86-64 processors")
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
