"""The plan of a sweep: each cell is in one task, and tasks take similar times.

Cells have a time limit. Interrupted runs continue.
"""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kfbench.measure.cell import Cell
from kfbench.measure.kinds import KINDS, cell_key, estimate_s
from kfbench.measure.schema import SCHEMA, table
from kfbench.store import open_run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run import plan
from kfbench.sweep.run.plan import (
    ALONE_TASK_S,
    CELL_BUDGET_S,
    START_S,
    TASK_S,
    cells_left,
    pack_tasks,
    plan_stages,
    task_s,
)
from kfbench.sweep.run.task import failed_rows, measure_cell
from tests.sweep.cells import CELLS_OF_EVERY_KIND, a_cell, model_cell

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cells() -> tuple[Cell, ...]:
    return load_profile("default").cells


def test_every_cell_is_in_one_task_of_the_stage_of_its_kind(cells: tuple[Cell, ...]) -> None:
    stages = plan_stages(cells)
    kinds = {cell.kind for cell in cells}
    assert "floor" in kinds  # floors are measured in the bytes stage
    assert [stage.kind for stage in stages] == sorted(
        kinds - {"floor"}, key=lambda kind: (KINDS[kind].is_timed, [*KINDS].index(kind))
    )
    for stage in stages:
        in_tasks = [cell_key(cell) for task in stage.tasks for cell in task]
        of = {stage.kind, "floor"} if stage.kind == "bytes" else {stage.kind}
        assert sorted(map(repr, in_tasks)) == sorted(repr(cell_key(cell)) for cell in cells if cell.kind in of)
        assert not stage.split and not stage.skipped and stage.cells == len(in_tasks)


def test_tasks_take_seconds_and_the_longest_come_first(cells: tuple[Cell, ...]) -> None:
    for stage in plan_stages(cells):
        most_s = TASK_S if stage.parallel else ALONE_TASK_S
        costs = [task_s(task) for task in stage.tasks]
        assert costs == sorted(costs, reverse=True)
        assert all(cost <= most_s or len(task) == 1 for cost, task in zip(costs, stage.tasks, strict=True))
        assert sum(costs) / len(costs) > 1 or len(costs) == 1
    assert pack_tasks([], TASK_S) == ()


def test_little_work_is_shared_among_all_cores() -> None:
    cells = [a_cell(cell_id=f"{i}", records=300_000) for i in range(64)]
    assert 1 < sum(map(estimate_s, cells)) < 4 * plan.TASK_S
    few, many = (plan_stages(cells, cores=cores)[0].tasks for cores in (1, 8))
    assert 4 <= len(few) < len(many) and all(task_s(task) <= plan.LEAST_TASK_S for task in many)
    assert len(plan_stages(cells[:1], cores=8)[0].tasks) == 1


@pytest.mark.slow
def test_stages_take_about_what_is_estimated(tmp_path: Path) -> None:
    """Estimates are within a factor of 1.5 of the busy seconds in a published run.

    Look-ups may differ by 2, because they waited for memory there.
    """
    run = open_run(ROOT / "reports" / "2026-11-24.1")
    path = tmp_path / "then.toml"
    path.write_text(run.manifest["profile_text"])
    estimated = {stage.kind: sum(map(task_s, stage.tasks)) for stage in plan_stages(load_profile(path).cells)}
    took = {stage["kind"]: stage["busy_s"] for stage in run.manifest["stages"]}
    assert estimated.keys() == took.keys()
    assert 1 / 1.5 < sum(estimated.values()) / sum(took.values()) < 1.5
    for kind, seconds in estimated.items():
        factor = 2 if kind == "lookup" else 1.5
        assert 1 / factor < seconds / took[kind] < factor, (kind, seconds)


def test_cells_that_share_records_stay_together(cells: tuple[Cell, ...]) -> None:
    """A worker caches the last records that it generated. So cells with equal records should be in one task."""
    (stage, *_) = plan_stages(cells)
    of: dict[object, list[int]] = {}
    for number, task in enumerate(stage.tasks):
        for cell in task:
            of.setdefault((cell.cell_id, cell.records), []).append(number)
    broken = [numbers for numbers in of.values() if len(set(numbers)) > 1]
    assert len(broken) < 0.1 * len(of)


def test_stages_run_on_all_cores_or_a_task_at_a_time() -> None:
    many = [a_cell(cell_id=f"{i}", records=3_000_000) for i in range(8)]
    (stage,) = plan_stages(many)
    assert stage.seconds(4) == pytest.approx(stage.seconds(1) / 4) == pytest.approx(2 * estimate_s(many[0]))
    (stage,) = plan_stages([a_cell("cpu", cell_id=f"{i}") for i in range(8)])
    assert stage.seconds(4) == stage.seconds(1)


def test_a_cell_above_the_budget_is_split_by_format_or_skipped() -> None:
    cell = a_cell(records=1_000_000, grids={"a": ("v0", "v2"), "b": ("v3", "v2")})
    assert plan_stages([cell], estimate_s(cell))[0].split == ()
    (stage,) = plan_stages([cell], 0.5 * estimate_s(cell))
    parts = [part for task in stage.tasks for part in task]
    assert stage.split == (cell,) and stage.skipped == ()
    assert sorted((part.formats, dict(part.grids)) for part in parts) == [
        (("v0",), {"a": ("v0",)}), (("v2",), {"a": ("v2",), "b": ("v2",)}), (("v3",), {"b": ("v3",)}),
    ]  # fmt: skip
    (stage,) = plan_stages([cell, a_cell("cpu")], 1e-6)[:1]
    assert stage.tasks == () and [part.formats for part, _ in stage.skipped] == [("v0",), ("v2",), ("v3",)]
    assert f"{estimate_s(parts[0]):,.1f} s" in stage.skipped[0][1] and "1e-06 s" in stage.skipped[0][1]
    (_, alone) = plan_stages([cell, a_cell("cpu")], 1e-3)
    assert [(part.kind, part.formats) for part, _ in alone.skipped] == [("cpu", ("v0", "v2", "v3"))]


def test_what_is_there_is_not_measured_again() -> None:
    cells = tuple(CELLS_OF_EVERY_KIND)
    assert cells_left(cells, SCHEMA.empty_table()) == cells
    rows = [
        failed_rows(cell, "skipped", "valgrind takes long") if cell.kind == "instructions" else measure_cell(cell)
        for cell in cells
    ]
    for i, cell in enumerate(cells):
        found = table([row for j, of_other in enumerate(rows) if j != i for row in of_other])
        assert cells_left(cells, found) == (cell,)
        assert cells_left(cells, table(failed_rows(cell, "skipped", "no time"))) == tuple(
            c for c in cells if c is not cell
        )


def test_of_a_cell_that_was_split_the_other_formats_are_left() -> None:
    cell = a_cell(grids={"a": ("v0", "v2"), "b": ("v3", "v2")})
    found = table(measure_cell(cell.only({"a": ("v2",), "b": ("v2",)})))
    (rest,) = cells_left([cell], found)
    assert (rest.formats, dict(rest.grids)) == (("v0", "v3"), {"a": ("v0",), "b": ("v3",)})
    assert cells_left([replace(cell, codec="lz4")], found) == (replace(cell, codec="lz4"),)


def test_the_command_line_says_the_same_budget() -> None:
    from inspect import signature

    from kfbench.cli.sweeps import run, sweep

    for command in (run, sweep):
        assert signature(command).parameters["cell_budget_s"].default == CELL_BUDGET_S


# Estimates


def test_estimates_grow_with_the_work() -> None:
    gzip: dict[str, Any] = {"path": "append", "codec": "gzip", "level": 6}
    rising = [
        [a_cell(records=100), a_cell(records=100_000), a_cell(records=100_000, codec="zstd", level=19)],
        [a_cell("broker", records=100, **gzip), a_cell("broker", records=10_000, **gzip)],
        [model_cell(0, 10**6), model_cell(0, 10**7)],
    ]
    for cells in rising:
        seconds = [0.0, *map(estimate_s, cells)]
        assert all(less < more for less, more in pairwise(seconds))
    assert estimate_s(model_cell(0, 10**6)) < estimate_s(model_cell(0, 10**7)) / 3
    assert estimate_s(a_cell("cpu", rounds=10, sample_us=1_000)) > 10 * 1e-3 * 8
    assert estimate_s(a_cell("broker", path="append", rounds=1_000, sample_us=1_000)) > 4
    assert 0 < estimate_s(a_cell(axes={"value_bytes": -1, "key_bytes": -1})) < 1


# Seconds in the cells of these blocks, in a run of 2026-11-25 on two cores of an AMD EPYC.
MEASURED_S = 200
GRIDS = ["dictionary-cpu", "dictionary-lines-cpu", "dictionary-live"]


def test_dictionary_cells_take_about_as_long_as_they_took() -> None:
    cells = load_profile("dictionary").cells
    timed = [cell for cell in cells if cell.kind == "dictionary-cpu" and not cell.grids.keys().isdisjoint(GRIDS)]
    assert MEASURED_S / 1.2 < sum(map(estimate_s, timed)) < 1.2 * MEASURED_S
    stages = plan_stages(cells, cores=2)
    assert START_S + 60 + sum(stage.seconds(2) for stage in stages) < 12 * 60  # 60: compiling the kernels
