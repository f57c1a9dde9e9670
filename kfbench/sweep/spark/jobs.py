"""Run Spark jobs in separate threads, and cancel them when a signal arrives.

Signals interrupt only the main thread. Each thread has its own connection to the JVM. If a signal interrupted a thread
that waits for the JVM's answer, the next request of this thread would read the old answer.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

FAILURES: Final = (PySparkException, Py4JError, ConnectionError, EOFError)  # the last two mean that the JVM has ended
AGAIN_S: Final = 0.1

R = TypeVar("R")


def collected(rows: RDD[R], count: int) -> list[R]:
    """Collect exactly `count` rows. Raises one of FAILURES, also if there are fewer or more rows.

    The number must be checked: if the JVM dies while it sends rows, PySpark takes the end of the stream for the end of
    the rows.
    """
    try:
        found = rows.collect()
    except UnboundLocalError as error:  # PySpark raises it if the JVM ended before it sent any row
        if isinstance(error.__context__, FAILURES):
            raise error.__context__ from None
        raise
    if len(found) != count:
        raise EOFError(f"the JVM ended: it returned {len(found)} of {count} results")
    return found


def awaited(spark: SparkSession, job: Callable[[], R]) -> R:
    """Run the function in a thread. Return its result or raise its error. A signal cancels its Spark jobs."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(job)
        try:
            return future.result()
        finally:
            cancel(spark, [future])


def cancel(spark: SparkSession, futures: Collection[Future[Any]]) -> None:
    """Cancel these jobs, running or not yet started, and wait until none of them runs."""
    for future in futures:
        future.cancel()
    with suppress(*FAILURES):
        while running := [future for future in futures if future.running()]:
            spark.sparkContext.cancelAllJobs()  # repeatedly, because a running call may not have begun its job yet
            wait(running, AGAIN_S)
