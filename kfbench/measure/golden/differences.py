"""Find differences between kfbench and Apache Kafka in reading or writing the same log."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import DecodedLog, timestamp_types
from kfbench.codecs import CODEC_NAMES, LEGACY_LZ4, Undecodable, codec_of
from kfbench.layouts import (
    CODEC_MASK,
    CONTROL_TYPES,
    LEGACY_FIXED_BYTES,
    MAGIC_AT,
    NO_TIMESTAMP,
    V0_MESSAGE,
    V2_HEADER,
    position,
)
from kfbench.log import read_log
from kfbench.measure.golden.vectors import Sidecar

# Kafka's name of a field in a vector's JSON file -> our name in DecodedLog.batch_rows.
BATCH_FIELDS: Final = {
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
TIMESTAMP_TYPES: Final = {"NO_TIMESTAMP_TYPE": "none", "CREATE_TIME": "create", "LOG_APPEND_TIME": "append"}
# Size, checksum and magic of single records are not compared here, because the bytes are compared separately.
_NOT_COMPARED: Final = {"isValid", "decompressedSha256", "decompressError", "records"}
_RECORD_NOT_COMPARED: Final = {"size", "crc", "magic"}
_NULLS: Final = {"delete_horizon_ms": -1}  # our value for Kafka's null
_SEQUENCES: Final = 1 << 31  # sequence numbers start again at 0 after the largest int32


class FieldValues(NamedTuple):
    """One field of a batch or record, as Kafka and kfbench read it.

    name: the name of the field in Kafka. kafkas, ours: the values that Kafka and kfbench read.
    """

    name: str
    kafkas: Any
    ours: Any


def log_differences(log: DecodedLog, batches: Sequence[Sidecar], trailing_bytes: int | None = None) -> Iterator[str]:
    """Yield a description of each field of a batch or record that kfbench and Kafka read differently.

    Args:
        log: the log as kfbench decoded it.
        batches: the batches as Kafka read them, from the JSON file next to the log.
        trailing_bytes: the number of bytes that Kafka left after the last whole batch; None if Kafka stopped earlier.
    """
    if len(log) < len(batches) or (trailing_bytes is not None and len(log) > len(batches)):
        yield f"Kafka reads {len(batches)} batches, kfbench {len(log)}"
    if trailing_bytes not in (None, log.trailing_bytes):
        yield f"Kafka leaves {trailing_bytes} bytes over, kfbench {log.trailing_bytes}"
    for i, (batch, row) in enumerate(zip(batches, log.batch_rows, strict=False)):
        where = f"batch {i} at byte {row['position']}"
        for name, kafkas, ours in _batch_values(batch, row):
            if kafkas != ours:
                yield f"{where}: {name}: Kafka reads {kafkas}, kfbench {ours}"
        first, end = int(log.bounds[i]), int(log.bounds[i + 1])
        if end - first != len(batch["records"]):
            yield f"{where}: Kafka reads {len(batch['records'])} records, kfbench {end - first}"
        for k, record in zip(range(first, end), batch["records"], strict=False):
            for name, kafkas, ours in _record_values(record, log, k, row):
                if kafkas != ours:
                    yield f"{where}: record {k - first}: {name}: Kafka reads {kafkas}, kfbench {ours}"


def _batch_values(batch: Sidecar, row: NDArray[np.void]) -> Iterator[FieldValues]:
    """Yield the fields of a batch. A field in Kafka's JSON file that kfbench does not know counts as a difference."""
    for name in batch.keys() - _NOT_COMPARED:
        kafkas: Any = batch[name]
        if name == "nextOffset":
            yield FieldValues(name, kafkas, _next_offset(int(row["last_offset"])))
        elif name == "timestampType":
            ours = timestamp_types(np.atleast_1d(row))[0]
            yield FieldValues(name, TIMESTAMP_TYPES.get(kafkas, kafkas), ours)
        elif name == "compression":
            yield FieldValues(name, kafkas, CODEC_NAMES[row["codec"]])
        elif name == "count" and kafkas is None:  # Kafka does not count v0 and v1
            yield FieldValues(name, len(batch["records"]), row["count"])
        elif name in BATCH_FIELDS:
            our_name = BATCH_FIELDS[name]
            yield FieldValues(name, _NULLS.get(our_name) if kafkas is None else kafkas, row[our_name])
        else:
            yield FieldValues(name, kafkas, "has no such field")


def _timestamp_type(log: DecodedLog, k: int, row: NDArray[np.void]) -> str:
    """Return the timestamp type of the record with index k. row: the header fields of the record's batch."""
    if row["mixed_magic"] and log.records.timestamps_ms[k] == NO_TIMESTAMP:  # a message of v0
        return "none"
    return str(timestamp_types(np.atleast_1d(row))[0])


def _record_values(record: Sidecar, log: DecodedLog, k: int, row: NDArray[np.void]) -> Iterator[FieldValues]:
    """Yield the fields of the record with index k.

    A field in Kafka's JSON file that kfbench does not know counts as a difference.
    """
    records, key, value = log.records, log.records.key(k), log.records.value(k)
    for name in record.keys() - _RECORD_NOT_COMPARED:
        kafkas: Any = record[name]
        ours: Any
        match name:
            case "offset":
                ours = int(records.offsets[k])
            case "timestamp":
                ours = int(records.timestamps_ms[k])
            case "timestampType":
                kafkas, ours = TIMESTAMP_TYPES.get(kafkas, kafkas), _timestamp_type(log, k, row)
            case "key":
                ours = _hex(key)
            case "value":
                ours = _hex(value)
            case "headers":
                kafkas = [(header, content) for header, content in kafkas]
                ours = [(header, _hex(content)) for header, content in records.headers(k)]
            case "sequence":
                base = int(row["base_sequence"])
                distance = int(records.offsets[k] - row["base_offset"])
                ours = -1 if base == -1 else (base + distance) % _SEQUENCES
            case "controlType":
                number = int.from_bytes((key or b"")[2:4], "big")
                ours = CONTROL_TYPES.get(number, "unknown").upper().replace(" ", "_")
            case "coordinatorEpoch":
                ours = int.from_bytes((value or b"")[2:6], "big", signed=True)
            case _:
                ours = "has no such field"
        yield FieldValues(name, kafkas, ours)


def _next_offset(offset: int) -> int:
    """Return offset + 1. After the largest int64 comes the smallest int64, as in Java."""
    return offset + 1 if offset < 2**63 - 1 else -(2**63)


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def first_difference(wanted: bytes, written: bytes) -> str | None:
    """Return a description of the first byte that differs; None if both are equal."""
    if wanted == written:
        return None
    pairs = enumerate(zip(wanted, written, strict=False))
    at = next((i for i, (one, other) in pairs if one != other), min(len(wanted), len(written)))
    return f"byte {at} differs: Kafka writes {len(wanted)} bytes, kfbench {len(written)}"


def decompressed_differences(data: bytes, again: bytes, batches: Sequence[Sidecar]) -> Iterator[str]:
    """Decompress each batch of Kafka's log and of our log. Yield a description of each difference.

    The decompressed bytes must have the SHA-256 that Kafka computed. Batches without a codec must be equal byte by
    byte.

    Args:
        data: Kafka's log.
        again: the log that kfbench wrote.
        batches: the batches as Kafka read them, from the JSON file next to the log.
    """
    written = read_log(again).batch_rows
    if len(written) != len(batches):
        yield f"Kafka writes {len(batches)} batches, kfbench {len(written)}"
    for i, (batch, row) in enumerate(zip(batches, written, strict=False)):
        kafkas = data[batch["position"] : batch["position"] + batch["size"]]
        ours = again[int(row["position"]) : int(row["position"] + row["size_bytes"])]
        where = f"batch {i} at byte {batch['position']}"
        if batch["compression"] == "none":
            if difference := first_difference(kafkas, ours):
                yield f"{where}: {difference}"
            continue
        wanted = str(batch.get("decompressedSha256"))
        for whose, entry in (("Kafka's", kafkas), ("kfbench's", ours)):
            try:
                digest = hashlib.sha256(decompressed(entry)).hexdigest()
            except Undecodable as error:
                yield f"{where}: {whose} bytes: {error}"
                continue
            if digest != wanted:
                yield f"{where}: {whose} bytes decompress to {digest[:16]}…, not {wanted[:16]}…"


def decompressed(entry: bytes) -> bytes:
    """Decompress the compressed part of one batch: the records of a v2 batch, or the value of a v0 or v1 wrapper."""
    magic = entry[MAGIC_AT]
    layout = V0_MESSAGE if magic < 2 else V2_HEADER
    attributes = position(layout, "attributes") + layout["attributes"].itemsize - 1  # the codec is in the last byte
    codec = entry[attributes] & CODEC_MASK
    body = entry[LEGACY_FIXED_BYTES[magic] if magic < 2 else V2_HEADER.itemsize :]
    return (LEGACY_LZ4 if magic == 0 and codec == LEGACY_LZ4.id else codec_of(codec)).decompress(body)
