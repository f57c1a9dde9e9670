"""Read a Kafka topic with Spark: apply a function to the rows of each partition, on the executor that reads them."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from rich.console import Console

from kfbench.errors import MissingTool
from kfbench.progress import counting
from kfbench.sources.topic import NO_LEADER, Topic
from kfbench.sweep.spark.executors import FAILURES, await_job, host_facts, open_executors, require
from kfbench.sweep.spark.session import JARS_FROM, SweepFailed, cause

RESULT: Final = "result"
MOST_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
ADMIN_WAITS: Final = {"request.timeout.ms": "10000", "default.api.timeout.ms": "15000"}
UNKNOWN_SIZE: Final = -1
BATCH_BYTES: Final = 4 << 20  # the largest size of the rows that Spark sends to a Python worker at once

R = TypeVar("R")


def topic_mapped(
    topic: Topic,
    function_for: Callable[[Mapping[int, int]], Callable[[Iterable[pa.RecordBatch]], R]],
    connector: str | None = None,
    master: str | None = None,
    console: Console | None = None,
    archive: Path | None = None,
) -> list[R]:
    """Apply a function to the rows of each Spark partition, empty partitions included. Return the results in any order.

    Args:
        topic: the topic and the offsets to read.
        function_for: returns the function. Its argument is the size of each Kafka partition by number: the bytes of the
            log on its leader, UNKNOWN_SIZE (-1) if the broker does not return it, NO_LEADER if there is no leader.
        connector: a folder with the jars of Spark's Kafka source, or its Maven coordinates. None: the source of this
            Spark version, from Maven.
        master: a Spark master; None: all cores of this machine.
        archive: the file that `kfbench pack` wrote, for a cluster's executors.

    Raises MissingTool, SweepFailed.
    """
    settings = connector_settings(connector) | {"spark.sql.session.timeZone": "UTC", MOST_BYTES: str(BATCH_BYTES)}
    console = console or Console(stderr=True)
    with open_executors(master, settings, archive) as executors, counting(console) as progress:
        spark = executors.spark
        bar = progress.add_task("topic", total=1, unit="topics", failed="")
        try:
            sizes = await_job(spark, partial(_partition_sizes, spark, topic))
            function = function_for(sizes)
            if NO_LEADER in sizes.values():  # otherwise Spark would wait for a leader
                topic = topic.of(i for i, size in sizes.items() if size != NO_LEADER)
            rows = spark.read.format("kafka").options(**topic.source_options()).load()
            mapped = rows.mapInArrow(partial(_apply, executors.terms, function), f"{RESULT} binary")
            found = await_job(spark, mapped.toArrow)
        except FAILURES as error:
            raise SweepFailed(f"{topic.bootstrap}/{topic.name}: {cause(error)}") from error
        progress.update(bar, advance=1)
        return [pickle.loads(each.as_py()) for each in found[RESULT]]


def _partition_sizes(spark: SparkSession, topic: Topic) -> dict[int, int]:
    """Return the size of each partition to read, in bytes (or UNKNOWN_SIZE or NO_LEADER), by partition number.

    Raises Py4JError for a missing topic or broker. Raises SweepFailed if the user chose a partition that is missing or
    has no leader.
    """
    jvm: Any = spark._jvm
    properties, names, brokers = jvm.java.util.HashMap(), jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for name, value in {**ADMIN_WAITS, **topic.properties}.items():
        properties.put(name, value)
    names.add(topic.name)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        description = admin.describeTopics(names).allTopicNames().get().get(topic.name)
        leaders = {each.partition(): each.leader().id() for each in description.partitions() if each.leader()}
        leaderless = [each.partition() for each in description.partitions() if not each.leader()]
        for broker in sorted(set(leaders.values())):
            brokers.add(broker)
        sizes = dict.fromkeys(sorted(leaders) if topic.partitions is None else topic.partitions, UNKNOWN_SIZE)
        if absent := sizes.keys() - leaders.keys():
            raise SweepFailed(f"{topic.bootstrap}/{topic.name}: no partition {min(absent)}, or it has no leader")
        with suppress(Py4JError):  # the user may not have the permission
            folders = admin.describeLogDirs(brokers).allDescriptions().get()
            for partition in sizes:
                key = jvm.org.apache.kafka.common.TopicPartition(topic.name, partition)
                replicas = [folder.replicaInfos().get(key) for folder in folders.get(leaders[partition]).values()]
                sizes[partition] = sum(replica.size() for replica in replicas if replica is not None)
        return sizes if topic.partitions is not None else sizes | dict.fromkeys(leaderless, NO_LEADER)
    finally:
        admin.close()


def connector_settings(connector: str | None) -> dict[str, str]:
    """Return the Spark settings that load Spark's Kafka source.

    connector: a folder of jars, or Maven coordinates; None: the coordinates for this Spark version. Raises MissingTool
    for a folder without jars, and for a text that is neither.
    """
    if connector is None:
        connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    elif Path(connector).is_dir():
        jars = sorted(Path(connector).glob("*.jar"))
        if not jars:
            raise MissingTool(
                f"{connector}: no jar in this folder: put spark-sql-kafka-0-10 and its dependencies there"
            )
        return {"spark.jars": ",".join(jar.resolve().as_uri() for jar in jars)}
    if connector.count(":") != 2:
        raise MissingTool(f"{connector}: neither a folder nor GROUP:ARTIFACT:VERSION")
    return {JARS_FROM: connector}


def _apply(
    terms: Mapping[str, str | None],
    function: Callable[[Iterable[pa.RecordBatch]], R],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    require(terms, host_facts())  # this executor may have replaced a checked executor
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(function(batches))], pa.binary())], [RESULT])
