"""The runner: cells as Spark tasks, on this machine's cores or on a cluster, the same code for both.

Recipes travel, not data: a cell's seed comes from its axes, so that partitioning, retries and the master cannot change
a result. The driver stores the rows of each task as they come, in whole or not at all. Bytes are counted on all cores;
CPU is then measured by one task at a time, with nothing beside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from rich.console import Console

from kfbench.measure.environment import environment
from kfbench.measure.schema import SCHEMA
from kfbench.store import RunWriter, create_run
from kfbench.sweep.cell import estimate_s, measure_recipes
from kfbench.sweep.compiling import compilations
from kfbench.sweep.grid import Cell, Profile
from kfbench.sweep.progress import counting
from kfbench.sweep.spark.session import retrying, session, versions
from kfbench.sweep.spark.tasks import RESULTS, called, done

TASK_S: Final = 3.0  # long enough to hide the 0.2 s of planning, short enough to keep all cores busy to the end
ALONE_TASK_S: Final = 8.0  # one at a time nothing hides the planning
COMPILING_S: Final = 30.0  # about what it takes at worst: a sweep that is shorter compiles what it meets


def run_sweep(
    profile: Profile, out: Path, master: str | None = None, command: str = "", console: Console | None = None
) -> Path:
    """Measure every cell of the profile into a new run under OUT/runs/; the path of the finished run.

    master: a Spark master; None: all cores of this machine. command: what the user typed, for the manifest. Progress
    goes to the console when it is a terminal. How many rows are errors is in the manifest's counts. Raises MissingTool,
    RunError, SweepFailed.
    """
    console = console or Console(stderr=True)
    asked = retrying(master or "local[*]")
    with session(asked) as spark:
        writer = create_run(out, _facts(profile, asked, command, versions(spark)))
        counts: dict[str, int] = {"cells": len(profile.cells), "ok": 0, "skipped": 0, "error": 0}
        hosts: set[str] = set()
        cores = int(spark.sparkContext.defaultParallelism)
        with counting(console) as progress:
            worth = asked.startswith("local") and sum(map(estimate_s, profile.cells)) > COMPILING_S
            if worth:
                calls = compilations(profile.cells)
                bar = progress.add_task("kernels", total=len(calls), unit="groups", failed="")
                for _ in done(spark, calls, cores, called, RESULTS):
                    progress.update(bar, advance=1)
            for kind, workers in (("bytes", cores), ("cpu", 1), ("prefix", 1), ("broker", 1)):
                cells = [cell for cell in profile.cells if cell.kind == kind]
                tasks = grouped(cells, TASK_S if kind == "bytes" else ALONE_TASK_S)
                bar = progress.add_task(kind, total=sum(map(len, tasks)), unit="cells", failed="0 failed rows")
                for task, rows in done(spark, tasks, workers, measure_recipes, SCHEMA):
                    _store(rows, writer, counts, hosts)
                    progress.update(bar, advance=len(task), failed=f"{counts['error']} failed rows")
    return writer.complete({"counts": counts, "hosts": sorted(hosts)}).path


def grouped(cells: Sequence[Cell], task_s: float = TASK_S) -> list[list[Cell]]:
    """Neighbouring cells together, about task_s of work each; the longest first."""
    tasks: list[list[Cell]] = []
    spent = task_s
    for cell in cells:
        cost = estimate_s(cell)
        if spent + cost > task_s:
            tasks.append([])
            spent = 0.0
        tasks[-1].append(cell)
        spent += cost
    return sorted(tasks, key=lambda task: sum(map(estimate_s, task)), reverse=True)


def _store(rows: pa.Table, writer: RunWriter, counts: dict[str, int], hosts: set[str]) -> None:
    writer.add(rows)
    for each in rows["status"].value_counts().to_pylist():
        counts[each["values"]] += each["counts"]
    hosts.update(rows["host"].unique().to_pylist())


def _facts(profile: Profile, master: str, command: str, spark: dict[str, str]) -> dict[str, Any]:
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
        "command": command,
        "master": master,
        "spark": spark,
        "git_revision": facts["git_revision"],
        "codecs": facts["codecs"],
        "environment": facts,
    }
