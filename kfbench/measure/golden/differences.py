"""Find differences between kfbench and Apache Kafka in reading or writing the same log."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import DecodedLog, timestamp_types
from kfbench.codecs import LEGACY_LZ4, Undecodable, codec_names, codec_of
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
_NOT_COMPARED: Final = {"isValid", "decompressedSha256", "decompressError", "records"}
# Size, checksum and magic of single records are not compared, because the bytes are compared separately.
_RECORD_NOT_COMPARED: Final = {"size", "crc", "magic"}
# Kafka's value of a field -> ours.
_IN_OUR_TERMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "timestampType": lambda name: TIMESTAMP_TYPES.get(name, name),
    "deleteHorizonMs": lambda horizon_ms: -1 if horizon_ms is None else horizon_ms,
    "headers": lambda headers: [(name, value) for name, value in headers],
}
_SEQUENCES: Final = 1 << 31  # sequence numbers start again at 0 after the largest int32


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
        if batch.get("count", 0) is None:  # Kafka does not count v0 and v1
            batch = {**batch, "count": len(batch["records"])}
        yield from (f"{where}: {each}" for each in _field_differences(batch, _batch_fields(row), _NOT_COMPARED))
        first, end = int(log.bounds[i]), int(log.bounds[i + 1])
        if end - first != len(batch["records"]):
            yield f"{where}: Kafka reads {len(batch['records'])} records, kfbench {end - first}"
        for k, record in zip(range(first, end), batch["records"], strict=False):
            differences = _field_differences(record, _record_fields(log, k, row), _RECORD_NOT_COMPARED)
            yield from (f"{where}: record {k - first}: {each}" for each in differences)


def _field_differences(kafkas: Sidecar, ours: Mapping[str, Any], not_compared: Iterable[str]) -> Iterator[str]:
    """Compare fields under Kafka's names. A field that kfbench does not know counts as a difference."""
    for name in kafkas.keys() - not_compared:
        kafka, our = kafkas[name], ours.get(name, "has no such field")
        if name in _IN_OUR_TERMS:
            kafka = _IN_OUR_TERMS[name](kafka)
        if kafka != our:
            yield f"{name}: Kafka reads {kafka}, kfbench {our}"


def _batch_fields(row: NDArray[np.void]) -> dict[str, Any]:
    """Return the fields of a batch, under Kafka's names."""
    last_offset = int(row["last_offset"])
    return {
        **{name: row[our_name] for name, our_name in BATCH_FIELDS.items()},
        "timestampType": timestamp_types(np.atleast_1d(row))[0],
        "compression": codec_names()[row["codec"]],
        "nextOffset": last_offset + 1 if last_offset < 2**63 - 1 else -(2**63),  # as in Java
    }


def _record_fields(log: DecodedLog, k: int, row: NDArray[np.void]) -> dict[str, Any]:
    """Return the fields of the record with index k, under Kafka's names. row: the header fields of its batch."""
    records, key, value = log.records, log.records.key(k), log.records.value(k)
    is_v0 = row["mixed_magic"] and records.timestamps_ms[k] == NO_TIMESTAMP
    base, distance = int(row["base_sequence"]), int(records.offsets[k] - row["base_offset"])
    control = CONTROL_TYPES.get(int.from_bytes((key or b"")[2:4], "big"), "unknown")
    return {
        "offset": int(records.offsets[k]),
        "timestamp": int(records.timestamps_ms[k]),
        "timestampType": "none" if is_v0 else timestamp_types(np.atleast_1d(row))[0],
        "key": _hex(key),
        "value": _hex(value),
        "headers": [(header, _hex(content)) for header, content in records.headers(k)],
        "sequence": -1 if base == -1 else (base + distance) % _SEQUENCES,
        "controlType": control.upper().replace(" ", "_"),
        "coordinatorEpoch": int.from_bytes((value or b"")[2:6], "big", signed=True),
    }


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
