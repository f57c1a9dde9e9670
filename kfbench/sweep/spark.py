"""The runner: cells as Spark tasks, on this machine's cores or on a cluster, the same code for both.

Recipes travel, not data: a cell's seed comes from its axes, so that partitioning, retries and the master cannot change
a result. Each task is a Spark job of its own: the driver stores its rows as they come, in whole or not at all. Bytes
are counted on all cores; CPU is then measured by one task at a time, with nothing beside it.
"""

import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kfbench.errors import KfbenchError, MissingTool
from kfbench.measure.environment import environment
from kfbench.measure.schema import SCHEMA
from kfbench.sources.topic import NO_LEADER, Topic
from kfbench.store import RunWriter, create_run
from kfbench.sweep.cell import estimate_s, measure_recipes
from kfbench.sweep.compiling import compilations
from kfbench.sweep.grid import Cell, Profile
from kfbench.sweep.java import java_home

TASK_S: Final = 3.0  # long enough to hide the 0.2 s that Spark plans a task, short enough to keep all cores busy to the end
ALONE_TASK_S: Final = 8.0  # one at a time nothing hides the planning
TASK_ATTEMPTS: Final = 4
COMPILING_S: Final = 30.0  # about what it takes at worst: a sweep that is shorter compiles what it meets
LOGGING: Final = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n%ex
"""


RESULT: Final = "result"
JARS_FROM: Final = "spark.jars.packages"
MOST_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
ADMIN_WAITS: Final = {"request.timeout.ms": "10000", "default.api.timeout.ms": "15000"}
UNKNOWN_SIZE: Final = -1
BATCH_BYTES: Final = 4 << 20  # of rows that a Python worker is given at a time

T = TypeVar("T")
R = TypeVar("R")


class SweepFailed(KfbenchError):
    """Spark itself failed; a cell that fails is a row, not this."""


def run_sweep(
    profile: Profile, out: Path, master: str | None = None, command: str = "", console: Console | None = None
) -> Path:
    """Measure every cell of the profile into a new run under OUT/runs/; the path of the finished run.

    master: a Spark master; None: all cores of this machine. command: what the user typed, for the manifest. Progress
    goes to the console when it is a terminal. How many rows are errors is in the manifest's counts. Raises MissingTool,
    RunError, SweepFailed.
    """
    console = console or Console(stderr=True)
    asked = retrying(master or "local[*]")
    with _session(asked) as spark:
        writer = create_run(out, _facts(profile, asked, command, spark))
        counts: dict[str, int] = {"cells": len(profile.cells), "ok": 0, "skipped": 0, "error": 0}
        hosts: set[str] = set()
        cores = int(spark.sparkContext.defaultParallelism)
        with _progress(console) as progress:
            worth = asked.startswith("local") and sum(map(estimate_s, profile.cells)) > COMPILING_S
            if worth:
                calls = compilations(profile.cells)
                bar = progress.add_task("kernels", total=len(calls), unit="groups", failed="")
                for _ in _done(spark, calls, cores, _call, f"{RESULT} binary"):
                    progress.update(bar, advance=1)
            for kind, workers in (("bytes", cores), ("cpu", 1), ("prefix", 1), ("broker", 1)):
                cells = [cell for cell in profile.cells if cell.kind == kind]
                tasks = grouped(cells, ALONE_TASK_S if workers == 1 else TASK_S)
                bar = progress.add_task(kind, total=sum(map(len, tasks)), unit="cells", failed="0 failed rows")
                for task, rows in _done(spark, tasks, workers, measure_recipes, from_arrow_schema(SCHEMA)):
                    _store(rows, writer, counts, hosts)
                    progress.update(bar, advance=len(task), failed=f"{counts['error']} failed rows")
    return writer.complete({"counts": counts, "hosts": sorted(hosts)}).path


def mapped(
    function: Callable[[T], R], tasks: Sequence[T], what: str, master: str | None = None, console: Console | None = None
) -> Iterator[R]:
    """function(task) of every task, as they are finished: whoever needs an order has to find it in the results.

    Tasks, results and the function travel by pickle: a function of a module, or a partial of one. What it raises fails
    the job after TASK_ATTEMPTS, so it returns what is wrong with its input. what: for the progress. Raises MissingTool,
    SweepFailed.
    """
    console = console or Console(stderr=True)
    with _session(retrying(master or "local[*]")) as spark, _progress(console) as progress:
        bar = progress.add_task(what, total=len(tasks), unit="tasks", failed="")
        calls = [(function, task) for task in tasks]
        cores = int(spark.sparkContext.defaultParallelism)
        for _, rows in _done(spark, calls, cores, _call, f"{RESULT} binary"):
            progress.update(bar, advance=1)
            yield pickle.loads(rows[RESULT][0].as_py())


def topic_mapped(
    topic: Topic,
    function_for: Callable[[Mapping[int, int]], Callable[[Iterable[pa.RecordBatch]], R]],
    connector: str | None = None,
    master: str | None = None,
    console: Console | None = None,
) -> list[R]:
    """A function applied to the rows of every partition that Spark's Kafka source gives, also to none; in no order.

    function_for: gives it, once it is told what each partition takes on the broker (bytes of its leader's log; -1
    where the broker does not say, NO_LEADER where there is nobody to ask). connector: a folder with the source's jars,
    or its Maven coordinates; None: Spark's own, of this version. Raises MissingTool, SweepFailed.
    """
    settings = connector_settings(connector) | {"spark.sql.session.timeZone": "UTC", MOST_BYTES: str(BATCH_BYTES)}
    console = console or Console(stderr=True)
    with _session(retrying(master or "local[*]"), settings) as spark, _progress(console) as progress:
        bar = progress.add_task("topic", total=1, unit="topics", failed="")
        try:
            sizes = _partition_sizes(spark, topic)
            function = function_for(sizes)
            if NO_LEADER in sizes.values():  # Spark would wait for it
                topic = topic.of(i for i, size in sizes.items() if size != NO_LEADER)
            rows = spark.read.format("kafka").options(**topic.source_options()).load()
            found = rows.mapInArrow(partial(_fed, function), f"{RESULT} binary").toArrow()
        except (PySparkException, Py4JError) as error:
            raise SweepFailed(f"{topic.bootstrap}/{topic.name}: {_cause(error)}") from error
        progress.update(bar, advance=1)
        return [pickle.loads(each.as_py()) for each in found[RESULT]]


def _partition_sizes(spark: SparkSession, topic: Topic) -> dict[int, int]:
    """Of all partitions that are read. Raises Py4JError for a topic or a broker that is not there."""
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
        with suppress(Py4JError):  # it may be forbidden: then nobody knows
            folders = admin.describeLogDirs(brokers).allDescriptions().get()
            for partition in sizes:
                key = jvm.org.apache.kafka.common.TopicPartition(topic.name, partition)
                replicas = [folder.replicaInfos().get(key) for folder in folders.get(leaders[partition]).values()]
                sizes[partition] = sum(replica.size() for replica in replicas if replica is not None)
        return sizes if topic.partitions is not None else sizes | dict.fromkeys(leaderless, NO_LEADER)
    finally:
        admin.close()


def connector_settings(connector: str | None) -> dict[str, str]:
    """Where Spark takes its Kafka source from. Raises MissingTool for a folder without jars."""
    if connector is None:
        connector = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    elif Path(connector).is_dir():
        jars = sorted(Path(connector).glob("*.jar"))
        if not jars:
            raise MissingTool(f"{connector}: no jar in this folder: spark-sql-kafka-0-10 and what it needs are wanted")
        return {"spark.jars": ",".join(jar.resolve().as_uri() for jar in jars)}
    if connector.count(":") != 2:
        raise MissingTool(f"{connector}: no folder, and no GROUP:ARTIFACT:VERSION")
    return {JARS_FROM: connector}


def _fed(
    function: Callable[[Iterable[pa.RecordBatch]], R], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a Spark task of `topic_mapped` runs."""
    yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(function(batches))], pa.binary())], [RESULT])


def _call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a Spark task of `mapped` runs."""
    for batch in batches:
        for recipe in batch.column("recipe"):
            function, task = pickle.loads(recipe.as_py())
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(function(task))], pa.binary())], [RESULT])


def grouped(cells: Sequence[Cell], task_s: float = TASK_S) -> list[list[Cell]]:
    """Neighbouring cells together, about task_s of work each; the longest first."""
    tasks: list[list[Cell]] = []
    spent = task_s
    for cell in cells:
        cost = estimate_s(cell)
        if spent + cost > task_s:
            tasks.append([])
            spent = 0.0
        tasks[-1].append(cell)
        spent += cost
    return sorted(tasks, key=lambda task: sum(map(estimate_s, task)), reverse=True)


def retrying(master: str) -> str:
    """local[N] never tries a failed task again; local[N,4] does."""
    found = re.fullmatch(r"local(?:\[\s*([0-9]+|\*)\s*\])?", master)
    return f"local[{found[1] or 1},{TASK_ATTEMPTS}]" if found else master


def _done(
    spark: SparkSession,
    tasks: Sequence[T],
    workers: int,
    run_recipes: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> Iterator[tuple[T, pa.Table]]:
    """Each task and its rows as they are finished, `workers` at a time."""

    def run(task: T) -> tuple[T, pa.Table]:
        recipe = spark.createDataFrame([(pickle.dumps(task),)], "recipe binary")
        return task, recipe.coalesce(1).mapInArrow(run_recipes, schema).toArrow()

    pending: set[Future[tuple[T, pa.Table]]] = set()
    with ThreadPoolExecutor(workers) as pool:
        try:
            pending = {pool.submit(run, task) for task in tasks}
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for each in finished:
                    yield each.result()
        except (PySparkException, Py4JError) as error:
            raise SweepFailed(f"Spark gave a task up: {_cause(error)}") from error
        finally:
            if pending:  # interrupted: the run stays unfinished, and says so
                for each in pending:
                    each.cancel()
                spark.sparkContext.cancelAllJobs()


def _store(rows: pa.Table, writer: RunWriter, counts: dict[str, int], hosts: set[str]) -> None:
    writer.add(rows)
    for each in rows["status"].value_counts().to_pylist():
        counts[each["values"]] += each["counts"]
    hosts.update(rows["host"].unique().to_pylist())


def _facts(profile: Profile, master: str, command: str, spark: SparkSession) -> dict[str, Any]:
    facts = environment()
    java = spark.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    return {
        "profile": profile.name,
        "title": profile.title,
        "analysis": profile.analysis,
        "grids": [
            {"name": grid.name, "title": grid.title, "analysis": grid.analysis, "measure": list(grid.measure)}
            for grid in profile.grids
        ],
        "profile_text": profile.text,
        "seed": profile.seed,
        "command": command,
        "master": master,
        "spark": {"version": spark.version, "java": java},
        "git_revision": facts["git_revision"],
        "codecs": facts["codecs"],
        "environment": facts,
    }


@contextmanager
def _session(master: str, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    local = master.startswith("local")
    with tempfile.TemporaryDirectory(prefix="kfbench-spark-") as folder:
        logging = Path(folder, "log4j2.properties")
        logging.write_text(LOGGING)
        log = Path(folder, "spark.log")
        settings = {
            "spark.master": master,
            "spark.app.name": "kfbench",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.speculation": "false",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        }
        if local:
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings |= more or {}
        with _environ(local), _stderr_to(log):
            try:
                builder = SparkSession.builder
                for key, value in settings.items():
                    builder = builder.config(key, value)
                spark = builder.getOrCreate()
            except Exception as error:
                reason = _reason(error, log)
                if JARS_FROM in settings and "unresolved dependency" in reason:
                    reason += " (--connector takes a folder of jars, or other coordinates)"
                raise SweepFailed(f"Spark did not start on {master}: {reason}") from error
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _environ(local: bool) -> Iterator[None]:
    """JAVA_HOME for the JVM, our own interpreter for its Python workers; as before afterwards."""
    home = java_home()
    if home is None:
        raise MissingTool("Spark needs Java 17 or newer: run `make setup`, which brings one, or set JAVA_HOME")
    wanted: dict[str, str | None] = {"JAVA_HOME": str(home)}
    if local:
        wanted |= {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",  # a host need not know its own name
            "SPARK_HOME": None,  # another Spark's JVM would not understand our PySpark
        }
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """The JVM inherits our stderr as it is when it starts, and writes warnings there that no setting turns off."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(error: Exception, log: Path) -> str:
    """What the JVM said last of what went wrong; its stack frames say nothing to a user."""
    said = (line.strip() for line in log.read_text(errors="replace").splitlines())
    lines = [line for line in said if ("rror" in line or "xception" in line) and not line.startswith("at ")]
    return lines[-1] if lines else _cause(error)


def _cause(error: Exception) -> str:
    """The line of a Java or Python traceback that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    caused = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    return next(iter(caused + lines), type(error).__name__)[:400]


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:.1f}/s")


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:>6}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        _Rate(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        refresh_per_second=4,
    )
