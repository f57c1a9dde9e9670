"""Second witnesses: two Python clients read what we write, and we read what they write.

Left out where they are wrong or cannot: aiokafka and lz4 in v0, kafka-python and snappy (it asks for a library that
needs a compiler).
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from kfbench import FORMATS, BatchFields, read_log
from tests import strategies
from tests.common import LEGACY, batch_fields_of, bounds_of, messages_of, records_of
from tests.reference.model import Message
from tests.strategies import INT64, NOW_MS, Case

CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MESSAGES = [
    Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value" * 100, headers=(("h", b"1"), ("h", None))),
    Message(offset=1, timestamp_ms=NOW_MS - 5, key=None, value=None, headers=()),
    Message(offset=2, timestamp_ms=NOW_MS + 9000, key=b"", value=b"", headers=(("ключ", b""),)),
]
PLAIN = [Message(offset=m.offset, timestamp_ms=m.timestamp_ms, key=m.key, value=m.value) for m in MESSAGES]

Reader = Callable[[bytes], list[Message]]


def aiokafka_reads(data: bytes) -> list[Message]:
    records = pytest.importorskip("aiokafka.record").MemoryRecords(data)
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        found += [as_message(record) for record in batch]
    return found


def kafka_python_reads(data: bytes) -> list[Message]:
    records = pytest.importorskip("kafka.record").MemoryRecords(data)
    found = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        found += [as_message(record) for record in batch]
    return found


def as_message(record: Any) -> Message:
    headers = tuple((name, None if value is None else bytes(value)) for name, value in record.headers or ())
    key, value = (None if part is None else bytes(part) for part in (record.key, record.value))
    stamp = -1 if record.timestamp is None else record.timestamp
    return Message(offset=record.offset, timestamp_ms=stamp, key=key, value=value, headers=headers)


READERS: dict[str, Reader] = {"aiokafka": aiokafka_reads, "kafka-python": kafka_python_reads}
every_reader = pytest.mark.parametrize("reader", READERS)


COMBINATIONS = [
    (name, codec, client)
    for name in ("v0", "v1", "v2")
    for codec in FORMATS[name].capabilities.codecs
    for client in READERS
    if (name, codec, client) != ("v0", "lz4", "aiokafka") and (codec, client) != ("snappy", "kafka-python")
]
PACKAGES = {"aiokafka": "aiokafka.record", "kafka-python": "kafka.record"}


def sample(name: str) -> list[Message]:
    if name == "v2":
        return MESSAGES
    return PLAIN if name == "v1" else [Message(offset=m.offset, key=m.key, value=m.value) for m in PLAIN]


@pytest.mark.parametrize(("name", "codec", "reader"), COMBINATIONS)
def test_they_read_what_we_write(name: str, codec: str, reader: str) -> None:
    log = FORMATS[name].encode(records_of(sample(name)), 2, codec)
    assert READERS[reader](bytes(log)) == sample(name)


@every_reader
@given(case=strategies.cases(max_batches=2, batch_fields=False))
def test_they_read_any_plain_v2(reader: str, case: Case) -> None:
    # Both keep a timestamp delta in 64 bits; neither wraps one that overflows.
    stamps = [message.timestamp_ms for message in case.messages]
    if max(stamps, default=0) - min(stamps, default=0) > INT64:
        return
    log = FORMATS["v2"].encode(records_of(case.messages), bounds_of(case))
    assert READERS[reader](bytes(log)) == case.messages


@every_reader
@given(case=strategies.legacy_cases(1, max_batches=2))
def test_they_read_any_plain_v1(reader: str, case: Case) -> None:
    fmt = FORMATS["v1"]
    log = fmt.encode(records_of(case.messages), bounds_of(case), batch_fields=batch_fields_of(case))
    assert READERS[reader](bytes(log)) == messages_of(fmt.decode(log).records)


@every_reader
def test_they_see_the_append_time(reader: str) -> None:
    records, fields = records_of(PLAIN), BatchFields(append_time_ms=NOW_MS + 99)
    for name in ("v1", "v2"):
        for codec in ("none", "gzip"):
            log = FORMATS[name].encode(records, codec=codec, batch_fields=fields)
            assert {message.timestamp_ms for message in READERS[reader](bytes(log))} == {NOW_MS + 99}


@pytest.mark.parametrize(("name", "codec", "client"), COMBINATIONS)
def test_we_read_what_they_write(name: str, codec: str, client: str) -> None:
    expected = sample(name)
    if name == "v2":
        module = pytest.importorskip(f"{PACKAGES[client]}.default_records")
        builder = module.DefaultRecordBatchBuilder(2, CODEC_IDS[codec], 0, -1, -1, -1, 1 << 20)
        for message in expected:
            builder.append(message.offset, message.timestamp_ms, message.key, message.value, list(message.headers))
    else:
        module = pytest.importorskip(f"{PACKAGES[client]}.legacy_records")
        builder = module.LegacyRecordBatchBuilder(LEGACY[name], CODEC_IDS[codec], 1 << 20)
        for message in expected:
            builder.append(message.offset, message.timestamp_ms, message.key, message.value)
    theirs = bytes(builder.build())
    log = read_log(theirs)
    if name == "v1" and codec != "none":
        # Their wrapper is left at offset 0, as a producer may: the inner offsets stand.
        assert log.batches["last_offset"].tolist() == [0]
    assert messages_of(log.records) == expected
    if codec == "none":
        epoch = int(log.batches["partition_leader_epoch"].iloc[0])
        fields = BatchFields(partition_leader_epoch=epoch) if name == "v2" else None
        assert bytes(FORMATS[name].encode(records_of(expected), batch_fields=fields)) == theirs
