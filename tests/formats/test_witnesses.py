"""Two Python clients, aiokafka and kafka-python, read what Kafka and kfbench write. kfbench reads what they write.

FAULTS lists where a client disagrees with Kafka. If a client fixes such a fault, a test fails.
"""

import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kfbench import FORMATS, BatchFields, read_log
from tests.common import LEGACY, messages_of, records_of
from tests.oracle.generate import MAGICS, BatchChunk, chunks
from tests.oracle.judge import encoded
from tests.reference.model import Message
from tests.sidecars import message_of
from tests.strategies import INT64, NOW_MS

GOLDEN = Path(__file__).parents[2] / "datasets" / "golden"
CODEC_IDS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
MESSAGES = [
    Message(offset=0, timestamp_ms=NOW_MS, key=b"key", value=b"value" * 100, headers=(("h", b"1"), ("h", None))),
    Message(offset=1, timestamp_ms=NOW_MS - 5, key=None, value=None, headers=()),
    Message(offset=2, timestamp_ms=NOW_MS + 9000, key=b"", value=b"", headers=(("ключ", b""),)),
]
PLAIN = [Message(offset=m.offset, timestamp_ms=m.timestamp_ms, key=m.key, value=m.value) for m in MESSAGES]
PACKAGES = {"aiokafka": "aiokafka.record", "kafka-python": "kafka.record"}
BATCHES = 120  # generated batches per format, codec and client


class Fault(NamedTuple):
    """A known disagreement of a client with Kafka. vectors: name patterns of golden vectors.

    kind: "fails" (cannot read what Kafka reads), "differs" (reads other records), "accepts" (reads what Kafka refuses).
    """

    client: str
    kind: str
    vectors: str
    reason: str


FAULTS = (
    Fault(
        "aiokafka",
        "fails",
        "basic_v0_lz4* compaction_v0_lz4* downconvert_*_to_v0_lz4 nulls_v0_lz4* offsets_v0_lz4* size_v0_lz4* "
        "validate_v0_to_v0_lz4 wrapper_v0_lz4_* segment_mixed_magics",
        "does not know the wrong lz4 header checksum of magic 0",
    ),
    Fault(
        "aiokafka",
        "fails",
        "wrapper_v1_*_inner_tail wrapper_v0_gzip_inner_tail wrapper_v0_snappy_inner_tail",
        "refuses an inner set that is cut short",
    ),
    Fault("aiokafka", "fails", "corrupt_v[01]_*_minus_two", "takes only -1 as a null length in v0 and v1"),
    Fault("kafka-python", "differs", "corrupt_v[01]_*_minus_two", "reads a length of -2 as an empty slice"),
    Fault("aiokafka", "fails", "downconvert_mixed_to_v2", "reads a batch of v2 after a plain message as a message"),
    Fault("aiokafka", "fails", "corrupt_v2_snappy_version", "reads a snappy stream of another version as a raw block"),
    Fault("kafka-python", "differs", "wrapper_v?_*_inner_tail", "reads an inner set that is cut short as empty"),
    Fault(
        "kafka-python",
        "fails",
        "wrapper_v1_inner_mixed wrapper_v1_inner_v0 wrapper_v0_inner_v1",
        "gives inner messages the magic of the wrapper (KAFKA-4298)",
    ),
    Fault("kafka-python", "fails", "control_long_key", "refuses the key of a control record above 4 bytes"),
    *(
        Fault(client, kind, vectors, reason)
        for client in PACKAGES
        for kind, vectors, reason in (
            ("fails", "corrupt_v2_count_zero", "reads bytes after the header of an empty batch"),
            ("accepts", "control_*negative_version control_commit_*_value", "checks no versions and values of markers"),
            ("accepts", "wrapper_v?_inner_crc", "does not check checksums of inner messages"),
            ("accepts", "wrapper_v1_linked_lz4 corrupt_v2_linked_lz4", "reads lz4 blocks that depend on each other"),
            ("accepts", "wrapper_v1_below_inner", "reads a wrapper whose offset is below its last inner offset"),
            ("accepts", "corrupt_v2_magic_5", "reads a magic above 2 as v2; the checksum does not cover the magic"),
        )
    ),
    Fault("aiokafka", "accepts", "control_short_key control_null_key", "does not check the key of a control record"),
    Fault("aiokafka", "accepts", "wrapper_v?_no_message", "reads an empty set"),
    Fault(
        "kafka-python",
        "accepts",
        "wrapper_v0_null_value wrapper_v0_no_message wrapper_v0_linked_lz4",
        "reads v0 sets that are null, empty or of dependent blocks",
    ),
    Fault("kafka-python", "accepts", "corrupt_v[01]_value_length_beyond", "cuts a value at the end of the bytes"),
)


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


def golden() -> list[str]:
    return [entry["name"] for entry in json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))]


def outcome(client: str, name: str) -> str:
    """Let the client read a golden vector. Return its kind of fault, or "" if it reads what Kafka reads."""
    sidecar = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    try:
        found = reads(client, (GOLDEN / f"{name}.bin").read_bytes())
    except Exception:  # the clients raise errors of many types
        return "" if sidecar["error"] else "fails"
    if sidecar["error"]:
        return "accepts"
    expected = [message_of(record) for batch in sidecar["batches"] for record in batch["records"]]
    return "" if found == expected else "differs"


def known_fault(client: str, name: str) -> str:
    kinds = {
        fault.kind
        for fault in FAULTS
        if fault.client == client and any(fnmatch(name, pattern) for pattern in fault.vectors.split())
    }
    assert len(kinds) < 2
    return kinds.pop() if kinds else ""


@pytest.mark.sampled(60)
@every_reader
@pytest.mark.parametrize("name", golden())
def test_clients_read_golden_vectors_except_for_known_faults(reader: str, name: str) -> None:
    assert outcome(reader, name) == known_fault(reader, name)


def test_every_pattern_of_a_fault_has_a_vector() -> None:
    for fault in FAULTS:
        for pattern in fault.vectors.split():
            assert any(fnmatch(name, pattern) for name in golden()), (fault.reason, pattern)


def sample(name: str) -> list[Message]:
    if name == "v2":
        return MESSAGES
    return PLAIN if name == "v1" else [Message(offset=m.offset, key=m.key, value=m.value) for m in PLAIN]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec", "reader"), COMBINATIONS)
def test_clients_read_what_we_write(name: str, codec: str, reader: str) -> None:
    log = FORMATS[name].encode(records_of(sample(name)), 2, codec)
    assert reads(reader, bytes(log)) == sample(name)


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
        assert reads(reader, bytes(encoded(part))) == expected
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
