"""The command fingerprint: a file that answers what-if in the place of a log, without the log's records."""

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
    topic_names: Annotated[
        bool, typer.Option("--topic-names", help="Keep the topics' names. Otherwise topics are numbered.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Compress all of it, not a sample of 2 MiB: slower and closer.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="The number that draws the sample. Unless given: a random one.")
    ] = None,
    timestamp_unit: TimestampUnit = None,
    least_members: Annotated[
        int, typer.Option(metavar="K", min=2, help="Merge buckets of distributions that have fewer members.")
    ] = 10,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a fingerprint of your log: sums that `what-if` reads like the log, without any of its records."""
    from rich.console import Console

    from kfbench.fingerprint.file import to_json
    from kfbench.fingerprint.measure import fingerprint as measured
    from kfbench.sources.topic import SCHEME
    from kfbench.text import counted
    from kfbench.whatif.ask import SAMPLE_BYTES
    from kfbench.whatif.record_times import unknown_unit
    from kfbench.workloads.fingerprinted.files import SUFFIX

    if out.suffix != SUFFIX:
        raise typer.BadParameter(f"the name of a fingerprint must end in {SUFFIX}", param_hint="--out")
    if any(log.startswith(SCHEME) for log in logs):
        raise typer.BadParameter("the reader of topics does not see batches; name the log's files", param_hint="LOG")
    check_new_file(out, force, [])
    made, sources, skipped, topics, doubts = measured(
        logs,
        topic_names=topic_names,
        sample_bytes=None if everything else SAMPLE_BYTES,
        seed=seed,
        timestamp_unit=timestamp_unit,
        least_members=least_members,
        console=Console(stderr=True),
    )
    check_new_file(out, force, [source.path for source in sources])
    data = to_json(made)
    write_whole(out, data)
    for topic in made.topics:
        own = topics[topic.name]
        name = topic.name if topic.name == own else f"{topic.name} ({own})"
        if 0 < topic.stored.records < FEW_RECORDS:
            complain(f"{name} has few records ({topic.stored.records}): the file tells of single ones")
        if topic_names and topic.name != own:
            complain(f"{name} has a number, because its folder is not named like a partition of a topic")
    if not any(topic.distributions for topic in made.topics):
        complain(f"no topic has {least_members:,} records, so `kfbench run` cannot generate records like these")
    lines = [
        f"{out}: {len(data):,} bytes, {counted(len(made.topics), 'topic')}",
        *contents_lines(made.contains, made.never_contains),
        f"Try it: kfbench what-if {quote(str(out))}",
    ]
    print_result("\n".join(lines))
    fail_on_damage(sources, logs, skipped, unread=[unknown_unit(doubts)] if doubts else [])
