"""The executors of a session: what their hosts are, whether they run this code, and one host to measure CPU on."""

import math
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

from pyspark import BarrierTaskContext
from pyspark.sql import SparkSession

from kfbench.measure.environment import environment, libraries
from kfbench.sweep.host.packing import code_digest
from kfbench.sweep.spark import session
from kfbench.sweep.spark.jobs import FAILURES, awaited, collected
from kfbench.sweep.spark.session import SweepFailed, cause, is_cluster, slots

CODE: Final = "code"
_MEND: Final = "write an archive with `kfbench pack FILE.tar.gz` and give it with --archive"

T = TypeVar("T")
R = TypeVar("R")
Call = tuple[Callable[[T], R], T]
Facts = Mapping[str, Any]


class Executors:
    """Runs functions on the executors of a session; of a cluster, only on those that are as the driver.

    An executor may come at any time, in the place of a lost one: each process that runs Python says with its results
    what it is, and looks before it runs anything. hosts: what is known of those that were met, by what `host` calls
    them; on local[N] the one that asks.
    """

    def __init__(self, spark: SparkSession, master: str) -> None:
        own = host_facts()
        self.spark = spark
        self.is_cluster = is_cluster(master)
        self.terms = terms_of(own) if self.is_cluster else None
        self.hosts: dict[str, Facts] = {} if self.is_cluster else {own["host"]: own}
        self._hosts_by_address: dict[str, str] = {}
        self._at_first = len(self._there())

    def slots(self) -> int:
        """Tasks that run at a time, on all executors that are there."""
        return slots(self.spark)

    def prepare(self, calls: Sequence[Call[Any, Any]] = ()) -> None:
        """Meet every host of a cluster, where the calls run once on each: what compiles kernels, say.

        A host shares them out among its slots, all hosts at the same time. Raises SweepFailed: also for a host whose
        kfbench or libraries are not the driver's, and would give other bytes or times.
        """
        if not self.is_cluster:
            return
        count = self.slots()
        each = self.spark.sparkContext.parallelize(range(count), count).barrier()
        prepared = partial(_prepared, self.terms, pickle.dumps(list(calls)))
        try:
            told = awaited(self.spark, partial(collected, each.mapPartitions(prepared), count))
        except FAILURES as error:
            raise self._unable(error) from error
        addresses = self._addresses(told[0][0])
        for _, slot, facts in sorted(told, key=lambda each: str(each[-1]["host"])):
            self._meet(facts)
            self._hosts_by_address[addresses[slot]] = facts["host"]

    def run(self, call: Call[T, R], on: str | None = None) -> R:
        """The function of one argument, as one Spark task. on: the only host that may run it.

        Raises one of FAILURES for what the function raises in every attempt; SweepFailed for an executor that is not
        as the driver, and where the host is gone.
        """
        # By RDD: the planner of data frames takes 5 s before its first job, and 0.2 s instead of 0.1 s before each.
        recipe = pickle.dumps((self.terms, on, pickle.dumps(call)))
        until = math.inf
        while time.monotonic() < until:
            try:
                (found,) = collected(self.spark.sparkContext.parallelize([recipe], 1).map(_called), 1)
            except FAILURES as error:
                if self.is_cluster and _lacks_something(_reason(error)):
                    raise self._unable(error) from error
                raise
            facts, result = pickle.loads(found)
            if self.is_cluster:
                self._meet(facts)
            if result is not None:
                given: R = pickle.loads(result)
                return given
            until = min(until, time.monotonic() + session.EXECUTORS_S)
            if on is not None:
                self.stay_on(on)
        raise SweepFailed(_gone(on))

    def stay_on(self, host: str) -> None:
        """Give back all executors but those of the host: CPU times of two hosts share no table.

        Where it has lost its own, as many as there were at first are asked for again: it is Spark that chooses where.
        Raises SweepFailed where the host gives none.
        """
        if not self.is_cluster:
            return
        asked_at = None
        while host not in (there := self._there()).values():
            if asked_at is None:
                asked_at = time.monotonic()
                self._ask_for(self._at_first)
            elif time.monotonic() - asked_at > session.EXECUTORS_S:
                raise SweepFailed(_gone(host))
            time.sleep(0.1)
        others = [executor for executor, its_host in there.items() if its_host != host]
        if others:
            jvm: Any = self.spark.sparkContext._jvm
            given_back = jvm.java.util.ArrayList()
            for executor in others:
                given_back.add(executor)
            self._context.killExecutors(jvm.org.apache.spark.api.python.PythonUtils.toSeq(given_back))
        if others or asked_at is not None:
            self._ask_for(len(there) - len(others))  # Spark would not replace a lost one that was never asked for

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()

    def _ask_for(self, total: int) -> None:
        jvm: Any = self.spark.sparkContext._jvm
        nowhere = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._context.requestTotalExecutors(total, 0, nowhere)

    def _addresses(self, stage: int) -> dict[int, str]:
        """Where Spark ran the tasks of a stage: what it calls a host is not what the host calls itself."""
        self._context.listenerBus().waitUntilEmpty()
        known = self._context.statusStore()
        found = known.taskList(stage, known.lastStageAttempt(stage).attemptId(), 1 << 20)
        each = (found.apply(i) for i in range(found.size()))
        return {task.index(): task.host() for task in each}

    def _there(self) -> dict[str, str | None]:
        """Executors that live, and the host of each; None: not met yet."""
        found = self._context.statusStore().executorList(True)
        each = (found.apply(i) for i in range(found.size()))
        addresses = {one.id(): one.hostPort().rpartition(":")[0] for one in each if one.id() != "driver"}
        return {executor: self._hosts_by_address.get(address) for executor, address in addresses.items()}

    def _meet(self, facts: Facts) -> None:
        """Raises SweepFailed for one that is not as the driver."""
        require(self.terms, facts)
        self.hosts.setdefault(facts["host"], facts)

    def _unable(self, error: Exception) -> SweepFailed:
        reason = _reason(error)
        return SweepFailed(f"an executor cannot work: {reason}" + f"; {_MEND}" * _lacks_something(reason))


@cache
def host_facts() -> Facts:
    """What a result depends on, of the process that asks, as it was when it first asked."""
    return environment() | {CODE: code_digest()}


def terms_of(facts: Facts) -> dict[str, str | None]:
    """What has to be the same wherever a sweep measures."""
    return {CODE: facts[CODE], **libraries(facts), **facts["codecs"]}


def require(terms: Mapping[str, str | None] | None, facts: Facts) -> None:
    """Raises SweepFailed for a host whose facts are not on these terms."""
    if terms is not None and (differing := _differing(terms, facts)):
        raise SweepFailed(f"{facts['host']} would not measure the same: {differing}; {_MEND}")


# What comes from and goes to an executor of other code is made of Python's own types until that is known.
def _prepared(
    terms: Mapping[str, str | None] | None, calls: bytes, _: Iterator[int]
) -> Iterator[tuple[int, int, Facts]]:
    """What a slot runs: its share of its host's calls, unless it will be refused. Its stage, its number there, and
    the facts."""
    context = BarrierTaskContext.get()
    facts, me = host_facts(), context.partitionId()
    hosts = context.allGather(facts["host"])
    neighbours = [i for i, host in enumerate(hosts) if host == facts["host"]]
    if terms is None or not _differing(terms, facts):
        for function, argument in pickle.loads(calls)[neighbours.index(me) :: len(neighbours)]:
            function(argument)
    yield context.stageId(), me, facts


def _called(recipe: bytes) -> bytes:
    """What every Spark task runs. No result: of a process that will be refused, or another host than the one asked."""
    terms, on, call = pickle.loads(recipe)
    if terms is None:
        facts, runs = None, True
    else:
        facts = host_facts()
        runs = not _differing(terms, facts) and on in (None, facts["host"])
    if not runs:
        return pickle.dumps((facts, None))
    function, argument = pickle.loads(call)
    return pickle.dumps((facts, pickle.dumps(function(argument))))


def _gone(host: str | None) -> str:
    return f"{host} has no executor any more, and times of two hosts share no table: resume the run when it has"


def _reason(error: Exception) -> str:
    """What Python said where a task failed, which Spark quotes among its own words; else what Spark says."""
    quoted = str(error).partition("Traceback (most recent call last):")[2].splitlines()
    said = (line for line in quoted if line and not line[0].isspace())
    return next(said, None) or cause(error)


def _lacks_something(reason: str) -> bool:
    return any(each in reason for each in ("No module named", "Can't get attribute", "Cannot run program"))


def _differing(terms: Mapping[str, str | None], facts: Facts) -> str:
    """What is not the same there, in words; empty where all is."""
    there = terms_of(facts)
    if there[CODE] != terms[CODE]:
        return "its kfbench is of other code than this one"
    return ", ".join(
        f"{name} {there.get(name)} where this has {here}" for name, here in terms.items() if there.get(name) != here
    )
