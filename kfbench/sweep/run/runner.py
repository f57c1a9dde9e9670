"""The runner: cells as Spark tasks, on this machine's cores or on a cluster, the same code for both.

Recipes travel, not data: a cell's seed comes from its axes, so that partitioning, retries and the master cannot change
a result. The driver stores the rows of each task as they come, in whole or not at all. Bytes are counted on all cores;
CPU is then measured by one task at a time, with nothing beside it. A task that no worker survives is taken apart, and
the cell that it is because of is a row with its error.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from kfbench import __version__
from kfbench.measure.environment import cores as local_cores
from kfbench.measure.environment import environment, libraries
from kfbench.measure.host_lock import HostLockWait
from kfbench.measure.schema import SCHEMA, table
from kfbench.progress import counting
from kfbench.store import check_place, check_resumable, create_run, resume_run, sound_rows
from kfbench.sweep.definition.grid import Cell, Profile
from kfbench.sweep.host.compiling import COMPILING, compilations, note_compiled
from kfbench.sweep.host.packing import code_digest
from kfbench.sweep.host.prune_cache import prune
from kfbench.sweep.run.cell import failed_rows
from kfbench.sweep.run.history import History, timed_on
from kfbench.sweep.run.plan import CELL_BUDGET_S, Stage, Task, left, planned
from kfbench.sweep.run.published import without_hosts
from kfbench.sweep.run.task import LEAST_LIMIT_S, PATIENCE_S, Measured, measure_task
from kfbench.sweep.spark.executors import Call, Executors
from kfbench.sweep.spark.session import retrying, session, versions
from kfbench.sweep.spark.tasks import Lost, attempted, done

AHEAD: Final = 1  # tasks that Spark has beyond its cores: when a core is free, the next one is planned


Attempt = Callable[[Sequence[Call[Task, Measured]], int], Iterator[tuple[Task, Measured | Lost]]]


def run_sweep(
    profile: Profile,
    out: Path,
    master: str | None = None,
    command: str = "",
    console: Console | None = None,
    *,
    budget_s: float = CELL_BUDGET_S,
    resume: Path | None = None,
    archive: Path | None = None,
) -> Path:
    """Measure every cell of the profile into a new run under OUT/runs/; the path of the finished run.

    master: a Spark master; None: all cores of this machine. command: what the user typed, for the manifest. budget_s:
    what a cell may be estimated to take. resume: a run that this sweep began, to be continued in place of a new one.
    archive: the environment of a cluster's executors (see packing).
    Progress goes to the console: bars on a terminal, else lines. How many rows are errors is in the manifest's counts.
    Raises MissingTool, RunError, SweepFailed.
    """
    console = console or Console(stderr=True)
    if not resume:
        check_place(out)  # before Spark is started for nothing
    asked = retrying(master or "local[*]")
    facts = sweep_facts(profile, asked, command, budget_s)
    with ExitStack() as stack:
        if resume:
            before = check_resumable(resume, facts).get("host_facts", {})  # at once: Spark takes seconds to start
        spark = stack.enter_context(session(asked, archive=archive))
        executors = Executors(spark, asked)
        executors.prepare()
        host = None
        if resume:
            host = timed_on(resume, sound_rows(resume), profile, before, executors.hosts)
            again = {name: facts[name] for name in ("command", "master", "git_revision")}
            again |= {"host": facts["environment"]["host"], "spark": versions(spark)}
            writer = stack.enter_context(resume_run(resume, facts, again))
            for part in writer.damaged:
                say(console, f"{part}: damaged, and set aside; its cells are measured again")
        else:
            writer = stack.enter_context(create_run(out, facts | {"spark": versions(spark)}))
        stack.enter_context(_naming(writer.path, console))
        prune()
        cells = left(profile.cells, writer.found)
        history = History(writer, executors.hosts)
        cores = executors.slots()
        with counting(console, is_spoken=True) as progress:
            calls = compilations(cells)
            if calls and executors.is_cluster:
                bar = progress.add_task(COMPILING, total=cores, unit="slots", failed="")
                executors.prepare(calls)
                progress.update(bar, advance=cores)
            elif calls:
                bar = progress.add_task(COMPILING, total=len(calls), unit="parts", failed="")
                for _ in done(executors, calls, cores):
                    progress.update(bar, advance=1)
                note_compiled(calls)
            lock_wait = HostLockWait(partial(say, console), writer.path)
            for stage in planned(cells, budget_s, cores):
                on = None
                if stage.tasks and not stage.parallel:
                    on = host = host or min(executors.hosts)
                    executors.stay_on(on)
                attempt = partial(attempted, executors, harmless=(measure_task, ()), on=on)
                measure_stage(stage, cores if stage.parallel else 1, attempt, history, progress, lock_wait)
        run = history.complete(len(profile.cells))
    if console.is_terminal:
        told = [f"{each['kind']} {each['wall_s']:.1f} s, engine {each['overhead_share']:.0%}" for each in history.now]
        say(console, "; ".join(told))
    return run.path


@contextmanager
def _naming(run: Path, console: Console) -> Iterator[None]:
    """Who interrupts a sweep is told what to go on with."""
    try:
        yield
    except KeyboardInterrupt:
        say(console, f"this run is kept as far as it came: --resume {run}")
        raise


def plan_sweep(profile: Profile, budget_s: float = CELL_BUDGET_S, resume: Path | None = None) -> tuple[Stage, ...]:
    """What run_sweep would do; nothing is started, and nothing written. Raises RunError for a run that it would
    refuse."""
    found = SCHEMA.empty_table()
    if resume:
        check_resumable(resume, sweep_facts(profile, "", "", budget_s))
        found = sound_rows(resume)
    return planned(left(profile.cells, found), budget_s, local_cores() or 1)


def measure_stage(
    stage: Stage, slots: int, attempt: Attempt, history: History, progress: Progress, lock_wait: HostLockWait
) -> None:
    """Store the rows of the stage's cells, and what it took, also of a stage that is interrupted.

    attempt: runs calls, so many at a time. Raises what it and HostLockWait raise, and RunError.
    """
    bar = progress.add_task(stage.kind, total=stage.cells, unit="cells", failed="0 failed rows")
    measure = partial(measure_task, least_limit_s=LEAST_LIMIT_S, patience_s=PATIENCE_S)
    began, busy_s, waited_s, cells = time.monotonic(), 0.0, 0.0, 0
    try:
        skipped = table(row for cell, reason in stage.skipped for row in failed_rows(cell, "skipped", reason))
        history.add_rows(skipped)
        tasks: Sequence[Task] = stage.tasks
        while tasks:
            again: list[Task] = []
            for task, found in attempt([(measure, task) for task in tasks], slots + AHEAD if stage.parallel else slots):
                if isinstance(found, Measured):
                    busy_s += found.busy_s
                    waited_s += found.waited_s
                    history.add_rows(found.rows)
                    history.add_rows(found.passing, passing=True)
                    again += [found.left] if found.left else []
                    measured = len(task) - len(found.left)
                    lock_wait.note(found.refused, has_measured=found.has_rows, waited_s=found.waited_s)
                elif len(task) > 1:
                    again += [(cell,) for cell in task]
                    measured = 0
                else:
                    history.add_rows(table(_lost_rows(task[0], found)), passing=True)
                    measured = 1
                cells += measured
                progress.update(bar, advance=measured, failed=f"{history.failed_rows} failed rows")
            tasks = again
    finally:
        wall_s = time.monotonic() - began
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


def _lost_rows(cell: Cell, lost: Lost) -> list[dict[str, Any]]:
    return failed_rows(cell, "error", f"{cell.title}: no worker survived it: {lost.reason}")


def say(console: Console, line: str) -> None:
    """To people who wait for a sweep."""
    console.print(f"kfbench: {line}", soft_wrap=True, markup=False, highlight=False)


def sweep_facts(profile: Profile, master: str, command: str, budget_s: float) -> dict[str, Any]:
    """What the manifest of a run says of the sweep that makes it."""
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
        "git_revision": facts["git_revision"],
        "libraries": libraries(facts),
        "codecs": facts["codecs"],
        "environment": facts,
    }
