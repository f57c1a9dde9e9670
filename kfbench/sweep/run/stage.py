"""Measure one stage, which is all measurements (cells) of one kind. Workers run tasks, and the driver stores rows."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rich.progress import Progress

from kfbench.measure.host_lock import HostLockWait
from kfbench.measure.schema import table
from kfbench.sweep.run.history import History
from kfbench.sweep.run.plan import Stage, Task
from kfbench.sweep.run.task import LEAST_LIMIT_S, PATIENCE_S, Measured, failed_rows, measure_task
from kfbench.sweep.spark.executors import Call
from kfbench.sweep.spark.tasks import Lost

AHEAD: Final = 1  # the number of tasks that Spark plans while all cores are busy

# Runs calls, at most the given number at the same time. Yields each task with its result when the task finishes.
Attempt = Callable[[Sequence[Call[Task, Measured]], int], Iterator[tuple[Task, Measured | Lost]]]


@dataclass(kw_only=True)
class _Clock:
    """The times of a stage so far, in seconds. busy_s: measuring; waited_s: waiting for the host lock."""

    began_s: float
    busy_s: float = 0.0
    waited_s: float = 0.0
    cells: int = 0


def measure_stage(
    stage: Stage, slots: int, attempt: Attempt, history: History, progress: Progress, lock_wait: HostLockWait
) -> None:
    """Measure the stage and store its rows. Also store the times of the stage, even if it is interrupted.

    If a task is lost (its worker ended in every attempt), its cells are tried again as separate tasks. A
    cell that is lost again gets an error row. A task that waits too long for the host lock returns its remaining cells.
    They are tried again.

    Args:
        slots: the number of tasks that run at the same time.
        attempt: runs the calls (see Attempt).
        lock_wait: shows who holds the host lock, and ends the sweep after a long wait.

    Raises RunError, and the errors of `attempt` and `lock_wait`.
    """
    bar = progress.add_task(stage.kind, total=stage.cells, unit="cells", failed="0 failed rows")
    measure = partial(measure_task, least_limit_s=LEAST_LIMIT_S, patience_s=PATIENCE_S)
    clock = _Clock(began_s=time.monotonic())
    try:
        history.add_rows(table(row for cell, why in stage.skipped for row in failed_rows(cell, "skipped", why)))
        tasks: Sequence[Task] = stage.tasks
        while tasks:
            again: list[Task] = []
            for task, result in attempt(
                [(measure, task) for task in tasks], slots + AHEAD if stage.parallel else slots
            ):
                left = _store(task, result, history, clock)
                if isinstance(result, Measured):
                    lock_wait.note(result.refused, has_measured=result.has_rows, waited_s=result.waited_s)
                again += left
                measured = len(task) - sum(map(len, left))
                clock.cells += measured
                progress.update(bar, advance=measured, failed=f"{history.failed_rows} failed rows")
            tasks = again
    finally:
        history.add_stage(_stage_facts(stage, slots, clock))


def _store(task: Task, result: Measured | Lost, history: History, clock: _Clock) -> list[Task]:
    """Store the rows of a task, which finished or was lost. Return the tasks (groups of cells) to try again."""
    if isinstance(result, Measured):
        clock.busy_s += result.busy_s
        clock.waited_s += result.waited_s
        history.add_rows(result.rows)
        history.add_rows(result.passing, passing=True)
        return [result.left] if result.left else []
    if len(task) > 1:
        return [(cell,) for cell in task]
    error = f"{task[0].title}: no worker survived it: {result.reason}"
    history.add_rows(table(failed_rows(task[0], "error", error)), passing=True)
    return []


def _stage_facts(stage: Stage, slots: int, clock: _Clock) -> dict[str, object]:
    wall_s = time.monotonic() - clock.began_s
    return {
        "kind": stage.kind,
        "cells": clock.cells,
        "tasks": len(stage.tasks),
        "slots": slots,
        "wall_s": round(wall_s, 3),
        "busy_s": round(clock.busy_s, 3),
        "waited_s": round(clock.waited_s, 3),
        "overhead_share": round(max(0.0, 1 - (clock.busy_s + clock.waited_s) / (wall_s * slots)), 4),
    }
