"""The entry point of the command line: run one command, and report its failure as one line and an exit status.

Exit status:
    0    done
    1    failed; one line says why, and `--debug` shows the traceback
    2    wrong usage
    3    done, but a measurement or a check failed
    130  interrupted
"""

import atexit
import errno
import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from kfbench.cli.output import complain, print_result, stop_printing
from kfbench.errors import KfbenchError
from kfbench.plugins import Command, Registry

# How long a thread may run while others wait for the GIL; Python's default is 5 ms. Every call of a codec gives up the
# GIL and then waits for it, so small batches wait often.
TURN_S: Final = 0.001
NO_THREADS: Final = (
    "this user or container may start no more processes and threads: end some, or raise the limit (ulimit -u, pids.max)"
)

HELP_ALL: Final = "--help-all"
RARE: Final = {
    "value_json", "headers", "partition", "connector", "everything", "seed", "timestamp_unit", "fan_out", "replication",
    "retention_days", "price_storage_gb_month", "price_network_gb", "master", "archive",
}  # fmt: skip

LOGS, SWEEPS, REFERENCE, MORE = "Your logs", "Sweeps and reports", "Reference", "More"  # the commands of --help


class _Commands(TyperGroup):
    """The commands of `kfbench`, which --help lists in groups (`rich_help_panel`)."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in (LOGS, SWEEPS, REFERENCE, MORE)}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command.hidden:
                continue
            groups[getattr(command, "rich_help_panel", None) or MORE].append((name, command.get_short_help_str(60)))
        for group, rows in groups.items():
            if rows:
                with formatter.section(group):
                    formatter.write_dl(rows)


class LongCommand(TyperCommand):
    """A command with many options. --help leaves out the RARE ones, --help-all has all."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rare: list[Any] = [each for each in self.params if each.name in RARE]
        for each in rare:
            each.hidden = HELP_ALL not in ctx.meta
        super().format_options(ctx, formatter)
        for each in rare:
            each.hidden = False  # for completion, and for the next help of this process


def _print_all_help(ctx: typer.Context, is_wanted: bool) -> None:
    if is_wanted:
        ctx.meta[HELP_ALL] = True
        print_result(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option(HELP_ALL, callback=_print_all_help, is_eager=True, help="Show the rare options, too, and exit.")
]

app = typer.Typer(
    cls=_Commands,
    help="Measure what a Kafka record format costs in bytes and CPU, and what a better one would save.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_commands() -> None:
    """Add the commands of other packages (entry points `kfbench.commands`)."""
    names = [each.name or getattr(each.callback, "__name__", "").replace("_", "-") for each in app.registered_commands]
    commands = Registry("commands", "COMMANDS", Command, lambda: [Command(name, None) for name in names])
    for command in list(commands.values())[len(names) :]:
        if isinstance(command.run, typer.Typer):
            app.add_typer(command.run, name=command.name)
        else:
            app.command(command.name)(command.run)


def show_warnings() -> None:
    """Show kfbench's own warnings as one line, and others as Python does."""
    show = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
        if category.__module__.partition(".")[0] == "kfbench":
            complain(str(message))
        else:
            show(message, category, *where, **options)

    warnings.showwarning = shown


def run() -> NoReturn:
    """Run the command in sys.argv, and end the process with its exit status.

    Python's own end would end every thread that then calls Python, such as one of Arrow's that lets go of a Python
    object. The C++ code around the call does not allow this, and aborts the process. So the process ends at once.
    """
    try:
        status = main()
    except SystemExit as ended:  # SIGTERM
        status = int(ended.code or 0)
    atexit._run_exitfuncs()  # stop children, remove temporary files
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def main() -> int:
    """Run the command in sys.argv. Return its exit status."""
    arguments = sys.argv[1:]
    names_at = arguments.index("--") if "--" in arguments else len(arguments)
    options, names = arguments[:names_at], arguments[names_at:]
    is_debug = "--debug" in options  # at any place, because people append it to a command that failed
    options = [option for option in options if option != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # for a terminal without × and –
    signal.signal(signal.SIGTERM, _on_sigterm)
    sys.setswitchinterval(TURN_S)
    os.environ["PYTHONSAFEPATH"] = "1"  # processes that a command starts do not import from the working folder
    try:
        status = app([*options, *names] or ["--help"], prog_name="kfbench", standalone_mode=False)
    except BrokenPipeError:  # from typer's own help
        stop_printing()
        return 0
    except Exception as error:
        if is_debug:
            traceback.print_exc()
        failure = _failure(error)
        complain(failure.message)
        return failure.status
    if status == 130:
        complain("interrupted")
    return status or 0


def _on_sigterm(number: int, _: object) -> NoReturn:
    """Raise SystemExit on SIGTERM, so that files are closed and temporary files are removed."""
    sys.exit(128 + number)


def _find_temporary_folder() -> None:
    """Use the cache for temporary files if there is no other place, as in a read-only container."""
    import tempfile  # late, for a quick --help

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        for place in (os.environ.get("KFBENCH_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), "~/.cache"):
            with suppress(OSError, RuntimeError):  # no such place; no home folder
                folder = Path(place or "~/.cache", "kfbench", "temporary").expanduser().absolute()
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.environ["TMPDIR"] = str(folder)
                tempfile.gettempdir()
                return
        os.environ.pop("TMPDIR", None)


class _Failure(NamedTuple):
    message: str
    status: int = 1


def _failure(error: Exception) -> _Failure:
    match error:
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            hint = f" (see {context.command_path} --help)" if context else ""
            return _Failure(error.format_message() + hint, error.exit_code)
        case KfbenchError():
            return _Failure(str(error))
        case OSError(filename=name, strerror=why) if name and why:
            return _Failure(f"{os.fsdecode(name)}: {why}")
        case BlockingIOError() | RuntimeError(args=("can't start new thread",)):
            return _Failure(NO_THREADS)
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG, strerror=why):
            return _Failure(f"a file cannot be written: {why}")
        case _:
            return _Failure(f"{type(error).__name__}: {error} (unexpected; --debug shows where)")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from kfbench import __version__

        print_result(f"kfbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
) -> None:
    """Declare the options of `kfbench` for --help. `main` removes --debug before."""
    del version, debug
    _find_temporary_folder()
