"""The command `kfbench dictionary train`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from kfbench.cli.options import AsJson, ColumnOptions, check_names, check_new_file, with_option_groups
from kfbench.cli.output import fail_on_damage, print_json, print_result, write_whole
from kfbench.errors import KfbenchError
from kfbench.limits import SIZE_BYTES
from kfbench.plugins import Command

TRAIN_BYTES: Final = 4 << 20  # of keys, values and headers; more makes dictionaries hardly better

dictionary = typer.Typer(help="Train zstd dictionaries for topics.")


@dictionary.callback()
def _group() -> None:
    """Train zstd dictionaries for topics."""


@dictionary.command()
@with_option_groups
def train(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", help="Segments, partition folders or tables of one topic. The newest 4 MiB."),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The dictionary file.")],
    table: ColumnOptions,
    format_name: Annotated[
        str, typer.Option("--format", metavar="NAME", help="The format whose batches will use the dictionary.")
    ] = "v2",
    batch_size: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, max=1 << 20, help="Records per batch of the samples.")
    ] = 10,
    size: Annotated[
        int, typer.Option(metavar="BYTES", min=256, max=128 << 10, help="The largest size of the dictionary.")
    ] = SIZE_BYTES,
    number: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, max=(1 << 31) - 1, help="The dictionary's number in its partition.")
    ] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a zstd dictionary on a topic's newest records, and write it to a file that a log may begin with."""
    from kfbench.codecs import TrainedOn
    from kfbench.dictionary_training import samples, trained_or_tail
    from kfbench.formats import FORMATS
    from kfbench.inspection.output import dictionary_line
    from kfbench.inspection.segment import dictionary_values
    from kfbench.log.dictionaries import dictionary_file
    from kfbench.research.dictionaries.newest import newest_records
    from kfbench.sources import find
    from kfbench.sources.log import stream_of

    check_names("--format", [format_name], [name for name, each in FORMATS.items() if each.capabilities.dictionaries])
    table.check()
    found = find(logs, table.columns())
    topics = dict.fromkeys(stream_of(part.topic, part.name) for part in found.parts)
    if len(topics) > 1:
        raise KfbenchError(f"{len(topics):,} topics, where a dictionary is of one: {', '.join([*topics][:3])}, …")
    check_new_file(out, force, [part.name for part in found.parts])
    records, damage, unread = newest_records(found.parts, TRAIN_BYTES)
    if not len(records):
        nothing = f"{found.parts[0].name}: no record to train on. Is it a log segment, JSON lines, CSV or Parquet?"
        raise KfbenchError(unread[0] if unread else nothing)
    bodies = samples(records, FORMATS[format_name], batch_size)
    trained_on = TrainedOn(
        format=format_name, batch_size=batch_size, records=len(records), size_bytes=sum(map(len, bodies))
    )
    made = trained_or_tail(bodies, size, number, trained_on)
    content = bytes(dictionary_file(made, FORMATS[format_name]))
    write_whole(out, content)
    if as_json:
        print_json({"file": str(out), "file_bytes": len(content), **dictionary_values(made)})
    else:
        print_result(f"{out}: {len(content):,} bytes\n{dictionary_line(made)}")
    fail_on_damage([], logs, found.skipped, damage, unread)


COMMANDS: Final = (Command("dictionary", dictionary),)
