"""Open Spark sessions with settings for the JVM and the Python workers. Their messages do not go to the terminal."""

import atexit
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any, Final
from uuid import UUID

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from rich.console import Console

from kfbench.errors import KfbenchError, MissingTool
from kfbench.measure.container import memory_limit_bytes, workers
from kfbench.progress import say
from kfbench.sweep.host.java import UTF8_LOCALE, java_home

TASK_ATTEMPTS: Final = 4
JARS_FROM: Final = "spark.jars.packages"
UNPACKED: Final = "kfbench"  # the folder of the archive, in the executor's working folder
EXECUTORS_S: Final = 120.0  # the longest wait for an executor; a cluster may have to start hosts first
# Executors are complete when no new one has come for this time. Busy hosts start their executors seconds apart.
SETTLED_S: Final = 3.0
# The JVMs only pass tasks on. Their second compiler and a parallel garbage collector would disturb the timing.
QUICK: Final = "-XX:TieredStopAtLevel=1"
LIGHT: Final = f"{QUICK} -XX:+UseSerialGC"
ROOM_BYTES: Final = 1 << 20  # free space that we check first, because a JVM waits forever if it cannot write a file
LOOPBACK: Final = "127.0.0.1"
# The longest folder in which Spark can open a socket: its path has at most 104 bytes on macOS, 108 on Linux.
SOCKET_BYTES: Final = 104 - len(f"/.{UUID(int=0)}.sock")
WORKER_BYTES: Final = 250 << 20  # the memory of a Python worker
JVM_MIB: Final = 1_024  # Spark's default
LEAST_JVM_MIB: Final = 480  # with less, Spark does not start
# Sessions here ignore what other installations of Spark need. On a cluster these are settings of the user.
OF_SPARK: Final = re.compile("(PY)?SPARK_|(HADOOP|YARN)_CONF_DIR$")
SET_BY_PYSPARK: Final = {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
HARMLESS: Final = {"SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_USER"} | SET_BY_PYSPARK  # they stay as they are
# These would connect to a server or to another program's JVM.
CONNECTING: Final = re.compile("SPARK_(REMOTE|LOCAL_REMOTE|API_MODE|CONNECT_.*)$|PYSPARK_GATEWAY_")
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


class SweepFailed(KfbenchError):
    """Spark itself failed, or an executor differs from the driver. (A failed measurement becomes an error row.)"""


@contextmanager
def session(
    master: str, extra_settings: Mapping[str, str] | None = None, archive: Path | None = None
) -> Iterator[SparkSession]:
    """Open a Spark session and wait for its executors.

    Args:
        master: a Spark master, such as local[4] or spark://HOST:PORT.
        extra_settings: Spark settings that are added to ours.
        archive: the file that `kfbench pack` wrote, with Python and packages for every executor.

    Raises MissingTool if there is no Java. Raises SweepFailed if Spark does not start or there is no executor.
    """
    here, temporary = _on_this_machine(master), tempfile.gettempdir()
    takes_sockets = len(os.fsencode(temporary)) <= SOCKET_BYTES
    with tempfile.TemporaryDirectory(prefix="kfbench-spark-") as folder:
        _check_room(Path(folder))
        logging_file = Path(folder, "log4j2.properties")
        logging_file.write_text(LOGGING)
        log = Path(folder, "spark.log")
        settings = {
            "spark.master": master,
            "spark.app.name": "kfbench",
            "spark.driver.extraJavaOptions": f"{LIGHT} -Dlog4j2.configurationFile={logging_file.as_uri()}",
            "spark.executor.defaultJavaOptions": QUICK,  # a user's extraJavaOptions may choose a collector
            "spark.python.unix.domain.socket.enabled": str(takes_sockets).lower(),
            "spark.speculation": "false",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(Path(folder, "warehouse")),
        }
        if here:
            settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        if is_cluster(master):  # Spark must not add or remove executors: CPU is timed on one checked host
            settings["spark.dynamicAllocation.enabled"] = "false"
        else:
            settings |= {"spark.local.dir": folder, "spark.driver.memory": f"{_jvm_mib()}m"}
            # The JVM outlives the session's folder, and looks at no TMPDIR.
            settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={temporary}"'
            settings |= {f"spark.executorEnv.{name}": value for name, value in _imports().items()}
        if archive is not None:
            settings["spark.archives"] = f"{archive.resolve().as_uri()}#{UNPACKED}"
        settings |= extra_settings or {}
        with ExitStack() as stack:
            stack.enter_context(_environ(master, archive is not None))
            with _stderr_to(log):
                try:
                    builder = SparkSession.builder
                    for key, value in settings.items():
                        builder = builder.config(key, value)
                    spark = builder.getOrCreate()
                except Exception as error:
                    reason = _reason(error, log)
                    if JARS_FROM in settings and "unresolved dependency" in reason:
                        reason += " (--connector takes a folder of jars, or other coordinates)"
                    if "PYSPARK_SUBMIT_ARGS" in os.environ:
                        reason += " (PYSPARK_SUBMIT_ARGS is set)"
                    raise SweepFailed(f"Spark did not start on {master}: {reason}") from error
            stack.enter_context(_quiet(spark))
            try:
                if is_cluster(master):
                    _await_executors(spark, master)
                yield spark
            finally:
                # Stop in another thread, because a signal may have interrupted a request of this one (see
                # `executors`). An error means that the JVM has ended.
                with ThreadPoolExecutor(1) as pool, suppress(Py4JError, ConnectionError):
                    pool.submit(_end, spark, settings).result()


def _end(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Stop a session and clear its settings in the JVM.

    The JVM keeps running, and the next session would take the settings as defaults.
    """
    for key in settings:
        spark.sparkContext._jvm.java.lang.System.clearProperty(key)  # type: ignore[union-attr]
    spark.stop()


def is_cluster(master: str) -> bool:
    """Return True if the master starts executors as separate processes: every master except local and local[...]."""
    return re.match(r"local(\[|$)", master) is None


def _on_this_machine(master: str) -> bool:
    """Return True if driver and executors run on this machine, so they connect on loopback."""
    return master.startswith("local") or re.match(r"spark://(127\.[\d.]+|localhost|\[::1\]):", master) is not None


def _await_executors(spark: SparkSession, master: str) -> None:
    """Wait until executors have started and no new one has come for 3 s (SETTLED_S).

    Raises SweepFailed if there is none after 120 s (EXECUTORS_S).
    """
    context: Any = spark.sparkContext._jsc.sc()
    began = changed = time.monotonic()
    before = 0
    while True:
        found = context.getExecutorMemoryStatus().size() - 1  # one is the driver
        now = time.monotonic()
        if found != before:
            before, changed = found, now
        if found and now - changed > SETTLED_S:
            return
        if not found and now - began > EXECUTORS_S:
            memory = context.executorMemory()
            raise SweepFailed(
                f"{master}: no executor in {EXECUTORS_S:.0f} s: no worker has a free core and {memory} MiB, "
                "or the workers do not reach this machine (spark.driver.host)"
            )
        time.sleep(0.05)


def retrying(master: str) -> str:
    """Add retries of failed tasks to a local master: local[N] becomes local[N,4]. Return other masters unchanged.

    In a container, local[*] is as many workers as its limits of cores and memory allow.
    """
    found = re.fullmatch(r"local(?:\[\s*([0-9]+|\*)\s*\])?", master)
    if not found:
        return master
    count = found[1] or "1"
    if count == "*" and memory_limit_bytes() is not None:
        count = str(workers(WORKER_BYTES))
    return f"local[{count},{TASK_ATTEMPTS}]"


def versions(spark: SparkSession) -> dict[str, str]:
    """Return the versions of Spark and of its Java."""
    java = spark.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    return {"version": spark.version, "java": java}


def cause(error: Exception) -> str:
    """Return the line that names the cause in a Java or Python traceback; for Java, at most 400 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    caused = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    return next(iter(caused + lines), type(error).__name__)[:400]


@contextmanager
def _quiet(spark: SparkSession) -> Iterator[None]:
    """Suppress tracebacks of logging and socketserver about an ended JVM, while the `with` body runs."""
    nowhere = logging.NullHandler()  # if the root has a handler, logging adds none that writes to stderr
    logging.getLogger().addHandler(nowhere)
    updates: Any = spark.sparkContext._accumulatorServer
    updates.handle_error = lambda *_: None
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nowhere)


def _check_room(folder: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM_BYTES))
            file.flush()
    except OSError as error:
        raise SweepFailed(f"{folder.parent}: no room for Spark's temporary files: {error.strerror}") from error


def _reason(error: Exception, log: Path) -> str:
    """Return the last line in the JVM's log that names an error; if there is none, the cause of `error`."""
    lines = (line.strip() for line in log.read_text(errors="replace").splitlines())
    errors = [line for line in lines if ("rror" in line or "xception" in line) and not line.startswith("at ")]
    return errors[-1] if errors else cause(error)


@contextmanager
def _environ(master: str, archive: bool) -> Iterator[None]:
    """Set environment variables while the `with` body runs: JAVA_HOME for the JVM, the Python of Spark's workers.

    archive: True if the executors use the Python of an archive. Raises MissingTool if there is no Java.
    """
    home = java_home()
    if home is None:
        raise MissingTool(
            "Spark needs Java 17 or newer: set JAVA_HOME, or pip install 'kfbench[sweep]', which brings one"
        )
    wanted: dict[str, str | None] = {
        **UTF8_LOCALE,
        "JAVA_HOME": str(home),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": None,  # the JVM of another Spark would not understand our PySpark
    }
    if _on_this_machine(master):
        wanted |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK}  # the host's own name may not resolve
    if master.startswith("local-cluster"):
        wanted["SPARK_HOME"] = str(_own_spark_home())
    elif is_cluster(master) and (other := os.environ.get("SPARK_HOME")):
        wanted["SPARK_CONF_DIR"] = os.environ.get("SPARK_CONF_DIR", f"{other}/conf")  # the cluster's settings
    if archive:
        wanted["PYSPARK_PYTHON"] = f"./{UNPACKED}/bin/python"
    redirecting = CONNECTING if is_cluster(master) else OF_SPARK
    ignored = {name for name, value in os.environ.items() if redirecting.match(name) and wanted.get(name) != value}
    wanted = dict.fromkeys(ignored - HARMLESS) | wanted
    if not_set := sorted(name for name in ignored - HARMLESS if os.environ[name]):
        _say_ignored(", ".join(not_set))
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    try:
        yield
    finally:
        _set(before)


@cache
def _say_ignored(names: str) -> None:
    say(Console(stderr=True), f"this session of Spark does not use {names}")


def _imports() -> dict[str, str]:
    """Return the environment in which a worker on this machine imports what this process imports.

    Otherwise it would first import modules of the working folder, whatever their names are.
    """
    folders = [str(Path(folder).absolute()) for folder in sys.path if os.pathsep not in folder]
    return {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}


def _jvm_mib() -> int:
    """Return the memory of a local session's JVM: a third of a container's memory, and at most Spark's default."""
    limit_bytes = memory_limit_bytes()
    return JVM_MIB if limit_bytes is None else max(LEAST_JVM_MIB, min(JVM_MIB, (limit_bytes >> 20) // 3))


@cache
def _own_spark_home() -> Path:
    """Return a temporary folder of links to PySpark's files, for SPARK_HOME.

    Workers of a local cluster write to SPARK_HOME/work. They must not write into the installed PySpark.
    """
    home = Path(tempfile.mkdtemp(prefix="kfbench-spark-home-"))
    atexit.register(rmtree, home, ignore_errors=True)
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    return home


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Send stderr to the file `log` while the `with` body runs, in which the JVM starts.

    The JVM inherits stderr, and no setting turns off its warnings.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
