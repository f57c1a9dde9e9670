"""Kernels that a sweep or a what-if needs are compiled before, in separate processes, and no others."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kfbench.errors import KfbenchError
from kfbench.formats import FORMATS
from kfbench.kernels import COMPILED
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.host.compiling import (
    COMPILING,
    Call,
    compilations,
    compile_formats,
    compile_in_processes,
    compile_paths,
    compile_payloads,
)
from kfbench.whatif.ask import what_if

ROOT = Path(__file__).parents[2]


def test_every_format_and_path_of_a_sweep_is_there_once() -> None:
    cells = load_profile("default").cells
    calls = compilations(cells)
    named: dict[Any, list[Any]] = {
        function: [what for each, what in calls if each is function]
        for function in (compile_formats, compile_paths, compile_payloads)
    }
    assert sum(map(len, named.values())) == len(calls)
    families = [[each.format for each in formats] for formats in named[compile_formats]]
    assert sorted(name for names in families for name in names) == sorted(
        {name for each in cells if each.kind != "floor" for name in each.formats}
    )
    assert all(len({type(FORMATS[name]) for name in names}) == 1 for names in families)
    assert {
        (each.format, operation)
        for formats in named[compile_formats]
        for each in formats
        for operation in each.operations
    } >= {("columnar", "fetch-record"), ("columnar", "decode-metadata"), ("v2", "fetch-record")}
    assert sorted((path, name) for paths in named[compile_paths] for path, on in paths for name in on) == sorted(
        {(cell.path, name) for cell in cells if cell.path and not cell.to for name in cell.formats}
    )
    (workloads,) = named[compile_payloads]
    assert set(workloads) == {cell.workload for cell in cells if cell.workload.name != "grid"}


def test_they_can_be_called() -> None:
    for function, what in compilations(load_profile("smoke").cells):
        function(what)


def test_processes_run_all_calls_and_say_which_failed() -> None:
    said = io.StringIO()
    calls: list[Call] = [(sys.exit, 0), (sys.exit, 3), (sys.exit, 0)]
    ended = list(compile_in_processes(calls, Console(file=said)))
    assert sorted((status, is_done) for (_, status), is_done in ended) == [(0, True), (0, True), (3, False)]
    assert said.getvalue().count(COMPILING) == 1


# Numba sends an event per function that it compiles. Loading from the cache sends none.
COUNTED = """
import json, sys
from numba.core import event
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
def count():
    ended = [each for _, each in compiled.buffer if each.is_end]
    return sum("no_cpython_wrapper" not in each.data["dispatcher"].targetoptions for each in ended)
"""


def run(code: str, cache: Path) -> Any:
    """Run code in a new process that counts compiled functions, with `cache` as kernel cache.

    Return the JSON in its last line of output.
    """
    done = subprocess.run(
        [sys.executable, "-c", COUNTED + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"KFBENCH_CACHE_DIR": str(cache)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


compiles = pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")


@compiles
def test_the_first_result_of_the_readme_compiles_few_kernels(tmp_path: Path) -> None:
    code = """
import kfbench
records = kfbench.Records.from_lists([b"value"] * 1000, keys=[b"key"] * 1000)
kfbench.FORMATS["v2"].encode(records, batch_size=100, codec="lz4")
kfbench.FORMATS["v3"].size(records, batch_size=100)
print(json.dumps(count()))
"""
    assert 0 < run(code, tmp_path) <= 5


@compiles
@pytest.mark.slow
def test_what_if_finds_its_kernels_compiled(tmp_path: Path) -> None:
    code = """
if __name__ == "__main__":
    from rich.console import Console
    from kfbench.whatif.ask import what_if
    what_if(["datasets/recorded/append-time.log"], ["v2", "v3"], console=Console(stderr=True))
    print(json.dumps([count(), len(list(__import__("kfbench").kernels.CACHE_FOLDER.rglob("*.nbc")))]))
"""
    left, kernels = run(code, tmp_path)
    assert left == 0
    assert 0 < kernels <= 25


def test_what_if_compiles_nothing_for_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "00000000000000000000.log"
    empty.touch()
    asked: list[object] = []
    monkeypatch.setattr("kfbench.whatif.ask.compile_for_what_if", lambda *given: asked.append(given))
    with pytest.raises(KfbenchError, match="empty"):
        what_if([empty], ["v2"], console=Console(file=io.StringIO()))
    assert not asked
