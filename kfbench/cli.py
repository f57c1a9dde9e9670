"""The command line: parses, delegates, prints. Results go to stdout, progress and complaints to stderr.

Exit status: 0 done, 1 failed (one line; `--debug` shows the traceback), 2 usage, 3 done, but some of what was measured
or verified does not hold, 130 interrupted.
Everything heavy is imported inside the commands, so that `kfbench --help` stays quick.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kfbench.errors import KfbenchError

if TYPE_CHECKING:
    from kfbench.log.inspect import Inspection
    from kfbench.report.render.tables import Table
    from kfbench.sweep.definition.grid import Profile as SweepProfile
    from kfbench.sweep.run.plan import Stage
    from kfbench.whatif.tally import Source

app = typer.Typer(
    help="What a Kafka record format costs, in bytes and in CPU, and what a better one would save.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Profile = Annotated[
    str, typer.Argument(metavar="PROFILE|FILE.toml", help="A profile by name, or a sweep of one's own.")
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Runs go to DIR/runs.")]
ReportOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where reports go, and runs to DIR/runs; unless given, reports/, and reports/unpublished/ for a report "
        "that is not for publishing (docs/publish.md).",
    ),
]
Master = Annotated[str | None, typer.Option(metavar="URL", help="A Spark master; this machine's cores unless given.")]
Archive = Annotated[
    Path | None, typer.Option(metavar="FILE", help="For a cluster's executors: what `kfbench pack` wrote.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="COLUMN=VALUE[,...]",
        help="Only such cells; also != < <= > >=, and * in names. Repeated: all must hold. Columns: grid, kind, "
        "workload, codec, level, path, to, and each axis by its name, such as batch_size or variant.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Continue this run, which the same sweep began, in place of a new one."),
]
CellBudget = Annotated[
    float, typer.Option(metavar="SECONDS", help="A cell that would take longer is split by format, or skipped.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and how long it takes; do nothing.")]
DryJson = Annotated[bool, typer.Option("--json", help="With --dry-run: JSON instead of text.")]
REPORTS = Path("reports")


def main() -> int:
    """Runs the command of sys.argv; the exit status."""
    arguments = sys.argv[1:]
    before, after = _split_at(arguments, "--")
    debug = "--debug" in before  # wherever it stands: it is wanted after a failure, at the end of the line
    before = [argument for argument in before if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without × and – still gets its table
    signal.signal(signal.SIGTERM, _terminated)
    try:
        status = app([*before, *after] or ["--help"], prog_name="kfbench", standalone_mode=False)
    except BrokenPipeError:  # typer's own help
        _stop_printing()
        return 0
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, status = _complaint(error)
        _complain(message)
        return status
    if status == 130:
        _complain("interrupted")
    return status or 0


def _terminated(number: int, _: object) -> NoReturn:
    """As an interrupt does: what is open is closed, temporary files go."""
    sys.exit(128 + number)


def _split_at(arguments: list[str], mark: str) -> tuple[list[str], list[str]]:
    at = arguments.index(mark) if mark in arguments else len(arguments)
    return arguments[:at], arguments[at:]


def _complaint(error: Exception) -> tuple[str, int]:
    match error:
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            hint = f" (see {context.command_path} --help)" if context else ""
            return error.format_message() + hint, error.exit_code
        case KfbenchError():
            return str(error), 1
        case OSError(filename=name, strerror=why) if name and why:
            return f"{os.fsdecode(name)}: {why}", 1
        case _:
            return f"{type(error).__name__}: {error} (unexpected; --debug shows where)", 1


def _complain(message: str) -> None:
    print("kfbench:", " ".join(message.split("\n")), file=sys.stderr)


def _print(text: object) -> None:
    """To stdout, at once: a reader that has seen enough, such as `head`, does not change what the command gives."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _stop_printing()


def _stop_printing() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_version(wanted: bool) -> None:
    if wanted:
        from kfbench import __version__

        _print(f"kfbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    pass  # main has taken --debug out; it is declared to be found in --help


@app.command()
def run(
    profile: Profile,
    out: ReportOut = None,
    master: Master = None,
    archive: Archive = None,
    filters: Filters = None,
    resume: Resume = None,
    cell_budget_s: CellBudget = 120.0,
    dry_run: DryRun = False,
    as_json: DryJson = False,
) -> None:
    """Sweep, then report: the main job."""
    from kfbench.report.publish import place_of, publish

    path = _swept(profile, out or REPORTS, master, archive, filters, resume, cell_budget_s, dry_run, as_json)
    with _busy("rendering", is_spoken=True):
        published = publish(path, out or place_of(path, REPORTS))
    _print(published)
    _refuse_errors(path)


@app.command()
def sweep(
    profile: Profile,
    out: Out = REPORTS,
    master: Master = None,
    archive: Archive = None,
    filters: Filters = None,
    resume: Resume = None,
    cell_budget_s: CellBudget = 120.0,
    dry_run: DryRun = False,
    as_json: DryJson = False,
) -> None:
    """Measure bytes and CPU of every cell of a profile; print the path of the stored run."""
    path = _swept(profile, out, master, archive, filters, resume, cell_budget_s, dry_run, as_json)
    _print(path)
    _refuse_errors(path)


def _swept(
    profile: str,
    out: Path,
    master: str | None,
    archive: Path | None,
    filters: list[str] | None,
    resume: Path | None,
    cell_budget_s: float,
    dry_run: bool,
    as_json: bool,
) -> Path:
    """The path of the run. Exits after a dry run."""
    from kfbench.errors import InvalidConfig
    from kfbench.sweep.definition.filter import filtered
    from kfbench.sweep.definition.grid import load_profile

    _check_archive(archive, master)
    if as_json and not dry_run:
        raise typer.BadParameter("only with --dry-run", param_hint="--json")
    if not cell_budget_s > 0:
        raise typer.BadParameter(f"{cell_budget_s} is not above 0", param_hint="--cell-budget-s")
    with _busy("reading the sweep"):
        loaded = load_profile(profile)  # what is wrong with it is said before anything starts
    if filters:
        try:
            loaded = filtered(loaded, filters)
        except InvalidConfig as error:
            raise typer.BadParameter(str(error), param_hint="--filter") from None

    from rich.console import Console

    from kfbench.sweep.run.published import command
    from kfbench.sweep.run.runner import plan_sweep, run_sweep

    if dry_run:
        _print_plan(loaded, plan_sweep(loaded, cell_budget_s, resume), as_json)
        raise typer.Exit
    typed = command(["kfbench", *sys.argv[1:]])
    return run_sweep(
        loaded, out, master, typed, Console(stderr=True), budget_s=cell_budget_s, resume=resume, archive=archive
    )


def _check_archive(archive: Path | None, master: str | None) -> None:
    if archive is None:
        return
    if master is None or master == "local" or master.startswith("local["):
        raise typer.BadParameter("only a cluster's executors need one (--master)", param_hint="--archive")
    if not archive.is_file():
        raise KfbenchError(f"{archive}: no such file: write it with `kfbench pack {archive}`")


@app.command()
def pack(
    file: Annotated[Path, typer.Argument(metavar="FILE.tar.gz", help="Replaced where it is there already.")],
) -> None:
    """Write what a cluster's executors need (Python, packages, kfbench) as one archive, for --archive."""
    from kfbench.sweep.host.packing import pack

    _print(pack(file, _tracked).to_text())


def _print_plan(profile: "SweepProfile", stages: "Sequence[Stage]", as_json: bool) -> None:
    from kfbench.measure.environment import cores
    from kfbench.sweep.host.compiling import COMPILING_S, are_compiled, compilations
    from kfbench.sweep.run.cell import ESTIMATED_FROM, ESTIMATED_ON
    from kfbench.sweep.run.plan import START_S

    here = cores() or 1
    found = [stage.to_dict(here) for stage in stages]
    compiling_s = 0.0 if are_compiled(compilations(profile.cells)) else COMPILING_S
    stages_s = sum(each["here_s"] for each in found)
    total_s = START_S + compiling_s + stages_s
    if as_json:
        told = {"cores": here, "start_s": START_S, "compiling_s": compiling_s, "total_s": round(total_s, 1)}
        _print(_json(told | {"estimated_from": ESTIMATED_FROM, "stages": found}))
        return
    rows = [
        {
            "stage": each["kind"],
            "cells": each["cells"],
            "tasks": each["tasks"],
            "alone (s)": each["alone_s"],
            "here (s)": each["here_s"],
            "longest task (s)": each["longest_task_s"],
            "split by format": len(each["split"]),
            "skipped": len(each["skipped"]),
        }
        for each in found
    ]
    parts = [f"{START_S:,.0f} s until Spark has started", f"{stages_s:,.0f} s of stages"]
    if compiling_s:
        parts.insert(1, f"{compiling_s:,.0f} s to compile kernels, once for this code")
    notes = [
        f"{sum(each['cells'] for each in found):,} cells, about {total_s:,.0f} s on {here} cores: {', '.join(parts)}",
        f"estimated from what cells took in {ESTIMATED_FROM}, on {ESTIMATED_ON}",
    ]
    notes += [f"split by format: {title}" for each in found for title in each["split"]]
    notes += [f"skipped: {lost['cell']}: {lost['reason']}" for each in found for lost in each["skipped"]]
    _print(replace(_table("plan", rows), notes=("", *notes)).to_text() if rows else "nothing is left to be measured")


@contextmanager
def _busy(doing: str, *, is_spoken: bool = False) -> Iterator[None]:
    """Say on a terminal what takes seconds and has nothing to count; is_spoken: elsewhere too, as a line."""
    from rich.console import Console

    console = Console(stderr=True)
    if is_spoken and not console.is_terminal:
        _complain(doing)
    with console.status(doing):
        yield


def _refuse_errors(run: Path) -> None:
    """What could be measured is stored and shown; rows with errors fail the command all the same."""
    from kfbench.store import open_run

    if errors := open_run(run).manifest["counts"]["error"]:
        _complain(f"{run}: {errors} rows are errors instead of numbers: see their column `error`")
        raise typer.Exit(3)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run, or of a report.")],
    out: ReportOut = None,
) -> None:
    """Publish a stored run as tables and figures; print the path of the report."""
    from kfbench.report.publish import place_of, publish

    _existing(run)
    with _busy("rendering"):
        published = publish(run, out or place_of(run, REPORTS))
    _print(published)


@app.command()
def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A finished run, or a report: what is held against.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another: the one that may have regressed.")],
    threshold: Annotated[
        float, typer.Option(metavar="SHARE", help="By how much a CPU ratio may grow; .03 is 3 %.")
    ] = 0.03,
    as_json: AsJson = False,
) -> None:
    """Hold two runs against each other: bytes exactly, CPU by interval; status 3 where the second regressed."""
    if not 0 < threshold < 1:
        raise typer.BadParameter(f"{threshold:g} does not lie between 0 and 1", param_hint="--threshold")

    from kfbench.comparison.compare import compare

    with _busy("comparing"):
        found = compare(_existing(run_a), _existing(run_b), threshold)
    if as_json:
        _print(_json(found.to_dict()))
    else:
        from kfbench.comparison.text import text

        _print(text(found))
    if found.is_regression:
        raise typer.Exit(3)


@app.command(name="what-if")
def what_if(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="Log segments, topic-partition folders, log dirs, a data dir; Parquet, JSON lines or CSV, or folders "
            "of them; or one topic: kafka://HOST:PORT/TOPIC?from=earliest&to=latest.",
        ),
    ],
    format_names: Annotated[
        list[str] | None, typer.Option("--format", metavar="NAME", help="Only this one; may be repeated.")
    ] = None,
    codec_names: Annotated[
        list[str] | None, typer.Option("--codec", metavar="NAME", help="Only this one; may be repeated.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of a table: the key; none unless given.")] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The value; the whole row as JSON unless given.")
    ] = None,
    value_json: Annotated[bool, typer.Option("--value-json", help="The whole row as JSON.")] = False,
    timestamp: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The time: int ms, ISO 8601 or Arrow's; none unless given.")
    ] = None,
    headers: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Headers: a map, a list of {key, value}, JSON of either.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The partition's number; a file is one unless given.")
    ] = None,
    connector: Annotated[
        str | None,
        typer.Option(metavar="DIR|MAVEN", help="Spark's Kafka source: jars or coordinates; Maven's unless given."),
    ] = None,
    lingers_ms: Annotated[
        list[float] | None, typer.Option("--linger-ms", metavar="MS", help="Batches of this linger; may be repeated.")
    ] = None,
    batch_sizes: Annotated[
        list[int] | None, typer.Option("--batch-size", metavar="BYTES", help="And of this batch.size; likewise.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Codecs on everything, not on a sample of about 16 MiB.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the sample.")] = 0,
    rate_mb_s: Annotated[
        float | None, typer.Option(metavar="MB/S", help="As it lies now, one copy; the timestamps tell unless given.")
    ] = None,
    fan_out: Annotated[float, typer.Option(metavar="NUMBER", help="Consumers that read each record.")] = 3.0,
    replication: Annotated[int, typer.Option(metavar="NUMBER", help="Copies, the leader's included.")] = 3,
    retention_days: Annotated[float, typer.Option(metavar="DAYS", help="How long records are kept.")] = 7.0,
    price_storage_gb_month: Annotated[float, typer.Option(metavar="USD", help="Assumed, as all prices.")] = 0.08,
    price_network_gb: Annotated[float, typer.Option(metavar="USD", help="In or out of a broker.")] = 0.01,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A report too: a page in a new folder there.")] = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master; for little, threads here unless given.")
    ] = None,
    archive: Archive = None,
    as_json: AsJson = False,
) -> None:
    """One's own log in every format, codec and other batches: what would be saved, field by field, and a month."""
    from kfbench.codecs import CODECS
    from kfbench.errors import InvalidConfig
    from kfbench.formats import FORMATS
    from kfbench.migration.bills import Prices, Traffic
    from kfbench.sources import Columns, find
    from kfbench.sources.tables import Table as TableFile
    from kfbench.sources.topic import SCHEME, Topic
    from kfbench.whatif.ask import SAMPLE_BYTES, batchings_of, what_if
    from kfbench.whatif.month import rate_of_user
    from kfbench.whatif.text import render_text

    _check_names("--format", format_names, FORMATS)
    _check_names("--codec", codec_names, CODECS)
    _check_archive(archive, master)
    if value_json and value is not None:
        raise typer.BadParameter("not together with --value", param_hint="--value-json")
    topics = [source for source in sources if source.startswith(SCHEME)]
    if topics and len(sources) > 1:
        raise typer.BadParameter("a topic is asked about alone", param_hint="SOURCE")
    columns = Columns(key=key, value=value, timestamp=timestamp, headers=headers, partition=partition)
    if topics and (columns.names or value_json):
        raise typer.BadParameter("a topic has no columns", param_hint="SOURCE")
    if connector is not None and not topics:
        raise typer.BadParameter("no source is a topic", param_hint="--connector")
    try:
        asked: Any = Topic.parse(topics[0]) if topics else [_existing(Path(source)) for source in sources]
        batchings = batchings_of(lingers_ms, batch_sizes)
        traffic = Traffic(fan_out=fan_out, replication=replication, retention_days=retention_days)
        prices = Prices(storage_gb_month=price_storage_gb_month, network_gb=price_network_gb)
        if rate_mb_s is not None:
            rate_of_user(rate_mb_s)
    except InvalidConfig as error:
        raise typer.BadParameter(str(error)) from None
    if value_json and not any(isinstance(part, TableFile) for part in find(asked, columns).parts):
        raise InvalidConfig("--value-json: no source is a table")

    from rich.console import Console

    found = what_if(
        asked,
        format_names,
        codec_names,
        columns=columns,
        connector=connector,
        batchings=batchings,
        sample_bytes=None if everything else SAMPLE_BYTES,
        seed=seed,
        traffic=traffic,
        prices=prices,
        rate_mb_s=rate_mb_s,
        master=master,
        console=Console(stderr=True),
        archive=archive,
    )
    _print(_json(found.to_dict()) if as_json else render_text(found))
    if out is not None:
        from kfbench.whatif.page import publish

        _complain(f"the report is {publish(found.to_dict(), out)}")
    unread = [f"{each.path}: {each.reason}" for each in found.skipped if each.is_data]
    _refuse_damage(found.sources, unread)


@app.command()
def migrate(
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE", help="A log segment; nine shapes of records unless given.")
    ] = None,
    plan_name: Annotated[str, typer.Option("--plan", metavar="NAME", help="kip31, kip724 or v3.")] = "v3",
    codec: Annotated[str, typer.Option(metavar="NAME", help="The codec of all producers.")] = "lz4",
    old_producers: Annotated[float, typer.Option(metavar="SHARE", help="Of the records produced.")] = 0.1,
    old_consumers: Annotated[float, typer.Option(metavar="SHARE", help="Of the records fetched.")] = 0.2,
    old_data: Annotated[float, typer.Option(metavar="SHARE", help="Fetched, and stored before the change.")] = 0.0,
    canary_leaders: Annotated[float, typer.Option(metavar="SHARE", help="Leaders on the canary.")] = 0.05,
    fan_out: Annotated[float, typer.Option(metavar="NUMBER", help="Consumers that read each record.")] = 3.0,
    replication: Annotated[int, typer.Option(metavar="NUMBER", help="Copies, the leader's included.")] = 3,
    retention_days: Annotated[float, typer.Option(metavar="DAYS", help="How long records are kept.")] = 7.0,
    price_cpu_core_hour: Annotated[float, typer.Option(metavar="USD", help="Assumed, as all prices.")] = 0.04,
    price_storage_gb_month: Annotated[float, typer.Option(metavar="USD", help="A GB is 10**9 bytes.")] = 0.08,
    price_network_gb: Annotated[float, typer.Option(metavar="USD", help="In or out of a broker.")] = 0.01,
    as_json: AsJson = False,
) -> None:
    """A rollout of a new format, phase by phase: who is converted for or refused, what it costs, where it pays."""
    from kfbench.codecs import CODECS
    from kfbench.errors import IllegalCombination, InvalidConfig
    from kfbench.migration.bills import Prices, Traffic
    from kfbench.migration.plans import PLANS, check_codec

    _check_names("--plan", [plan_name], PLANS)
    _check_names("--codec", [codec], CODECS)
    plan = PLANS[plan_name]
    try:
        check_codec(plan, codec)
        traffic = Traffic(
            old_producers=old_producers,
            old_consumers=old_consumers,
            fan_out=fan_out,
            replication=replication,
            retention_days=retention_days,
            old_data=old_data,
            canary_leaders=canary_leaders,
        )
        prices = Prices(
            cpu_core_hour=price_cpu_core_hour, storage_gb_month=price_storage_gb_month, network_gb=price_network_gb
        )
    except (IllegalCombination, InvalidConfig) as error:
        raise typer.BadParameter(str(error)) from None
    if source is not None:
        if str(source) in PLANS and not source.exists():
            raise typer.BadParameter(f"{source} is a plan: kfbench migrate --plan {source}", param_hint="SOURCE")
        _existing(source)

    from kfbench.migration.ask import migrate

    found = migrate(plan, codec, traffic, prices, source, _tracked)
    _print(_json(found.to_dict()) if as_json else found.to_text())
    if found.damage:
        others = f" (and {len(found.damage) - 1:,} more)" if len(found.damage) > 1 else ""
        _complain(f"{source}: {found.damage[0].words()}{others}")
        raise typer.Exit(1)


@app.command()
def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Log segments.")],
    records: Annotated[bool, typer.Option("--records", help="The records too, not only the batches.")] = False,
    as_json: AsJson = False,
) -> None:
    """The batches and records of a real log, damage included."""
    from kfbench.log.inspect import inspect

    found = [inspect(_existing(file), records) for file in files]
    _print(_json([each.to_dict() for each in found]) if as_json else "\n\n".join(each.to_text() for each in found))
    _refuse_damage(found)


def _refuse_damage(sources: "Iterable[Source | Inspection]", unread: Iterable[str] = ()) -> None:
    """What is sound has been shown; damage, and a file with nothing sound in it, fails the command all the same."""
    complaints = [complaint for source in sources if (complaint := _damage(source))]
    complaints += unread
    for complaint in complaints:
        _complain(complaint)
    if complaints:
        raise typer.Exit(1)


def _damage(source: "Source | Inspection") -> str | None:
    from kfbench.log.tail import nothing_in

    unit = getattr(source, "unit", "byte")
    if source.damage:
        others = getattr(source, "damaged_places", len(source.damage)) - 1
        more = f" (and {others:,} more)" if others else ""
        return f"{source.path}: {source.damage[0].words(unit)}{more}"
    if why := source.unreadable:
        from kfbench.sources import GONE

        return None if why == GONE else f"{source.path}: {why}"
    if 0 < source.size_bytes == source.trailing_bytes:
        return f"{source.path}: {nothing_in(source.size_bytes)}"
    return None


@app.command()
def verify(
    profile: Annotated[
        str, typer.Argument(metavar="[PROFILE|FILE.toml]", help="A profile by name, or a sweep of one's own.")
    ] = "smoke",
    golden: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", envvar="KFBENCH_GOLDEN", help="Vectors of Kafka's own classes; kfbench's unless given."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the formats' promises on golden vectors and on every cell of a profile; say what was checked."""
    from kfbench.measure.golden.vectors import GOLDEN
    from kfbench.sweep.definition.grid import load_profile
    from kfbench.sweep.run.verify import verify

    loaded = load_profile(profile)

    found = verify(loaded, golden or GOLDEN, _tracked)
    if as_json:
        _print(_json(found.to_dict()))
    else:
        for caption, tally in found.tallies.items():
            _print(replace(_table(caption, tally.rows()), notes=("", *tally.legend)).to_text() + "\n")
        _print(found.summary)
    for failure in found.failures:
        _complain(failure.line)
    if found.failures:
        raise typer.Exit(3)


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="kip98, kip931, ...")], as_json: AsJson = False
) -> None:
    """A published table, recomputed from real bytes; what differs is flagged."""
    from kfbench.claims.documents import CLAIMS, table

    _check_names("NAME", [name], CLAIMS)
    found = table(name)
    _print(_json(found.to_dict()) if as_json else found.to_text())


@app.command()
def formats(as_json: AsJson = False) -> None:
    """The record formats and what they can carry."""
    from kfbench.formats import FORMATS

    _print_rows(
        "formats",
        [
            {
                "name": name,
                "magic": each.magic,
                "summary": each.summary,
                "codecs": list(each.capabilities.codecs),
                "cannot_carry": each.capabilities.missing,
            }
            for name, each in FORMATS.items()
        ],
        as_json,
    )


@app.command()
def workloads(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One of them, with all its numbers.")] = None,
    as_json: AsJson = False,
) -> None:
    """The workloads that a sweep can name: the question that each answers, or one's story, numbers and sources."""
    from dataclasses import asdict

    from kfbench.workloads import WORKLOADS

    if name is None:
        told = {each: workload.describe() for each, workload in WORKLOADS.items()}
        rows: list[dict[str, Any]] = [
            {"name": each, "variants": list(about.variants[1:]), "question": about.question}
            for each, about in told.items()
        ]
        if as_json:
            rows = [row | {"summary": WORKLOADS[row["name"]].summary} for row in rows]
        _print_rows("workloads", rows, as_json)
        return
    _check_names("NAME", [name], WORKLOADS)
    summary, about = WORKLOADS[name].summary, WORKLOADS[name].describe()
    if as_json:
        _print(_json({"name": name, "summary": summary} | asdict(about)))
        return
    notes = [f"assumed: {each}" for each in about.assumptions]
    told_of = [word for word in ("meaning", "source") if any(getattr(each, word) for each in about.parameters)]
    parameters = _table(
        f"{name}: {summary}\n\n{about.question}\n\n{about.story}",
        [
            {"parameter": each.path, "value": _short(each.value)} | {word: getattr(each, word) for word in told_of}
            for each in about.parameters
        ],
    )
    _print(replace(parameters, notes=("", *notes) if notes else ()).to_text())


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


@app.command()
def codecs(as_json: AsJson = False) -> None:
    """The codecs, their levels and the libraries behind them."""
    from kfbench.codecs import CODECS

    _print_rows(
        "codecs",
        [
            {
                "name": name,
                "id": each.id,
                "levels": f"{each.levels[0]} to {each.levels[-1]}" if each.levels else None,
                "default_level": each.default_level,
                "version": each.version,
            }
            for name, each in CODECS.items()
        ],
        as_json,
    )


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What this machine has and what is missing, with the command that mends it."""
    from kfbench.doctor import checks

    found = checks()
    _print(_json([each.to_dict() for each in found]) if as_json else "\n".join(each.to_text() for each in found))
    if any(each.state == "missing" for each in found):
        raise typer.Exit(1)


def _tracked(items: Sequence[Any], what: str) -> Iterable[Any]:
    """The items, with a bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise KfbenchError(f"{path}: no such file or folder")
    return path


def _check_names(option: str, names: Iterable[str] | None, known: Collection[str]) -> None:
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint=option)


def _print_rows(name: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    _print(_json(rows) if as_json else _table(name, rows).to_text())


def _table(name: str, rows: list[dict[str, Any]]) -> "Table":
    from kfbench.report.render.tables import Column, Table

    return Table(
        name=name,
        caption=name,
        columns=tuple(Column(name=column.replace("_", " ")) for column in rows[0]),
        rows=tuple(tuple(", ".join(cell) if isinstance(cell, list) else cell for cell in row.values()) for row in rows),
    )


def _json(data: object) -> str:
    return json.dumps(data, indent=2)
