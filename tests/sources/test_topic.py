"""Topic URLs, and records from rows of Spark's Kafka source. tests/live reads a real broker."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from kfbench.errors import InvalidConfig
from kfbench.sources.topic import Topic, by_partition
from tests.common import messages_of
from tests.reference.model import Message
from tests.strategies import NOW_MS


def test_a_topic_from_its_beginning_to_its_end() -> None:
    topic = Topic.parse("kafka://one:9092,[::1]:9093/orders.v1")
    assert topic.properties == {"bootstrap.servers": "one:9092,[::1]:9093"} and topic.partitions is None
    assert topic.source_options() == {
        "kafka.bootstrap.servers": "one:9092,[::1]:9093", "subscribe": "orders.v1", "startingOffsets": "earliest",
        "endingOffsets": "latest", "includeHeaders": "true",
    }  # fmt: skip


def test_an_address_is_escaped_and_ends_before_a_fragment() -> None:
    topic = Topic.parse("kafka://a:1/or%64ers/?from=latest#here")
    assert (topic.bootstrap, topic.name, topic.starting) == ("a:1", "orders", "latest")


def test_partitions_with_offsets() -> None:
    options = Topic.parse("kafka://a:1/t?from=0:100,12:0&to=latest").source_options()
    assert json.loads(options["assign"]) == {"t": [0, 12]} and "subscribe" not in options
    assert json.loads(options["startingOffsets"]) == {"t": {"0": 100, "12": 0}}
    assert json.loads(options["endingOffsets"]) == {"t": {"0": -1, "12": -1}}
    options = Topic.parse("kafka://a:1/t?to=3:7").source_options()
    assert json.loads(options["startingOffsets"]) == {"t": {"3": -2}}
    assert json.loads(options["endingOffsets"]) == {"t": {"3": 7}}


def test_some_partitions_of_a_whole_topic() -> None:
    options = Topic.parse("kafka://a:1/t").of([0, 2]).source_options()
    assert json.loads(options["assign"]) == {"t": [0, 2]} and "subscribe" not in options
    assert json.loads(options["startingOffsets"]) == {"t": {"0": -2, "2": -2}}
    assert json.loads(options["endingOffsets"]) == {"t": {"0": -1, "2": -1}}


def test_options_of_the_consumer(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# of the cluster\nsecurity.protocol = SSL\n\nssl.key.password=a=b\n")
    topic = Topic.parse(f"kafka://a:1/t?config={path}&kafka.isolation.level=read_committed")
    assert topic.options == {"security.protocol": "SSL", "ssl.key.password": "a=b", "isolation.level": "read_committed"}
    assert topic.source_options()["kafka.ssl.key.password"] == "a=b"
    path.write_text("a=b\nno")
    with pytest.raises(InvalidConfig, match=rf"^{path}: line 2: NAME=VALUE is wanted$"):
        Topic.parse(f"kafka://a:1/t?config={path}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://a/t", "is wanted"),
        ("kafka://a:1/", "is wanted"),
        ("kafka://a:1/t/u", "is wanted"),
        ("kafka://a:1,/t", "is wanted"),
        ("kafka://[::1:9092/t", "is wanted"),
        ("kafka://a:1,[z]:2/t", "is wanted"),
        ("http://a:1/t", "is wanted"),
        ("a:1/t", "is wanted"),
        ("kafka://a:1/t?from=5", "from: earliest, latest or PARTITION:OFFSET,… is wanted, not '5'"),
        ("kafka://a:1/t?to=0:1,0:2", "to: earliest, latest or PARTITION:OFFSET,… is wanted"),
        ("kafka://a:1/t?from=0:1&to=1:2", "from and to are not of the same partitions"),
        ("kafka://a:1/t?form=0:1", "no option 'form' (options: from, to, config, kafka.NAME)"),
    ],
)
def test_invalid_topic_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        Topic.parse(url)
    shown, _, query = url.partition("?")
    assert str(raised.value).startswith(f"{shown}: ") and message in str(raised.value)
    assert not query or query not in str(raised.value)


@pytest.mark.parametrize("url", ["kafka://me:secret@a:1/t", "kafka://a:1/t?kafka.sasl.jaas.config=secret&what=1"])
def test_secrets_are_not_shown(url: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        Topic.parse(url)
    assert "secret" not in str(raised.value) and "kafka://a:1/t: " in str(raised.value)


def test_rows_of_spark_are_records() -> None:
    kinds = pa.schema([
        ("key", pa.binary()), ("value", pa.binary()), ("topic", pa.string()), ("partition", pa.int32()),
        ("offset", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ])  # fmt: skip
    sent = [
        Message(offset=7, timestamp_ms=NOW_MS, key=b"k", value=None, headers=(("h", b"1"), ("h", None))),
        Message(offset=9, timestamp_ms=-1, key=None, value=b"v"),
        Message(offset=12, timestamp_ms=NOW_MS + 1, key=b"", value=b""),
    ]
    rows = [
        {
            "key": m.key, "value": m.value, "topic": "t", "partition": 4, "offset": m.offset,
            "timestamp": m.timestamp_ms * 1000, "timestampType": 0,
            "headers": [{"key": name, "value": value} for name, value in m.headers] or None,
        }
        for m in sent
    ]  # fmt: skip
    batches = [pa.RecordBatch.from_pylist(part, kinds) for part in ([], rows[:2], [], rows[2:])]
    part = by_partition("t", batches)
    assert part is not None and (part.name, part.partition, part.unit) == ("t-4", 4, "offset")
    found = list(part.chunks())
    assert [message for each in found for message in messages_of(each.records)] == sent
    assert [int(each.records.offsets[0]) for each in found] == [7, 12] and all(each.bounds is None for each in found)
    assert by_partition("t", batches[:1]) is None
