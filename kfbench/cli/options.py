"""Arguments and options that several commands share, and functions that check their values."""

import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kfbench.errors import KfbenchError
from kfbench.plugins import PluginClash

if TYPE_CHECKING:
    from kfbench.sources import Columns

Profile = Annotated[
    str, typer.Argument(metavar="PROFILE|FILE.toml", help="The name of a profile, or the file of a sweep.")
]
ReportOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Reports go to DIR, runs to DIR/runs. Default: reports/, and reports/unpublished/ for a report that is "
        "not for publishing (docs/publish.md).",
    ),
]
Archive = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The file that `kfbench pack` wrote, for a cluster's executors.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
REPORTS: Final = Path("reports")


@dataclass(frozen=True, kw_only=True)
class TrafficOptions:
    """The reads and copies of each record. The defaults are those of `Traffic`."""

    fan_out: Annotated[float, typer.Option(metavar="NUMBER", help="Consumers that read each record.")] = 3.0
    replication: Annotated[
        int, typer.Option(metavar="NUMBER", help="Copies of each record, the leader's included.")
    ] = 3
    retention_days: Annotated[float, typer.Option(metavar="DAYS", help="Days that records are stored.")] = 7.0


@dataclass(frozen=True, kw_only=True)
class PriceOptions:
    """Prices of storage and network. The defaults are those of `Prices`."""

    price_storage_gb_month: Annotated[
        float, typer.Option(metavar="USD", help="Price to store a GB (10**9 bytes) for a month (assumed).")
    ] = 0.08
    price_network_gb: Annotated[
        float, typer.Option(metavar="USD", help="Price of a GB into or out of a broker (assumed).")
    ] = 0.01


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """The columns of a table that make a record."""

    key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A table's column with the key. Unless given: no key.")
    ] = None
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the value. Unless given: the whole row as JSON."),
    ] = None
    value_json: Annotated[bool, typer.Option("--value-json", help="Take the whole row as JSON for the value.")] = False
    timestamp: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the time: a number, ISO 8601 or Arrow's. Else no time."),
    ] = None
    headers: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with headers: a map, a list of {key, value}, JSON of either."),
    ] = None
    partition: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the partition's number. Else a file is a partition."),
    ] = None

    def check(self) -> None:
        """Raise BadParameter (exit status 2) for --value-json with --value."""
        if self.value_json and self.value is not None:
            raise typer.BadParameter("not together with --value", param_hint="--value-json")

    def columns(self) -> "Columns":
        from kfbench.sources import Columns

        return Columns(
            key=self.key, value=self.value, timestamp=self.timestamp, headers=self.headers, partition=self.partition
        )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command have dataclasses of options as parameters.

    Return a function that has one option per field, in the place of the dataclass, for Typer. It builds the dataclasses
    and calls the command with them.
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    groups = {
        each.name: each.annotation
        for each in parameters
        if isinstance(each.annotation, type) and is_dataclass(each.annotation)
    }

    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    flat: list[inspect.Parameter] = []
    for each in parameters:
        group = groups.get(each.name)
        flat += [each] if group is None else inspect.signature(group, eval_str=True).parameters.values()
    names = [each.name for each in flat]
    if taken := [name for name in names if names.count(name) > 1]:
        words = command.__name__.replace("_", "-")
        raise PluginClash(f"{taken[0]}: the table of another package has the name of an option of kfbench {words}")
    flat = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in flat]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return called


def existing(path: Path) -> Path:
    """Return the path unchanged. Raises KfbenchError if there is no file or folder."""
    if not path.exists():
        raise KfbenchError(f"{path}: no such file or folder")
    return path


def check_names(option: str, names: Iterable[str] | None, known: Collection[str]) -> None:
    """Raise BadParameter (exit status 2) if a name is not in `known`. option: the name of the option or argument."""
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}", param_hint=option)


def check_archive(archive: Path | None, master: str | None) -> None:
    """Check the value of --archive, the file with the environment of a cluster's executors.

    Raises BadParameter if the master is not a cluster. Raises KfbenchError if the file does not exist.
    """
    if archive is None:
        return
    if master is None or master == "local" or master.startswith("local["):
        raise typer.BadParameter("only a cluster's executors need an archive (--master)", param_hint="--archive")
    if not archive.is_file():
        raise KfbenchError(f"{archive}: no such file: write it with `kfbench pack {archive}`")


def check_new_file(out: Path, force: bool, read: Iterable[str]) -> None:
    """Raise KfbenchError unless `out` may be written. force: it may exist. read: files that must not be replaced."""
    if out.is_dir():
        raise KfbenchError(f"{out}: is a folder, where a file is wanted")
    if out.exists() and not out.is_file():
        raise KfbenchError(f"{out}: is no regular file")
    if not out.parent.is_dir():
        raise KfbenchError(f"{out.parent}: " + ("is no folder" if out.parent.exists() else "no such folder"))
    if out.exists() and not force:
        raise KfbenchError(f"{out}: exists already (--force replaces it)")
    if out.exists() and any(Path(path).exists() and out.samefile(path) for path in read):
        raise KfbenchError(f"{out}: is the log itself")
