"""Plan a sweep: one stage per kind of cell, divided into tasks of about the same estimated time.

A stage that counts bytes runs its tasks on all cores. A stage that measures time runs one task at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Any, Final

import pyarrow as pa

from kfbench.measure.cell import Cell
from kfbench.measure.kinds import KINDS, cell_key, estimate_s, kind_of, row_key
from kfbench.measure.schema import IDENTITY, stored_rows

TASK_S: Final = 3.0  # long enough to hide Spark's 0.2 s of planning, short enough to keep all cores busy to the end
LEAST_TASK_S: Final = 0.5  # for small sweeps, because the job of a task alone takes 0.1 s
TASKS_PER_CORE: Final = 4
ALONE_TASK_S: Final = 8.0  # longer, because no other task runs while Spark plans a task that runs alone
CELL_BUDGET_S: Final = 120.0
START_S: Final = 9.0  # start of Spark's JVM and its workers, which load the kernels

Task = tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The cells of one kind, grouped into tasks."""

    kind: str
    tasks: tuple[Task, ...]  # the longest first
    split: tuple[Cell, ...] = ()  # cells above the time budget; `tasks` or `skipped` has one cell per format instead
    skipped: tuple[tuple[Cell, str], ...] = ()  # cells that are not measured, each with the reason

    @property
    def parallel(self) -> bool:
        return not KINDS[self.kind].is_timed

    @property
    def cells(self) -> int:
        return sum(map(len, self.tasks))

    def seconds(self, cores: int = 1) -> float:
        """Estimate the seconds until all tasks are done, without overhead.

        Each task runs on the core that is free first. A stage that is not parallel uses one core.
        """
        ends = [0.0] * (cores if self.parallel else 1)
        heapify(ends)
        for task in self.tasks:
            heapreplace(ends, ends[0] + task_s(task))
        return max(ends)

    def to_dict(self, cores: int) -> dict[str, Any]:
        """Return the stage for JSON: numbers of cells and tasks, estimated seconds on 1 core and on `cores` cores."""
        return {
            "kind": self.kind,
            "cells": self.cells,
            "tasks": len(self.tasks),
            "alone_s": round(self.seconds(), 1),
            "here_s": round(self.seconds(cores), 1),
            "longest_task_s": round(max(map(task_s, self.tasks), default=0.0), 1),
            "split": [cell.title for cell in self.split],
            "skipped": [{"cell": cell.title, "reason": reason} for cell, reason in self.skipped],
        }


def plan_stages(cells: Sequence[Cell], budget_s: float = CELL_BUDGET_S, cores: int = 1) -> tuple[Stage, ...]:
    """Group cells into stages. Stages without timing come first. A kind without cells has no stage.

    A kind that rides on another one has no stage, because it would be mostly overhead.

    Tasks of a small sweep are shorter, so that all cores have work.

    Args:
        budget_s: the largest estimated time of a cell. A cell above it is divided into one cell per format, or
            skipped if its kind cannot be divided.
        cores: the number of tasks that run at the same time in a parallel stage.
    """
    stages = []
    for kind in sorted(KINDS.values(), key=lambda kind: kind.is_timed):
        kept: list[Cell] = []
        split: list[Cell] = []
        skipped: list[tuple[Cell, str]] = []
        for cell in cells:
            if (kind_of(cell).rides_on or cell.kind) != kind.name:
                continue
            if estimate_s(cell) <= budget_s:
                kept.append(cell)
                continue
            parts = [cell]
            if kind_of(cell).can_divide:
                parts = [
                    cell.only({grid: (name,) for grid, formats in cell.grids.items() if name in formats})
                    for name in cell.formats
                ]
            if len(parts) > 1:
                split.append(cell)
            for part in parts:
                if (cost := estimate_s(part)) <= budget_s:
                    kept.append(part)
                else:
                    skipped.append((part, f"about {cost:,.1f} s, but the budget of a cell is {budget_s:,g} s"))
        if kept or skipped:
            shared_s = max(LEAST_TASK_S, task_s(kept) / (TASKS_PER_CORE * cores))
            tasks = pack_tasks(kept, ALONE_TASK_S if kind.is_timed else min(TASK_S, shared_s))
            stages.append(Stage(kind=kind.name, tasks=tasks, split=tuple(split), skipped=tuple(skipped)))
    return tuple(stages)


def pack_tasks(cells: Sequence[Cell], most_s: float) -> tuple[Task, ...]:
    """Group cells into tasks of at most `most_s` estimated seconds, and return the longest task first.

    A task has neighbouring cells, because these often use the same records. A cell that is longer than `most_s` is a
    task alone.
    """
    tasks: list[list[Cell]] = []
    spent = most_s
    for cell in cells:
        cost = estimate_s(cell)
        if spent + cost > most_s:
            tasks.append([])
            spent = 0.0
        tasks[-1].append(cell)
        spent += cost
    return tuple(map(tuple, sorted(tasks, key=task_s, reverse=True)))


def task_s(task: Sequence[Cell]) -> float:
    return sum(map(estimate_s, task))


def cells_left(cells: Sequence[Cell], found: pa.Table) -> tuple[Cell, ...]:
    """Return the cells that a resumed run must still measure.

    These are the cells that lack a stored row for one of their [[grid]] blocks and formats.

    A cell that can be divided by format is returned with only its missing formats. Others are measured again in all
    formats.

    found: the rows that the run has stored.
    """
    rows = stored_rows(found.select([*IDENTITY, "records"]))
    stored = {(row_key(row), row.grid, row.format) for row in rows}
    kept = []
    for cell in cells:
        missing = {
            grid: lacking
            for grid, formats in cell.grids.items()
            if (lacking := tuple(name for name in formats if (cell_key(cell), grid, name) not in stored))
        }
        if missing:
            kept.append(cell.only(missing) if kind_of(cell).can_divide else cell)
    return tuple(kept)
