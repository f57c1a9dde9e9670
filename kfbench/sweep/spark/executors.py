"""Run functions on the executors of a Spark session, check their code, and choose the one host that times CPU.

A task is a Spark job of its own, so it returns a whole result or none. Jobs run in separate threads. Signals interrupt
only the main thread. Each thread has its own connection to the JVM. If a signal interrupted a thread that waits for the
JVM's answer, the next request of this thread would read the old answer.
"""

import math
import pickle
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD, BarrierTaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console

from kfbench.measure.environment import environment, libraries
from kfbench.progress import counting
from kfbench.sweep.host.packing import code_digest
from kfbench.sweep.spark import session
from kfbench.sweep.spark.session import SweepFailed, cause, is_cluster, retrying

CODE: Final = "code"
FAILURES: Final = (PySparkException, Py4JError, ConnectionError, EOFError)  # the last two mean that the JVM has ended
AGAIN_S: Final = 0.1
LOSSES: Final = {  # the reason of a lost task, by a part of Spark's message
    "ExecutorLostFailure": "its executor was lost",
    "Python worker exited": "its Python worker ended",
    "Traceback (most recent call last)": "it raised an error in its worker",
}
_MEND: Final = "on a cluster, write an archive with `kfbench pack FILE.tar.gz` and give it with --archive"

T = TypeVar("T")
R = TypeVar("R")
Call = tuple[Callable[[T], R], T]
Facts = Mapping[str, Any]


class Executors:
    """The executors of a Spark session. They must have the same code and libraries as the driver.

    Spark may replace a lost executor at any time. So each task compares its process with the driver before it runs
    anything. It returns the facts of its host (code, libraries, hardware) with its result.

    Attributes:
        terms: the facts that all hosts and workers must share.
        hosts: the facts of all known hosts, by the hash of the host's name (`environment.host`). On local[N] this is
            only this host.
    """

    def __init__(self, spark: SparkSession, master: str) -> None:
        own = host_facts()
        self.spark = spark
        self.is_cluster = is_cluster(master)
        self.terms = terms_of(own)
        self.hosts: dict[str, Facts] = {} if self.is_cluster else {own["host"]: own}
        self._hosts_by_address: dict[str, str] = {}
        self._count_at_first = len(self._present())

    def slots(self) -> int:
        """Return the number of tasks that can run at the same time on all present executors."""
        profile = self._context.resourceProfileManager().defaultResourceProfile()
        return int(self._context.maxNumConcurrentTasks(profile))

    def prepare(self, calls: Sequence[Call[Any, R]] = ()) -> list[R]:
        """Run the calls once on every host of a cluster, for example to compile kernels. Store the hosts' facts.

        Return what the calls returned, on all hosts. All hosts work at the same time. Each host divides the calls among
        its slots (tasks at the same time). Without a cluster, do nothing. Raises SweepFailed if Spark fails, or if a
        host's kfbench or libraries differ from the driver's. Results of a different host would not be comparable.
        """
        if not self.is_cluster:
            return []
        count = self.slots()
        barrier = self.spark.sparkContext.parallelize(range(count), count).barrier()
        prepare_slot = partial(_prepare_slot, self.terms, pickle.dumps(list(calls)))
        try:
            slots_ready = await_job(self.spark, partial(collect_rows, barrier.mapPartitions(prepare_slot), count))
        except FAILURES as error:
            raise self._unable(error) from error
        addresses = self._addresses(slots_ready[0][0])
        for _, slot, _, facts in sorted(slots_ready, key=lambda ready: str(ready[-1]["host"])):
            self._meet(facts)
            self._hosts_by_address[addresses[slot]] = facts["host"]
        return [result for _, _, results, _ in slots_ready for result in results]

    def run(self, call: Call[T, R], on: str | None = None) -> R:
        """Run a call as a Spark job of one task and return its result.

        on: the name of the only host that may run it; None: any host.

        Raises one of FAILURES if the function fails in every attempt. Raises SweepFailed if an executor's code or
        libraries differ from the driver's, or if the host `on` has no executor any more.
        """
        # An RDD starts a job in 0.1 s. A data frame needs 5 s of planning before the first job, then 0.2 s per job.
        recipe = pickle.dumps((self.terms, on, pickle.dumps(call)))
        until = math.inf
        while time.monotonic() < until:
            try:
                (found,) = collect_rows(self.spark.sparkContext.parallelize([recipe], 1).map(_run_recipe), 1)
            except FAILURES as error:
                if self.is_cluster and _lacks_code(_reason(error)):
                    raise self._unable(error) from error
                raise
            facts, result = pickle.loads(found)
            self._meet(facts)
            if result is not None:
                value: R = pickle.loads(result)
                return value
            until = min(until, time.monotonic() + session.EXECUTORS_S)
            if on is not None:
                self.stay_on(on)
        raise SweepFailed(_gone(on))

    def stay_on(self, host: str) -> None:
        """Release the executors of all other hosts, because CPU times of two hosts must not share a table.

        If the host has lost its executors, request as many executors as the session had at first. Spark chooses their
        hosts. Raises SweepFailed if the host gets no executor in EXECUTORS_S (120 s).
        """
        if not self.is_cluster:
            return
        requested_at = None
        while host not in (present := self._present()).values():
            if requested_at is None:
                requested_at = time.monotonic()
                self._request(self._count_at_first)
            elif time.monotonic() - requested_at > session.EXECUTORS_S:
                raise SweepFailed(_gone(host))
            time.sleep(0.1)
        others = [executor for executor, its_host in present.items() if its_host != host]
        if others:
            jvm: Any = self.spark.sparkContext._jvm
            released = jvm.java.util.ArrayList()
            for executor in others:
                released.add(executor)
            self._context.killExecutors(jvm.org.apache.spark.api.python.PythonUtils.toSeq(released))
        if others or requested_at is not None:
            self._request(len(present) - len(others))  # Spark replaces lost executors only up to a requested number

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    def _request(self, total: int) -> None:
        jvm: Any = self.spark.sparkContext._jvm
        nowhere = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._context.requestTotalExecutors(total, 0, nowhere)

    def _addresses(self, stage: int) -> dict[int, str]:
        """Return the address of the host that ran each task of a Spark stage, by the task's index."""
        self._context.listenerBus().waitUntilEmpty()
        known = self._context.statusStore()
        found = known.taskList(stage, known.lastStageAttempt(stage).attemptId(), 1 << 20)
        tasks = (found.apply(i) for i in range(found.size()))
        return {task.index(): task.host() for task in tasks}

    def _present(self) -> dict[str, str | None]:
        """Return the name of the host of each live executor, by executor id; None if the host is not known yet."""
        found = self._context.statusStore().executorList(True)
        executors = (found.apply(i) for i in range(found.size()))
        addresses = {one.id(): one.hostPort().rpartition(":")[0] for one in executors if one.id() != "driver"}
        return {executor: self._hosts_by_address.get(address) for executor, address in addresses.items()}

    def _meet(self, facts: Facts) -> None:
        require(self.terms, facts)
        self.hosts.setdefault(facts["host"], facts)

    def _unable(self, error: Exception) -> SweepFailed:
        reason = _reason(error)
        return SweepFailed(f"an executor cannot work: {reason}" + f"; {_MEND}" * _lacks_code(reason))


@contextmanager
def open_executors(
    master: str | None, settings: Mapping[str, str] | None = None, archive: Path | None = None
) -> Iterator[Executors]:
    """Open a Spark session and check the hosts of its executors. Arguments: see `session`.

    master: None: all cores of this machine. Raises MissingTool, SweepFailed.
    """
    master = retrying(master or "local[*]")
    with session.session(master, settings, archive) as spark:
        executors = Executors(spark, master)
        executors.prepare()
        yield executors


@cache
def host_facts() -> Facts:
    """Return the facts of this host and process that results depend on. They are determined once per process."""
    return environment() | {CODE: code_digest()}


def terms_of(facts: Facts) -> dict[str, str | None]:
    """Return the facts that must be the same on all hosts of a sweep: the hash of the code, versions of libraries."""
    return {CODE: facts[CODE], **libraries(facts), **facts["codecs"]}


def require(terms: Mapping[str, str | None], facts: Facts) -> None:
    """Raise SweepFailed if the facts of a host or worker differ from the driver's."""
    if differing := _differing(terms, facts):
        raise SweepFailed(f"{facts['host']} would not measure the same: {differing}; {_MEND}")


# Until an executor's code is checked, the driver and the executor exchange only builtin types.
def _prepare_slot(
    terms: Mapping[str, str | None], calls: bytes, _: Iterator[int]
) -> Iterator[tuple[int, int, list[Any], Facts]]:
    """Run a part of the pickled calls in one slot (task) of a host. The slots of a host divide the calls among them.

    Nothing is run if the host differs from the driver's terms, because the driver will refuse the host. Yield the
    number of the Spark stage, the number of the slot, what the calls returned, and the facts of the host.
    """
    context = BarrierTaskContext.get()
    facts, me = host_facts(), context.partitionId()
    hosts = context.allGather(facts["host"])
    neighbours = [i for i, host in enumerate(hosts) if host == facts["host"]]
    own = [] if _differing(terms, facts) else pickle.loads(calls)[neighbours.index(me) :: len(neighbours)]
    yield context.stageId(), me, [function(argument) for function, argument in own], facts


def _run_recipe(recipe: bytes) -> bytes:
    """Run a pickled call in a Spark task. Return the pickled facts of the host and the result.

    The result is None if nothing was run, because the host differs from the driver or is not the wanted host.
    """
    terms, on, call = pickle.loads(recipe)
    facts = host_facts()
    if _differing(terms, facts) or on not in (None, facts["host"]):
        return pickle.dumps((facts, None))
    function, argument = pickle.loads(call)
    return pickle.dumps((facts, pickle.dumps(function(argument))))


def _gone(host: str | None) -> str:
    return (
        f"{host} has no executor any more, and times of two hosts must not share a table: resume the run when it has "
        "one again"
    )


def _reason(error: Exception) -> str:
    """Return the Python error in Spark's message, as one line. If there is none, return the cause that Spark gives."""
    quoted = str(error).partition("Traceback (most recent call last):")[2].splitlines()
    messages = (line for line in quoted if line and not line[0].isspace())
    return next(messages, None) or cause(error)


def _lacks_code(reason: str) -> bool:
    return any(each in reason for each in ("No module named", "Can't get attribute", "Cannot run program"))


def _differing(terms: Mapping[str, str | None], facts: Facts) -> str:
    """Describe the differences between a host's facts and the driver's terms; an empty text if there are none."""
    there = terms_of(facts)
    if there[CODE] != terms[CODE]:
        return "its kfbench has other code than the driver's"
    return ", ".join(
        f"{name} {there.get(name)} instead of {here}" for name, here in terms.items() if there.get(name) != here
    )


def collect_rows(rows: RDD[R], count: int) -> list[R]:
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


def await_job(spark: SparkSession, job: Callable[[], R]) -> R:
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


@dataclass(frozen=True)
class Lost:
    """The result of a task that failed in every attempt.

    reason: the kind of failure. The names and numbers of Spark's message (hosts, tasks, attempts) are left out, because
    rows are published and compared.
    """

    reason: str


def map_tasks(
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
        for _, result in run_calls(executors, calls, executors.slots()):
            progress.update(bar, advance=1)
            yield result


def run_calls(
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


def attempt_calls(
    executors: Executors, calls: Sequence[Call[T, R]], workers: int, harmless: Call[T, R], on: str | None = None
) -> Iterator[tuple[T, R | Lost]]:
    """Run the calls as `run_calls` does. The result is Lost if a task failed in every attempt.

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

    return run_calls(executors, calls, workers, on, lost)


def _failed(error: Exception) -> SweepFailed:
    return SweepFailed(f"a Spark task failed in every attempt: {cause(error)}")
