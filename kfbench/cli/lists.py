"""The commands that show lists and tables: table, formats, workloads, codecs, doctor."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfbench.cli.app import app
from kfbench.cli.options import AsJson, check_names
from kfbench.cli.output import print_answer, print_rows, table_of

if TYPE_CHECKING:
    from kfbench.present.table import Table
    from kfbench.workloads import Workload

LONGEST_VALUE = 60  # longer values of parameters are cut to this number of characters


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="kip98, kip931, ….")], as_json: AsJson = False
) -> None:
    """Recompute a published table from real bytes, and flag differences."""
    from kfbench.claims.documents import CLAIMS, table

    check_names("NAME", [name], CLAIMS)
    recomputed = table(name)
    print_answer(as_json, recomputed.to_dict, recomputed.to_text)


@app.command()
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


@app.command()
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
    rows: list[dict[str, Any]] = [
        {"parameter": each.path, "value": _short(each.value)} | {word: getattr(each, word) for word in remarks}
        for each in about.parameters
    ]
    caption = f"{workload.name}: {workload.summary}\n\n{about.question}\n\n{about.story}"
    return table_of(caption, rows, [f"assumed: {each}" for each in about.assumptions])


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


@app.command()
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


@app.command()
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
