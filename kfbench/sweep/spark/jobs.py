"""Spark jobs in threads of their own, cancelled when a signal arrives.

Each thread has its own connection to the JVM. Suppose that a signal interrupts the main thread while it waits for an
answer. The next request on the same connection would then read that old answer.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

FAILURES: Final = (PySparkException, Py4JError, ConnectionError, EOFError)  # the last two: the JVM is gone
AGAIN_S: Final = 0.1

R = TypeVar("R")


def collected(rows: RDD[R], count: int) -> list[R]:
    """Return the rows, `count` of them. Raises one of FAILURES.

    A JVM that dies while it sends rows ends the stream, and PySpark takes this for the end of the rows.
    """
    try:
        found = rows.collect()
    except UnboundLocalError as error:  # PySpark, where the JVM ended before it sent any row
        if isinstance(error.__context__, FAILURES):
            raise error.__context__ from None
        raise
    if len(found) != count:
        raise EOFError(f"the JVM ended: it gave {len(found)} of {count} results")
    return found


def awaited(spark: SparkSession, job: Callable[[], R]) -> R:
    """Return the result of the job, or raise its error. A signal meanwhile ends its Spark jobs."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(job)
        try:
            return future.result()
        finally:
            cancel(spark, [future])


def cancel(spark: SparkSession, futures: Collection[Future[Any]]) -> None:
    """End the jobs that run, and keep the others from starting."""
    for future in futures:
        future.cancel()
    with suppress(*FAILURES):
        while running := [future for future in futures if future.running()]:
            spark.sparkContext.cancelAllJobs()  # repeatedly, because a running call may not have begun its job yet
            wait(running, AGAIN_S)
