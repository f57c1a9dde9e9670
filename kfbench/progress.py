"""Show the progress of a command: bars on a terminal, lines of text elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kfbench.text import count_words, printable

SILENT_S: Final = 2.0  # a shorter wait shows no bar
LINE_S: Final = 30.0  # at least this long between two progress lines, if there is no terminal


@contextmanager
def reading(size_bytes: int, what: str, console: Console | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar while `size_bytes` bytes are read. Yield a function to call with each number of new bytes.

    what: the text in front of the bar. console: None is stderr. The bar appears after SILENT_S seconds. Nothing is
    written unless the console is a terminal.
    """
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

    def advance(new_bytes: int) -> None:
        bar.advance(task, new_bytes)
        if console.is_terminal and not bar.live.is_started and time.monotonic() - since > SILENT_S:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def counting(console: Console, *, is_spoken: bool = False) -> Progress:
    """Return progress bars. Each task needs a total and the fields `unit` and `failed`, which are shown as text.

    is_spoken: without a terminal, print a line when a task begins, and then at most one line per LINE_S seconds.
    """
    bars = _Lines if is_spoken and not console.is_terminal else Progress
    return bars(
        TextColumn("{task.description:>6}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        _RateColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        refresh_per_second=4,
    )


def say(console: Console, line: str) -> None:
    """Print one line for the user, with `kfbench: ` in front."""
    console.print(f"kfbench: {printable(line)}", soft_wrap=True, markup=False, highlight=False)


def _total_words(total: float | None, fields: Mapping[str, Any]) -> str:
    return count_words(int(total or 0), fields["unit"].removesuffix("s"))


class _Lines(Progress):
    """Progress that prints lines instead of bars, for a log file or a pipe."""

    _line_at = 0.0

    def add_task(
        self,
        description: str,
        start: bool = True,
        total: float | None = 100.0,
        completed: int = 0,
        visible: bool = True,
        **fields: Any,
    ) -> TaskID:
        added = super().add_task(description, start, total, completed, visible, **fields)
        self._print(f"{description}: {_total_words(total, fields)}")
        return added

    def update(self, task_id: TaskID, **kwargs: Any) -> None:
        super().update(task_id, **kwargs)
        task = self.tasks[task_id]
        if not task.finished and time.monotonic() - self._line_at > LINE_S:
            words = f"{task.completed:,.0f} of {_total_words(task.total, task.fields)} {task.fields['failed']}"
            self._print(f"{task.description}: {words.strip()}")

    def _print(self, line: str) -> None:
        self._line_at = time.monotonic()
        say(self.console, line)


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")
