"""Cells of named workloads, and the sweep files that kfbench ships."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.cell import axes_of, workload_label
from kfbench.measure.kinds import KINDS, cell_key, estimate_s
from kfbench.measure.kinds.base import illegal
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition.batch_plan import whole_batches
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.plan import CELL_BUDGET_S
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.grid import GridPoint
from tests.sweep.profiles import HEAD, Load, block


def test_workloads_of_the_catalogue_go_by_name_variant_and_pattern(load: Load) -> None:
    text = 'workloads = ["user-activity", "producer-perf/batch-1?", "producer-perf/batch-1*", "omb-*"]'
    assert [workload_label(cell.workload) for cell in load(block(text)).cells] == [
        "user-activity", "producer-perf/batch-10", "producer-perf/batch-1", "producer-perf/batch-1000",
        "omb-100b", "omb-1kb",
    ]  # fmt: skip
    every = [cell.workload for cell in load(block('workloads = ["*/*"]')).cells]
    assert every == [
        NamedWorkload(name=name, variant=variant) for name, each in CATALOGUE.items() for variant in each.variants
    ]
    by_axis = load(block('workload = "user-activity"\naxes = { variant = ["default", "rate-10"] }')).cells
    by_name = load(block('workloads = ["user-activity", "user-activity/rate-10"]')).cells
    assert by_axis == by_name
    assert by_name[1].title.endswith("(user-activity: variant rate-10; none)")


def test_a_folder_named_like_a_workload_does_not_hide_it(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user-activity").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load(block('workloads = ["user-activity"]')).cells


def test_a_workload_takes_the_place_of_a_profiles_workloads(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        HEAD + "publish = true\n" + block("axes = { batch_size = [1, 10], key_bytes = [16] }", formats='["v1", "v2"]')
    )
    profile = load_profile(sweep, ["service-events"])
    assert [cell.workload for cell in profile.cells] == [
        NamedWorkload(name="service-events", batch_size=batch_size) for batch_size in (1, 10)
    ]
    assert not profile.publish
    (row, *_) = measure_cell(profile.cells[0])
    assert (row["format"], row["status"]) == ("v1", "skipped")  # it has no headers
    with pytest.raises(InvalidConfig, match=r"^--workload: orders\.json: a fingerprint is no workload any more"):
        load_profile(sweep, ["orders.json"])


def test_ids_of_workloads_are_for_ever_too(load: Load) -> None:
    cells = load(block('workloads = ["user-activity", "user-activity/rate-10"]')).cells
    assert [cell.cell_id for cell in cells] == ["8e4f7ecaf5149d03", "b2dc82e835007195"]


def test_a_cell_takes_whole_batches_of_the_workload(load: Load) -> None:
    """A cell has a whole number of batches, at least one.

    It has about `records` records and at most `payload_bytes` bytes of payload.
    """
    text = 'workloads = ["user-activity/rate-10000", "omb-1kb", "cluster-metadata"]\nbytes = { %s }'
    for records, payload_bytes in ((1_000, 1 << 17), (300, 1 << 20)):
        cells = load(block(text % f"records = {records}, payload_bytes = {payload_bytes}")).cells
        for cell in cells:
            sample = cell.workload.generate(records=BLOCK_RECORDS, seed=cell.seed)
            at = sample.bounds.tolist().index(cell.records)  # raises ValueError if the cell ends inside a batch
            assert at == cell.batches >= 1
            cut = cell.workload.generate(records=cell.records, seed=cell.seed).shapes
            assert cut.payload_bytes == cell.payload_bytes
            more = cell.workload.generate(records=int(sample.bounds[at + 1]), seed=cell.seed).shapes
            assert sample.bounds[at - 1] < records
            assert cell.payload_bytes <= payload_bytes or at == 1
            assert cell.records >= records or more.payload_bytes > payload_bytes
    headers = load(block('workloads = ["service-events"]')).cells[0]
    shapes = headers.workload.generate(records=headers.records, seed=headers.seed).shapes
    assert shapes.payload_bytes == headers.payload_bytes and shapes.has_headers


def test_more_records_than_a_block_has(load: Load) -> None:
    text = 'workloads = ["cluster-metadata"]\nbytes = { records = 70000, payload_bytes = 1073741824 }'
    (cell,) = load(block(text)).cells
    assert 70_000 <= cell.records < 70_100


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("service-events", {"v0": "v0 has no headers", "enriched": "enriched has no headers"}),
        ("transactional", {"v1": "v1 has no transactions", "enriched": "enriched has no transactions"}),
        ("compacted-changelog", {"v1": "v1 has no delete horizons"}),
        ("user-activity", {"v0": None, "kip98": None}),  # producer ids are lost, which is counted and allowed
    ],
)
def test_what_a_format_cannot_carry_is_left_out_with_the_reason(name: str, reasons: dict[str, str | None]) -> None:
    sample = CATALOGUE[name].generate(records=2_000, seed=3)
    assert {fmt: illegal(fmt, sample, "none") for fmt in reasons} == reasons
    assert illegal("v2", sample, "none") is illegal("v3", sample, "zstd") is None


@pytest.mark.parametrize("path", ["append", "fetch", "convert"])
def test_a_format_without_broker_paths_has_no_cells_of_them(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = BatchedFormat(name="other", magic=5, summary="declares no `appending`")
    monkeypatch.setattr("kfbench.measure.kinds.base.FORMATS", {**FORMATS, "other": other})
    sample = CATALOGUE["user-activity"].generate(records=200, seed=3)
    assert illegal("other", sample, "none") is illegal("v2", sample, "none", path, to="v3") is None
    assert illegal("other", sample, "none", path) == illegal("v2", sample, "none", path, to="other")
    assert "other" in (illegal("other", sample, "none", path) or "")


def test_columnar_has_one_broker_path() -> None:
    sample = CATALOGUE["user-activity"].generate(records=200, seed=3)
    only_append = "no path for columnar: it is a research format; append is the only one"
    for path in PATHS:
        reason = illegal("columnar", sample, "none", path, to="v2" if PATHS[path].converts else None)
        assert reason == (None if path == "append" else only_append), path
    assert illegal("v2", sample, "none", "convert", to="columnar") == only_append


def test_a_broker_path_begins_with_batches_that_it_takes() -> None:
    """Kafka's `LogValidator` refuses batches with missing offsets, and to convert idempotent batches."""
    sample = CATALOGUE["user-activity"].generate(records=200, seed=3)
    assert "idempotent" in (illegal("v2", sample, "none", "append-convert", to="v1") or "")
    assert illegal("v2", sample, "none", "append-convert", to="v3") is illegal("v2", sample, "none", "append") is None
    offsets = sample.shapes.offsets.copy()
    offsets[1:] += 5
    with_hole = replace(sample, shapes=replace(sample.shapes, offsets=offsets))
    assert "compacted" in (illegal("v2", with_hole, "none", "append") or "")
    assert illegal("v2", with_hole, "none") is None


def test_a_broker_takes_what_clients_send(load: Load) -> None:
    """Broker cells use only batches that clients send. Cells with control batches or compacted records are skipped."""
    settings = "broker = { records = 60, rounds = 3, sample_us = 9 }\n"
    text = (
        'illegal = "skip"\npaths = ["compact"]\nworkloads = ["user-activity", "transactional", "compacted-changelog"]'
    )
    cells = load(block(text, formats='["v2"]', measure='["broker"]'), head=HEAD + settings).cells
    (sent, *_), (control, *_), (kept, *_) = (measure_cell(cell) for cell in cells)
    assert sent["status"] == "ok" and (control["status"], kept["status"]) == ("skipped", "skipped")
    assert control["error"] == kept["error"] and control["error"].startswith("compact ")


def test_the_rows_of_a_workload_say_which_it_is(load: Load) -> None:
    text = 'illegal = "skip"\nbytes = { records = 50 }\nworkloads = ["transactional/single"]'
    (cell,) = load(block(text, formats='["v1", "v2"]')).cells
    v1, v2 = measure_cell(cell)
    assert {(row["workload"], row["variant"]) for row in (v1, v2)} == {("transactional", "single")}
    assert (v1["status"], v1["error"]) == ("skipped", "v1 has no transactions")
    assert (v2["status"], v2["records"], v2["batches"]) == ("ok", cell.records, cell.batches)


def test_whole_batches_of_any_workload() -> None:
    assert whole_batches(GridPoint(batch_size=300), 0, 1_024) == 1_200
    bounds = CATALOGUE["omb-100b"].generate(records=BLOCK_RECORDS, seed=5).bounds
    assert whole_batches(CATALOGUE["omb-100b"], 5, 1_024) == bounds[1] > 1_024


def test_workloads_by_name_in_batches_of_other_sizes(load: Load) -> None:
    """Other batch sizes leave the records the same, because the seed depends only on the workload."""
    names = 'workloads = ["user-activity", "large-payload"]'
    own = load(block(names)).cells
    cells = load(block(f"{names}\naxes = {{ batch_size = [1, 100] }}")).cells
    assert [(cell.workload.name, cell.axes["batch_size"]) for cell in cells] == [
        ("user-activity", 1), ("user-activity", 100), ("large-payload", 1),  # a batch of 100 is too large for a broker
    ]  # fmt: skip
    assert len({cell.cell_id for cell in (*own, *cells)}) == 5
    assert {cell.seed for cell in cells} == {cell.seed for cell in own}
    first, hundred = (cell.workload.generate(records=cell.records, seed=cell.seed) for cell in cells[:2])
    assert set(np.diff(first.bounds)) == {1} and set(np.diff(hundred.bounds)) == {100}
    assert first.records.part(0, 100) == hundred.records.part(0, 100)


@pytest.mark.parametrize(("name", "least", "rounds"), [("smoke", (80, 30), 19), ("default", (2_400, 350), 67)])
def test_the_profiles_that_we_ship(name: str, least: tuple[int, int], rounds: int) -> None:
    profile = load_profile(name)
    kinds = Counter(cell.kind for cell in profile.cells)
    assert kinds["bytes"] >= least[0] and kinds["cpu"] >= least[1] and kinds["prefix"] >= 8
    assert {cell.path for cell in profile.cells if cell.kind == "broker"} == set(PATHS)
    assert len({cell_key(cell) for cell in profile.cells}) == len(profile.cells)
    assert {"v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only"} <= {
        name for cell in profile.cells for name in cell.formats
    }
    assert any(cell.kind == "cpu" and cell.axes.get("value_bytes", 0) >= 10_000 for cell in profile.cells)  # control
    named = {(cell.kind, cell.workload) for cell in profile.cells if isinstance(cell.workload, NamedWorkload)}
    assert len(named) >= 4 + 2
    if name == "smoke":
        others = {"rivals", "rivals-cpu", "instructions"}  # they have profiles of their own
        assert set(kinds) == set(KINDS) - others
    if name == "default":
        assert {("cpu", each) for each in CATALOGUE.values()} <= named
        every = [replace(each, variant=variant) for each in CATALOGUE.values() for variant in each.variants]
        assert {("bytes", each) for each in every} <= named
    for grid in profile.grids:
        assert grid.title and grid.analysis
    assert {cell.rounds for cell in profile.cells if cell.kind == "cpu" and cell.cache == "resident"} == {rounds}


@pytest.mark.slow
@pytest.mark.thorough
def test_the_profiles_for_a_lunch_break_and_for_a_cluster() -> None:
    full, fleet = load_profile("full"), load_profile("fleet")
    kinds = Counter(cell.kind for cell in full.cells)
    assert kinds["bytes"] > 55_000 and kinds["cpu"] > 4_000 and "model" not in kinds
    assert Counter(cell.kind for cell in fleet.cells)["bytes"] > 75_000
    assert {cell_key(cell) for cell in full.cells} < {cell_key(cell) for cell in fleet.cells}
    assert {cell.rounds for cell in fleet.cells if cell.kind == "cpu" and cell.cache == "resident"} == {67}
    assert {cell.rounds for cell in fleet.cells if cell.kind == "broker"} == {30}
    assert {cell.cache for cell in fleet.cells} == {"resident", "cold"}
    assert all(estimate_s(cell) < CELL_BUDGET_S for cell in fleet.cells)
    modelled = Counter[str]()
    for cell in fleet.cells:
        if cell.kind == "model":
            modelled[cell.workload.name] += cell.records
    assert modelled == dict.fromkeys(CATALOGUE, 10**9)
    for profile in (full, fleet):
        assert len({cell_key(cell) for cell in profile.cells}) == len(profile.cells)
        assert all(grid.title and grid.analysis for grid in profile.grids)
    of_grid = [cell.axes for cell in full.cells if isinstance(cell.workload, GridPoint)]
    levels = {axis: {axes[axis] for axes in of_grid} for axis in axes_of(GridPoint())}
    assert levels["batch_size"] == {1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
    assert levels["key_bytes"] == {-1, 0, 8, 16, 36, 63, 64, 100, 512}
    assert levels["value_bytes"] == {-1, 0, 10, 100, 1000, 10000, 102400}
    assert levels["headers"] == {0, 1, 2, 5, 10} and levels["offset_stride"] == {1, 2, 64, 8192}
    assert levels["timestamp_spread_ms"] >= {0, 1, 63, 64, 1000, 8191, 8192, 60000, 3600000, 86400000}
    packed = {(cell.codec, cell.level) for cell in full.cells if cell.kind == "bytes"}
    assert len(packed) == 1 + 3 + 1 + 3 + 4
    seeds = {cell.seed for cell in full.cells if cell.workload == CATALOGUE["user-activity"] and cell.kind == "bytes"}
    assert len(seeds) == 5
