"""Functions and what to call them with, as Spark tasks.

Each task is a job of its own: its result is there in whole or not at all, whatever became of the workers that tried it.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console

from kfbench.progress import counting
from kfbench.sweep.spark.executors import Call, Executors
from kfbench.sweep.spark.jobs import FAILURES, cancel
from kfbench.sweep.spark.session import SweepFailed, cause, retrying, session

T = TypeVar("T")
R = TypeVar("R")

LOSSES: Final = {  # by what Spark says of them
    "ExecutorLostFailure": "its executor was lost",
    "Python worker exited": "its Python worker ended",
    "Traceback (most recent call last)": "it raised an error in its worker",
}


@dataclass(frozen=True)
class Lost:
    """A task that failed in every worker that tried it. reason: how, in words that are the same every time: Spark's own
    are of hosts, tasks and attempts, and rows are published and compared."""

    reason: str


def mapped(
    function: Callable[[T], R],
    tasks: Sequence[T],
    what: str,
    master: str | None = None,
    console: Console | None = None,
    archive: Path | None = None,
) -> Iterator[R]:
    """function(task) of every task, as they are finished: whoever needs an order has to find it in the results.

    Tasks, results and the function travel by pickle: a function of a module, or a partial of one. What it raises fails
    the job after TASK_ATTEMPTS, so it returns what is wrong with its input. what: for the progress. archive: the
    environment of a cluster's executors. Raises MissingTool, SweepFailed.
    """
    console = console or Console(stderr=True)
    asked = retrying(master or "local[*]")
    with session(asked, archive=archive) as spark, counting(console) as progress:
        executors = Executors(spark, asked)
        executors.prepare()
        bar = progress.add_task(what, total=len(tasks), unit="tasks", failed="")
        calls = [(function, task) for task in tasks]
        for _, result in done(executors, calls, executors.slots()):
            progress.update(bar, advance=1)
            yield result


def done(executors: Executors, calls: Sequence[Call[T, R]], workers: int) -> Iterator[tuple[T, R]]:
    """Each task and its result as they are finished, `workers` at a time. Raises SweepFailed for one that is lost."""
    with closing(_finished(executors, calls, workers)) as finished:
        for task, future in finished:
            try:
                result = future.result()
            except FAILURES as error:
                raise SweepFailed(f"Spark gave a task up: {cause(error)}") from error
            yield task, result


def attempted(
    executors: Executors, calls: Sequence[Call[T, R]], workers: int, harmless: Call[T, R], on: str | None = None
) -> Iterator[tuple[T, R | Lost]]:
    """As done, but a task may be lost, and the others go on. on: the only host that may run them.

    harmless: a call that cannot fail. Where it does, too, it was not the task: Spark is gone or no worker can import
    what it should run, and that is SweepFailed.
    """
    with closing(_finished(executors, calls, workers, on)) as finished:
        for task, future in finished:
            try:
                result: R | Lost = future.result()
            except FAILURES as error:
                result = Lost(_loss(error))
                try:
                    executors.run(harmless, on)
                except FAILURES:
                    raise SweepFailed(f"Spark gave a task up: {cause(error)}") from error
            yield task, result


def _loss(error: Exception) -> str:
    said = str(error)
    return next((words for mark, words in LOSSES.items() if mark in said), "its task failed")


def _finished(
    executors: Executors, calls: Sequence[Call[T, R]], workers: int, on: str | None = None
) -> Generator[tuple[T, Future[R]], None, None]:
    pending: dict[Future[R], T] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending = {pool.submit(executors.run, call, on): call[1] for call in calls}
            while pending:
                for each in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(each), each
        finally:
            cancel(executors.spark, pending)  # interrupted: the run stays unfinished, and says so
