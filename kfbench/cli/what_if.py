"""The command what-if: sizes and costs of your log in other codecs, batches and formats.

The command fingerprint writes a file with a log's what-if, without the log's names and records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kfbench.cli.app import app
from kfbench.cli.damage import fail_on_damage
from kfbench.cli.options import (
    Archive,
    AsJson,
    ColumnOptions,
    PriceOptions,
    TimestampUnit,
    TrafficOptions,
    check_archive,
    check_names,
    check_new_file,
    with_option_groups,
)
from kfbench.cli.output import complain, print_answer, print_result, write_whole
from kfbench.errors import InvalidConfig
from kfbench.plugins import PluginClash
from kfbench.whatif.more import WHATIF_TABLES

if TYPE_CHECKING:
    from kfbench.sources.topic import Topic


ALL: Final = "all"
FEW_RECORDS: Final = 100


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The formats and codecs to try."""

    format_names: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Only this format, and v2; may be repeated; `all`: every format. Unless given: v2, v3, our own and "
            "the smallest other format that loses nothing.",
        ),
    ] = None
    codec_names: Annotated[
        list[str] | None,
        typer.Option("--codec", metavar="NAME", help="Only this codec; may be repeated. Unless given: all."),
    ] = None

    def check(self) -> None:
        from kfbench.codecs import CODECS
        from kfbench.formats import FORMATS

        check_names("--format", self.format_names, (*FORMATS, ALL))
        check_names("--codec", self.codec_names, CODECS)


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Other batches for the same records, and the sample that goes through the codecs."""

    lingers_ms: Annotated[
        list[float] | None,
        typer.Option("--linger-ms", metavar="MS", help="Try batches of this linger.ms; may be repeated."),
    ] = None
    batch_sizes: Annotated[
        list[int] | None,
        typer.Option("--batch-size", metavar="BYTES", help="Try batches of this batch.size; may be repeated."),
    ] = None
    everything: Annotated[
        bool,
        typer.Option("--all", help="Compress everything, not a sample of about 2 MiB. Levels are always of a sample."),
    ] = False
    seed: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="The number that draws the sample. [default: 0]")
    ] = None
    timestamp_unit: TimestampUnit = None


# One option per further question of other packages.
if _no_words := [name for name in WHATIF_TABLES if not name.isidentifier()]:
    raise PluginClash(f"{_no_words[0]}: {WHATIF_TABLES.package(_no_words[0])} registers it: an option is one word")
MORE_OPTIONS: Final = make_dataclass(
    "MoreOptions",
    [(name, Annotated[bool, typer.Option(f"--{name}", help=each.help)], False) for name, each in WHATIF_TABLES.items()],
    frozen=True,
    kw_only=True,
)


@app.command(name="what-if")
@with_option_groups
def what_if(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Log segments, topic-partition folders, log dirs, a data dir; Parquet, JSON lines or CSV, or folders "
            "of them; or one topic: kafka://HOST:PORT/TOPIC?from=earliest&to=latest; or one fingerprint.",
        ),
    ],
    *,
    arms: FormatOptions,
    table: ColumnOptions,
    connector: Annotated[
        str | None,
        typer.Option(metavar="DIR|MAVEN", help="Spark's Kafka source: jars or coordinates; Maven's unless given."),
    ] = None,
    batches: BatchOptions,
    rate_mb_s: Annotated[
        float | None,
        typer.Option(metavar="MB/S", help="Bytes produced as stored now, before copies. Else derived from timestamps."),
    ] = None,
    traffic: TrafficOptions,
    prices: PriceOptions,
    table_names: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Also show this table (docs/what-if.md), or `notes`: all lines of notes; may be repeated; `all`: all.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write a page to a new folder there.")] = None,
    more: MORE_OPTIONS,  # type: ignore[valid-type]
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master. Unless given: threads of this process.")
    ] = None,
    archive: Archive = None,
    as_json: AsJson = False,
) -> None:
    """Show the size of your log in other codecs, batches and formats, and the savings per month."""
    from kfbench.migration.bills import Prices, Traffic
    from kfbench.sources import find
    from kfbench.sources.tables import Table
    from kfbench.whatif.ask import SAMPLE_BYTES, what_if
    from kfbench.whatif.month import rate_of_user
    from kfbench.whatif.rebatch import batchings_of
    from kfbench.whatif.record_times import unknown_unit
    from kfbench.whatif.tables import NOTES, TABLES, render_text

    details = [name for name, is_wanted in vars(more).items() if is_wanted]
    arms.check()
    check_names("--table", table_names, (*TABLES, NOTES, ALL))
    check_archive(archive, master)
    try:
        asked = _parsed(sources, table, connector)
        if isinstance(asked, Path):
            _check_fingerprint_options(batches, arms.codec_names, details, master)
        batchings = batchings_of(batches.lingers_ms, batches.batch_sizes)
        asked_traffic = Traffic(**vars(traffic))
        asked_prices = Prices(storage_gb_month=prices.price_storage_gb_month, network_gb=prices.price_network_gb)
        if rate_mb_s is not None:
            rate_of_user(rate_mb_s)
    except InvalidConfig as error:
        raise typer.BadParameter(str(error)) from None
    columns = table.columns()
    if (
        isinstance(asked, list)
        and table.value_json
        and not any(isinstance(part, Table) for part in find(asked, columns).parts)
    ):
        raise InvalidConfig("--value-json: no source is a table")

    from rich.console import Console

    formats: Any = ALL if ALL in (arms.format_names or ()) else arms.format_names
    if isinstance(asked, Path):
        from kfbench.fingerprint.answer import what_if_of
        from kfbench.fingerprint.file import read_file

        answer = what_if_of(
            read_file(asked),
            formats,
            traffic=asked_traffic,
            prices=asked_prices,
            rate_mb_s=rate_mb_s,
        )
    else:
        answer = what_if(
            asked,
            formats,
            arms.codec_names,
            columns=columns,
            connector=connector,
            batchings=batchings,
            sample_bytes=None if batches.everything else SAMPLE_BYTES,
            seed=batches.seed or 0,
            timestamp_unit=batches.timestamp_unit,
            traffic=asked_traffic,
            prices=asked_prices,
            rate_mb_s=rate_mb_s,
            master=master,
            console=Console(stderr=True),
            archive=archive,
            details=details,
        )
    shown = [*(table_names or ()), *(table for name in details for table in WHATIF_TABLES[name].table_names)]
    print_answer(as_json, answer.to_dict, lambda: render_text(answer, shown))
    if out is not None:
        from kfbench.whatif.page import publish

        complain(f"the report is {publish(answer, out)}")
    unread = [unknown_unit(doubts)] if (doubts := answer.unit_doubts) else []
    fail_on_damage(answer.sources, sources, answer.skipped, unread=unread)


def _check_fingerprint_options(
    batches: BatchOptions, codecs: Sequence[str] | None, details: Sequence[str], master: str | None
) -> None:
    """Raise BadParameter for an option that needs the log's records."""
    no_records, no_batches = "a fingerprint has no records", "a fingerprint has no other batches than its log's"
    for option, value, why in (
        ("--linger-ms", batches.lingers_ms, no_batches),
        ("--batch-size", batches.batch_sizes, no_batches),
        ("--codec", codecs, "a fingerprint has no choice of codecs: its tables show all"),
        ("--all", batches.everything, no_records),
        ("--seed", batches.seed, no_records),
        ("--timestamp-unit", batches.timestamp_unit, no_records),
        *((f"--{name}", True, no_records) for name in details),
        ("--master", master, no_records),
    ):
        if value is not None and value is not False:
            raise typer.BadParameter(why, param_hint=option)


def _parsed(sources: Sequence[str], table: ColumnOptions, connector: str | None) -> "list[Path] | Path | Topic":
    """Return the sources: paths, one path of a fingerprint, or one parsed topic.

    Raises BadParameter for options that do not fit the sources, and for a topic together with other sources. Raises
    InvalidConfig for a topic that cannot be parsed.
    """
    from kfbench.sources.tables import is_fingerprint
    from kfbench.sources.topic import SCHEME, Topic

    table.check()
    has_columns = bool(table.columns().names) or table.value_json
    topics = [source for source in sources if source.startswith(SCHEME)]
    if not topics:
        if connector is not None:
            raise typer.BadParameter("no source is a topic", param_hint="--connector")
        paths = list(map(Path, sources))
        if not any(map(is_fingerprint, paths)):
            return paths
        if len(paths) > 1:
            raise typer.BadParameter("a fingerprint is asked about alone", param_hint="SOURCE")
        if has_columns:
            raise typer.BadParameter("a fingerprint has no columns", param_hint="SOURCE")
        return paths[0]
    if len(sources) > 1:
        raise typer.BadParameter("a topic is asked about alone", param_hint="SOURCE")
    if has_columns:
        raise typer.BadParameter("a topic has no columns", param_hint="SOURCE")
    return Topic.parse(topics[0])


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
        "It contains",
        *(f"- {each}" for each in made.contains),
        "It never contains",
        *(f"- {each}" for each in made.never_contains),
        f"Try it: kfbench what-if {quote(str(out))}",
    ]
    print_result("\n".join(lines))
    doubts = answer.unit_doubts
    fail_on_damage(answer.sources, logs, answer.skipped, unread=[unknown_unit(doubts)] if doubts else [])
