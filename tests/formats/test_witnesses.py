"""Two Python clients, aiokafka and kafka-python, read what kfbench writes. kfbench reads what they write."""

from dataclasses import replace
from typing import Any

import pytest

from kfbench import FORMATS, BatchFields, read_log
from tests.common import LEGACY, messages_of, records_of
from tests.oracle.generate import MAGICS, BatchChunk, chunks
from tests.reference.model import Message
from tests.strategies import INT64, NOW_MS

CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MESSAGES = [
    Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value" * 100, headers=(("h", b"1"), ("h", None))),
    Message(offset=1, timestamp_ms=NOW_MS - 5, key=None, value=None, headers=()),
    Message(offset=2, timestamp_ms=NOW_MS + 9000, key=b"", value=b"", headers=(("ключ", b""),)),
]
PLAIN = [Message(offset=m.offset, timestamp_ms=m.timestamp_ms, key=m.key, value=m.value) for m in MESSAGES]
PACKAGES = {"aiokafka": "aiokafka.record", "kafka-python": "kafka.record"}
BATCHES = 120  # generated batches per format, codec and client


def reads(client: str, data: bytes) -> list[Message]:
    records = pytest.importorskip(PACKAGES[client]).MemoryRecords(data)
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


every_reader = pytest.mark.parametrize("reader", PACKAGES)

COMBINATIONS = [
    (name, codec, client)
    for name in MAGICS
    for codec in FORMATS[name].capabilities.codecs
    for client in PACKAGES
    if (name, codec, client) != ("v0", "lz4", "aiokafka")
]


def sample(name: str) -> list[Message]:
    if name == "v2":
        return MESSAGES
    return PLAIN if name == "v1" else [Message(offset=m.offset, key=m.key, value=m.value) for m in PLAIN]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec", "reader"), COMBINATIONS)
def test_clients_read_generated_batches(name: str, codec: str, reader: str) -> None:
    seen = 0
    for chunk in chunks(name, codec, 1, BATCHES):
        part = chunk.part([i for i in range(len(chunk)) if is_supported(reader, chunk, i)])
        expected = [
            message if fields.append_time_ms is None else replace(message, timestamp_ms=_shown_ms(fields))
            for messages, fields in zip(part.case.batches, part.case.fields, strict=True)
            for message in messages
        ]
        assert reads(reader, bytes(part.encoded())) == expected
        seen += len(part)
    assert seen > BATCHES // 2


def _shown_ms(fields: Any) -> int:
    latest_ms = fields.max_timestamp_ms
    return int(fields.append_time_ms if latest_ms is None else latest_ms)


def is_supported(client: str, chunk: BatchChunk, i: int) -> bool:
    """Return False if kafka-python is known to read batch `i` differently.

    It does so for timestamp deltas beyond 64 bits, and for control records whose key is not 4 bytes long.
    """
    if client == "aiokafka":
        return True
    messages, horizon = chunk.case.batches[i], chunk.case.fields[i].delete_horizon_ms
    if chunk.case.fields[i].is_control and any(len(message.key or b"") != 4 for message in messages):
        return False
    base = horizon if horizon is not None else messages[0].timestamp_ms if messages else 0
    return all(-INT64 <= message.timestamp_ms - base <= INT64 for message in messages)


@every_reader
def test_clients_see_the_append_time(reader: str) -> None:
    records, fields = records_of(PLAIN), BatchFields(append_time_ms=NOW_MS + 99)
    for name in ("v1", "v2"):
        for codec in ("none", "gzip"):
            log = FORMATS[name].encode(records, codec=codec, batch_fields=fields)
            assert {message.timestamp_ms for message in reads(reader, bytes(log))} == {NOW_MS + 99}


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec", "client"), COMBINATIONS)
def test_kfbench_reads_what_clients_write(name: str, codec: str, client: str) -> None:
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
    written = bytes(builder.build())
    log = read_log(written)
    if name == "v1" and codec != "none":
        # The clients write the wrapper with offset 0, as producers do. Readers then use the inner offsets.
        assert log.batches["last_offset"].tolist() == [0]
    assert messages_of(log.records) == expected
    if codec == "none":
        epoch = int(log.batches["partition_leader_epoch"].iloc[0])
        fields = BatchFields(partition_leader_epoch=epoch) if name == "v2" else None
        assert bytes(FORMATS[name].encode(records_of(expected), batch_fields=fields)) == written
