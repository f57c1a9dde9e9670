"""Functions and what to call them with, as Spark tasks.

Each task is a job of its own: its result is there in whole or not at all, whatever became of the workers that tried it.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from rich.console import Console

from kfbench.sweep.progress import counting
from kfbench.sweep.spark.session import SweepFailed, cause, retrying, session

RECIPE: Final = "recipe"
RESULT: Final = "result"
RESULTS: Final = pa.schema([(RESULT, pa.binary())])

T = TypeVar("T")
R = TypeVar("R")


def mapped(
    function: Callable[[T], R], tasks: Sequence[T], what: str, master: str | None = None, console: Console | None = None
) -> Iterator[R]:
    """function(task) of every task, as they are finished: whoever needs an order has to find it in the results.

    Tasks, results and the function travel by pickle: a function of a module, or a partial of one. What it raises fails
    the job after TASK_ATTEMPTS, so it returns what is wrong with its input. what: for the progress. Raises MissingTool,
    SweepFailed.
    """
    console = console or Console(stderr=True)
    with session(retrying(master or "local[*]")) as spark, counting(console) as progress:
        bar = progress.add_task(what, total=len(tasks), unit="tasks", failed="")
        calls = [(function, task) for task in tasks]
        cores = int(spark.sparkContext.defaultParallelism)
        for _, rows in done(spark, calls, cores, called, RESULTS):
            progress.update(bar, advance=1)
            yield pickle.loads(rows[RESULT][0].as_py())


def done(
    spark: SparkSession,
    tasks: Sequence[T],
    workers: int,
    run_recipes: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> Iterator[tuple[T, pa.Table]]:
    """Each task and its rows as they are finished, `workers` at a time."""

    def run(task: T) -> tuple[T, pa.Table]:
        recipe = spark.createDataFrame([(pickle.dumps(task),)], f"{RECIPE} binary")
        return task, recipe.coalesce(1).mapInArrow(run_recipes, from_arrow_schema(schema)).toArrow()

    pending: set[Future[tuple[T, pa.Table]]] = set()
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending = {pool.submit(run, task) for task in tasks}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for each in finished:
                    yield each.result()
        except (PySparkException, Py4JError) as error:
            raise SweepFailed(f"Spark gave a task up: {cause(error)}") from error
        finally:
            if pending:  # interrupted: the run stays unfinished, and says so
                for each in pending:
                    each.cancel()
                spark.sparkContext.cancelAllJobs()


def called(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a Spark task of `mapped` runs."""
    for batch in batches:
        for recipe in batch.column(RECIPE):
            function, task = pickle.loads(recipe.as_py())
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(function(task))], pa.binary())], [RESULT])
