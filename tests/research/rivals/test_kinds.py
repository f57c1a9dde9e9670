"""Cells with rivals: what is missing, fails or is lost is a row, and a sweep has a row of every arm."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kfbench.codecs import CODECS
from kfbench.measure.kinds import KINDS
from kfbench.measure.noise import base_pairs
from kfbench.measure.schema import table
from kfbench.research.rivals import NAMES, rivals
from kfbench.research.rivals import kinds as module
from kfbench.research.rivals.arrow_ipc import ArrowIpc
from kfbench.research.rivals.measure_cpu import RIVAL_OPERATIONS
from kfbench.store import open_run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.runner import RunOptions, run_sweep
from kfbench.sweep.run.task import measure_cell
from tests.research.rivals.test_measure import Panics
from tests.sweep.cells import rival_cell

SWEEP = """
title = "rivals"
analysis = "a"
rivals = { records = 40, batches = 3, rounds = 3, sample_us = 20 }

[[grid]]
name = "sizes"
title = "Sizes"
analysis = "a"
measure = ["rivals"]
workloads = ["user-activity", "log-shipping"]
formats = ["v2", "columnar", "parquet-best", "avro", "vortex"]
codecs = { none = [], lz4 = [] }
axes = { batch_size = [1, 10] }

[[grid]]
name = "times"
title = "Times"
analysis = "a"
measure = ["rivals-cpu"]
workloads = ["user-activity"]
formats = ["v2", "columnar", "arrow-ipc", "avro-best", "vortex"]
codecs = { lz4 = [] }
"""


class PanickingParquet(Panics):
    name = "parquet"


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_of_rivals_has_a_row_of_every_arm(tmp_path: Path) -> None:
    path = tmp_path / "rivals.toml"
    path.write_text(SWEEP)
    run = open_run(run_sweep(load_profile(path), tmp_path, RunOptions(master="local[2]")))
    rows = run.measurements()
    assert set(rows["status"]) == {"ok", "skipped"}
    skipped = rows[rows["status"] == "skipped"]
    assert {(row.format, row.codec) for row in skipped.itertuples()} == {("vortex", "lz4")}
    sizes = rows[(rows["kind"] != "rivals-cpu") & (rows["status"] == "ok")]
    assert (sizes["size_bytes"] > 0).all() and (sizes["records"] > 0).all()
    times = rows[(rows["kind"] == "rivals-cpu") & (rows["status"] == "ok")]
    found = {(row.format, row.arm, row.operation) for row in times.itertuples()}
    arms = [(name, way) for name in ("v2", "columnar") for way in ("each", "together")]
    arms += [("arrow-ipc", "each"), ("avro-best", "each"), ("v2", "aa")]
    wanted = {(*arm, operation) for arm in arms for operation in RIVAL_OPERATIONS}
    assert found == wanted | {("avro-best", "search", "encode")}
    assert times["library"].notna().equals(times["format"].isin(NAMES))
    assert len(base_pairs(run.table)) == len(RIVAL_OPERATIONS)


def test_a_panic_is_a_row_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rivals", lambda: {"parquet": PanickingParquet()})
    rows = {row["format"]: row for row in measure_cell(rival_cell())}
    assert rows["v2"]["status"] == "ok" and rows["parquet"]["status"] == "error"
    assert rows["parquet"]["error"].endswith("parquet: RivalFailed: PanicException: index out of bounds")
    times = measure_cell(rival_cell("rivals-cpu", formats=("parquet", "v2")))
    failed = [(row["format"], row["operation"], row["arm"]) for row in times if row["status"] == "error"]
    assert failed == [("parquet", operation, "each") for operation in RIVAL_OPERATIONS]
    assert sum(row["status"] == "ok" for row in times) == 3 * len(RIVAL_OPERATIONS)
    assert table(times).num_rows == len(times)


class Aborts(ArrowIpc):
    """A library that ends its process, as Arrow and Vortex do for damaged containers."""

    name = "parquet"

    def decode(self, container: bytes) -> Any:
        os.abort()


ENDED = "parquet: the library ended its process: signal 6"


@pytest.mark.slow
def test_a_library_that_ends_its_process_is_a_row_with_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"parquet": Aborts(), "arrow-ipc": ArrowIpc()}
    monkeypatch.setattr(module, "rivals", lambda: found)
    rows = {row["format"]: row for row in measure_cell(rival_cell(formats=("v2", "parquet", "arrow-ipc")))}
    assert (rows["parquet"]["status"], rows["parquet"]["arm"]) == ("error", "documented")
    assert rows["parquet"]["error"].endswith(ENDED)
    assert rows["v2"]["status"] == rows["arrow-ipc"]["status"] == "ok"
    times = measure_cell(rival_cell("rivals-cpu", formats=("parquet", "arrow-ipc", "v2")))
    assert {(row["format"], row["operation"], row["status"]) for row in times} == {
        (name, operation, "error" if name == "parquet" else "ok")
        for name in ("parquet", "arrow-ipc", "v2")
        for operation in RIVAL_OPERATIONS
    }
    assert all("signal 6" in row["error"] for row in times if row["format"] == "parquet")
    assert table(times).num_rows == len(times)


@pytest.mark.parametrize("kind", ["rivals", "rivals-cpu"])
def test_codec_and_level_are_those_of_the_library(kind: str) -> None:
    names = ("v2", "parquet", "avro-best", "vortex")
    rows = table(measure_cell(rival_cell(kind, formats=names))).to_pylist()
    found = {(row["format"], row["codec_version"], row["library_level"]) for row in rows}
    ours = CODECS["zstd"].version
    assert found == {("v2", ours, None), ("parquet", None, 3), ("avro-best", ours, 3), ("vortex", None, None)}
    assert {row["level"] for row in rows} == {3}  # the cell's


@pytest.mark.parametrize("kind", ["rivals", "rivals-cpu"])
def test_a_missing_library_is_a_skipped_row(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(module, "rivals", dict)
    monkeypatch.setattr(module, "missing", lambda: {"parquet": "ModuleNotFoundError: No module named 'x'"})
    rows = [row for row in measure_cell(rival_cell(kind)) if row["format"] == "parquet"]
    assert {(row["status"], row["error"]) for row in rows} == {("skipped", "ModuleNotFoundError: No module named 'x'")}
    assert len(rows) == (1 if kind == "rivals" else len(RIVAL_OPERATIONS))


def test_a_note_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "missing", lambda: {"vortex": "no module", "avro": "no module"})
    note = KINDS["rivals"].note([rival_cell(formats=("v2", "vortex", "parquet")), rival_cell(formats=("vortex",))])
    assert note and note.startswith("not installed: vortex (")
    assert note.endswith("pip install 'kfbench[rivals]'")
    assert KINDS["rivals"].note([rival_cell(formats=("v2", "parquet"))]) is None


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_without_a_library_says_so_and_has_its_rows(tmp_path: Path) -> None:
    """In a process of its own, in which Vortex cannot be imported."""
    (tmp_path / "vortex").mkdir()
    (tmp_path / "vortex" / "__init__.py").write_text("raise ImportError('no Vortex here')")
    (tmp_path / "few.toml").write_text(SWEEP.partition('[[grid]]\nname = "times"')[0])
    command = [sys.executable, "-m", "kfbench", "sweep", str(tmp_path / "few.toml"), "--out", str(tmp_path / "out")]
    paths = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": paths})
    assert "not installed: vortex" in done.stderr and "pip install" in done.stderr
    rows = open_run(Path(done.stdout.strip())).measurements()
    vortex = rows[rows["format"] == "vortex"]
    assert len(vortex) == 8 and set(vortex["status"]) == {"skipped"}
    assert vortex["error"].str.contains("no Vortex here").all()


def test_the_shipped_sweep_has_every_arm_and_workload() -> None:
    cells = load_profile("rivals").cells
    sizes = [cell for cell in cells if cell.kind == "rivals"]
    assert len(sizes) == (19 * 11 - 3) * 3  # batches of large-payload above 16 MiB are left out
    assert {cell.formats for cell in sizes} == {("v2", "columnar", *NAMES)}
    assert {cell.codec for cell in sizes} == {"none", "lz4", "zstd"} and rivals().keys() <= {*NAMES}
    for batch_size in (1, 2, 5, 10, 20):
        found = [cell for cell in sizes if cell.axes.get("batch_size") == batch_size]
        wanted = [cell for cell in found if cell.records >= 100 * batch_size]
        assert all(cell.batches >= 100 for cell in wanted) and len(wanted) > 0.6 * len(found)
