"""Commands that read stored runs: report, compare."""

from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.options import REPORTS, AsJson, ReportOut, existing
from kfbench.cli.output import busy, print_json, print_result


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run, or of a report.")],
    out: ReportOut = None,
) -> None:
    """Publish a stored run as tables and figures; print the path of the report."""
    from kfbench.report.publish import place_of, publish

    existing(run)
    with busy("rendering"):
        published = publish(run, out or place_of(run, REPORTS))
    print_result(published)


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A finished run or a report: the reference.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another: the one that may have regressed.")],
    threshold: Annotated[
        float, typer.Option(metavar="SHARE", help="By how much a CPU ratio may grow; .03 is 3 %.")
    ] = 0.03,
    as_json: AsJson = False,
) -> None:
    """Compare two runs: bytes exactly, CPU by interval; status 3 where the second regressed."""
    if not 0 < threshold < 1:
        raise typer.BadParameter(f"{threshold:g} does not lie between 0 and 1", param_hint="--threshold")

    from kfbench.comparison.compare import compare

    with busy("comparing"):
        comparison = compare(existing(run_a), existing(run_b), threshold)
    if as_json:
        print_json(comparison.to_dict())
    else:
        from kfbench.comparison.text import comparison_text

        print_result(comparison_text(comparison))
    if comparison.is_regression:
        raise typer.Exit(3)
