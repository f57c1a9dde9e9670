"""A real broker receives our batches. It stores them and serves them to consumers, or refuses them."""

import asyncio
import json
import struct
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, read_log
from kfbench.errors import CorruptLog
from kfbench.layouts import TIMESTAMP_TYPE_BIT, V2_HEADER
from tests.common import messages_of, records_of
from tests.formats.fuzz import sealed
from tests.live import wire as kafka
from tests.live.wire import Produced, Wire
from tests.oracle.client import NEWER, OLDER
from tests.reference.model import Message
from tests.sidecars import message_of
from tests.strategies import BOUNDARY_LENGTHS, INT32, INT64, LONG_LENGTHS, NOW_MS, message_lists
from tools import jvm
from tools.broker import WAIT_S, Broker
from tools.loopback import wait_for

pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BATCHES: dict[str, list[Message]] = {
    "one": [Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value")],
    "nulls": [
        Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value" * 100, headers=(("h", b"1"), ("h", None))),
        Message(offset=1, timestamp_ms=NOW_MS, key=None, value=None),
        Message(offset=2, timestamp_ms=NOW_MS, key=b"", value=b"", headers=(("ключ", b""), ("", b"x"))),
    ],
    "times": [
        Message(offset=i, timestamp_ms=time_ms, value=b"x")
        for i, time_ms in enumerate([NOW_MS, NOW_MS - 64, NOW_MS + 8192, 0, -1, NOW_MS + 10**11, INT64, 1])
    ],
    "lengths": [
        Message(
            offset=i, timestamp_ms=NOW_MS + i, key=b"k" * length, value=b"v" * length, headers=(("h", b"w" * length),)
        )
        for i, length in enumerate(BOUNDARY_LENGTHS + LONG_LENGTHS)
    ],
    "large": [
        Message(offset=i, timestamp_ms=NOW_MS + i // 3, key=b"user-%d" % (i % 97), value=b"/item/%d " % (i * i) * 20)
        for i in range(2000)
    ],
}
BROKER_FIELDS = {"base_offset", "partition_leader_epoch"}
APPEND_TIME_FIELDS = {"attributes", "max_timestamp_ms", "crc"}


class Consumed(NamedTuple):
    message: Message
    is_append_time: bool


def encoded(messages: Sequence[Message], codec: str = "none", fmt: str = "v2", **fields: Any) -> bytes:
    """Encode the messages as one batch."""
    records = records_of(messages)
    return bytes(FORMATS[fmt].encode(records, len(records), codec, batch_fields=BatchFields(**fields)))


def moved(messages: Sequence[Message], base_offset: int) -> list[Message]:
    return [replace(message, offset=base_offset + i) for i, message in enumerate(messages)]


def changed(sent: bytes, stored: bytes) -> set[str]:
    """Return the names of header fields in which the two batches differ.

    Raise AssertionError if their records differ.
    """
    before, after = (np.frombuffer(data[: V2_HEADER.itemsize], V2_HEADER)[0] for data in (sent, stored))
    assert sent[V2_HEADER.itemsize :] == stored[V2_HEADER.itemsize :]
    return {name for name in V2_HEADER.names or () if before[name] != after[name]}


def consumed(broker: Broker, jars: Path, topic: str, partitions: int = 1) -> dict[int, list[Consumed]]:
    """Read a topic from start to end with Kafka's consumer, without the records of aborted transactions."""
    classes = jvm.compiled([Path(__file__).parent / "Consumer.java"], jars)
    command = jvm.java("broker.Consumer", broker.address, topic, str(partitions), class_path=[classes, f"{jars}/*"])
    done = subprocess.run(command, env=jvm.environment(), check=True, stdout=subprocess.PIPE, timeout=60)
    found: dict[int, list[Consumed]] = defaultdict(list)
    for line in done.stdout.split(b"\n")[:-1]:
        partition, offset, timestamp_type, *rest = json.loads(line)
        names = ("offset", "timestamp", "key", "value", "headers")
        message = message_of(dict(zip(names, (offset, *rest), strict=True)))
        found[partition].append(Consumed(message, is_append_time=timestamp_type == 1))
    return found


def consumed_by_aiokafka(broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Consumed]]:
    """Read as `consumed` does, with a client in Python."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read() -> dict[int, list[Consumed]]:
        assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
        found: dict[int, list[Consumed]] = defaultdict(list)
        async with AIOKafkaConsumer(bootstrap_servers=broker.address, isolation_level="read_committed") as consumer:
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            ends = await consumer.end_offsets(assigned)
            while any([await consumer.position(each) < ends[each] for each in assigned]):
                for each, records in (await consumer.getmany(timeout_ms=200)).items():
                    for row in records:
                        stamp, headers = -1 if row.timestamp is None else row.timestamp, tuple(row.headers)
                        message = Message(
                            offset=row.offset, timestamp_ms=stamp, key=row.key, value=row.value, headers=headers
                        )
                        found[each.partition].append(Consumed(message, is_append_time=row.timestamp_type == 1))
        return found

    return asyncio.run(asyncio.wait_for(read(), WAIT_S))


def as_consumed(messages: Sequence[Message], append_time_ms: int) -> list[Consumed]:
    if append_time_ms == -1:
        return [Consumed(message, is_append_time=False) for message in messages]
    return [Consumed(replace(message, timestamp_ms=append_time_ms), is_append_time=True) for message in messages]


def test_the_broker_takes_the_versions_that_we_speak(wire: Wire) -> None:
    taken = wire.versions()
    for request, versions in kafka.VERSIONS.items():
        assert set(versions) <= set(taken[request.API_KEY])


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_what_is_sent_is_stored_and_consumed(
    broker: Broker, wire: Wire, jars: Path, topic: str, timestamp_type: str
) -> None:
    """Send a batch under each codec, to one partition per codec.

    The broker stores it, and a consumer reads the same records.
    """
    wire.create_topic(topic, len(CODECS), message_timestamp_type=timestamp_type)
    expected: dict[int, list[Consumed]] = {}
    for partition, codec in enumerate(CODECS):
        log, predicted_bytes, offset, kept = b"", 0, 0, []
        for version, messages in zip((3, 7, 8, 8, 8), BATCHES.values(), strict=True):
            sent = encoded(messages, codec)
            produced = wire.produce(topic, sent, partition, max(version, 7 if codec == "zstd" else 3))
            assert (produced.error, produced.base_offset) == (kafka.NONE, offset)
            at_offset = moved(messages, offset)
            is_append = timestamp_type == "LogAppendTime"
            assert (produced.append_time_ms != -1) == is_append
            ours = encoded(at_offset, codec, partition_leader_epoch=0, append_time_ms=produced.append_time_ms)
            predicted_bytes += (
                int(FORMATS["v2"].size(records_of(messages), len(messages)).sum()) if codec == "none" else len(sent)
            )
            stored = broker.segment(topic, partition).read_bytes()
            assert len(stored) == predicted_bytes
            assert stored == log + ours
            assert changed(sent, stored[len(log) :]) <= BROKER_FIELDS | (APPEND_TIME_FIELDS if is_append else set())
            log, offset = stored, offset + len(messages)
            kept += as_consumed(at_offset, produced.append_time_ms)
        back = read_log(broker.segment(topic, partition))
        assert (list(back.errors), back.trailing_bytes) == ([], 0)
        assert messages_of(back.records) == [one.message for one in kept]
        assert back.batches.codec.tolist() == [codec] * len(BATCHES)
        expected[partition] = kept
    assert consumed(broker, jars, topic, len(CODECS)) == expected
    assert consumed_by_aiokafka(broker, topic, len(CODECS)) == expected


def test_drawn_batches(broker: Broker, wire: Wire, jars: Path, topic: str) -> None:
    wire.create_topic(topic)
    segment, kept = broker.segment(topic), list[Message]()

    @settings(max_examples=150)
    @given(message_lists(min_size=1), st.sampled_from(CODECS))
    def send(messages: Sequence[Message], codec: str) -> None:
        size_before = segment.stat().st_size if kept else 0
        sent = encoded(moved(messages, 0), codec)
        produced = wire.produce(topic, sent)
        assert (produced.error, produced.base_offset) == (kafka.NONE, len(kept))
        at_offset = moved(messages, len(kept))
        with segment.open("rb") as stream:
            stream.seek(size_before)
            stored = stream.read()
        assert stored == encoded(at_offset, codec, partition_leader_epoch=0)
        assert changed(sent, stored) <= BROKER_FIELDS
        kept.extend(at_offset)

    send()
    assert messages_of(read_log(segment).records) == kept
    assert consumed(broker, jars, topic) == {0: as_consumed(kept, -1)}


def test_an_idempotent_producer(broker: Broker, wire: Wire, topic: str) -> None:
    """The broker detects a repeated batch and a missing one of an idempotent producer.

    It also does when sequence numbers wrap.
    """
    wire.create_topic(topic)
    producer_id, epoch = wire.init_producer_id()
    messages, segment = BATCHES["nulls"], broker.segment(topic)

    def batch(base_sequence: int) -> bytes:
        return encoded(messages, producer_id=producer_id, producer_epoch=epoch, base_sequence=base_sequence)

    assert wire.produce(topic, batch(INT32 - 1)) == Produced(error=kafka.NONE, base_offset=0)
    row = read_log(segment).batches.iloc[0]
    assert (row.producer_id, row.producer_epoch, row.base_sequence) == (producer_id, epoch, INT32 - 1)
    assert row.last_sequence == 0
    assert wire.produce(topic, batch(int(row.last_sequence) + 2)).error == kafka.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert wire.produce(topic, batch(int(row.last_sequence) + 1)) == Produced(error=kafka.NONE, base_offset=3)
    size = segment.stat().st_size
    again = wire.produce(topic, batch(INT32 - 1))
    assert (again.error, again.base_offset) == (kafka.NONE, 0)
    assert segment.stat().st_size == size == 2 * len(batch(0))


def test_transactions(broker: Broker, wire: Wire, jars: Path, topic: str) -> None:
    """Commit and abort transactions. The markers that the coordinator writes equal the markers that we encode."""
    wire.create_topic(topic)
    producer_id, epoch = producer = wire.init_producer_id(topic)
    segment, expected, committed, offset = broker.segment(topic), b"", list[Message](), 0
    for commit, codec in ((True, "none"), (False, "lz4"), (True, "zstd")):
        messages = moved(BATCHES["nulls"], offset)
        fields: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch, "is_transactional": True}
        sequence = 3 * (offset // 4)
        wire.add_partition(topic, producer, topic)
        sent = encoded(moved(messages, 0), codec, base_sequence=sequence, **fields)
        assert wire.produce(topic, sent, transactional_id=topic) == Produced(error=kafka.NONE, base_offset=offset)
        wire.end_transaction(topic, producer, commit)
        expected += encoded(messages, codec, base_sequence=sequence, partition_leader_epoch=0, **fields)
        wait_for("the marker", partial(_is_longer, segment, len(expected)), WAIT_S)
        marker = read_log(segment)
        stamp = int(marker.records.timestamps_ms[-1])
        message = Message(
            offset=offset + 3, timestamp_ms=stamp, key=struct.pack(">hh", 0, commit), value=struct.pack(">hi", 0, 0)
        )
        expected += encoded([message], is_control=True, partition_leader_epoch=0, **fields)
        assert segment.read_bytes() == expected
        committed += messages if commit else []
        offset += 4
    back = read_log(segment)
    assert back.batches.is_control.tolist() == [False, True] * 3
    assert back.batches.is_transactional.all()
    for read in (consumed(broker, jars, topic), consumed_by_aiokafka(broker, topic)):
        assert read == {0: as_consumed(committed, -1)}


def _is_longer(path: Path, size_bytes: int) -> bool:
    return path.stat().st_size > size_bytes


@pytest.mark.parametrize("server", [NEWER], indirect=True)
@pytest.mark.parametrize("fmt", ["v0", "v1"])
def test_newer_brokers_close_the_connection_at_older_produce_requests(wire: Wire, topic: str, fmt: str) -> None:
    """The broker still lists these versions, for clients that look for them (KAFKA-18659)."""
    wire.create_topic(topic)
    with pytest.raises(ConnectionError, match="closed the connection"):
        wire.produce(topic, encoded([Message(offset=0, timestamp_ms=-1, value=b"value")], fmt=fmt), version=2)


@pytest.mark.parametrize(("line", "refusal"), [(OLDER, kafka.NONE), (NEWER, kafka.INVALID_TIMESTAMP)])
def test_newer_brokers_refuse_times_more_than_an_hour_ahead_by_default(
    servers: Callable[..., Any], topic: str, line: str, refusal: int
) -> None:
    now_ms = time.time_ns() // 1_000_000
    with Wire(servers(line, ()).broker.port) as wire:
        wire.create_topic(topic)
        for minutes, error in ((50, kafka.NONE), (70, refusal)):
            message = Message(offset=0, timestamp_ms=now_ms + minutes * 60_000, key=None, value=b"x")
            assert wire.produce(topic, encoded([message])).error == error


@pytest.mark.parametrize("server", [OLDER], indirect=True)
@pytest.mark.parametrize("fmt", ["v0", "v1"])
def test_older_formats_become_v2(broker: Broker, wire: Wire, topic: str, fmt: str) -> None:
    """Send v0 and v1 in requests up to version 2.

    The broker stores each compressed set as one v2 batch, equal to our conversion.
    """
    wire.create_topic(topic, 4)
    messages = [replace(message, headers=()) for message in BATCHES["nulls"] + BATCHES["lengths"]]
    if fmt == "v0":
        messages = [replace(message, timestamp_ms=-1) for message in messages]
    for partition, codec in enumerate(("none", "gzip", "snappy", "lz4")):
        sent = encoded(moved(messages, 0), codec, fmt)
        for version in (3, 7):
            assert wire.produce(topic, sent, partition, version).error == kafka.INVALID_RECORD
        kept = list[Message]()
        for version in (0, 1, 2):
            produced = wire.produce(topic, sent, partition, version)
            assert (produced.error, produced.base_offset) == (kafka.NONE, len(kept))
            kept += moved(messages, len(kept))
        back = read_log(broker.segment(topic, partition))
        assert back.batches.magic.tolist() == [2] * 3
        assert back.batches.codec.tolist() == [codec] * 3
        assert messages_of(back.records) == kept
        if codec == "none":
            records, count = records_of(kept), len(messages)
            ours = FORMATS["v2"].encode(records, count, batch_fields=BatchFields(partition_leader_epoch=0))
            assert broker.segment(topic, partition).read_bytes() == bytes(ours)


# Batches that a broker refuses from a producer. Our reader accepts some of them, because a log may contain them.

CONTROL = Message(offset=0, timestamp_ms=NOW_MS, key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 0))
THREE = [
    Message(offset=i, timestamp_ms=NOW_MS + i, key=b"key", value=b"value", headers=(("h", b"x"),)) for i in range(3)
]


def poked(batch: bytes, seal: bool = True, **fields: Any) -> bytes:
    """Return the batch with replaced header fields. seal: correct the checksum, too."""
    header = np.frombuffer(batch[: V2_HEADER.itemsize], V2_HEADER).copy()
    for name, value in fields.items():
        header[name] = value
    data = header.tobytes() + batch[V2_HEADER.itemsize :]
    return sealed(data) if seal else data


def with_inner_damage(batch: bytes) -> bytes:
    """Return the batch with a wrong length of the first record, or a damaged start of the compressed payload."""
    data = bytearray(batch)
    data[V2_HEADER.itemsize] ^= 0xFF
    return sealed(bytes(data))


Damage = Callable[[bytes], bytes]
REFUSED: dict[str, tuple[Damage, set[int], str | None]] = {
    # damage, the broker's error codes, the field in our reader's error (None: our reader accepts it)
    "crc": (lambda b: poked(b, seal=False, crc=1), {kafka.CORRUPT_MESSAGE}, "crc"),
    "a bit of a value": (lambda b: b[:-2] + bytes([b[-2] ^ 1]) + b[-1:], {kafka.CORRUPT_MESSAGE}, "crc"),
    "length too small": (lambda b: poked(b, seal=False, length=len(b) - 20), {kafka.CORRUPT_MESSAGE}, "crc"),
    "magic of v3": (lambda b: poked(b, seal=False, magic=3), {kafka.CORRUPT_MESSAGE}, "*"),
    "count too large": (lambda b: poked(b, count=4), {kafka.INVALID_RECORD}, "record length"),
    "count too small": (lambda b: poked(b, count=2), {kafka.INVALID_RECORD}, "count"),
    "count, range too big": (lambda b: poked(b, count=4, last_offset_delta=3), {kafka.INVALID_RECORD}, "record length"),
    "count, range too small": (lambda b: poked(b, count=2, last_offset_delta=1), {kafka.INVALID_RECORD}, "count"),
    "count negative": (lambda b: poked(b, count=-1), {kafka.INVALID_RECORD}, "count"),
    "codec 5": (lambda b: poked(b, attributes=5), {kafka.UNKNOWN_SERVER_ERROR}, "dictionary"),
    "another codec": (lambda b: poked(b, attributes=4), {kafka.UNKNOWN_SERVER_ERROR}, "records"),
    "payload": (with_inner_damage, {kafka.INVALID_RECORD, kafka.UNKNOWN_SERVER_ERROR}, "*"),
    # Valid in a log after compaction, from a coordinator, or where the start of a log was deleted.
    "range wider than count": (lambda b: poked(b, last_offset_delta=3), {kafka.INVALID_RECORD}, None),
    "control": (lambda b: encoded([CONTROL], is_control=True), {kafka.INVALID_RECORD}, None),
    "cut short": (lambda b: b[:-3], {kafka.INVALID_RECORD}, None),
    "two batches": (lambda b: b + b, {kafka.INVALID_RECORD}, None),
    "no batch": (lambda b: b"", {kafka.INVALID_RECORD}, None),
    "empty batch": (lambda b: encoded_empty(), {kafka.INVALID_RECORD}, None),
    "a hole": (lambda b: encoded([THREE[0], THREE[2]]), {kafka.INVALID_RECORD}, None),
    "producer id without epoch": (lambda b: encoded(THREE, producer_id=77), {kafka.INVALID_RECORD}, None),
}  # fmt: skip


def encoded_empty() -> bytes:
    fields = BatchFields(base_offset=0, last_offset=0)
    return bytes(FORMATS["v2"].encode(records_of([]), [0, 0], batch_fields=fields))


def test_what_the_broker_refuses(broker: Broker, wire: Wire, topic: str) -> None:
    wire.create_topic(topic)
    assert wire.produce(topic, encoded(THREE)).error == kafka.NONE
    size = broker.segment(topic).stat().st_size
    for codec in ("none", "gzip"):
        for what, (damage, errors, field) in REFUSED.items():
            data = damage(encoded(THREE, codec))
            assert wire.produce(topic, data).error in errors, (what, codec)
            if field is None:
                read_log(data)
            else:
                with pytest.raises(CorruptLog) as refusal:
                    read_log(data)
                assert field in ("*", refusal.value.field), (what, codec)
    assert broker.segment(topic).stat().st_size == size


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_broker_corrects(broker: Broker, wire: Wire, topic: str, codec: str) -> None:
    """Send a wrong maximum timestamp, and an append time to a topic of create times.

    The broker corrects both; its bytes equal our encoding.
    """
    wire.create_topic(topic)
    batch = encoded(THREE, codec)
    attributes = int(np.frombuffer(batch[: V2_HEADER.itemsize], V2_HEADER)["attributes"][0])
    wrongs: list[dict[str, Any]] = [
        {"max_timestamp_ms": 5},
        {"max_timestamp_ms": NOW_MS + 10**6},
        {"attributes": attributes | TIMESTAMP_TYPE_BIT},
    ]
    for i, wrong in enumerate(wrongs):
        produced = wire.produce(topic, poked(batch, **wrong))
        assert produced == Produced(error=kafka.NONE, base_offset=3 * i)
        stored = broker.segment(topic).read_bytes()[i * len(batch) :]
        assert stored == encoded(moved(THREE, 3 * i), codec, partition_leader_epoch=0)


def test_offsets_that_do_not_rise_by_one(broker: Broker, wire: Wire, topic: str) -> None:
    """The broker refuses a compressed batch whose offset deltas do not rise by one.

    It accepts a plain one, which it does not decompress.
    """
    wire.create_topic(topic)
    twice = [THREE[0], replace(THREE[1], offset=0), THREE[2]]
    assert wire.produce(topic, encoded(twice, "gzip")).error == kafka.UNKNOWN_SERVER_ERROR
    assert wire.produce(topic, encoded(twice)).error == kafka.NONE
    assert read_log(broker.segment(topic)).records.offsets.tolist() == [0, 0, 2]
