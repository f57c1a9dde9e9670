"""Commands that check bytes: inspect, verify."""

from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.damage import fail_on_damage
from kfbench.cli.options import AsJson, existing
from kfbench.cli.output import complain, print_json, print_result, table_of, tracked


@app.command()
def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Log segments.")],
    records: Annotated[bool, typer.Option("--records", help="The records too, not only the batches.")] = False,
    as_json: AsJson = False,
) -> None:
    """The batches and records of a real log, damage included."""
    from kfbench.log.inspect import inspect

    inspections = [inspect(existing(file), records) for file in files]
    if as_json:
        print_json([each.to_dict() for each in inspections])
    else:
        print_result("\n\n".join(each.to_text() for each in inspections))
    fail_on_damage(inspections)


@app.command()
def verify(
    profile: Annotated[
        str, typer.Argument(metavar="[PROFILE|FILE.toml]", help="A profile by name, or your own sweep.")
    ] = "smoke",
    golden: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", envvar="KFBENCH_GOLDEN", help="A folder of golden vectors; default: those of kfbench."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the formats' promises on golden vectors and on every cell of a profile; list the checks."""
    from kfbench.measure.golden.vectors import GOLDEN
    from kfbench.sweep.definition.profile import load_profile
    from kfbench.sweep.run.verify import verify

    verification = verify(load_profile(profile), golden or GOLDEN, tracked)
    if as_json:
        print_json(verification.to_dict())
    else:
        for caption, results in verification.results_by_title.items():
            print_result(table_of(caption, results.rows(), results.legend).to_text() + "\n")
        print_result(verification.summary)
    for failure in verification.failures:
        complain(failure.line)
    if verification.failures:
        raise typer.Exit(3)
