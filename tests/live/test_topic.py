"""Spark's Kafka source reads a topic of a real broker between given offsets."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from kfbench import FORMATS, BatchFields
from kfbench.sources.topic import Topic, by_partition
from kfbench.sweep.spark.session import SweepFailed
from kfbench.sweep.spark.topic import BATCH_BYTES, topic_mapped
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from tests.common import messages_of, records_of
from tests.live.wire import Wire
from tests.oracle.client import NEWER
from tests.reference.model import Message
from tests.strategies import NOW_MS
from tools.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]
on_newer = pytest.mark.parametrize("server", [NEWER], indirect=True)

POM = Path(__file__).parent / "pom.xml"
SENT = [
    Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value" * 100, headers=(("h", b"1"), ("h", None))),
    Message(offset=1, timestamp_ms=NOW_MS + 3, key=None, value=None),
    Message(offset=2, timestamp_ms=NOW_MS - 5, key=b"", value=b"", headers=(("ключ", b""),)),
    *(Message(offset=i, timestamp_ms=NOW_MS + i, key=b"user-%d" % (i % 7), value=b"{%d}" % i) for i in range(3, 200)),
]
Read = tuple[int, list[Message]]


@pytest.fixture(scope="session")
def connector(fetched: Callable[[Path], Path]) -> str:
    return str(fetched(POM))


def send(wire: Wire, topic: str, partitions: int) -> None:
    wire.create_topic(topic, partitions=partitions + 1)  # the last partition stays empty
    for partition in range(partitions):
        batch = FORMATS["v2"].encode(records_of(SENT), len(SENT), "lz4")
        assert wire.produce(topic, bytes(batch), partition).error == 0


def read(topic: str, rows: Iterable[pa.RecordBatch]) -> Read | None:
    part = by_partition(topic, rows)
    if part is None:
        return None
    chunks = list(part.chunks())
    firsts = [int(each.records.offsets[0]) for each in chunks]
    assert firsts == sorted(firsts)
    return part.partition, [message for each in chunks for message in messages_of(each.records)]


def test_what_was_sent_is_read_between_the_offsets(wire: Wire, broker: Broker, topic: str, connector: str) -> None:
    send(wire, topic, 2)
    sizes: dict[int, int] = {}

    def function_for(sizes_by_partition: Mapping[int, int]) -> Callable[[Iterable[pa.RecordBatch]], Read | None]:
        sizes.update(sizes_by_partition)
        return partial(read, topic)

    url = f"kafka://{broker.address}/{topic}"
    whole = topic_mapped(Topic.parse(url), function_for, connector, "local[2]")
    assert sorted(filter(None, whole)) == [(0, SENT), (1, SENT)]
    segments = [broker.segment(topic, partition).stat().st_size for partition in range(3)]
    assert sizes == dict(enumerate(segments)) and segments[2] == 0
    some = topic_mapped(Topic.parse(f"{url}?from=1:150&to=1:160"), function_for, connector, "local[2]")
    assert list(filter(None, some)) == [(1, SENT[150:160])]


def shapes(topic: str, rows: Iterable[pa.RecordBatch]) -> list[tuple[int, int]]:
    part = by_partition(topic, rows)
    return [(len(each.records), each.records.shapes.payload_bytes) for each in part.chunks()] if part else []


@on_newer
def test_a_worker_is_given_bounded_batches(wire: Wire, broker: Broker, topic: str, connector: str) -> None:
    wire.create_topic(topic)
    large = [Message(offset=i, timestamp_ms=NOW_MS, value=bytes(100_000)) for i in range(10)]
    for _ in range(20):
        assert wire.produce(topic, bytes(FORMATS["v2"].encode(records_of(large), 10, "gzip"))).error == 0
    url = f"kafka://{broker.address}/{topic}"
    [found] = topic_mapped(Topic.parse(url), lambda _: partial(shapes, topic), connector, "local[1]")
    assert sum(records for records, _ in found) == 200
    assert max(size for _, size in found) <= BATCH_BYTES + 100_000


@on_newer
def test_what_if_of_a_topic(wire: Wire, broker: Broker, topic: str, connector: str) -> None:
    send(wire, topic, 2)
    found = what_if(
        Topic.parse(f"kafka://{broker.address}/{topic}?from=0:0,1:0,2:0&to=latest"),
        ["v1", "v3"], ["none", "zstd", "lz4"], connector=connector, batchings=[Batching(0, 1)], master="local[2]",
    )  # fmt: skip
    assert [(each.path, each.records, each.first_ms) for each in found.sources] == [
        (f"{topic}-0", 200, NOW_MS - 5), (f"{topic}-1", 200, NOW_MS - 5), (f"{topic}-2", 0, -1),
    ]  # fmt: skip
    alone = [
        FORMATS["v2"].size(records_of([message]), 1, BatchFields()).sum() for message in SENT
    ]  # linger 0: each record is sent in its own batch
    assert found.size("v2", "none") == 2 * sum(alone) and found.base_bytes == 2 * sum(alone)
    assert found.size("v3", "zstd") and found.losses["v1"]["headers"] == 2 * 3


@on_newer
def test_the_command(wire: Wire, broker: Broker, topic: str, connector: str) -> None:
    send(wire, topic, 1)
    command = [sys.executable, "-m", "kfbench", "what-if", f"kafka://{broker.address}/{topic}", "--linger-ms", "5"]
    options = ["--connector", connector, "--format", "v3", "--codec", "lz4", "--json", "--master", "local[1]"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["records"] == len(SENT) and found["assumed_batching"]["linger_ms"] == 5
    assert found["lost_bytes"] == 0


@on_newer
@pytest.mark.parametrize(
    ("query", "reason"),
    [("", "UnknownTopicOrPartition"), ("?from=0:5&to=0:4", "offset"), ("?from=7:0", "no partition 7")],
    ids=["no such topic", "offsets that fall", "no such partition"],
)
def test_what_cannot_be_read_is_one_line(
    wire: Wire, broker: Broker, topic: str, connector: str, query: str, reason: str
) -> None:
    if query:
        send(wire, topic, 1)
    url = f"kafka://{broker.address}/{topic}{query}"
    with pytest.raises(SweepFailed, match=rf"^{broker.address}/{topic}: ") as raised:
        what_if(
            Topic.parse(url), ["v2"], ["none"], connector=connector, batchings=[Batching(5, 1000)], master="local[1]"
        )
    assert reason in str(raised.value) and "\n" not in str(raised.value)
