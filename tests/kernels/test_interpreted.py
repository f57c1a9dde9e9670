"""Kernels run as plain Python give the same results as compiled ones, and refuse indices out of range."""

import dis
import gc
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

import kfbench
from kfbench.kernels import COMPILED, interpreted, jit
from kfbench.kernels.simd import intrinsics
from kfbench.research.columnar.kernels import bit_packing, simd_int64
from tests.kernels.results import DAMAGED

ROOT = Path(__file__).parents[2]


def results(environment: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.results"],
        capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.thorough
@pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT is set: the twins would be compared with themselves")
def test_plain_python_writes_and_reads_what_compiled_kernels_do(tmp_path: Path) -> None:
    """Without compilation for coverage and fuzzing, and before kernels are compiled for a first call."""
    compiled = results({})
    before_compiling = {"KFBENCH_COMPILE": "0", "KFBENCH_CACHE_DIR": str(tmp_path)}
    assert compiled["compiled"]
    assert len(compiled["digests"]) > 10 * DAMAGED
    assert len(set(compiled["digests"].values())) > len(compiled["digests"]) / 4, "most inputs read alike"
    for environment in ({"NUMBA_DISABLE_JIT": "1"}, before_compiling):
        plain = results(environment)
        assert not plain["compiled"]
        assert [name for name, each in compiled["digests"].items() if plain["digests"][name] != each] == []


@pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT is set: there are no copies")
def test_a_kernel_that_runs_as_plain_python_calls_no_compiled_code() -> None:
    for found in walk_packages(kfbench.__path__, "kfbench."):
        if ".kernels" in found.name:
            import_module(found.name)
    kernels = {each for each in gc.get_objects() if isinstance(each, jit._Kernel)}
    assert len(kernels) > 100
    waiting, copies = [jit._plain_copy(each).function for each in kernels], set[FunctionType]()
    while waiting:
        copy = waiting.pop()
        copies.add(copy)
        for name in (each.argval for each in dis.get_instructions(copy) if each.opname == "LOAD_GLOBAL"):
            value = copy.__globals__.get(name)
            called = [*vars(value).values()] if isinstance(value, SimpleNamespace) else [value]
            assert not any(isinstance(each, Dispatcher | _Intrinsic) for each in called), (copy, name)
            waiting += [each for each in called if isinstance(each, FunctionType) and each not in copies]
    assert len(copies) > len(kernels)


def test_every_intrinsic_has_a_twin() -> None:
    mine = {
        name for module in (intrinsics, simd_int64, bit_packing) for name, value in vars(module).items()
        if type(value).__name__ == "_Intrinsic" or getattr(value, "__module__", "") == interpreted.__name__
    }  # fmt: skip
    assert mine >= {"get_i64", "put_u8", "move", "move32", "load_le64", "leading_zeros", "spread8", "span_of"}
    assert mine <= set(interpreted.__all__)


BYTES = np.arange(8, dtype=np.uint8)


@pytest.mark.parametrize("index", [-1, 8, 2**40, np.int64(-1), np.uint64(2**64 - 1)])
def test_an_index_outside_the_array(index: Any) -> None:
    array = interpreted.Array.of(BYTES.copy())
    with pytest.raises(IndexError):
        array[index]
    with pytest.raises(IndexError):
        array[index] = 1
    assert array.array.tolist() == BYTES.tolist()


@pytest.mark.parametrize(
    ("name", "size"), [("get_u8", 1), ("get_i16", 2), ("get_i32", 4), ("get_i64", 8), ("load_le64", 8), ("move", 4)]
)
def test_bytes_outside_the_array(name: str, size: int) -> None:
    def load(position: int) -> None:
        if name == "move":
            interpreted.move(np.zeros(8, np.uint8), 0, BYTES, position, size)
            interpreted.move(np.zeros(8, np.uint8), position, BYTES, 0, size)
        else:
            getattr(interpreted, name)(BYTES, position)

    load(8 - size)
    for position in (-1, 9 - size):
        with pytest.raises(IndexError):
            load(position)


def test_scalars_keep_the_compiled_meaning() -> None:
    @interpreted.kernel
    def wraps_and_narrows(numbers: Any, bits: Any, rows: Any, out: Any) -> tuple[Any, Any]:
        out[0] = numbers[0] + 1  # wraps and is cut to an int32
        rows[0].small = numbers[0]
        rows[0].flag = numbers[0] > bits[0]
        return numbers[0] + 1, bits[0] << 63

    rows, out = np.zeros(1, [("small", np.int16), ("flag", np.bool_)]), np.zeros(1, np.int32)
    result = wraps_and_narrows(np.array([2**63 - 1]), np.array([3], np.uint8), rows, out)
    assert result == (-(2**63), 3 << 63)
    assert [type(value) for value in result] == [int, int]
    assert (out[0], rows[0].tolist()) == (0, (-1, True))
