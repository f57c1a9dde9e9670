"""Three client libraries, each as a consumer that reads a topic from start to end without aborted messages."""

import asyncio
import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.reference.model import Message
from tests.sidecars import unhex
from tools import jvm
from tools.broker import Broker

WAIT_S = 30
READ_COMMITTED = "read_committed"


@dataclass(frozen=True, kw_only=True)
class Consumed:
    message: Message
    is_append_time: bool


ByPartition = dict[int, list[Consumed]]


def java(broker: Broker, jars: Path, topic: str, partitions: int) -> ByPartition:
    classes = jvm.compiled([Path(__file__).parent / "Consumer.java"], jars)
    command = jvm.java("broker.Consumer", broker.address, topic, str(partitions), class_path=[classes, f"{jars}/*"])
    done = subprocess.run(command, env=jvm.environment(), check=True, stdout=subprocess.PIPE, timeout=2 * WAIT_S)
    found: ByPartition = defaultdict(list)
    for line in done.stdout.split(b"\n")[:-1]:
        partition, offset, timestamp_type, timestamp_ms, key, value, headers = json.loads(line)
        message = Message(
            offset=offset,
            timestamp_ms=timestamp_ms,
            key=unhex(key),
            value=unhex(value),
            headers=tuple((name, unhex(content)) for name, content in headers),
        )
        found[partition].append(Consumed(message=message, is_append_time=timestamp_type == 1))
    return found


def aiokafka(broker: Broker, jars: Path, topic: str, partitions: int) -> ByPartition:
    return asyncio.run(asyncio.wait_for(_aiokafka(broker.address, topic, partitions), WAIT_S))


async def _aiokafka(address: str, topic: str, partitions: int) -> ByPartition:
    import aiokafka

    assigned = [aiokafka.TopicPartition(topic, partition) for partition in range(partitions)]
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, isolation_level=READ_COMMITTED)
    await consumer.start()
    try:
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        ends = await consumer.end_offsets(assigned)
        found: ByPartition = defaultdict(list)
        while any([await consumer.position(partition) < ends[partition] for partition in assigned]):
            _add(found, await consumer.getmany(timeout_ms=200))
    finally:
        await consumer.stop()
    return found


def kafka_python(broker: Broker, jars: Path, topic: str, partitions: int) -> ByPartition:
    import kafka

    assigned = [kafka.TopicPartition(topic, partition) for partition in range(partitions)]
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.address, isolation_level=READ_COMMITTED)
    try:
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        ends = consumer.end_offsets(assigned)
        found: ByPartition = defaultdict(list)
        deadline = time.monotonic() + WAIT_S
        while any(consumer.position(partition) < ends[partition] for partition in assigned):
            if time.monotonic() > deadline:
                raise TimeoutError(f"kafka-python: not at the end of {topic} after {WAIT_S} s")
            _add(found, consumer.poll(timeout_ms=200))
    finally:
        consumer.close()
    return found


def _add(found: ByPartition, polled: dict[Any, list[Any]]) -> None:
    for partition, records in polled.items():
        for record in records:
            message = Message(
                offset=record.offset,
                timestamp_ms=-1 if record.timestamp is None else record.timestamp,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            )
            found[partition.partition].append(Consumed(message=message, is_append_time=record.timestamp_type == 1))


Consumer = Callable[[Broker, Path, str, int], ByPartition]
CONSUMERS: dict[str, Consumer] = {"java": java, "aiokafka": aiokafka, "kafka-python": kafka_python}
