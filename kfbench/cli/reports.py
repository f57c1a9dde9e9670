"""The commands that read stored runs: report and compare."""

from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.options import REPORTS, AsJson, ReportOut, existing
from kfbench.cli.output import busy, print_json, print_result
from kfbench.comparison import THRESHOLD


@app.command()
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


@app.command()
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

    with busy("comparing"):
        comparison = compare(existing(run_a), existing(run_b), threshold)
    if as_json:
        print_json(comparison.to_dict())
    else:
        from kfbench.comparison.text import comparison_text

        print_result(comparison_text(comparison))
    if comparison.is_regression:
        raise typer.Exit(3)
