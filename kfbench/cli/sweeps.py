"""The commands that measure a profile (run, sweep), pack an archive for a cluster (pack), or read stored runs (report,
compare).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kfbench.cli.app import SWEEPS, app
from kfbench.cli.options import (
    REPORTS,
    Archive,
    AsJson,
    Profile,
    ReportOut,
    check_archive,
    existing,
    with_option_groups,
)
from kfbench.cli.output import busy, complain, print_answer, print_json, print_result, table_of, track_items
from kfbench.comparison import THRESHOLD
from kfbench.errors import InvalidConfig
from kfbench.text import count_words

if TYPE_CHECKING:
    from kfbench.sweep.definition.profile import Profile as LoadedProfile
    from kfbench.sweep.run.plan import Stage


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of commands that measure a profile."""

    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master; default: all cores of this machine.")
    ] = None
    archive: Archive = None
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="COLUMN=VALUE[,...]",
            help="Measure only matching cells. Other signs: != < <= > >=; names may have *. Repeat it for more "
            "conditions. Columns: grid, kind, workload, codec, level, path, to, and axes such as batch_size.",
        ),
    ] = None
    workloads: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="Measure this named workload in place of the profile's workloads. Of the axes, only batch_size stays. "
            "Repeat it for more workloads.",
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Continue this run of the same sweep instead of starting a new one."),
    ] = None
    cell_budget_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="A cell that would take longer is split by format or skipped.")
    ] = 120.0
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and how long it would take; measure nothing.")
    ] = False
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: JSON instead of text.")] = False

    def check(self) -> None:
        """Raise BadParameter for invalid values and contradicting options, KfbenchError for a missing archive."""
        check_archive(self.archive, self.master)
        if self.as_json and not self.dry_run:
            raise typer.BadParameter("only with --dry-run", param_hint="--json")
        if not self.cell_budget_s > 0:
            raise typer.BadParameter(f"{self.cell_budget_s} is not above 0", param_hint="--cell-budget-s")


@app.command(rich_help_panel=SWEEPS)
@with_option_groups
def run(profile: Profile, out: ReportOut = None, *, options: SweepOptions) -> None:
    """Measure a profile and write its report; print the path of the report."""
    from kfbench.report.publish import place_of, publish

    path = _measure_profile(profile, out or REPORTS, options)
    with busy("rendering", always=True):
        published = publish(path, out or place_of(path, REPORTS))
    print_result(published)
    _fail_on_error_rows(path)


@app.command(rich_help_panel=SWEEPS)
@with_option_groups
def sweep(
    profile: Profile,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Runs go to DIR/runs.")] = REPORTS,
    *,
    options: SweepOptions,
) -> None:
    """Measure bytes and CPU of every cell of a profile; print the path of the stored run."""
    path = _measure_profile(profile, out, options)
    print_result(path)
    _fail_on_error_rows(path)


@app.command(rich_help_panel=SWEEPS)
def pack(
    file: Annotated[Path, typer.Argument(metavar="FILE.tar.gz", help="The archive; replaced if it exists.")],
) -> None:
    """Write an archive of Python, packages and kfbench for a cluster's executors (see --archive)."""
    from kfbench.sweep.host.packing import pack

    print_result(pack(file, track_items).to_text())


@app.command(rich_help_panel=SWEEPS)
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run or of a report.")],
    out: ReportOut = None,
) -> None:
    """Write the report of a stored run, with tables and figures; print its path."""
    from kfbench.report.publish import place_of, publish

    existing(run)
    with busy("rendering"):
        published = publish(run, out or place_of(run, REPORTS))
    print_result(published)


@app.command(rich_help_panel=SWEEPS)
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="The reference: a finished run or a report.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run or report that may have regressed.")],
    threshold: Annotated[
        float, typer.Option(metavar="SHARE", help="The allowed growth of a CPU ratio; 0.03 is 3 %.")
    ] = THRESHOLD,
    as_json: AsJson = False,
) -> None:
    """Compare the bytes of two runs exactly and their CPU by interval; status 3 if the second one regressed."""
    if not 0 < threshold < 1:
        raise typer.BadParameter(f"{threshold:g} is not between 0 and 1", param_hint="--threshold")

    from kfbench.comparison.compare import compare
    from kfbench.comparison.text import comparison_text

    with busy("comparing"):
        comparison = compare(existing(run_a), existing(run_b), threshold)
    print_answer(as_json, comparison.to_dict, lambda: comparison_text(comparison))
    if comparison.is_regression:
        raise typer.Exit(3)


def _measure_profile(profile: str, out: Path, options: SweepOptions) -> Path:
    """Measure a profile and return the path of the stored run. With --dry-run, print the plan and exit instead."""
    from kfbench.sweep.definition.filter import filter_profile
    from kfbench.sweep.definition.profile import load_profile

    options.check()
    with busy("reading the sweep"):
        loaded = load_profile(profile, options.workloads or ())  # errors in the sweep appear before anything starts
    if options.filters:
        try:
            loaded = filter_profile(loaded, options.filters)
        except InvalidConfig as error:
            raise typer.BadParameter(str(error), param_hint="--filter") from None

    from kfbench.measure.environment import published_command
    from kfbench.sweep.run.runner import RunOptions, notes, plan_sweep, run_sweep

    if options.dry_run:
        for note in notes(loaded):
            complain(note)
        _print_plan(loaded, plan_sweep(loaded, options.cell_budget_s, options.resume), options.as_json)
        raise typer.Exit
    run_options = RunOptions(
        master=options.master,
        command=published_command(["kfbench", *sys.argv[1:]]),
        budget_s=options.cell_budget_s,
        resume=options.resume,
        archive=options.archive,
    )
    return run_sweep(loaded, out, run_options)


def _print_plan(profile: "LoadedProfile", stages: "Sequence[Stage]", as_json: bool) -> None:
    from kfbench.measure.container import cores
    from kfbench.measure.kinds.base import ESTIMATED_FROM, ESTIMATED_ON
    from kfbench.sweep.host.compiling import COMPILING_S, are_compiled, compilations
    from kfbench.sweep.run.plan import START_S

    core_count = cores()
    planned = [stage.to_dict(core_count) for stage in stages]
    compiling_s = 0.0 if are_compiled(compilations(profile.cells)) else COMPILING_S
    stages_s = sum(each["here_s"] for each in planned)
    total_s = START_S + compiling_s + stages_s
    if as_json:
        print_json(
            {
                "cores": core_count,
                "start_s": START_S,
                "compiling_s": compiling_s,
                "total_s": round(total_s, 1),
                "estimated_from": ESTIMATED_FROM,
                "stages": planned,
            }
        )
        return
    if not planned:
        print_result("nothing is left to measure")
        return
    parts = [f"{START_S:,.0f} s until Spark has started", f"{stages_s:,.0f} s of stages"]
    if compiling_s:
        parts.insert(1, f"{compiling_s:,.0f} s to compile kernels, once for this code")
    cell_words, core_words = (
        count_words(sum(each["cells"] for each in planned), "cell"),
        count_words(core_count, "core"),
    )
    notes = [
        f"{cell_words}, about {total_s:,.0f} s on {core_words}: {', '.join(parts)}",
        f"estimated from the times of cells in {ESTIMATED_FROM}, on {ESTIMATED_ON}",
        *(f"split by format: {title}" for each in planned for title in each["split"]),
        *(f"skipped: {cell['cell']}: {cell['reason']}" for each in planned for cell in each["skipped"]),
    ]
    rows = [
        {
            "stage": stage["kind"],
            "cells": stage["cells"],
            "tasks": stage["tasks"],
            "alone (s)": stage["alone_s"],
            "here (s)": stage["here_s"],
            "longest task (s)": stage["longest_task_s"],
            "split by format": len(stage["split"]),
            "skipped": len(stage["skipped"]),
        }
        for stage in planned
    ]
    print_result(table_of("plan", rows, notes).to_text())


def _fail_on_error_rows(run: Path) -> None:
    """Exit with status 3 if the run has rows with errors instead of numbers."""
    from kfbench.store import open_run

    if errors := open_run(run).manifest["counts"]["error"]:
        complain(f"{run}: {count_words(errors, 'row')} with errors instead of numbers: see the column `error`")
        raise typer.Exit(3)
