"""Call functions as Spark tasks. Each task is a separate Spark job, so it returns a whole result or none."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console

from kfbench.progress import counting
from kfbench.sweep.spark.executors import FAILURES, Call, Executors, cancel, open_executors
from kfbench.sweep.spark.session import SweepFailed, cause

T = TypeVar("T")
R = TypeVar("R")

LOSSES: Final = {  # the reason of a lost task, by a part of Spark's message
    "ExecutorLostFailure": "its executor was lost",
    "Python worker exited": "its Python worker ended",
    "Traceback (most recent call last)": "it raised an error in its worker",
}


@dataclass(frozen=True)
class Lost:
    """The result of a task that failed in every attempt.

    reason: the kind of failure. The names and numbers of Spark's message (hosts, tasks, attempts) are left out, because
    rows are published and compared.
    """

    reason: str


def mapped(
    function: Callable[[T], R],
    tasks: Sequence[T],
    what: str,
    master: str | None = None,
    console: Console | None = None,
    archive: Path | None = None,
) -> Iterator[R]:
    """Open a Spark session and yield function(task) for every task, in the order in which the tasks finish.

    Tasks, results and the function are pickled. If the function raises an error, Spark tries the task 4 times
    (TASK_ATTEMPTS), and then SweepFailed is raised. So the function should return problems of its input instead.

    Args:
        function: a function of a module, or a partial of a function of a module.
        what: the name of the tasks in the progress bar.
        master: a Spark master; None: all cores of this machine.
        archive: the file that `kfbench pack` wrote, for a cluster's executors.

    Raises MissingTool, SweepFailed.
    """
    console = console or Console(stderr=True)
    with open_executors(master, archive=archive) as executors, counting(console) as progress:
        bar = progress.add_task(what, total=len(tasks), unit="tasks", failed="")
        calls = [(function, task) for task in tasks]
        for _, result in done(executors, calls, executors.slots()):
            progress.update(bar, advance=1)
            yield result


def done(
    executors: Executors,
    calls: Sequence[Call[T, R]],
    workers: int,
    on: str | None = None,
    lost: Callable[[Exception], R] | None = None,
) -> Iterator[tuple[T, R]]:
    """Run the calls, at most `workers` at the same time. Yield each task with its result when the task finishes.

    Args:
        on: the name of the only host that may run the tasks; None: any host.
        lost: returns the result of a task that failed in every attempt, from its error. None: SweepFailed is raised.
    """
    pending: dict[Future[R], T] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending = {pool.submit(executors.run, call, on): call[1] for call in calls}
            while pending:
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    task = pending.pop(future)
                    try:
                        result = future.result()
                    except FAILURES as error:
                        if lost is None:
                            raise _failed(error) from error
                        result = lost(error)
                    yield task, result
        finally:
            cancel(executors.spark, pending)  # after an interrupt


def attempted(
    executors: Executors, calls: Sequence[Call[T, R]], workers: int, harmless: Call[T, R], on: str | None = None
) -> Iterator[tuple[T, R | Lost]]:
    """Run the calls as `done` does. The result is Lost if a task failed in every attempt.

    harmless: a call that cannot fail itself. It runs after a lost task. If it fails too, the task was not the cause:
    Spark has ended, or no worker can import the function. Then SweepFailed is raised.
    """

    def lost(error: Exception) -> R | Lost:
        try:
            executors.run(harmless, on)
        except FAILURES:
            raise _failed(error) from error
        message = str(error)
        return Lost(next((reason for part, reason in LOSSES.items() if part in message), "its task failed"))

    return done(executors, calls, workers, on, lost)


def _failed(error: Exception) -> SweepFailed:
    return SweepFailed(f"a Spark task failed in every attempt: {cause(error)}")
