"""Kernels that a sweep or a what-if needs are compiled before, in separate processes, and no others."""

import io
import json
import os
import re
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
    Compilation,
    compilations,
    compile_formats,
    compile_paths,
    compile_payloads,
)
from kfbench.whatif.ask import what_if
from kfbench.whatif.compiling import calls_for, compile_reading

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


@pytest.mark.slow
def test_they_can_be_called() -> None:
    for function, what in compilations(load_profile("smoke").cells):
        function(what)


@pytest.mark.parametrize(
    ("calls", "is_done"),
    [
        ([(os.mkdir, name) for name in "abc"], True),
        ([(os.mkdir, "a"), (os.mkdir, "none/b"), (os.mkdir, "c")], False),
        ([(os._exit, 3), (os.mkdir, "a"), (os.mkdir, "c")], False),  # as a kernel that crashes LLVM does
    ],
)
def test_processes_run_all_calls_and_say_if_one_failed(
    calls: list[Call], is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with Compilation(calls) as compilation:
        assert bool(compilation.wait(Console(file=said))) != is_done
    made = {each.name for each in tmp_path.iterdir()}
    assert made == {name for function, name in calls if function is os.mkdir and "/" not in name}
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


def run(code: str, cache: Path, **environment: str) -> Any:
    """Run code in a new process that counts compiled functions, with `cache` as kernel cache.

    Return the JSON in its last line of output.
    """
    done = subprocess.run(
        [sys.executable, "-c", COUNTED + code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"KFBENCH_CACHE_DIR": str(cache), "KFBENCH_COMPILE": "0"} | environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


compiles = pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled")


@compiles
@pytest.mark.slow
def test_a_kernel_is_compiled_when_plain_python_would_have_taken_longer(tmp_path: Path) -> None:
    code = """
import kfbench
sizes, counts = [], []
for number in (1000, 1000, 100_000, 1000):
    records = kfbench.Records.from_lists([b"value"] * number, keys=[b"key"] * number)
    sizes.append(int(kfbench.FORMATS["v2"].size(records, batch_size=100).sum()))
    counts.append(count())
print(json.dumps([sizes, counts]))
"""
    sizes, counts = run(code, tmp_path)
    assert counts == [0, 0, 1, 1]
    assert sizes[0] == sizes[1] == sizes[3] and sizes[2] == 100 * sizes[0]
    assert run(code, tmp_path) == [sizes, [0, 0, 0, 0]], "loaded from the cache"


@compiles
def test_what_is_timed_is_compiled(tmp_path: Path) -> None:
    code = """
import kfbench
from kfbench.measure.cpu import Arm, measure, warm_up
records = kfbench.Records.from_lists([b"value"] * 10)
arm = Arm(call=lambda: kfbench.FORMATS["v2"].encode(records, batch_size=10))
arm.call()
counts = [count()]
warm_up(arm)
counts.append(count())
measure([arm], 0, 1, 1)
print(json.dumps([*counts, count()]))
"""
    plain, warm, timed = run(code, tmp_path)
    assert plain == 0 < warm == timed


@compiles
@pytest.mark.slow
def test_what_if_shows_what_kafka_can_do_first_and_compiles_the_rest_for_the_next_call(tmp_path: Path) -> None:
    code = """
if __name__ == "__main__":
    from rich.console import Console
    from kfbench.whatif.ask import what_if
    from kfbench.whatif.tables import render_first
    shown = []
    def show(answer):
        shown.append((render_first(answer), sorted(answer.breakdown), count()))
    log = "datasets/recorded/append-time.log"
    what_if([log], ["v2", "v3"], console=Console(stderr=True), show_first=show, show=show)
    print(json.dumps([shown, len(list(__import__("kfbench").kernels.CACHE_FOLDER.rglob("*.nbc")))]))
"""
    (first, whole), kernels = run(code, tmp_path)
    assert [first[1], whole[1]] == [["v2"], ["v2", "v3"]]
    assert whole[0].startswith(first[0]), "a row that is shown never changes"
    assert 0 < kernels <= 25
    (again,), _ = run(code, tmp_path)
    assert again[2] == 0, "everything was compiled"
    assert without_times(again[0]) == without_times(whole[0])
    rows = [(line.split()[:2], float(line.split()[-1].replace(",", ""))) for line in lines_with_times(whole[0])]
    later = [float(line.split()[-1].replace(",", "")) for line in lines_with_times(again[0])]
    assert len(rows) > 3
    assert [row for row, then in zip(rows, later, strict=True) if row[1] > 20 * then] == [], "a time has a compilation"


def lines_with_times(table: str) -> list[str]:
    return [line for line in table.splitlines() if re.search(r" [\d.,]+$", line)]


def without_times(table: str) -> list[str]:
    return [re.sub(r" +[\d.,]+$", "", line) for line in table.splitlines()]


@compiles
def test_what_if_compiles_only_what_has_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.whatif.compiling.CACHE_FOLDER", tmp_path)
    marks = {name: tmp_path / f"compiled-what-if-{name}" for name in (*FORMATS, "reading")}
    for mark in marks.values():
        mark.touch()
    assert calls_for(("v2", "v3"), sized=tuple(FORMATS)) == []
    assert len(calls_for(("v2", "v3"), has_headers=True)) > 1
    marks["reading"].unlink()
    assert [function for function, _ in calls_for(("v2", "v3"), sized=tuple(FORMATS))] == [compile_reading]


def test_what_if_compiles_nothing_for_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "00000000000000000000.log"
    empty.touch()
    asked: list[object] = []
    monkeypatch.setattr("kfbench.whatif.ask.compiling_behind", lambda *given: asked.append(given))
    with pytest.raises(KfbenchError, match="empty"):
        what_if([empty], ["v2"], console=Console(file=io.StringIO()))
    assert not asked


ANSWERS = """
import contextlib, io, pathlib, sys
from concurrent.futures import ThreadPoolExecutor
import kfbench
from kfbench.cli import main

logs = sorted(map(str, pathlib.Path("datasets/recorded").glob("*v[01]*.log"))) + ["datasets/recorded/edges.log"]
shown = io.TextIOWrapper(io.BytesIO(), "utf-8")
for log in logs:
    sys.argv = ["kfbench", "inspect", log]
    with contextlib.redirect_stdout(shown):
        main()
def what_if(log):
    answer = kfbench.what_if(log, ["v2", "v3"], batchings=()).to_dict()
    return [{key: value for key, value in each.items() if key != "cpu_ms_per_mb"} for each in answer["levels"]]
with ThreadPoolExecutor(4) as threads:
    shown.flush()
    print(json.dumps([count(), shown.buffer.getvalue().decode(), list(threads.map(what_if, logs[-4:]))]))
"""


@compiles
@pytest.mark.slow
def test_plain_python_answers_as_compiled_kernels_do(tmp_path: Path) -> None:
    plain = run(ANSWERS, tmp_path)
    compiled = run(ANSWERS, tmp_path, KFBENCH_COMPILE="1", KFBENCH_CACHE_DIR=os.environ.get("KFBENCH_CACHE_DIR", ""))
    assert plain[0] < 20
    assert plain[1:] == compiled[1:] and plain[1].count("damage: ") > 10
