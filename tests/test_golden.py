"""Vectors written by Apache Kafka's own classes, and what its own reader says of each.

KFBENCH_GOLDEN names the folder: NAME.bin beside NAME.json, and index.json. Without it all is skipped.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import kfbench
from kfbench.batches import DecodedLog
from tests.common import check_decoded, messages_of
from tests.reference import log as reference_log
from tests.reference import v01, v23
from tests.reference.model import Batch, Fields, RefusedError

CATEGORIES = ("basic", "size", "nulls", "timestamps", "offsets", "headers", "segment", "empty")
FOLDER = os.environ.get("KFBENCH_GOLDEN", "")
TIMESTAMP_TYPES = {"NO_TIMESTAMP_TYPE": "create", "CREATE_TIME": "create", "LOG_APPEND_TIME": "append"}

# Kafka's names in the sidecar, ours in DecodedLog.batches.
BATCH_COLUMNS = {
    "position": "position",
    "magic": "magic",
    "size": "size_bytes",
    "crc": "crc",
    "compression": "codec",
    "timestampType": "timestamp_type",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "maxTimestamp": "max_timestamp_ms",
    "count": "count",
    "attributes": "attributes",
    "baseTimestamp": "base_timestamp_ms",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "lastSequence": "last_sequence",
    "isTransactional": "is_transactional",
    "isControlBatch": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "decompressedSize": "records_size_bytes",
}
NOT_COLUMNS = {"isValid", "nextOffset", "decompressedSha256", "records"}


def names(*categories: str) -> list[Any]:
    if not FOLDER:
        return [pytest.param("", marks=pytest.mark.skip(reason="KFBENCH_GOLDEN names no folder of vectors"))]
    index = json.loads(Path(FOLDER, "index.json").read_text())
    found = [entry["name"] for entry in index if not categories or entry["category"] in categories]
    assert found, f"no vectors of {categories} in {FOLDER}"
    return found


def vector(name: str) -> tuple[bytes, dict[str, Any]]:
    data = Path(FOLDER, f"{name}.bin").read_bytes()
    sidecar = json.loads(Path(FOLDER, f"{name}.json").read_text())
    assert hashlib.sha256(data).hexdigest() == sidecar["sha256"]
    return data, sidecar


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def check_sidecar(log: DecodedLog, expected: list[dict[str, Any]]) -> None:
    """Every field of every batch and record, as Kafka's reader gives it."""
    rows = log.batches.to_dict("records")
    assert len(rows) == len(expected)
    messages = messages_of(log.records)
    for i, (row, batch) in enumerate(zip(rows, expected, strict=True)):
        assert batch.keys() <= BATCH_COLUMNS.keys() | NOT_COLUMNS
        want = {BATCH_COLUMNS[key]: value for key, value in batch.items() if key in BATCH_COLUMNS}
        want["timestamp_type"] = TIMESTAMP_TYPES[batch["timestampType"]]
        if want["count"] is None:  # Kafka does not count v0 and v1
            want["count"] = len(batch["records"])
        if "delete_horizon_ms" in want and want["delete_horizon_ms"] is None:
            want["delete_horizon_ms"] = -1
        assert {name: row[name] for name in want} == want
        assert row["last_offset"] + 1 == batch["nextOffset"]
        read = messages[log.bounds[i] : log.bounds[i + 1]]
        assert len(read) == len(batch["records"])
        for k, (message, record) in enumerate(zip(read, batch["records"], strict=True)):
            assert message.offset == record["offset"]
            assert message.timestamp_ms == record["timestamp"]
            assert (message.key, message.value) == (unhex(record["key"]), unhex(record["value"]))
            headers = tuple((key, unhex(value)) for key, value in record.get("headers", []))
            assert message.headers == headers
            if "sequence" in record:
                distance = record["offset"] - row["base_offset"]
                wrapped = (row["base_sequence"] + distance) % 2**31
                assert record["sequence"] == (-1 if row["base_sequence"] == -1 else wrapped), k


@pytest.mark.parametrize("name", names(*CATEGORIES))
def test_reads_as_kafka_reads(name: str) -> None:
    data, sidecar = vector(name)
    log = kfbench.read_log(data)
    assert sidecar["error"] is None
    check_sidecar(log, sidecar["batches"])
    assert log.trailing_bytes == sidecar["trailingBytes"]
    assert not log.errors


@pytest.mark.parametrize("name", names(*CATEGORIES))
def test_writes_as_kafka_writes(name: str) -> None:
    """Byte for byte where nothing is compressed; else the decompressed bytes are."""
    data, sidecar = vector(name)
    log = kfbench.read_log(data)
    again = bytes(kfbench.write_log(log).data)
    if sidecar["byteExact"]:
        assert log.batches["canonical"].all()
        assert again == data[: sidecar["validBytes"]]
    batches, trailing = reference_log.decode(again)
    assert trailing == 0
    for batch, expected in zip(batches, sidecar["batches"], strict=True):
        if expected["compression"] == "none":
            assert batch.crc == expected["crc"]
        else:
            assert len(batch.raw) == expected["decompressedSize"]
            assert hashlib.sha256(batch.raw).hexdigest() == expected["decompressedSha256"]
    check_sidecar(
        kfbench.read_log(again),
        [
            expected | {"position": batch.position, "size": batch.size_bytes, "crc": batch.crc}
            for batch, expected in zip(batches, sidecar["batches"], strict=True)
        ],
    )


@pytest.mark.parametrize("name", names())
def test_what_kafka_reads_we_read_and_what_it_refuses_we_refuse(name: str) -> None:
    data, sidecar = vector(name)
    if sidecar["error"] is None:
        check_sidecar(kfbench.read_log(data), sidecar["batches"])
        return
    if sidecar["error"]["stage"] == "control":  # Kafka's reader meets it where a consumer looks into the key
        assert not kfbench.read_log(data).errors
        return
    with pytest.raises(kfbench.KfbenchError, match=r"batch at byte \d+"):
        kfbench.read_log(data)
    kept = kfbench.read_log(data, on_error="skip")
    where = sidecar["batches"][-1]["position"] if sidecar["batches"] else 0
    assert kept.errors[0].position == where
    check_sidecar(kept, sidecar["batches"][: sidecar["error"]["batch"]])


@pytest.mark.parametrize("name", names())
def test_the_reference_itself(name: str) -> None:
    """Judges the judge: it reads what we read, and writes what Kafka wrote."""
    data, sidecar = vector(name)
    try:
        batches, trailing = reference_log.decode(data)
    except (RefusedError, EOFError, OSError, ValueError):
        assert sidecar["error"] is not None
        return
    assert trailing == sidecar["trailingBytes"]
    check_decoded(kfbench.read_log(data), batches)
    if sidecar["error"] is not None:
        return
    by_hand = sidecar["category"] in ("corrupt", "wrapper")
    for batch, expected in zip(batches, sidecar["batches"], strict=True):
        assert list(batch.record_sizes) == [record["size"] for record in expected["records"]]
        if batch.codec != "none":
            assert hashlib.sha256(batch.raw).hexdigest() == expected["decompressedSha256"]
        if not by_hand:
            raw, whole = rewritten(batch)
            assert raw == batch.raw
            if batch.codec == "none":
                assert whole == data[batch.position : batch.position + batch.size_bytes]


def rewritten(batch: Batch) -> tuple[bytes, bytes]:
    """(uncompressed records, the batch) as the reference writes what it has read."""
    names = [field.name for field in dataclasses.fields(Fields) if hasattr(batch, field.name)]
    taken = {name: getattr(batch, name) for name in names}
    fields = Fields(**taken | {"append_time_ms": batch.max_timestamp_ms if batch.is_append_time else None})
    if batch.magic > 1:
        section = v23.records_section("v2", batch.messages, fields)
        return section, v23.batch("v2", batch.messages, fields, batch.codec, section)
    if batch.codec == "none":
        entry = v01.plain(batch.magic, batch.messages, fields)
        return entry, entry
    return v01.inner_set(batch.magic, batch.messages, fields), b""
