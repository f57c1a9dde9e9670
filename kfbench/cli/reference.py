"""The commands that check or list what kfbench has: verify, table, formats, workloads, codecs, doctor."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfbench.cli.app import REFERENCE, app
from kfbench.cli.options import AsJson, check_names
from kfbench.cli.output import complain, print_answer, print_json, print_result, print_rows, table_of, track_items
from kfbench.text import cut

if TYPE_CHECKING:
    from kfbench.present.table import Table
    from kfbench.workloads import Workload

LONGEST_VALUE = 60  # longer values of parameters are cut to this number of characters


@app.command(rich_help_panel=REFERENCE)
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

    verification = verify(load_profile(profile), golden or GOLDEN, track_items)
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


@app.command(rich_help_panel=REFERENCE)
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="kip98, kip931, ….")], as_json: AsJson = False
) -> None:
    """Recompute a published table from real bytes, and flag differences."""
    from kfbench.claims import DOCUMENTS, table

    check_names("NAME", [name], DOCUMENTS)
    recomputed = table(name)
    print_answer(as_json, recomputed.to_dict, recomputed.to_text)


@app.command(rich_help_panel=REFERENCE)
def formats(as_json: AsJson = False) -> None:
    """List the record formats and what they can carry."""
    from kfbench.formats import FORMATS

    rows = [
        {
            "name": name,
            "magic": each.magic,
            "summary": each.summary,
            "codecs": list(each.capabilities.codecs),
            "cannot_carry": each.capabilities.missing,
        }
        for name, each in FORMATS.items()
    ]
    print_rows("formats", rows, as_json)


@app.command(rich_help_panel=REFERENCE)
def workloads(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show all numbers of this workload.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the workloads that a sweep can name; with NAME: show the story, numbers and sources of one."""
    from kfbench.workloads import WORKLOADS

    if name is None:
        rows = []
        for each, workload in WORKLOADS.items():
            about = workload.describe()
            row = {"name": each, "variants": list(about.variants[1:]), "question": about.question}
            rows.append(row | ({"summary": workload.summary} if as_json else {}))
        print_rows("workloads", rows, as_json)
        return
    check_names("NAME", [name], WORKLOADS)
    workload = WORKLOADS[name]
    print_answer(
        as_json,
        lambda: {"name": name, "summary": workload.summary} | asdict(workload.describe()),
        lambda: _workload_table(workload).to_text(),
    )


def _workload_table(workload: "Workload") -> "Table":
    """Return a table of a workload's parameters. The caption has its question and story, the notes its assumptions."""
    about = workload.describe()
    remarks = [word for word in ("meaning", "source") if any(getattr(each, word) for each in about.parameters)]
    rows: list[dict[str, Any]] = []
    for each in about.parameters:
        text = each.value if isinstance(each.value, str) else json.dumps(each.value)
        row = {"parameter": each.path, "value": cut(text, LONGEST_VALUE)}
        rows.append(row | {word: getattr(each, word) for word in remarks})
    caption = f"{workload.name}: {workload.summary}\n\n{about.question}\n\n{about.story}"
    return table_of(caption, rows, [f"assumed: {each}" for each in about.assumptions])


@app.command(rich_help_panel=REFERENCE)
def codecs(as_json: AsJson = False) -> None:
    """List the codecs, their levels and their libraries."""
    from kfbench.codecs import CODECS

    rows = [
        {
            "name": name,
            "id": each.id,
            "levels": f"{each.levels[0]} to {each.levels[-1]}" if each.levels else None,
            "default_level": each.default_level,
            "version": each.version,
        }
        for name, each in CODECS.items()
    ]
    print_rows("codecs", rows, as_json)


@app.command(rich_help_panel=REFERENCE)
def doctor(as_json: AsJson = False) -> None:
    """Check what this machine has and lacks; show the commands that install what is missing."""
    from kfbench.doctor import checks

    results = checks()
    print_answer(
        as_json,
        lambda: [each.to_dict() for each in results],
        lambda: "\n".join(each.to_text() for each in results),
    )
    if any(each.state == "missing" for each in results):
        raise typer.Exit(1)
