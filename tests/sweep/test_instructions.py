"""Counts of instructions: what callgrind's files say, and the rows of cells, counted under the real valgrind."""

import os
import platform
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kfbench.errors import IllegalCombination
from kfbench.measure import callgrind, instructions
from kfbench.measure.callgrind import CallCounts, read_counts, why_not_counted
from kfbench.measure.cell import Cell
from kfbench.measure.child import ChildKilled, LibraryEnded, call_under
from kfbench.measure.columns import Row
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.instructions import CountRequest, count_instructions, instructions_per_record, per_record
from kfbench.records import Records
from kfbench.sweep.run.task import measure_cell
from tests.sweep.profiles import Load, block

needs_valgrind = pytest.mark.skipif(why_not_counted() is not None, reason=why_not_counted() or "")
FILE = """# callgrind format
desc: Trigger: Client Request: arm {arm}
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
ob=(1) ???
fl=(1) ???
fn=(1) 0x1
0 1000 5 5 1 2 3 4 5 6
cob=(2) /site-packages/zstandard/backend_c.so
cfn=(2) ZSTD_compress
calls=1 0
* 999999 9
ob=(2)
fn=(2)
+3 500 1
ob=(3) /usr/lib/libpython3.11.so.1.0
fn=(3) _PyEval
0 250
totals: 1750 5 6
"""


def cells_of(
    load: Load, operations: str = "", paths: str = "", formats: str = '"v2"', batch_size: int = 10, codec: str = "none"
) -> tuple[Cell, ...]:
    text = f"""operations = [{operations}]\npaths = [{paths}]\ncodecs = {{ {codec} = [] }}\nillegal = "skip"
axes = {{ batch_size = [{batch_size}] }}"""
    settings = "instructions = { records = 200 }\n"
    return load(settings, block(text, formats=f"[{formats}]", measure='["instructions"]')).cells


def slope(row: Row) -> float:
    return per_record(row["kernel_instructions"], row["counted_records"])


def test_costs_are_added_up_by_library(tmp_path: Path) -> None:
    for arm in (1, 0):
        (tmp_path / f"counts.{arm}").write_text(FILE.format(arm=arm), encoding="utf-8")
    (tmp_path / "counts.7").write_text("desc: Trigger: Program termination\n", encoding="utf-8")
    of_call = CallCounts(
        kernel_instructions=200, library_instructions=100, python_instructions=50, l1_misses=1, last_level_misses=3
    )
    assert read_counts(tmp_path, 2) == [of_call, of_call]
    with pytest.raises(OSError, match="2 calls instead of 4"):
        read_counts(tmp_path, 4)
    for text in (FILE.replace("+3 500 1\n", ""), FILE.partition("events:")[0]):
        (tmp_path / "counts.1").write_text(text.format(arm=1), encoding="utf-8")
        with pytest.raises(OSError, match="cut short"):
            read_counts(tmp_path, 2)


@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="counts are of Linux x86-64")
@pytest.mark.parametrize(
    ("prints", "words"),
    [("valgrind-3.9.0", "3.19 or newer, but 3.9 is installed"), ("nonsense", "names none"), (None, "not installed")],
)
def test_valgrind_that_is_absent_or_too_old_is_named(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: str | None, words: str
) -> None:
    if prints is not None:
        fake = tmp_path / "valgrind"
        fake.write_text(f"#!/bin/sh\necho {prints}\n", encoding="utf-8")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for cached in (why_not_counted, callgrind.valgrind_version):
        cached.cache_clear()
    try:
        (row,) = measure_cell(cells_of(load, '"encode"')[0])
    finally:
        for cached in (why_not_counted, callgrind.valgrind_version):
            cached.cache_clear()
    assert row["status"] == "skipped" and words in row["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"format": "v9"},
        {"operation": "frobnicate"},
        {"operation": "convert"},
        {"operation": "sizes"},
        {"codec": "brotli"},
        {"level": 99},
    ],
    ids=str,
)
def test_a_wrong_question_is_refused(wrong: dict[str, Any]) -> None:
    records = Records.from_lists([b"value"] * 20)
    given: dict[str, Any] = {"format": "v2", "operation": "encode", "records": records, "batch_size": 10}
    with pytest.raises(IllegalCombination):
        instructions_per_record(**given | {"codec": "zstd"} | wrong)


@needs_valgrind
@pytest.mark.slow
def test_counts_are_those_of_the_records_and_repeat(load: Load) -> None:
    cells = cells_of(load, '"encode", "decode"', formats='"v2", "v3"')
    first, again = ([row for cell in cells for row in measure_cell(cell)] for _ in range(2))
    assert [row["status"] for row in first] == ["ok"] * 4
    assert [row["counted_records"] for row in first] == [[100, 200]] * 4
    assert [slope(row) for row in first] == pytest.approx([slope(row) for row in again], rel=1e-3)
    encode, encode_v3, *_ = map(slope, first)
    assert 200 < encode < 350 and encode < encode_v3 < 1.1 * encode


@needs_valgrind
@pytest.mark.thorough
def test_the_library_of_a_codec_is_counted_apart(load: Load) -> None:
    (cell,) = cells_of(load, '"encode"', codec="zstd")
    (row,) = measure_cell(cell)
    assert row["library_instructions"][1] > row["library_instructions"][0] > row["kernel_instructions"][0] > 0


@needs_valgrind
@pytest.mark.thorough
def test_broker_paths_and_reasons(load: Load) -> None:
    rows = [
        row
        for cell in cells_of(load, '"fetch-record"', '"append"', formats='"v2", "columnar"', codec="zstd")
        for row in measure_cell(cell)
    ]
    assert {(row["operation"], row["format"]): row["status"] for row in rows} == {
        ("append", "v2"): "ok", ("append", "columnar"): "ok",
        ("fetch-record", "v2"): "skipped", ("fetch-record", "columnar"): "skipped",
    }  # fmt: skip
    (cell,) = cells_of(load, '"encode"', batch_size=1000)
    (row,) = measure_cell(cell)
    assert row["status"] == "skipped" and "one batch only" in row["error"]


def end_while_counting(cell: Cell, number: int) -> list[Row]:
    """Measure the cell, and send a signal to the process under valgrind as soon as it counts."""
    folder = instructions._folder(os.getpid())
    folder.mkdir()  # callgrind does not start without it
    process = call_under(instructions.valgrind(folder), os.getpid)
    shutil.rmtree(folder)

    def end() -> None:
        while not folder.exists():
            time.sleep(0.01)
        os.kill(process, number)

    thread = threading.Thread(target=end)
    thread.start()
    try:
        return list(measure_cell(cell))
    finally:
        thread.join()
        assert not folder.exists()


def end_the_fork() -> EncodeInput:
    os._exit(1)


@needs_valgrind
@pytest.mark.thorough
def test_a_fork_that_ends_is_a_crash() -> None:
    found = count_instructions(CountRequest(operation="encode", make_source=end_the_fork), ["v2"])
    assert isinstance(found["v2"], LibraryEnded)


@needs_valgrind
@pytest.mark.thorough
def test_a_crash_is_a_skipped_row_and_a_kill_is_tried_again(load: Load) -> None:
    (cell,) = cells_of(load, '"encode"')
    (row,) = end_while_counting(cell, signal.SIGABRT)
    assert row["status"] == "skipped" and row["error"] == "valgrind ended its process: signal 6"
    with pytest.raises(ChildKilled, match="signal 9"):
        end_while_counting(cell, signal.SIGKILL)
    (row,) = measure_cell(cell)
    assert row["status"] == "ok"
