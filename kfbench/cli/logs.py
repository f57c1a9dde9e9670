"""The commands that read your log: what-if, fingerprint, migrate and inspect.

A fingerprint is a file with a log's what-if, without the log's names and records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kfbench.cli.app import LOGS, HelpAll, LongCommand, app
from kfbench.cli.options import (
    Archive,
    AsJson,
    ColumnOptions,
    PriceOptions,
    TrafficOptions,
    check_archive,
    check_names,
    check_new_file,
    with_option_groups,
)
from kfbench.cli.output import (
    complain,
    fail_on_damage,
    print_answer,
    print_result,
    print_stream,
    track_items,
    write_whole,
)
from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.plugins import PluginClash
from kfbench.whatif.more import WHATIF_TABLES

if TYPE_CHECKING:
    from kfbench.sources.topic import Topic
    from kfbench.whatif.answer import WhatIf


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
            help="Only this format, and v2; may be repeated; `all`: every format.",
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
    """Other batches for the same records."""

    lingers_ms: Annotated[
        list[float] | None,
        typer.Option("--linger-ms", metavar="MS", help="Try batches of this linger.ms; may be repeated."),
    ] = None
    batch_sizes: Annotated[
        list[int] | None,
        typer.Option("--batch-size", metavar="BYTES", help="Try batches of this batch.size; may be repeated."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """The sample that goes through the codecs, and the unit of times."""

    everything: Annotated[
        bool,
        typer.Option("--all", help="Compress everything, not a sample of about 2 MiB. Levels are always of a sample."),
    ] = False
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="The number that draws the sample. Else 0; of a fingerprint: random."),
    ] = None
    timestamp_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        typer.Option(
            help="The unit of times that are numbers, as in logs. Unless given: told from their size, by topic."
        ),
    ] = None


# One option per further question of other packages.
if _no_words := [name for name in WHATIF_TABLES if not name.isidentifier()]:
    raise PluginClash(f"{_no_words[0]}: {WHATIF_TABLES.package(_no_words[0])} registers it: an option is one word")
MORE_OPTIONS: Final = make_dataclass(
    "MoreOptions",
    [(name, Annotated[bool, typer.Option(f"--{name}", help=each.help)], False) for name, each in WHATIF_TABLES.items()],
    frozen=True,
    kw_only=True,
)


@app.command(name="what-if", cls=LongCommand, rich_help_panel=LOGS)
@with_option_groups
def what_if(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Log segments, or folders of them, such as a data dir; Parquet, JSON lines, CSV, or folders of them; "
            "one topic: kafka://HOST:PORT/TOPIC?from=earliest&to=latest; or one fingerprint.",
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
    sample: SampleOptions,
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
    _: HelpAll = False,
) -> None:
    """Show the size of your log in other codecs, batches and formats, and the savings per month."""
    from kfbench.money import Prices, Traffic
    from kfbench.sources import find
    from kfbench.sources.tables import TableFile
    from kfbench.whatif.ask import SAMPLE_BYTES, what_if
    from kfbench.whatif.rate import rate_of_user
    from kfbench.whatif.rebatch import batchings_of
    from kfbench.whatif.record_times import unknown_unit
    from kfbench.whatif.tables import NOTES, TABLES, render_first, render_text

    details = [name for name, is_wanted in vars(more).items() if is_wanted]
    arms.check()
    check_names("--table", table_names, (*TABLES, NOTES, ALL))
    check_archive(archive, master)
    try:
        asked = _parse_sources(sources, table, connector)
        if isinstance(asked, Path):
            _check_fingerprint_options(batches, sample, arms.codec_names, details, master)
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
        and not any(isinstance(part, TableFile) for part in find(asked, columns).parts)
    ):
        raise InvalidConfig("--value-json: no source is a table")

    from rich.console import Console

    begun = ""  # what is shown of the answer
    failure: typer.Exit | None = None

    def show_first(answer: "WhatIf") -> None:
        nonlocal begun
        begun = render_first(answer)
        print_result(begun)

    def show(answer: "WhatIf") -> None:
        nonlocal failure
        print_answer(as_json, answer.to_dict, lambda: render_rest(answer))
        if out is not None:
            from kfbench.whatif.page import publish

            complain(f"the report is {publish(answer, out)}")
        unread = [unknown_unit(doubts)] if (doubts := answer.unit_doubts) else []
        try:
            fail_on_damage(answer.sources, sources, answer.skipped, unread=unread)
        except typer.Exit as error:
            failure = error

    def render_rest(answer: "WhatIf") -> str:
        names = [*(table_names or ()), *(table for name in details for table in WHATIF_TABLES[name].table_names)]
        text = render_text(answer, names)
        if not text.startswith(begun):
            complain("the log has changed meanwhile; this is all of its answer")
            return text
        return text.removeprefix(begun).removeprefix("\n" if begun else "")

    formats: Any = ALL if ALL in (arms.format_names or ()) else arms.format_names
    if isinstance(asked, Path):
        from kfbench.fingerprint.file import read_file, what_if_of

        answer = what_if_of(
            read_file(asked),
            formats,
            traffic=asked_traffic,
            prices=asked_prices,
            rate_mb_s=rate_mb_s,
        )
        show(answer)
    else:
        what_if(
            asked,
            formats,
            arms.codec_names,
            columns=columns,
            connector=connector,
            batchings=batchings,
            sample_bytes=None if sample.everything else SAMPLE_BYTES,
            seed=sample.seed or 0,
            timestamp_unit=sample.timestamp_unit,
            traffic=asked_traffic,
            prices=asked_prices,
            rate_mb_s=rate_mb_s,
            master=master,
            console=Console(stderr=True),
            archive=archive,
            details=details,
            show_first=None if as_json else show_first,
            show=show,
        )
    if failure is not None:
        raise failure


def _check_fingerprint_options(
    batches: BatchOptions,
    sample: SampleOptions,
    codecs: Sequence[str] | None,
    details: Sequence[str],
    master: str | None,
) -> None:
    """Raise BadParameter for an option that needs the log's records."""
    no_records, no_batches = "a fingerprint has no records", "a fingerprint has no other batches than its log's"
    for option, value, why in (
        ("--linger-ms", batches.lingers_ms, no_batches),
        ("--batch-size", batches.batch_sizes, no_batches),
        ("--codec", codecs, "a fingerprint has no choice of codecs: its tables show all"),
        ("--all", sample.everything, no_records),
        ("--seed", sample.seed, no_records),
        ("--timestamp-unit", sample.timestamp_unit, no_records),
        *((f"--{name}", True, no_records) for name in details),
        ("--master", master, no_records),
    ):
        if value is not None and value is not False:
            raise typer.BadParameter(why, param_hint=option)


def _parse_sources(sources: Sequence[str], table: ColumnOptions, connector: str | None) -> "list[Path] | Path | Topic":
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


@app.command(cls=LongCommand, rich_help_panel=LOGS)
@with_option_groups
def fingerprint(
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG...", help="Segments, topic-partition folders, log dirs, a data dir."),
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The fingerprint, such as orders.json.")],
    sample: SampleOptions,
    least_members: Annotated[
        int, typer.Option(metavar="K", min=2, help="Merge buckets of histograms that have fewer members.")
    ] = 10,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    _: HelpAll = False,
) -> None:
    """Write a fingerprint of your log: its what-if without names and records, which `what-if` reads like the log."""
    from rich.console import Console

    from kfbench.fingerprint.file import to_json
    from kfbench.fingerprint.measure import fingerprint as measured
    from kfbench.sources.topic import SCHEME
    from kfbench.text import count_words
    from kfbench.whatif.ask import SAMPLE_BYTES
    from kfbench.whatif.record_times import unknown_unit

    if out.suffix != ".json":
        raise typer.BadParameter("the name of a fingerprint must end in .json", param_hint="--out")
    if any(log.startswith(SCHEME) for log in logs):
        raise typer.BadParameter("the reader of topics does not see batches; name the log's files", param_hint="LOG")
    check_new_file(out, force, [])
    made, answer, topics = measured(
        logs,
        sample_bytes=None if sample.everything else SAMPLE_BYTES,
        seed=sample.seed,
        timestamp_unit=sample.timestamp_unit,
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
        f"{out}: {len(data):,} bytes, {count_words(len(topics), 'topic')}",
        "It contains",
        *(f"- {each}" for each in made.contains),
        "It never contains",
        *(f"- {each}" for each in made.never_contains),
        f"Try it: kfbench what-if {quote(str(out))}",
    ]
    print_result("\n".join(lines))
    doubts = answer.unit_doubts
    fail_on_damage(answer.sources, logs, answer.skipped, unread=[unknown_unit(doubts)] if doubts else [])


_share = partial(typer.Option, metavar="SHARE")


@dataclass(frozen=True, kw_only=True)
class RolloutOptions:
    """Shares of old clients, old data and canary leaders. The defaults are those of `Traffic`."""

    old_producers: Annotated[float, _share(help="Share of produced records that come from old producers.")] = 0.1
    old_consumers: Annotated[float, _share(help="Share of fetched records that go to old consumers.")] = 0.2
    old_data: Annotated[float, _share(help="Share of fetched records that were stored before the change.")] = 0.0
    canary_leaders: Annotated[float, _share(help="Share of partition leaders on the canary broker.")] = 0.05


@app.command(cls=LongCommand, rich_help_panel=LOGS)
@with_option_groups
def migrate(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SOURCE...",
            help="Log segments, or folders with log segments in them. Default: nine shapes of records.",
        ),
    ] = None,
    plan_name: Annotated[str, typer.Option("--plan", metavar="NAME", help="The rollout: kip31, kip724 or v3.")] = "v3",
    codec: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The codec of all producers. Default: a topic's most frequent one; without SOURCE lz4.",
        ),
    ] = None,
    *,
    rollout: RolloutOptions,
    traffic: TrafficOptions,
    price_cpu_core_hour: Annotated[
        float, typer.Option(metavar="USD", help="Price of a core for an hour (assumed).")
    ] = 0.04,
    prices: PriceOptions,
    as_json: AsJson = False,
    _: HelpAll = False,
) -> None:
    """Show each phase of a format's rollout: conversions, refusals, costs, and where it pays."""
    from kfbench.codecs import CODECS
    from kfbench.migration.plans import PLANS, check_codec
    from kfbench.money import Prices, Traffic

    check_names("--plan", [plan_name], PLANS)
    check_names("--codec", [codec] if codec else None, CODECS)
    plan = PLANS[plan_name]
    try:
        if codec:
            check_codec(plan, codec)
        chosen_traffic = Traffic(**vars(rollout), **vars(traffic))
        chosen_prices = Prices(
            cpu_core_hour=price_cpu_core_hour,
            storage_gb_month=prices.price_storage_gb_month,
            network_gb=prices.price_network_gb,
        )
    except (IllegalCombination, InvalidConfig) as error:
        raise typer.BadParameter(str(error)) from None
    for source in sources or ():
        if str(source) in PLANS and not source.exists():
            raise typer.BadParameter(f"{source} is a plan: kfbench migrate --plan {source}", param_hint="SOURCE")

    from kfbench.migration.ask import migrate
    from kfbench.migration.text import migration_text

    answer = migrate(plan, codec, chosen_traffic, chosen_prices, sources or (), track_items)
    print_answer(as_json, answer.to_dict, lambda: migration_text(answer))
    fail_on_damage([], sources or (), damage=answer.damage, unread=answer.unread)


@app.command(rich_help_panel=LOGS)
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
