"""Functions and what to call them with, as Spark tasks.

Each task is a job of its own: its result is there in whole or not at all, whatever became of the workers that tried it.
"""

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from kfbench.sweep.progress import counting
from kfbench.sweep.spark.executors import prepare_hosts
from kfbench.sweep.spark.session import SweepFailed, cause, is_cluster, retrying, session, slots

T = TypeVar("T")
R = TypeVar("R")
Call = tuple[Callable[[T], R], T]
FAILURES: Final = (PySparkException, Py4JError, ConnectionError, EOFError)  # the last two: of a JVM that is gone

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
        if is_cluster(asked):
            prepare_hosts(spark)
        bar = progress.add_task(what, total=len(tasks), unit="tasks", failed="")
        calls = [(function, task) for task in tasks]
        for _, result in done(spark, calls, slots(spark)):
            progress.update(bar, advance=1)
            yield result


def done(spark: SparkSession, calls: Sequence[Call[T, R]], workers: int) -> Iterator[tuple[T, R]]:
    """Each task and its result as they are finished, `workers` at a time. Raises SweepFailed for one that is lost."""
    with closing(_finished(spark, calls, workers)) as finished:
        for task, future in finished:
            try:
                result = future.result()
            except FAILURES as error:
                raise SweepFailed(f"Spark gave a task up: {cause(error)}") from error
            yield task, result


def attempted(
    spark: SparkSession, calls: Sequence[Call[T, R]], workers: int, harmless: Call[T, R]
) -> Iterator[tuple[T, R | Lost]]:
    """As done, but a task may be lost, and the others go on.

    harmless: a call that cannot fail. Where it does, too, it was not the task: Spark is gone or no worker can import
    what it should run, and that is SweepFailed.
    """
    with closing(_finished(spark, calls, workers)) as finished:
        for task, future in finished:
            try:
                result: R | Lost = future.result()
            except FAILURES as error:
                result = Lost(_loss(error))
                try:
                    _run(spark, harmless)
                except FAILURES:
                    raise SweepFailed(f"Spark gave a task up: {cause(error)}") from error
            yield task, result


def _loss(error: Exception) -> str:
    said = str(error)
    return next((words for mark, words in LOSSES.items() if mark in said), "its task failed")


def _finished(
    spark: SparkSession, calls: Sequence[Call[T, R]], workers: int
) -> Generator[tuple[T, Future[R]], None, None]:
    pending: dict[Future[R], T] = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending = {pool.submit(_run, spark, call): call[1] for call in calls}
            while pending:
                for each in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(each), each
        finally:
            if pending:  # interrupted: the run stays unfinished, and says so
                for each in pending:
                    each.cancel()
                with suppress(*FAILURES):
                    spark.sparkContext.cancelAllJobs()


def _run(spark: SparkSession, call: Call[T, R]) -> R:
    # By RDD: the planner of data frames takes 5 s before its first job, and 0.2 s instead of 0.1 s before each.
    (found,) = spark.sparkContext.parallelize([pickle.dumps(call)], 1).map(_called).collect()
    result: R = pickle.loads(found)
    return result


def _called(recipe: bytes) -> bytes:
    """What every Spark task runs."""
    function, task = pickle.loads(recipe)
    return pickle.dumps(function(task))
