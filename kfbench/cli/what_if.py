"""The command what-if: sizes and costs of your log in other codecs, batches and formats."""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
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
    with_option_groups,
)
from kfbench.cli.output import complain, print_json, print_result
from kfbench.errors import InvalidConfig
from kfbench.whatif.more import WHATIF_TABLES

if TYPE_CHECKING:
    from kfbench.sources import Columns
    from kfbench.sources.topic import Topic


ALL: Final = "all"


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
    if isinstance(asked, list) and table.value_json:
        _check_tables(asked, columns)

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
    if as_json:
        print_json(answer.to_dict())
    else:
        shown = [table for name in details for table in WHATIF_TABLES[name].table_names]
        print_result(render_text(answer, [*(table_names or ()), *shown]))
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
    from kfbench.sources.topic import SCHEME, Topic

    table.check()
    topics = [source for source in sources if source.startswith(SCHEME)]
    if not topics:
        if connector is not None:
            raise typer.BadParameter("no source is a topic", param_hint="--connector")
        paths = list(map(Path, sources))
        return _fingerprint(paths, table) or paths
    if len(sources) > 1:
        raise typer.BadParameter("a topic is asked about alone", param_hint="SOURCE")
    if table.columns().names or table.value_json:
        raise typer.BadParameter("a topic has no columns", param_hint="SOURCE")
    return Topic.parse(topics[0])


def _fingerprint(paths: list[Path], table: ColumnOptions) -> Path | None:
    """Return the path if it is that of a fingerprint, else None. Raises BadParameter for one among several sources."""
    from kfbench.sources.tables import is_fingerprint

    if not any(map(is_fingerprint, paths)):
        return None
    if len(paths) > 1:
        raise typer.BadParameter("a fingerprint is asked about alone", param_hint="SOURCE")
    if table.columns().names or table.value_json:
        raise typer.BadParameter("a fingerprint has no columns", param_hint="SOURCE")
    return paths[0]


def _check_tables(paths: list[Path], columns: "Columns") -> None:
    """Raise InvalidConfig if no source is a table, where --value-json wants one."""
    from kfbench.sources import find
    from kfbench.sources.tables import Table

    if not any(isinstance(part, Table) for part in find(paths, columns).parts):
        raise InvalidConfig("--value-json: no source is a table")
