"""Compare how kfbench reads a log with how Kafka does.

Kafka's reading is in a golden vector's sidecar (the JSON file next to it).
"""

from typing import Any

from kfbench.batches import DecodedLog
from kfbench.measure.golden.differences import BATCH_FIELDS, TIMESTAMP_TYPES
from tests.common import messages_of
from tests.reference.model import Message, increment_sequence

NOT_COLUMNS = {"isValid", "nextOffset", "decompressedSha256", "decompressError", "records"}
INT64_RANGE = 2**64


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def message_of(record: dict[str, Any]) -> Message:
    """Return a record of a sidecar as a message."""
    return Message(
        offset=record["offset"],
        timestamp_ms=record["timestamp"],
        key=unhex(record["key"]),
        value=unhex(record["value"]),
        headers=tuple((name, unhex(content)) for name, content in record.get("headers", [])),
    )


def check_sidecar(log: DecodedLog, expected: list[dict[str, Any]]) -> None:
    """Check that every field of every batch and record equals Kafka's."""
    rows = log.batches.to_dict("records")
    assert len(rows) == len(expected)
    messages = messages_of(log.records)
    for i, (row, batch) in enumerate(zip(rows, expected, strict=True)):
        assert batch.keys() <= BATCH_FIELDS.keys() | NOT_COLUMNS
        want = {BATCH_FIELDS[key]: value for key, value in batch.items() if key in BATCH_FIELDS}
        want["timestamp_type"] = TIMESTAMP_TYPES[batch["timestampType"]]
        if want["count"] is None:  # Kafka gives no record count for v0 and v1
            want["count"] = len(batch["records"])
        if batch["count"] == 0:  # Kafka does not decompress empty batches
            want.pop("records_size_bytes", None)
        if "delete_horizon_ms" in want and want["delete_horizon_ms"] is None:
            want["delete_horizon_ms"] = -1
        assert {name: row[name] for name in want} == want
        assert (row["last_offset"] + 1 - batch["nextOffset"]) % INT64_RANGE == 0  # Java's addition wraps around
        read = messages[log.bounds[i] : log.bounds[i + 1]]
        assert len(read) == len(batch["records"])
        for k, (message, record) in enumerate(zip(read, batch["records"], strict=True)):
            assert message == message_of(record)
            if "sequence" in record:
                base, distance = row["base_sequence"], record["offset"] - row["base_offset"]
                assert record["sequence"] == (-1 if base < 0 else increment_sequence(base, distance)), k
