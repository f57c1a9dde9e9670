"""Run a sweep as Spark tasks, on this machine's cores or on a cluster. The code is the same for both.

The driver sends cells to the workers, not records. The seed of a cell comes from its axes. So
partitioning, retries and the Spark master cannot change a result. The driver stores all rows of a task when the task is
done. Bytes are counted on all cores first. Then CPU is measured by one task at a time, while nothing else runs.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from kfbench import __version__
from kfbench.measure.container import cores as local_cores
from kfbench.measure.environment import environment, libraries, without_hosts
from kfbench.measure.host_lock import HostLockWait
from kfbench.measure.kinds import KINDS
from kfbench.measure.schema import SCHEMA, table
from kfbench.plugins import plugins
from kfbench.progress import counting, say
from kfbench.store import RunWriter, check_place, check_resumable, create_run, resume_run, sound_rows
from kfbench.sweep.definition.profile import Profile
from kfbench.sweep.host.compiling import (
    COMPILING,
    Compilation,
    are_compiled,
    compilations,
    note_compiled,
    why_not_compiled,
)
from kfbench.sweep.host.compiling import Call as Compiling
from kfbench.sweep.host.packing import code_digest
from kfbench.sweep.run.history import RunHistory, timed_on
from kfbench.sweep.run.plan import CELL_BUDGET_S, Stage, Task, cells_left, plan_stages
from kfbench.sweep.run.task import LEAST_LIMIT_S, PATIENCE_S, TaskResult, failed_rows, measure_task
from kfbench.sweep.spark.executors import Call, Executors, Lost, attempt_calls, open_executors
from kfbench.sweep.spark.session import is_cluster, retrying, versions

AHEAD: Final = 1  # the number of tasks that Spark plans while all cores are busy

# Runs calls, at most the given number at the same time. Yields each task with its result when the task finishes.
Attempt = Callable[[Sequence[Call[Task, TaskResult]], int], Iterator[tuple[Task, TaskResult | Lost]]]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `run_sweep`."""

    master: str | None = None  # a Spark master; None: all cores of this machine
    command: str = ""  # the command line of the user, for the manifest
    budget_s: float = CELL_BUDGET_S  # the largest estimated time of a cell in seconds
    resume: Path | None = None  # an interrupted run of the same sweep to continue; None: begin a new run
    archive: Path | None = None  # Python and packages for a cluster's executors (`host.packing` writes this file)


_DEFAULTS: Final = RunOptions()


def run_sweep(profile: Profile, out: Path, options: RunOptions = _DEFAULTS, console: Console | None = None) -> Path:
    """Measure every cell of the profile and store the rows as a run under `out`/runs/. Return the finished run's path.

    Progress goes to the console: bars on a terminal, else lines. A cell that fails does not end the run. The manifest's
    `counts` have the number of error rows. Raises MissingTool, RunError, SweepFailed, HostLockHeld, HostLockUnusable.
    """
    console = console or Console(stderr=True)
    resume, master = options.resume, retrying(options.master or "local[*]")
    facts = sweep_facts(profile, master, options.command, options.budget_s)
    before: Mapping[str, Any] = {}
    if resume:
        before = check_resumable(resume, facts).get("host_facts", {})  # before Spark starts, which takes seconds
    else:
        check_place(out)  # before Spark starts, which takes seconds
    for note in notes(profile):
        say(console, note)
    calls = compilations(cells_left(profile.cells, sound_rows(resume)) if resume else profile.cells)
    if not is_cluster(master) and are_compiled(calls):
        calls = []
    with ExitStack() as stack:
        compilation = None if is_cluster(master) else stack.enter_context(Compilation(calls))
        executors = stack.enter_context(open_executors(master, archive=options.archive))
        facts |= {"spark": versions(executors.spark)}
        host = timed_on(resume, sound_rows(resume), profile, before, executors.hosts) if resume else None
        writer = stack.enter_context(_resumed(resume, facts, console) if resume else create_run(out, facts))
        stack.enter_context(_showing_how_to_resume(writer.path, console))
        cells = cells_left(profile.cells, writer.found)
        history = RunHistory(writer, executors.hosts)
        if cells and calls:
            wait = partial(_compile_on_cluster, executors, calls) if compilation is None else compilation.wait
            failures = wait(console)
            for failure in dict.fromkeys(failures):
                say(console, f"some kernels cannot be compiled: {failure}")
            if compilation and not failures:
                note_compiled(calls)
        with counting(console, is_spoken=True) as progress:
            lock_wait = HostLockWait(partial(say, console), writer.path)
            slots = executors.slots()
            for stage in plan_stages(cells, options.budget_s, slots):
                on = None
                if stage.tasks and not stage.parallel:
                    on = host = host or min(executors.hosts)
                    executors.stay_on(on)
                attempt = partial(attempt_calls, executors, harmless=(measure_task, ()), on=on)
                measure_stage(stage, slots if stage.parallel else 1, attempt, history, progress, lock_wait)
        run = history.complete(len(profile.cells))
    if console.is_terminal:
        times = [
            f"{each['kind']} {each['wall_s']:.1f} s, engine {each['overhead_share']:.0%}"
            for each in history.stages
            if each["session"] == history.session
        ]
        say(console, "; ".join(times))
    return run.path


def measure_stage(
    stage: Stage, slots: int, attempt: Attempt, history: RunHistory, progress: Progress, lock_wait: HostLockWait
) -> None:
    """Measure the stage and store its rows. Also store the times of the stage, even if it is interrupted.

    If a task is lost (its worker ended in every attempt), its cells are tried again as separate tasks. A cell that is
    lost again gets an error row. A task that waits too long for the host lock returns its remaining cells. They are
    tried again.

    Args:
        slots: the number of tasks that run at the same time.
        attempt: runs the calls (see Attempt).
        lock_wait: shows who holds the host lock, and ends the sweep after a long wait.

    Raises RunError, and the errors of `attempt` and `lock_wait`.
    """
    bar = progress.add_task(stage.kind, total=stage.cells, unit="cells", failed="0 failed rows")
    measure = partial(measure_task, least_limit_s=LEAST_LIMIT_S, patience_s=PATIENCE_S)
    began_s = time.monotonic()
    busy_s, waited_s, cells = 0.0, 0.0, 0
    try:
        history.add_rows(table(row for cell, why in stage.skipped for row in failed_rows(cell, "skipped", why)))
        tasks: Sequence[Task] = stage.tasks
        while tasks:
            again: list[Task] = []
            calls = [(measure, task) for task in tasks]
            for task, result in attempt(calls, slots + AHEAD if stage.parallel else slots):
                if isinstance(result, TaskResult):
                    busy_s += result.busy_s
                    waited_s += result.waited_s
                left_over = _store(task, result, history)
                if isinstance(result, TaskResult):
                    lock_wait.note(result.refused, has_measured=result.has_rows, waited_s=result.waited_s)
                again += left_over
                measured = len(task) - sum(map(len, left_over))
                cells += measured
                progress.update(bar, advance=measured, failed=f"{history.failed_rows} failed rows")
            tasks = again
    finally:
        wall_s = time.monotonic() - began_s
        history.add_stage(
            {
                "kind": stage.kind,
                "cells": cells,
                "tasks": len(stage.tasks),
                "slots": slots,
                "wall_s": round(wall_s, 3),
                "busy_s": round(busy_s, 3),
                "waited_s": round(waited_s, 3),
                "overhead_share": round(max(0.0, 1 - (busy_s + waited_s) / (wall_s * slots)), 4),
            }
        )


def _store(task: Task, result: TaskResult | Lost, history: RunHistory) -> list[Task]:
    """Store the rows of a task, which finished or was lost. Return the tasks (groups of cells) to try again."""
    if isinstance(result, TaskResult):
        history.add_rows(result.rows)
        history.add_rows(result.passing, passing=True)
        return [result.left] if result.left else []
    if len(task) > 1:
        return [(cell,) for cell in task]
    error = f"{task[0].title}: no worker survived it: {result.reason}"
    history.add_rows(table(failed_rows(task[0], "error", error)), passing=True)
    return []


def notes(profile: Profile) -> list[str]:
    """Return what the profile's kinds have to say before they are measured, such as what is not installed here."""
    of_kinds = (kind.note([cell for cell in profile.cells if cell.kind == kind.name]) for kind in KINDS.values())
    return list(dict.fromkeys(note for note in of_kinds if note))


def plan_sweep(profile: Profile, budget_s: float = CELL_BUDGET_S, resume: Path | None = None) -> tuple[Stage, ...]:
    """Return the stages that `run_sweep` would measure, without measuring or writing anything.

    resume: an interrupted run to continue. Raises RunError if `run_sweep` would refuse to resume it.
    """
    rows = SCHEMA.empty_table()
    if resume:
        check_resumable(resume, sweep_facts(profile, "", "", budget_s))
        rows = sound_rows(resume)
    return plan_stages(cells_left(profile.cells, rows), budget_s, local_cores())


def sweep_facts(profile: Profile, master: str, command: str, budget_s: float) -> dict[str, Any]:
    """Return the facts of a sweep for the manifest of its run: the profile, the command, versions and this host."""
    facts = environment()
    return {
        "profile": profile.name,
        "title": profile.title,
        "analysis": profile.analysis,
        "grids": [
            {"name": grid.name, "title": grid.title, "analysis": grid.analysis, "measure": list(grid.measure)}
            for grid in profile.grids
        ],
        "profile_text": profile.text,
        "seed": profile.seed,
        "filter": list(profile.filter),
        "publish": profile.publish,
        "cell_budget_s": budget_s,
        "command": command,
        "master": without_hosts(master),
        "kfbench": __version__,
        "code": code_digest(),
        "plugins": [plugin._asdict() for plugin in plugins()],
        "git_revision": facts["git_revision"],
        "libraries": libraries(facts),
        "codecs": facts["codecs"],
        "environment": facts,
    }


def _resumed(run: Path, facts: Mapping[str, Any], console: Console) -> RunWriter:
    session_facts = {name: facts[name] for name in ("command", "master", "git_revision", "spark")}
    writer = resume_run(run, facts, session_facts | {"host": facts["environment"]["host"]})
    for part in writer.damaged:
        say(console, f"{part}: damaged and renamed; its cells are measured again")
    return writer


@contextmanager
def _showing_how_to_resume(run: Path, console: Console) -> Iterator[None]:
    """Print the option that resumes the run if the user interrupts the `with` body (Ctrl-C)."""
    try:
        yield
    except KeyboardInterrupt:
        say(console, f"the rows so far are stored; to continue this run: --resume {run}")
        raise


def _compile_on_cluster(executors: Executors, calls: Sequence[Compiling], console: Console) -> list[str]:
    """Compile kernels on each host. Return the errors as text."""
    slots = executors.slots()
    with counting(console, is_spoken=True) as progress:
        bar = progress.add_task(COMPILING, total=slots, unit="slots", failed="")
        failures = [each for each in executors.prepare([(why_not_compiled, call) for call in calls]) if each]
        progress.update(bar, advance=slots)
    return failures
