"""Print results to stdout. Print progress, damage and error messages to stderr. Control characters are escaped."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from kfbench.errors import KfbenchError
from kfbench.text import printable_lines

if TYPE_CHECKING:
    from kfbench.inspection.segment import Inspection
    from kfbench.log.damage import Damage
    from kfbench.present.table import Table
    from kfbench.sources import Skipped
    from kfbench.whatif.sums import StoredSource


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


def track_items(items: Sequence[Any], activity: str) -> Iterable[Any]:
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


def fail_on_damage(
    sources: "Iterable[StoredSource | Inspection]",
    paths: Iterable[object],
    skipped: "Iterable[Skipped]" = (),
    damage: "Mapping[str, Sequence[Damage]]" = MappingProxyType({}),
    unread: Iterable[str] = (),
) -> None:
    """Print one line per source that is damaged, unreadable or has no valid batch. If there is any, exit with status 1.

    A source has a further line for each dictionary that its batches name and that is missing. A file without bytes is
    passed over, unless `paths` names it: a partition to which nobody has written.

    paths: the sources that the user named. skipped: those with data have a line. damage: by file, in place of sources.
    unread: more lines.
    """
    from kfbench.inspection.output import missing_words

    named = {str(path) for path in paths}
    complaints: list[str] = []
    for source in sources:
        if line := _damage_line(source, source.path in named):
            complaints.append(line)
        complaints += (f"{source.path}: {missing_words(each)}" for each in getattr(source, "missing", ()))
    complaints += [_place_line(path, places[0], len(places)) for path, places in damage.items()]
    complaints += [f"{each.path}: {each.reason}" for each in skipped if each.is_data]
    complaints += unread
    for complaint in complaints:
        complain(complaint)
    if complaints:
        raise typer.Exit(1)


def _place_line(path: str, place: "Damage", places: int, unit: str = "byte") -> str:
    return f"{path}: {place.words(unit)}" + (f" (and {places - 1:,} more)" if places > 1 else "")


def _damage_line(source: "StoredSource | Inspection", is_named: bool) -> str | None:
    from kfbench.log.tail import EMPTY, nothing_in
    from kfbench.sources import GONE
    from kfbench.text import count_words

    if source.damage:
        unit = getattr(source, "unit", "byte")
        return _place_line(source.path, source.damage[0], getattr(source, "damaged_places", len(source.damage)), unit)
    if places := getattr(source, "damaged_places", 0):
        return f"{source.path}: {count_words(places, 'damaged place')}"
    if getattr(source, "is_empty", not source.size_bytes and not source.unreadable):
        return f"{source.path}: {EMPTY}" if is_named else None
    if source.unreadable:
        return None if source.unreadable == GONE else f"{source.path}: {source.unreadable}"
    if 0 < source.size_bytes == source.trailing_bytes:
        return f"{source.path}: {nothing_in(source.size_bytes)}"
    return None
