"""The executors of a cluster: what their hosts are, whether they run this code, and one host to measure CPU on."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import BarrierTaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kfbench.measure.environment import environment
from kfbench.sweep.packing import code_digest
from kfbench.sweep.spark.session import SweepFailed, cause, slots

CODE: Final = "code"
_MEND: Final = "write an archive with `kfbench pack FILE.tar.gz` and give it with --archive"

Facts = dict[str, Any]
Call = tuple[Callable[[Any], Any], Any]


def prepare_hosts(spark: SparkSession, calls: Sequence[Call] = ()) -> dict[str, Facts]:
    """The facts of each host that has executors, by what `host` calls it there, after the calls ran once on each.

    calls: what compiles kernels, say. A host shares them out among its slots, all hosts at the same time. Raises
    SweepFailed: also for a host whose kfbench, codecs or NumPy are not the driver's, and would give other bytes.
    """
    count = slots(spark)
    each = spark.sparkContext.parallelize(range(count), count).barrier()
    try:
        told = each.mapPartitions(partial(_prepared, pickle.dumps(list(calls)))).collect()
    except (PySparkException, Py4JError) as error:
        reason = _reason(error)
        missing = "No module named" in reason or "Cannot run program" in reason
        raise SweepFailed(f"an executor cannot work: {reason}" + f"; {_MEND}" * missing) from error
    found: dict[str, Facts] = {facts["host"]: facts for facts in told}
    here = host_facts()
    for name, facts in sorted(found.items()):
        if differing := _differing(facts, here):
            raise SweepFailed(f"{name} would measure other bytes: {differing}; {_MEND}")
    return found


def stay_on_one_host(spark: SparkSession) -> None:
    """Give back all executors but those of one host, for good: CPU times of two hosts share no table."""
    context: Any = spark.sparkContext._jsc.sc()
    jvm: Any = spark.sparkContext._jvm
    found = context.statusStore().executorList(True)  # those that are there
    each = [found.apply(i) for i in range(found.size())]
    on = {one.id(): one.hostPort().rpartition(":")[0] for one in each if one.id() != "driver"}
    if len(set(on.values())) < 2:
        return
    kept = min(on.values())
    others = jvm.java.util.ArrayList()
    for executor, host in on.items():
        if host != kept:
            others.add(executor)
    context.killExecutors(jvm.org.apache.spark.api.python.PythonUtils.toSeq(others))
    # Spark counts from the executors that were asked for one by one, which is none: it would not replace a lost one.
    context.requestExecutors(len(on) - len(others))


def host_facts(known: Facts | None = None) -> Facts:
    """What a result depends on, of the host that asks. known: its environment, where that was looked at before."""
    return (environment() if known is None else known) | {CODE: code_digest()}


def _prepared(calls: bytes, _: Iterator[int]) -> Iterator[Facts]:
    """What a slot runs: its share of its host's calls."""
    context = BarrierTaskContext.get()
    hosts = [info.address.rpartition(":")[0] for info in context.getTaskInfos()]
    me = context.partitionId()
    neighbours = [i for i, host in enumerate(hosts) if host == hosts[me]]
    for function, argument in pickle.loads(calls)[neighbours.index(me) :: len(neighbours)]:
        function(argument)
    yield host_facts()


def _reason(error: Exception) -> str:
    """What Python said where a task failed, which Spark quotes among its own words; else what Spark says."""
    quoted = str(error).partition("Traceback (most recent call last):")[2].splitlines()
    said = (line for line in quoted if line and not line[0].isspace())
    return next(said, None) or cause(error)


def _differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """What is not the same, in words; empty where all is."""
    if there[CODE] != here[CODE]:
        return "its kfbench is of other code than this one"
    pairs = {name: (there["codecs"].get(name), version) for name, version in here["codecs"].items()}
    pairs["numpy"] = (there["packages"].get("numpy"), here["packages"].get("numpy"))
    return ", ".join(f"{name} {a} where this has {b}" for name, (a, b) in pairs.items() if a != b)
