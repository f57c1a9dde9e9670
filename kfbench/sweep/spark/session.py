"""Sessions: a JVM and Python workers that suit us, whatever the environment says, and silence from them."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from kfbench.errors import KfbenchError, MissingTool
from kfbench.sweep.java import java_home

TASK_ATTEMPTS: Final = 4
JARS_FROM: Final = "spark.jars.packages"
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
    """Spark itself failed; a cell that fails is a row, not this."""


@contextmanager
def session(master: str, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
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


def retrying(master: str) -> str:
    """local[N] never tries a failed task again; local[N,4] does."""
    found = re.fullmatch(r"local(?:\[\s*([0-9]+|\*)\s*\])?", master)
    return f"local[{found[1] or 1},{TASK_ATTEMPTS}]" if found else master


def versions(spark: SparkSession) -> dict[str, str]:
    """Of Spark, and of the Java that it runs on."""
    java = spark.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    return {"version": spark.version, "java": java}


def cause(error: Exception) -> str:
    """The line of a Java or Python traceback that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        return lines[-1]
    caused = [line.partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    return next(iter(caused + lines), type(error).__name__)[:400]


def _reason(error: Exception, log: Path) -> str:
    """What the JVM said last of what went wrong; its stack frames say nothing to a user."""
    said = (line.strip() for line in log.read_text(errors="replace").splitlines())
    lines = [line for line in said if ("rror" in line or "xception" in line) and not line.startswith("at ")]
    return lines[-1] if lines else cause(error)


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
