"""The commands that check bytes: inspect (log segments) and verify (formats)."""

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.damage import fail_on_damage
from kfbench.cli.options import AsJson
from kfbench.cli.output import complain, print_json, print_result, print_stream, table_of, tracked


@app.command()
def inspect(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Log segments, or folders with log segments in them.")
    ],
    batches: Annotated[bool, typer.Option("--batches", help="Show a line for each batch.")] = False,
    records: Annotated[bool, typer.Option("--records", help="Show each batch and its records.")] = False,
    as_json: AsJson = False,
    as_json_lines: Annotated[
        bool, typer.Option("--json-lines", help="Show one JSON object a line: batches, records, the file.")
    ] = False,
) -> None:
    """Summarise real log segments: batches, records, codecs, producers, gaps, damage."""
    from kfbench.inspection.output import files_table, json_document, json_lines, summary_lines, text
    from kfbench.inspection.segment import SegmentReader
    from kfbench.progress import reading
    from kfbench.sources import search

    files = search(paths)
    readers: list[SegmentReader] = []
    for file in files.parts:
        readers.append(SegmentReader(file.name, readers[-1].found if readers else None))
    found = [reader.found for reader in readers]
    if as_json:
        print_stream(json_document(readers, records))
    elif as_json_lines:
        print_stream(line for reader in readers for line in json_lines(reader, batches, records))
    elif batches or records:
        for i, reader in enumerate(readers):
            print_stream(f"{line}\n" for line in chain([""] if i else [], text(reader, records)))
    else:
        with reading(sum(each.size_bytes for each in found), "read") as advance:
            for reader in readers:
                reader.read(advance)
        print_result("\n".join(files_table(found) if len(found) > 1 else chain(*map(summary_lines, found))))
    fail_on_damage(found, paths, files.skipped)


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
