"""The command fingerprint: a file with a log's what-if, without the log's names and records."""

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from kfbench.cli.app import app
from kfbench.cli.damage import fail_on_damage
from kfbench.cli.options import TimestampUnit, check_new_file
from kfbench.cli.output import complain, contents_lines, print_result, write_whole

FEW_RECORDS = 100


@app.command()
def fingerprint(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Segments, topic-partition folders, log dirs, a data dir."),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The fingerprint, such as orders.json.")],
    everything: Annotated[
        bool, typer.Option("--all", help="Compress all of it, not a sample of 2 MiB: slower and closer.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="The number that draws the sample. Unless given: a random one.")
    ] = None,
    timestamp_unit: TimestampUnit = None,
    least_members: Annotated[
        int, typer.Option(metavar="K", min=2, help="Merge buckets of histograms that have fewer members.")
    ] = 10,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a fingerprint of your log: its what-if without names and records, which `what-if` reads like the log."""
    from rich.console import Console

    from kfbench.fingerprint.file import to_json
    from kfbench.fingerprint.measure import fingerprint as measured
    from kfbench.sources.topic import SCHEME
    from kfbench.text import counted
    from kfbench.whatif.ask import SAMPLE_BYTES
    from kfbench.whatif.record_times import unknown_unit

    if out.suffix != ".json":
        raise typer.BadParameter("the name of a fingerprint must end in .json", param_hint="--out")
    if any(log.startswith(SCHEME) for log in logs):
        raise typer.BadParameter("the reader of topics does not see batches; name the log's files", param_hint="LOG")
    check_new_file(out, force, [])
    made, answer, topics = measured(
        logs,
        sample_bytes=None if everything else SAMPLE_BYTES,
        seed=seed,
        timestamp_unit=timestamp_unit,
        least_members=least_members,
        console=Console(stderr=True),
    )
    check_new_file(out, force, [source.path for source in answer.sources])
    data = to_json(made)
    write_whole(out, data)
    for topic in answer.by_topic:
        if topic.records < FEW_RECORDS:
            name = f"{topics[topic.topic]} ({topic.topic})"
            complain(f"{name} has few records ({topic.records}): the file tells of single ones")
    lines = [
        f"{out}: {len(data):,} bytes, {counted(len(topics), 'topic')}",
        *contents_lines(made.contains, made.never_contains),
        f"Try it: kfbench what-if {quote(str(out))}",
    ]
    print_result("\n".join(lines))
    doubts = answer.unit_doubts
    fail_on_damage(answer.sources, logs, answer.skipped, unread=[unknown_unit(doubts)] if doubts else [])
