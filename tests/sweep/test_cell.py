"""Measuring a cell gives correct rows, or rows with a reason. It never raises an exception."""

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from kfbench.codecs.lz4_frames import Lz4, NewLz4
from kfbench.codecs.zstd_frames import Zstd
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.cell import Cell
from kfbench.measure.floor import FLOOR, floor
from kfbench.measure.kinds import KINDS, cell_key, row_key
from kfbench.measure.kinds import floor as floor_kind
from kfbench.measure.kinds.cpu import READINGS
from kfbench.measure.kinds.prefix import ARMS
from kfbench.measure.schema import (
    IDENTITY,
    SCHEMA,
    rounds_key,
    stored_rows,
    table,
)
from kfbench.sweep.run.task import failed_rows, measure_cell
from kfbench.workloads import BLOCK_RECORDS, Sample
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from tests.sweep.cells import CELLS_OF_EVERY_KIND, a_cell, measure_with, model_cell


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


def test_cpu_rows_hold_raw_samples_of_every_arm() -> None:
    rows = measure_cell(a_cell("cpu", codec="snappy"))
    arms = [(row["operation"], row["format"], row["arm"]) for row in rows]
    each = [("v0", "measure"), ("v2", "measure"), ("v3", "measure"), ("v2", "aa")]
    assert arms == [(operation, *arm) for operation in ("encode", "decode") for arm in each]
    for operation in ("encode", "decode"):
        loops = {row["inner_loops"] for row in rows if row["operation"] == operation}
        assert len(loops) == 1
    for row in rows:
        assert row["status"] == "ok" and len(row["cpu_ns"]) == len(row["wall_ns"]) == 5
        assert min(row["cpu_ns"]) > 0 and "size_bytes" not in row


def test_timed_rows_say_how_their_host_was_and_how_warm_they_are() -> None:
    for row in measure_cell(a_cell("cpu")):
        assert row["cache"] == "resident" and row["rotated_bytes"] is None and 3 <= row["warm_up_calls"] <= 30
        assert row["watched_ns"] >= sum(row["wall_ns"]) and row["yardstick_ns"] > 0
        assert isinstance(row["others_cpu_ns"], int)
    assert not any("watched_ns" in row for row in measure_cell(a_cell()))


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


@pytest.mark.parametrize(("kind", "operation"), READINGS.items())
def test_rows_of_readers_that_do_not_want_all(kind: str, operation: str) -> None:
    rows = measure_cell(a_cell(kind, formats=("v2", "v3-headers-first", "columnar")))
    each = [("v2", "measure"), ("v3-headers-first", "measure"), ("columnar", "measure"), ("v2", "aa")]
    found = {(row["format"], row["arm"]): row for row in rows}
    assert set(found) == set(each) and {row["operation"] for row in rows} == {operation}
    skipped = found.pop(("v3-headers-first", "measure")) if kind == "record" else None
    assert all(row["status"] == "ok" and len(row["cpu_ns"]) == 5 for row in found.values())
    if skipped:
        assert skipped["status"] == "skipped" and skipped["error"]


def test_prefix_rows_are_the_whole_and_the_prefix_of_each_format() -> None:
    rows = measure_cell(a_cell("prefix", formats=("v3-headers-first", "v3-full"), codec="gzip", level=6))
    wholes = [("decompress", "measure"), ("decompress", "aa")]
    others = [(name, "measure") for name in ("decompress-prefix", "decode", "decode-metadata")]
    assert [(row["format"], row["operation"], row["arm"]) for row in rows] == [
        (name, *each) for name in ("v3-headers-first", "v3-full") for each in (*wholes, *others)
    ]
    for row in rows:
        assert row["status"] == "ok" and row["batches"] == 3 and row["records"] == 300
        assert len(row["cpu_ns"]) == len(row["wall_ns"]) == 5
        whole = row["operation"] in ("decompress", "decode")
        assert (row["plain_bytes"] > 30_000) == whole and row["metadata_bytes"] <= row["plain_bytes"]


def test_broker_rows_hold_samples_and_counters_of_every_format() -> None:
    rows = measure_cell(a_cell("broker", codec="lz4", path="append"))
    assert [(row["format"], row["arm"]) for row in rows] == [
        ("v0", "measure"), ("v2", "measure"), ("v3", "measure"), ("v2", "aa")
    ]  # fmt: skip
    for row in rows:
        assert (row["status"], row["operation"], row["to_format"]) == ("ok", "append", None)
        assert len(row["cpu_ns"]) == 5 and row["inner_loops"] == 1 and row["batches"] == 3
        assert row["source_bytes"] == row["read_bytes"] > row["written_bytes"] > 0
        assert row["batches_rewritten" if row["format"] == "v0" else "batches_in_place"] == 3


def test_what_a_broker_s_path_cannot_have_is_skipped_with_the_reason() -> None:
    cell = a_cell("broker", path="convert", to="v1", codec="zstd", level=3, formats=("v0", "v2"))
    rows = measure_cell(cell)
    assert [(row["format"], row["to_format"], row["status"], row["error"]) for row in rows] == [
        ("v0", "v1", "skipped", "v0 has no zstd"), ("v2", "v1", "skipped", "v1 has no zstd"),
    ]  # fmt: skip
    rows = measure_cell(a_cell("broker", path="append-time"))
    assert (rows[0]["format"], rows[0]["error"]) == ("v0", "v0 has no log append time")
    assert [row["status"] for row in rows[1:]] == ["ok"] * 3


def test_a_path_that_fails_in_one_format_is_an_error_of_that_row_alone(failing: str) -> None:
    rows = measure_cell(a_cell("broker", path="append"))
    assert [(row["format"], row["status"]) for row in rows] == [
        ("v0", "ok"), ("v2", "ok"), (failing, "error"), ("v2", "ok")
    ]  # fmt: skip
    assert "c0ffee" in rows[2]["error"] and rows[2]["error"].endswith("v3: RuntimeError: out of ideas")
    assert rows[2]["operation"] == "append" and rows[2].get("cpu_ns") is None and table(rows).num_rows == 4


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


def test_a_model_s_row_says_why_there_is_no_number(failing: str) -> None:
    rows = measure_cell(model_cell(7 * BLOCK_RECORDS, 500, workload="service-events"))
    assert [(row["format"], row["status"], row["start"]) for row in rows] == [
        ("v0", "skipped", 7 * BLOCK_RECORDS), (failing, "error", 7 * BLOCK_RECORDS), ("v2", "ok", 7 * BLOCK_RECORDS)
    ]  # fmt: skip
    assert rows[0]["error"] == "v0 has no headers" and rows[1].get("size_bytes") is None
    assert "458,752" in rows[1]["error"] and rows[1]["error"].endswith("RuntimeError: out of ideas")


def test_a_model_whose_records_end_is_an_error_in_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    generate = NamedWorkload.generate

    def ending(self: NamedWorkload, *, records: int, seed: int, start: int = 0) -> Any:
        if start >= BLOCK_RECORDS:
            raise RuntimeError("out of records")
        return generate(self, records=records, seed=seed, start=start)

    monkeypatch.setattr(NamedWorkload, "generate", ending)
    rows = measure_cell(model_cell(0, 2 * BLOCK_RECORDS))
    assert [row["status"] for row in rows] == ["error"] * 3 and all("out of records" in row["error"] for row in rows)


def test_a_floor_s_row_is_that_of_its_shapes_and_makes_no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = replace(a_cell("floor", formats=(FLOOR,)), workload=CATALOGUE["user-activity"])
    sample = cell.workload.generate(records=300, seed=5)
    monkeypatch.delattr(Sample, "records")
    (row,) = measure_cell(cell)
    assert (row["status"], row["format"], row["codec"], row["workload"]) == ("ok", FLOOR, "none", "user-activity")
    assert row | floor(sample.shapes, sample.bounds, sample.batch_fields).columns == row
    assert row["records"] == 300 and 0 < row["overhead_bytes"] < row["size_bytes"]


def test_a_floor_that_fails_is_an_error_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(floor_kind, "floor", failing)
    (row,) = measure_cell(a_cell("floor", formats=(FLOOR,)))
    assert (row["status"], row["format"]) == ("error", FLOOR)
    assert "c0ffee" in row["error"] and row["error"].endswith("floor: RuntimeError: out of ideas")


def test_rows_fit_the_schema_as_they_come() -> None:
    prefix = a_cell("prefix", formats=("v3-full",), codec="snappy")
    broker = a_cell("broker", path="convert", to="v1")
    readers = [a_cell(kind, formats=("v2",)) for kind in ("metadata", "lookup", "record")]
    each = (a_cell(), a_cell("cpu"), *readers, prefix, broker, a_cell("model"), a_cell("floor", formats=(FLOOR,)))
    made = table([row for cell in each for row in measure_cell(cell)])
    assert made.schema.equals(SCHEMA)


@pytest.mark.parametrize("kind", ["bytes", "cpu"])
def test_what_a_format_cannot_have_is_skipped_with_the_reason(kind: str) -> None:
    rows = measure_cell(a_cell(kind, axes={"headers": 1}))
    skipped = [row for row in rows if row["format"] == "v0"]
    assert skipped and all(row["status"] == "skipped" and row["error"] == "v0 has no headers" for row in skipped)
    assert all(row["status"] == "ok" for row in rows if row["format"] != "v0")
    zstd = measure_cell(a_cell(kind, codec="zstd", level=3))
    assert {row["error"] for row in zstd if row["format"] == "v0"} == {"v0 has no zstd"}


def test_a_cell_of_two_blocks_has_its_rows_under_each() -> None:
    rows = measure_cell(a_cell(grids={"a": ("v0", "v2"), "b": ("v3",)}))
    assert [(row["grid"], row["format"]) for row in rows] == [("a", "v0"), ("a", "v2"), ("b", "v3")]


class Failing(BatchedFormat):
    """A format whose decoder always raises an error."""

    def decode(self, data: Any, *args: Any, **options: Any) -> Any:
        raise RuntimeError("out of ideas")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> str:
    broken = Failing(name="v3", magic=3, summary="broken", features=FORMATS["v3"].features)
    measure_with(monkeypatch, {"v3": broken})
    return "v3"


@pytest.mark.parametrize("kind", ["bytes", "cpu"])
def test_a_failure_is_a_row_that_names_the_cell(failing: str, kind: str) -> None:
    rows = measure_cell(a_cell(kind))
    errors = [row for row in rows if row["status"] == "error"]
    assert {row["format"] for row in errors} == {failing}
    assert len(errors) == (1 if kind == "bytes" else 2)
    for row in errors:
        assert "c0ffee" in row["error"] and row["error"].endswith("v3: RuntimeError: out of ideas")
        assert row.get("size_bytes") is None and row.get("cpu_ns") is None
    assert all(row["status"] == "ok" for row in rows if row["format"] != failing)
    assert table(rows).num_rows == len(rows)


def test_a_format_whose_prefix_fails_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Failing(name="v3-full", magic=3, summary="broken", features=FORMATS["v3-full"].features)
    measure_with(monkeypatch, {"v3-full": broken})
    rows = measure_cell(a_cell("prefix", formats=("v3-full", "v3-headers-first"), codec="zstd", level=3))
    assert [(row["format"], row["status"]) for row in rows] == [
        ("v3-full", "error"), *[("v3-headers-first", "ok")] * ARMS
    ]  # fmt: skip
    assert "c0ffee" in rows[0]["error"] and rows[0]["error"].endswith("v3-full: RuntimeError: out of ideas")


def test_without_its_base_a_cpu_cell_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Failing(name="v2", magic=2, summary="broken")
    measure_with(monkeypatch, {"v2": broken})
    rows = measure_cell(a_cell("cpu"))
    assert {row["status"] for row in rows} == {"error"}
    assert any("v2, the base" in row["error"] for row in rows)


class Tampering(BatchedFormat):
    """A format that writes a wrong byte if the caller passes a buffer, as a timed call does."""

    def encode(self, *args: Any, **options: Any) -> Any:
        log = super().encode(*args, **options)
        if "out" in options:
            log.data[-1] ^= 1
        return log


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_what_is_timed_is_what_was_verified(monkeypatch: pytest.MonkeyPatch, codec: str) -> None:
    broken = Tampering(name="v3", magic=3, summary="broken", features=FORMATS["v3"].features)
    measure_with(monkeypatch, {"v3": broken})
    rows = measure_cell(a_cell("cpu", codec=codec))
    (wrong,) = [row for row in rows if row["status"] != "ok"]
    assert (wrong["format"], wrong["operation"], wrong["status"]) == ("v3", "encode", "error")
    assert "v3: Unverified: " in wrong["error"]
    assert "cpu_ns" not in wrong and table(rows).num_rows == 8
    broken = Tampering(name="v2", magic=2, summary="broken")
    measure_with(monkeypatch, {"v2": broken})
    rows = measure_cell(a_cell("cpu", codec=codec))
    assert {(row["operation"], row["status"]) for row in rows} == {("encode", "error"), ("decode", "ok")}


@pytest.mark.parametrize("cell", CELLS_OF_EVERY_KIND, ids=lambda cell: f"{cell.kind} {cell.path}")
def test_a_row_says_which_cell_it_is_of(cell: Cell) -> None:
    assert {cell.kind for cell in CELLS_OF_EVERY_KIND} == set(KINDS)
    for rows in (measure_cell(cell), failed_rows(cell, "skipped", "no time")):
        stored = stored_rows(table(rows))
        assert {row_key(row) for row in stored} == {cell_key(cell)}
        assert {row.format for row in stored} == set(cell.formats)
        assert len({tuple(row[name] for name in IDENTITY) for row in stored}) == len(stored)
