"""How far it is, for people at a terminal."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

SILENT_S: Final = 2.0  # what takes no longer needs no bar


@contextmanager
def reading(size_bytes: int, what: str, console: Console | None = None) -> Iterator[Callable[[int], None]]:
    """Gives what is to be called with the bytes that were read, of size_bytes; a bar shows them after SILENT_S. None:
    stderr. Nothing is written where the console is no terminal."""
    console = console or Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=4,
    )
    task, since = bar.add_task(what, total=size_bytes), time.monotonic()

    def advance(fresh_bytes: int) -> None:
        bar.advance(task, fresh_bytes)
        if console.is_terminal and not bar.live.is_started and time.monotonic() - since > SILENT_S:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def counting(console: Console) -> Progress:
    """Bars of tasks that have a total, a `unit` and a word on what `failed`. Silent where there is no terminal."""
    return Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        _Rate(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        refresh_per_second=4,
    )


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")
