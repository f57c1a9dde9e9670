"""Print results to stdout. Print progress and error messages to stderr. Control characters are escaped."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfbench.errors import KfbenchError
from kfbench.text import printable_lines

if TYPE_CHECKING:
    from kfbench.present.table import Table


def complain(message: str) -> None:
    print("kfbench:", printable_lines(message).replace("\n", " "), file=sys.stderr)


def print_result(text: object) -> None:
    """Print to stdout and flush. If the reader of the pipe, such as `head`, has closed it, stop without an error."""
    print_stream([f"{text}\n"])


def print_stream(parts: Iterable[str]) -> None:
    """Print texts while they are produced, about 64 KiB at a time.

    If the reader of the pipe, such as `head`, closes it, stop without error.
    """
    waiting: list[str] = []
    size = 0
    try:
        for part in parts:
            waiting.append(part)
            size += len(part)
            if size >= 1 << 16:
                sys.stdout.write(printable_lines("".join(waiting)))
                waiting, size = [], 0
        sys.stdout.write(printable_lines("".join(waiting)))
        sys.stdout.flush()
    except BrokenPipeError:
        stop_printing()


def stop_printing() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(data: object) -> None:
    import json  # late, for a quick --help

    print_result(json.dumps(data, indent=2))


def print_answer(as_json: bool, data: Callable[[], object], text: Callable[[], object]) -> None:
    """Print an answer: its data as JSON, or its text. Only the one that is wanted is computed."""
    if as_json:
        print_json(data())
    else:
        print_result(text())


def print_rows(name: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    print_answer(as_json, lambda: rows, lambda: table_of(name, rows).to_text())


def table_of(caption: str, rows: list[dict[str, Any]], notes: Iterable[str] = ()) -> "Table":
    """Return a text table. The keys of the first row are the column names, and all rows have the same keys.

    notes: lines below the table, after an empty line.
    """
    from kfbench.present.table import Column, Table

    lines = tuple(notes)
    return Table(
        name=caption,
        caption=caption,
        columns=tuple(Column(name=column.replace("_", " ")) for column in rows[0]),
        rows=tuple(tuple(", ".join(cell) if isinstance(cell, list) else cell for cell in row.values()) for row in rows),
        notes=("", *lines) if lines else (),
    )


@contextmanager
def busy(activity: str, *, always: bool = False) -> Iterator[None]:
    """Show the name of an activity on the terminal while the `with` body runs.

    always: True to print it as one line if stderr is not a terminal.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if always and not console.is_terminal:
        complain(activity)
    with console.status(activity):
        yield


def tracked(items: Sequence[Any], activity: str) -> Iterable[Any]:
    """Return an iterable of the items. While it is read, a progress bar is shown if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, activity, console=console, transient=True, disable=not console.is_terminal)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place, and move it there. A command that fails or is interrupted leaves the old file.

    Raises KfbenchError.
    """
    target = path.resolve()
    unfinished = target.with_name(f".kfbench-{os.urandom(8).hex()}.part")
    try:
        with unfinished.open("xb") as stream:
            stream.write(data)
        unfinished.replace(target)
    except OSError as error:
        raise KfbenchError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
