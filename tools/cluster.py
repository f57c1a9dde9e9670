"""A standalone Spark cluster on loopback. Master and workers are processes that run PySpark's own jars.

python -m tools.cluster [--workers 2] [--cores 1]       # prints its URL and runs until it is interrupted
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

import pyspark

from kfbench.sweep.host.java import UTF8_LOCALE, java_home
from tools.loopback import LOOPBACK, free_port, serving, wait_for

SPARK_HOME = Path(pyspark.__file__).parent
SPARK_CLASS = str(SPARK_HOME / "bin" / "spark-class")
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
WAIT_S = 120
NAMED = ["unshare", "--map-root-user", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"']


@dataclass(frozen=True, kw_only=True)
class Cluster:
    url: str
    folder: Path  # of the workers' folders, and of the output of each process (NAME.out)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)


@contextmanager
def running(folder: Path, workers: int = 2, cores: int = 1, memory_mb: int = 1024) -> Iterator[Cluster]:
    """Run a Spark cluster while the `with` body runs. Yield it when its workers are registered with the master.

    At the end, stop all its processes, executors included. Each worker has its own loopback address, so Spark sees it
    as a separate host. If `hosts_can_be_named()`, it also has its own host name (worker-0, worker-1, ...), so kfbench
    sees it as a separate host too.

    Args:
        folder: the folder for the workers' files and the output of each process.
        cores: the cores of each worker.
        memory_mb: the memory of each worker, in MiB.
    """
    home = java_home()
    if home is None:
        raise RuntimeError("Spark needs Java: see kfbench doctor")
    port = free_port()
    cluster = Cluster(url=f"spark://{LOOPBACK}:{port}", folder=folder)
    own = {"JAVA_HOME": str(home), "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": LOOPBACK}
    shared = {**os.environ, **UTF8_LOCALE, **own}
    quiet, named = ["--webui-port", "0"], hosts_can_be_named()
    with ExitStack() as stack:
        master = [SPARK_CLASS, MASTER, "--host", LOOPBACK, "--port", str(port), *quiet]
        stack.enter_context(serving("master", master, shared, folder, port, WAIT_S))
        for i in range(workers):
            place = folder / f"worker-{i}"
            room = ["--cores", str(cores), "--memory", f"{memory_mb}m", "--work-dir", str(place)]
            host = f"127.0.0.{i + 1}"
            own_address = {"SPARK_LOCAL_DIRS": str(place / "local"), "SPARK_LOCAL_IP": host}
            command = [SPARK_CLASS, WORKER, "--host", host, *quiet, *room, cluster.url]
            if named:
                command = [*NAMED, place.name, *command]
            cluster.workers.append(
                stack.enter_context(serving(place.name, command, shared | own_address, folder, None, WAIT_S))
            )
        output = folder / "master.out"
        wait_for("its workers", lambda: output.read_text().count("Registering worker") >= workers, WAIT_S)
        yield cluster


@cache
def hosts_can_be_named() -> bool:
    """Return True if we can start a process with its own host name, without root.

    This needs a Linux UTS namespace inside a user namespace.
    """
    try:
        return subprocess.run([*NAMED, "true", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def end_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that context managers stop their processes. Ignore a second SIGTERM."""

    def end(number: int, _: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="cores of each worker")
    options = parser.parse_args()
    end_on_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="kfbench-cluster-") as folder,
        running(Path(folder), options.workers, options.cores) as cluster,
    ):
        print(cluster.url, flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
