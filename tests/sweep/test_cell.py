"""Measuring a cell of any kind gives correct rows, or rows with a reason. It raises only errors of a busy host."""

import errno
import json
import os
import tracemalloc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kfbench.codecs.lz4_frames import Lz4, NewLz4
from kfbench.codecs.zstd_frames import Zstd
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure import host_lock, instructions
from kfbench.measure.callgrind import CallCounts, why_not_counted
from kfbench.measure.cell import Cell
from kfbench.measure.kinds import KINDS, cell_key, estimate_s, row_key
from kfbench.measure.kinds import instructions as instruction_kind
from kfbench.measure.kinds.floor import FLOOR, floor
from kfbench.measure.schema import (
    IDENTITY,
    rounds_key,
    stored_rows,
    table,
)
from kfbench.research.rivals import kinds as rival_kinds
from kfbench.sweep.run.task import failed_rows, measure_cell, measure_task
from kfbench.workloads import BLOCK_RECORDS, Sample
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.grid import GridPoint
from tests.sweep.cells import CELLS_OF_EVERY_KIND, a_cell, measure_with, model_cell

of_every_kind = pytest.mark.parametrize(
    "cell",
    # valgrind runs a Python at a fiftieth of its speed
    [pytest.param(cell, marks=[pytest.mark.slow] * (cell.kind == "instructions")) for cell in CELLS_OF_EVERY_KIND],
    ids=lambda cell: f"{cell.kind} {cell.path}",
)


@pytest.fixture(autouse=True)
def own_host_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time cells of this process without waiting for other measurements of this machine, such as other tests."""
    monkeypatch.setattr(host_lock, "LOCK", tmp_path / "host.lock")


@of_every_kind
def test_rows_are_those_of_the_cell(cell: Cell) -> None:
    """The rows of every kind, and those of a cell that was not measured, belong to their cell, each once."""
    assert {cell.kind for cell in CELLS_OF_EVERY_KIND} == set(KINDS) and estimate_s(cell) > 0
    kind, rows = KINDS[cell.kind], measure_cell(cell)
    assert {row["format"]: row["status"] for row in rows} == dict.fromkeys(cell.formats, "ok") or why_not_counted()
    for row in rows:
        assert ("watched_ns" in row, row["cache"]) == (kind.is_timed, cell.cache if kind.has_cold_mode else None)
        if kind.is_timed:
            assert len(row["cpu_ns"]) == len(row["wall_ns"]) == cell.rounds and min(row["cpu_ns"]) > 0
            assert row["watched_ns"] >= sum(row["wall_ns"]) and row["yardstick_ns"] > 0
    failed = failed_rows(cell, "skipped", "no time")
    assert len(failed) == len(cell.formats) * len(kind.row_keys(cell))
    for each in (rows, failed):
        stored = stored_rows(table(each))
        assert {row_key(row) for row in stored} == {cell_key(cell)}
        assert {row.format for row in stored} == set(cell.formats)
        assert len({tuple(row[name] for name in IDENTITY) for row in stored}) == len(stored)


class Failing(BatchedFormat):
    """A format that cannot encode."""

    def encode(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("out of ideas")


class Unreadable(BatchedFormat):
    """A format that encodes what it cannot decode."""

    def decode(self, data: Any, *args: Any, **options: Any) -> Any:
        raise RuntimeError("out of ideas")


class FullDisk(BatchedFormat):
    """A format whose error has a path of this host, which must not get into rows."""

    def encode(self, *args: Any, **options: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/homes/anna/cache")


NOT_DECODED = ("instructions", "dictionary-cpu", "rivals-cpu")  # decoded elsewhere, or only the codec is timed


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in this process what has a child process, and count nothing."""
    monkeypatch.setattr(rival_kinds, "call_in_child", lambda call, *args: call(*args))
    monkeypatch.setattr(instructions, "call_under", lambda _, __, counted, names: counted.arms(names))
    monkeypatch.setattr(instructions, "read_counts", lambda _, arms: [CallCounts(*[1] * 5)] * arms)
    monkeypatch.setattr(instruction_kind, "why_not_counted", lambda: None)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("cell", "broken"),
    [
        pytest.param(cell, broken, id=f"{cell.kind} {cell.path} {cell.codec} {broken.__name__}")
        for cell in CELLS_OF_EVERY_KIND[:-1]
        for broken in (Failing, Unreadable, FullDisk)
        if broken is not Unreadable or cell.kind not in NOT_DECODED
    ],
)
def test_a_format_that_fails(monkeypatch: pytest.MonkeyPatch, cell: Cell, broken: type[BatchedFormat]) -> None:
    """Its rows have the error, and others are measured unless it is their base. A busy host's error is the cell's."""
    *others, name = cell.formats
    given: dict[str, Any] = {"magic": FORMATS[name].magic, "features": getattr(FORMATS[name], "features", 0)}
    fmt = broken(name=name, summary="broken", **given)
    measure_with(monkeypatch, {name: fmt})
    monkeypatch.setattr(instructions, "FORMATS", {**FORMATS, name: fmt})
    found = measure_task([cell])
    if broken is FullDisk:
        assert (found.rows.num_rows, found.left) == (0, ())
        rows, wrong = found.passing.to_pylist(), {*cell.formats}
        texts = {f"{cell.title}: OSError: No space left on device"}
    else:
        rows, texts = found.rows.to_pylist(), {f"{cell.title}: {name}: RuntimeError: out of ideas"}
        wrong = {*cell.formats} if name == BASE_FORMAT and KINDS[cell.kind].needs_base else {name}
        assert {row["format"] for row in rows if row["status"] == "ok"} == {*others} - wrong
    failed = [row for row in rows if row["status"] == "error"]
    assert {row["format"] for row in failed} == wrong
    assert {row["error"] for row in failed if row["format"] == name} == texts
    assert len([row for row in failed if row["format"] == name]) == len(KINDS[cell.kind].row_keys(cell))
    assert not any(row["cpu_ns"] or row["size_bytes"] for row in failed)


@dataclass(frozen=True, kw_only=True)
class Ending(GridPoint):
    """A workload whose records cannot be generated."""

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        raise RuntimeError("out of records")


@pytest.mark.usefixtures("in_process")
@of_every_kind
def test_records_that_cannot_be_generated_are_an_error_in_every_format(cell: Cell) -> None:
    rows = measure_cell(replace(cell, workload=Ending()))
    assert {row["status"] for row in rows} == {"error"} and {row["format"] for row in rows} >= set(cell.formats)
    assert all("out of records" in row["error"] for row in rows if row.get("arm") != "aa")


@pytest.mark.parametrize(
    ("cell", "reasons"),
    [
        (a_cell(axes={"headers": 1}), {"v0": "v0 has no headers"}),
        (a_cell("cpu", axes={"headers": 1}), {"v0": "v0 has no headers"}),
        (a_cell("cpu", codec="zstd", level=3), {"v0": "v0 has no zstd"}),
        (model_cell(7 * BLOCK_RECORDS, 500, workload="service-events"), {"v0": "v0 has no headers"}),
        (a_cell("record", formats=("v2", "v3-full")), {"v3-full": ""}),
        (a_cell("broker", path="append-time"), {"v0": "v0 has no log append time"}),
        (
            a_cell("broker", path="convert", to="v1", codec="zstd", level=3, formats=("v0", "v2")),
            {"v0": "v0 has no zstd", "v2": "v1 has no zstd"},
        ),
    ],
    ids=lambda given: given.title if isinstance(given, Cell) else "",
)
def test_what_a_format_cannot_have_is_skipped_with_the_reason(cell: Cell, reasons: dict[str, str]) -> None:
    rows = measure_cell(cell)
    skipped = [row for row in rows if row["status"] == "skipped"]
    assert {row["format"] for row in skipped} == {*reasons} and all(
        reasons[row["format"]] in row["error"] for row in skipped
    )
    assert {row["format"] for row in rows if row["status"] == "ok"} == {*cell.formats} - {*reasons}
    assert {row_key(row) for row in stored_rows(table(skipped))} == {cell_key(cell)}


def test_bytes_rows_are_those_of_encode() -> None:
    cell = a_cell()
    sample = cell.workload.generate(records=300, seed=5)
    rows = measure_cell(cell)
    assert [row["format"] for row in rows] == ["v0", "v2", "v3"]
    for row in rows:
        log = FORMATS[row["format"]].encode(sample.records, sample.bounds, lossy=True)
        assert row["status"] == "ok" and row["size_bytes"] == len(log.data)
        assert row["records"] == 300 and row["batches"] == 3 and row["batch_size"] == 100
        assert sum(json.loads(row["field_bytes"]).values()) == row["size_bytes"]


def test_a_cold_cell_takes_one_call_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.measure.cold.last_level_cache_bytes", lambda: 1 << 20)
    cell = a_cell("cpu", cache="cold", sample_us=5_000)
    rows = measure_cell(cell)
    assert [row["format"] for row in rows] == ["v0", "v2", "v3", "v2"] * 2 and "cold caches" in cell.title
    for row in rows:
        assert (row["status"], row["cache"], row["inner_loops"]) == ("ok", "cold", 1) and len(row["cpu_ns"]) == 5
        assert row["rotated_bytes"] >= 2 << 20
    assert cell_key(cell) != cell_key(a_cell("cpu", sample_us=5_000))
    monkeypatch.setattr("kfbench.measure.cold.last_level_cache_bytes", lambda: 1 << 60)
    refused = measure_cell(cell)
    assert len(refused) == 8 and all("cold caches need" in row["error"] for row in refused)


def test_new_contexts_are_timed_against_v2_with_new_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, list[Any]] = {"kept": [], "new": []}
    for context, rows in found.items():
        with monkeypatch.context() as patched:
            made: list[int] = []  # contexts for compressing
            new = Zstd._new_compressor
            patched.setattr(Zstd, "_new_compressor", lambda *given, new=new, made=made: made.append(1) or new(*given))
            cell = a_cell("cpu", codec="zstd", level=1, formats=("v2", "v3"), context=context)
            rows += stored_rows(table(measure_cell(cell)))
        assert f"{context} contexts" in cell.title and [row_key(row) for row in rows] == [cell_key(cell)] * len(rows)
        assert [(row.operation, row.format, row.arm, row.status, row["context"]) for row in rows] == [
            (operation, name, arm, "ok", context)
            for operation in ("encode", "decode")
            for name, arm in (("v2", "measure"), ("v3", "measure"), ("v2", "aa"))
        ]
        calls = sum(
            row["warm_up_calls"] + len(row.cpu_ns) * row.inner_loops for row in rows if row.operation == "encode"
        )
        assert len(made) <= 1 if context == "kept" else len(made) >= 3 * calls  # 3 batches a call
    assert {rounds_key(row) for row in found["kept"]}.isdisjoint(map(rounds_key, found["new"]))


def test_a_new_context_that_writes_other_bytes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NewLz4, "_frame", lambda self, data, level: Lz4._frame(self, data, 12))
    rows = measure_cell(a_cell("cpu", codec="lz4", level=9, formats=("v2", "v3"), context="new"))
    assert {row["status"] for row in rows if row["operation"] == "encode"} == {"error"}
    assert all("wrote other bytes" in row["error"] for row in rows if row["operation"] == "encode")


def test_model_rows_add_up_to_the_bytes_of_encode() -> None:
    first, second = BLOCK_RECORDS, BLOCK_RECORDS + 4_321
    rows = [measure_cell(model_cell(0, first)), measure_cell(model_cell(first, second))]
    sample = CATALOGUE["consumer-offsets"].generate(records=first + second, seed=5)
    for one, other in zip(*rows, strict=True):
        log = FORMATS[one["format"]].encode(sample.records, sample.bounds, batch_fields=sample.batch_fields, lossy=True)
        assert one["size_bytes"] + other["size_bytes"] == len(log.data)
        assert one["payload_bytes"] + other["payload_bytes"] == sample.shapes.payload_bytes
        assert (one["start"], other["start"], one["records"] + other["records"]) == (0, first, first + second)
        losses = [json.loads(row["losses"]) for row in (one, other)]
        assert {name: sum(each.get(name, 0) for each in losses) for name in log.losses} == log.losses
        assert one["status"] == "ok" and one["generate_ns"] > 0 and one["resident_bytes"] > 0
    assert sum(row[-1]["batches"] for row in rows) == len(sample.bounds) - 1
    assert table([*rows[0], *rows[1]]).num_rows == 6


def test_model_memory_does_not_grow_with_the_records() -> None:
    peaks = []
    for blocks in (2, 2, 12):  # the first measurement fills caches
        tracemalloc.start()
        rows = measure_cell(model_cell(0, blocks * BLOCK_RECORDS, workload="service-events", formats=("v2", "v3")))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert {row["status"] for row in rows} == {"ok"}
    assert peaks[2] < 1.1 * peaks[1] < 64 << 20


def test_a_floor_s_row_is_that_of_its_shapes_and_makes_no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = replace(a_cell("floor", formats=(FLOOR,)), workload=CATALOGUE["user-activity"])
    sample = cell.workload.generate(records=300, seed=5)
    monkeypatch.delattr(Sample, "records")
    (row,) = measure_cell(cell)
    assert (row["status"], row["format"], row["codec"], row["workload"]) == ("ok", FLOOR, "none", "user-activity")
    assert row | floor(sample.shapes, sample.bounds, sample.batch_fields).columns == row
    assert row["records"] == 300 and 0 < row["overhead_bytes"] < row["size_bytes"]


def test_a_cell_of_two_blocks_has_its_rows_under_each() -> None:
    rows = measure_cell(a_cell(grids={"a": ("v0", "v2"), "b": ("v3",)}))
    assert [(row["grid"], row["format"]) for row in rows] == [("a", "v0"), ("a", "v2"), ("b", "v3")]


class Tampering(BatchedFormat):
    """A format that writes a wrong byte if the caller passes a buffer, as a timed call does."""

    def encode(self, *args: Any, **options: Any) -> Any:
        log = super().encode(*args, **options)
        if "out" in options:
            log.data[-1] ^= 1
        return log


def test_what_is_timed_is_what_was_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Tampering(name="v3", magic=3, summary="broken", features=FORMATS["v3"].features)
    measure_with(monkeypatch, {"v3": broken})
    rows = measure_cell(a_cell("cpu"))
    (wrong,) = [row for row in rows if row["status"] != "ok"]
    assert (wrong["format"], wrong["operation"], wrong["status"]) == ("v3", "encode", "error")
    assert "v3: Unverified: " in wrong["error"]
    assert "cpu_ns" not in wrong and table(rows).num_rows == 8
    broken = Tampering(name="v2", magic=2, summary="broken")
    measure_with(monkeypatch, {"v2": broken})
    rows = measure_cell(a_cell("cpu"))
    assert {(row["operation"], row["status"]) for row in rows} == {("encode", "error"), ("decode", "ok")}
