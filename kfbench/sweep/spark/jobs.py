"""What a JVM is asked for in threads of their own, and given up when a signal comes.

Each thread has its connection to the JVM. A signal that comes while one waits for an answer would leave that to be read
as the answer to the next question, and whoever asks it would wait for a job that nobody wants any more.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

FAILURES: Final = (PySparkException, Py4JError, ConnectionError, EOFError)  # the last two: of a JVM that is gone
AGAIN_S: Final = 0.1

R = TypeVar("R")


def collected(rows: RDD[R], count: int) -> list[R]:
    """All of so many rows. A JVM that dies while it sends them ends their stream, which PySpark takes for their end.

    Raises one of FAILURES.
    """
    try:
        found = rows.collect()
    except UnboundLocalError as error:  # PySpark closes what it could not open, of a JVM that ended before it sent any
        if isinstance(error.__context__, FAILURES):
            raise error.__context__ from None
        raise
    if len(found) != count:
        raise EOFError(f"the JVM ended: it gave {len(found)} of {count} results")
    return found


def awaited(spark: SparkSession, job: Callable[[], R]) -> R:
    """What the job gives, which raises what it raises. Where a signal comes first, its Spark jobs end."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(job)
        try:
            return asked.result()
        finally:
            cancel(spark, [asked])


def cancel(spark: SparkSession, asked: Collection[Future[Any]]) -> None:
    """Those that run end without what they wanted, the others are never begun."""
    for each in asked:
        each.cancel()
    with suppress(*FAILURES):
        while running := [each for each in asked if each.running()]:
            spark.sparkContext.cancelAllJobs()  # again: one of them may not have begun its job yet
            wait(running, AGAIN_S)
