"""Run an Apache Kafka broker on loopback, in KRaft mode or with ZooKeeper, and stop it cleanly at the end."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools import builds, jvm
from tools.loopback import free_port, serving

RECORDED = Path(__file__).parents[1] / "datasets" / "recorded"
POM, KAFKA_VERSION = RECORDED / "pom.xml", "3.9.1"
# This older version can write v0 and v1, if the topic's configuration says so.
OLDER_POM, OLDER_KAFKA_VERSION = RECORDED / "pom-2.8.xml", "2.8.2"
CLUSTER_ID = "kfbenchRecordedLogs000"
SEGMENT = "00000000000000000000.log"
WAIT_S = 60


@dataclass(frozen=True, kw_only=True)
class Broker:
    port: int
    logs: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def segment(self, topic: str, partition: int = 0) -> Path:
        """Return the path of a partition's first segment.

        It is the whole log of a small topic, because the broker's settings never start a new segment by age.
        """
        return self.logs / f"{topic}-{partition}" / SEGMENT


@contextmanager
def running(jars: Path, folder: Path, *, settings: Sequence[str] = ()) -> Iterator[Broker]:
    """Run a broker in KRaft mode while the `with` body runs. jars: the folder of Kafka's jars.

    Its files are in `folder`, and its logs in `folder`/logs. settings: lines that replace or extend the broker's
    settings.
    """
    port, controller_port, logs = free_port(), free_port(), folder / "logs"
    properties = _written(folder / "server.properties", [*_settings(logs, port, controller_port), *settings])
    options = ["--cluster-id", CLUSTER_ID, "--config", str(properties)]
    format_storage = java(jars, "kafka.tools.StorageTool", "format", *options)
    status, output = builds.run(format_storage, jvm.environment(), most_s=WAIT_S)
    if status:
        raise jvm.ToolError(f"the storage tool ends with status {status}: {output[-2000:]}")
    with serving("broker", java(jars, "kafka.Kafka", properties), jvm.environment(), folder, port, WAIT_S):
        yield Broker(port=port, logs=logs)


@contextmanager
def running_older(jars: Path, folder: Path) -> Iterator[Broker]:
    """Run an older broker and its ZooKeeper while the `with` body runs. jars: the folder of OLDER_POM's jars.

    The files are in `folder`, and the broker's logs in `folder`/logs.
    """
    port, zookeeper_port, logs = free_port(), free_port(), folder / "logs"
    zookeeper = _written(folder / "zookeeper.properties", _zookeeper_settings(folder / "zookeeper", zookeeper_port))
    properties = _written(folder / "server.properties", _older_settings(logs, port, zookeeper_port))
    zookeeper_main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    with (
        serving("zookeeper", java(jars, zookeeper_main, zookeeper), jvm.environment(), folder, zookeeper_port, WAIT_S),
        serving("broker", java(jars, "kafka.Kafka", properties), jvm.environment(), folder, port, WAIT_S),
    ):
        yield Broker(port=port, logs=logs)


def java(jars: Path, *arguments: str | Path) -> list[str]:
    return jvm.java(*arguments, class_path=[f"{jars}/*"])


def _written(path: Path, settings: Sequence[str]) -> Path:
    path.write_text("\n".join([*settings, ""]))
    return path


def _settings(logs: Path, broker_port: int, controller_port: int) -> list[str]:
    return [
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
        f"listeners=BROKER://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=BROKER",
        "controller.listener.names=CONTROLLER",
        *_log_settings(logs),
    ]


def _older_settings(logs: Path, broker_port: int, zookeeper_port: int) -> list[str]:
    return [
        "broker.id=1",
        f"zookeeper.connect=127.0.0.1:{zookeeper_port}",
        f"listeners=PLAINTEXT://127.0.0.1:{broker_port}",
        *_log_settings(logs),
    ]


def _zookeeper_settings(data: Path, port: int) -> list[str]:
    return [
        f"dataDir={data}",
        "clientPortAddress=127.0.0.1",
        f"clientPort={port}",
        "admin.enableServer=false",
    ]


def _log_settings(logs: Path) -> list[str]:
    return [
        f"log.dirs={logs}",
        # The records have fixed times in the past. By default their segments would be deleted at once, and a marker
        # with today's time would start a new segment.
        "log.retention.ms=-1",
        f"log.roll.ms={2**63 - 1}",
        "log.cleaner.backoff.ms=500",
        "group.initial.rebalance.delay.ms=0",
        "offsets.topic.num.partitions=1",
        "offsets.topic.replication.factor=1",
        "transaction.state.log.num.partitions=1",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
    ]
