"""A task runs cells one after another. It handles errors of a busy host, time limits and the host lock."""

import errno
import os
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure import host_lock, instructions
from kfbench.measure.cell import Cell
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.kinds import instructions as instruction_kind
from kfbench.measure.schema import SCHEMA
from kfbench.research.rivals import kinds as rival_kinds
from kfbench.sweep.run import task as task_module
from kfbench.sweep.run.task import measure_task
from kfbench.workloads import Sample
from kfbench.workloads.grid import GridPoint
from tests.sweep.cells import CELLS_OF_EVERY_KIND, a_cell, measure_with


def test_a_task_measures_the_cells_that_it_gets() -> None:
    found = measure_task([a_cell(), a_cell(formats=("v1",))])
    assert found.rows.schema.equals(SCHEMA) and found.rows["format"].to_pylist() == ["v0", "v2", "v3", "v1"]
    assert found.busy_s > 0
    assert measure_task([]).rows.equals(SCHEMA.empty_table())


@dataclass(frozen=True, kw_only=True)
class Hanging(GridPoint):
    """A workload that sleeps for 60 s.

    The time limit interrupts it with an exception that `except Exception` does not catch.
    """

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        time.sleep(60)
        return super().generate(records=records, seed=seed, start=start)


def test_a_cell_that_takes_too_long_is_rows_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "LIMIT_ESTIMATES", 0)
    slow = a_cell("cpu", workload=Hanging(), grids={"a": ("v0",), "b": ("v2", "v3")})
    found = measure_task([slow, a_cell()], least_limit_s=0.5)
    failed = found.passing
    assert [(row["grid"], row["format"], row["operation"]) for row in failed.to_pylist()] == [
        (grid, name, operation) for grid, name in (("a", "v0"), ("b", "v2"), ("b", "v3")) for operation in OPERATIONS
    ]
    assert set(failed["error"].to_pylist()) == {
        "cpu cell c0ffee (grid: defaults; none): TookTooLong: it took longer than 0.5 s"
    }
    assert found.rows["status"].to_pylist() == ["ok"] * 3


class Crowded(BatchedFormat):
    """A format that raises a disk-full error.

    The error message has a path of this host, which must not get into rows.
    """

    def encode(self, *args: Any, **options: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/homes/anna/cache")


@pytest.mark.parametrize("cell", CELLS_OF_EVERY_KIND[:-3], ids=lambda cell: f"{cell.kind} {cell.path} {cell.codec}")
def test_an_error_of_a_busy_moment_is_the_whole_cells_and_apart(monkeypatch: pytest.MonkeyPatch, cell: Cell) -> None:
    name = cell.formats[-1]
    broken = Crowded(name=name, magic=FORMATS[name].magic, summary="crowded")
    measure_with(monkeypatch, {name: broken})
    monkeypatch.setattr(instructions, "FORMATS", {**FORMATS, name: broken})
    monkeypatch.setattr(rival_kinds, "call_in_child", lambda call, *args: call(*args))
    monkeypatch.setattr(instructions, "call_under", lambda _, __, counted, names: counted.arms(names))
    monkeypatch.setattr(instruction_kind, "why_not_counted", lambda: None)
    found = measure_task([cell])
    assert (found.rows.num_rows, found.left, set(found.passing["status"].to_pylist())) == (0, (), {"error"})
    assert set(found.passing["format"].to_pylist()) == set(cell.formats)
    assert set(found.passing["error"].to_pylist()) == {f"{cell.title}: OSError: No space left on device"}


def test_cells_that_get_no_turn_are_given_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host_lock, "LOCK", tmp_path / "lock")
    cells = [a_cell(), a_cell("cpu"), a_cell(formats=("v1",))]
    with host_lock.host_lock():
        found = measure_task(cells, patience_s=0.1)
    assert found.rows["kind"].to_pylist() == ["bytes"] * 3 and found.passing.num_rows == 0
    assert (
        found.left == (cells[1], cells[2])
        and isinstance(found.refused, host_lock.HostLockHeld)
        and found.waited_s > 0.1
    )
    again = pickle.loads(pickle.dumps(found))  # pickled, as between Spark's worker and driver
    assert str(again.refused) == str(found.refused) and again.left == found.left
    assert measure_task(found.left).left == ()
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").symlink_to(tmp_path)
    found = measure_task(cells)
    assert found.left == (cells[1], cells[2]) and isinstance(found.refused, host_lock.HostLockUnusable)
