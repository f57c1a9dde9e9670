"""Checks of four laws that every format keeps. The test of each format calls them.

1. `size` equals the length that `encode` writes, batch by batch, from records or from shapes alone.
2. Encoded records decode to the same records and header fields.
3. `breakdown` adds up to `size` and has an entry for the payload.
4. The bytes equal the reference's. Under a codec, the decompressed bytes and all bytes around the payload do.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from kfbench.batches import BatchFields, DecodedLog, EncodedLog
from kfbench.errors import InvalidRecords
from kfbench.formats import FORMATS
from kfbench.records import Records
from tests.reference import enriched, kip98, v01, v23
from tests.reference import log as reference_log
from tests.reference.model import UNSET, Batch, Fields, Message
from tests.research.columnar import reference as columnar
from tests.strategies import Case

LEGACY = {name: fmt.magic for name, fmt in FORMATS.items() if fmt.holds_messages and fmt.is_told_by_magic}
ENRICHED = tuple(name for name, fmt in FORMATS.items() if fmt.holds_messages and not fmt.is_told_by_magic)
MESSAGES = (*LEGACY, *ENRICHED)  # without a codec, these are read as batches of one record
ON_BROKERS = {name: fmt for name, fmt in FORMATS.items() if fmt.has_broker_paths}


class Reference(NamedTuple):
    """The functions of one format's slow reference codec. Their parameters are those of `reference_encode`."""

    encode: Callable[..., bytes]
    plain: Callable[..., bytes]
    """Return the bytes that a codec compresses."""
    around: Callable[..., bytes]
    """Return the batch with `payload` as its compressed bytes."""
    decode_one: Callable[[bytes, int], Batch] = reference_log.decode_by_magic


REFERENCES = (
    {
        name: Reference(partial(v01.encode, magic), partial(v01.inner_set, magic), partial(v01.wrapper, magic))
        for name, magic in LEGACY.items()
    }
    | {
        name: Reference(
            partial(enriched.encode, name),
            partial(enriched.inner_set, name),
            partial(enriched.wrapper, name),
            enriched.decode_one,
        )
        for name in ENRICHED
    }
    | {
        name: Reference(partial(v23.encode, name), partial(v23.records_section, name), partial(v23.batch, name))
        for name in v23.FEATURES
    }
    | {
        "kip98": Reference(kip98.encode, kip98.messages_section, kip98.batch, kip98.decode_one),
        "columnar": Reference(columnar.encode, columnar.payload_section, columnar.batch),
    }
)


def numbers_in(text: str) -> list[float]:
    """Return the numbers of a text in their order. Digits of a name, as in v2, are none."""
    return [float(each.replace(",", "")) for each in re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?", text)]


def records_of(messages: Sequence[Message]) -> Records:
    return Records.from_lists(
        [message.value for message in messages],
        keys=[message.key for message in messages],
        timestamps_ms=[message.timestamp_ms for message in messages],
        headers=[message.headers for message in messages],
        offsets=[message.offset for message in messages],
    )


def messages_of(records: Records, timestamps_ms: Sequence[int] | None = None) -> list[Message]:
    stamps = records.timestamps_ms.tolist() if timestamps_ms is None else timestamps_ms
    return [
        Message(
            offset=int(records.offsets[i]),
            timestamp_ms=stamps[i],
            key=records.key(i),
            value=records.value(i),
            headers=tuple(records.headers(i)),
        )
        for i in range(len(records))
    ]


def bounds_of(case: Case) -> list[int]:
    bounds: list[int] = np.cumsum([0, *map(len, case.batches)]).tolist()
    return bounds


def batch_fields_of(case: Case) -> BatchFields | None:
    """Return the header fields of all batches as columns. A field that no batch sets has no column."""
    columns: dict[str, Any] = {}
    for field in dataclass_fields(Fields):
        given = [getattr(fields, field.name) for fields in case.fields]
        default = getattr(UNSET, field.name)
        if any(value != default for value in given):
            absent = -1 if field.name in ("append_time_ms", "delete_horizon_ms") else int(np.iinfo(np.int64).min)
            columns[field.name] = [absent if value is None else value for value in given]
    if "timestamp_type" in columns:
        columns["timestamp_type"] = [int(fields.readers_see_append_time) for fields in case.fields]
    return BatchFields(**columns) if columns else None


def reference_encode(name: str, messages: Sequence[Message], fields: Fields, codec: str = "none") -> bytes:
    return REFERENCES[name].encode(messages, fields, codec)


def reference_decode(name: str, data: bytes) -> tuple[list[Batch], int]:
    """Decode a log with the slow reference. Return its batches and the number of bytes of an incomplete last batch.

    Raises RefusedError. name: the format, or empty if the magic of each batch shows the format.
    """
    return reference_log.decode(data, REFERENCES[name].decode_one if name else reference_log.decode_by_magic)


# Checks of the four laws


def check_bytes(name: str, case: Case) -> EncodedLog:
    """Check law 4 (bytes equal the reference's) without a codec. Return the encoded log."""
    records, fields = records_of(case.messages), batch_fields_of(case)
    log: EncodedLog = FORMATS[name].encode(records, bounds_of(case), batch_fields=fields)
    assert len(log.positions) == len(case.batches) + 1
    assert log.data.dtype == np.uint8
    assert not log.losses
    for i, (messages, given) in enumerate(zip(case.batches, case.fields, strict=True)):
        written = log.data[log.positions[i] : log.positions[i + 1]].tobytes()
        assert written == reference_encode(name, messages, given)
    assert log.positions[-1] == len(log.data)
    return log


def check_sizes(name: str, case: Case) -> None:
    """Check laws 1 and 3: `size` equals the encoded length, and `breakdown` adds up to it."""
    fmt, records, bounds, fields = (
        FORMATS[name],
        records_of(case.messages),
        bounds_of(case),
        batch_fields_of(case),
    )
    written = np.diff(fmt.encode(records, bounds, batch_fields=fields).positions)
    # Lengths alone (Shapes) do not show which headers records share.
    by_content = not fmt.capabilities.sizes_from_shapes and records.shapes.has_headers
    for given in (records,) if by_content else (records, records.shapes):
        sizes = fmt.size(given, bounds, batch_fields=fields)
        assert sizes.dtype == np.int64
        assert sizes.tolist() == written.tolist()
        parts = fmt.breakdown(given, bounds, batch_fields=fields)
        assert sum(parts.values()) == written.sum()
    assert min(parts.values(), default=0) >= 0
    assert parts["key"] == records.shapes.key_bytes
    assert parts["value"] == records.shapes.value_bytes
    header_bytes = parts.get("header_key", 0) + parts.get("header_value", 0)
    if not by_content:
        assert header_bytes == records.shapes.header_bytes
        return
    assert header_bytes <= records.shapes.header_bytes
    for refused in (fmt.size, fmt.breakdown):
        with pytest.raises(InvalidRecords, match="Records are wanted"):
            refused(records.shapes, bounds, batch_fields=fields)


def check_round_trip(name: str, case: Case, codec: str = "none") -> None:
    """Check law 2: encoded records decode to the same records and header fields."""
    fmt, records = FORMATS[name], records_of(case.messages)
    log = fmt.encode(records, bounds_of(case), codec=codec, batch_fields=batch_fields_of(case))
    back = fmt.decode(log)
    assert (back.trailing_bytes, list(back.errors)) == (0, [])
    plain_messages = name in MESSAGES and codec == "none"  # here an append time replaces the producer's timestamp
    if plain_messages:
        assert back.records.offsets.tolist() == records.offsets.tolist()
    else:
        assert back.source_records == records
        assert len(back) == len(case.batches)
        assert back.bounds.tolist() == bounds_of(case)
    for fields, wrote, read in zip(case.fields, case.batches, per_batch(case, back), strict=True):
        expected = list(wrote)
        if fields.readers_see_append_time:
            seen = -1 if fields.append_time_ms is None else fields.append_time_ms
            expected = [replace(message, timestamp_ms=seen) for message in wrote]
        assert read == expected
    if name in LEGACY:
        return
    rows = back.batches.to_dict("records")
    if plain_messages:  # each decoded message has the header fields of its batch
        assert len(rows) == len(records)
        carried = [fields for fields, batch in zip(case.fields, case.batches, strict=True) for _ in batch]
        assert [row["is_control"] for row in rows] == [fields.is_control for fields in carried]
        return
    for fields, row, tags in zip(case.fields, rows, back.tagged_fields, strict=True):
        for field in CARRIED:
            assert row[field] == getattr(fields, field), field
        for field in ("append_time_ms", "delete_horizon_ms"):
            given = getattr(fields, field)
            assert row[field] == (-1 if given is None else given), field
        assert (row["timestamp_type"] == "append") == fields.readers_see_append_time
        assert dict(tags) == dict(fields.tagged_fields)
        for field in ("base_offset", "last_offset"):
            given = getattr(fields, field)
            assert given is None or row[field] == given, field


CARRIED = (
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "partition_leader_epoch",
)


def check_reads(name: str, case: Case, codec: str = "none") -> None:
    """Decode our bytes with kfbench and with the reference.

    Check that every field of every batch and record is equal.
    """
    log = FORMATS[name].encode(
        records_of(case.messages), bounds_of(case), codec=codec, batch_fields=batch_fields_of(case)
    )
    batches, _ = reference_decode(name, log.data.tobytes())
    check_decoded(FORMATS[name].decode(log.data), batches)


def per_batch(case: Case, back: DecodedLog) -> list[list[Message]]:
    """Return the decoded records, grouped by the batches that were written."""
    messages = messages_of(back.records)
    return [messages[start:end] for start, end in pairwise(bounds_of(case))]


def check_compressed(name: str, case: Case, codec: str, level: int | None = None) -> None:
    """Check law 4 under a codec. The reference decompresses our bytes with other libraries than kfbench uses."""
    log: EncodedLog = FORMATS[name].encode(
        records_of(case.messages),
        bounds_of(case),
        codec=codec,
        level=level,
        batch_fields=batch_fields_of(case),
    )
    assert not log.losses
    data = log.data.tobytes()
    for i, (messages, fields) in enumerate(zip(case.batches, case.fields, strict=True)):
        part = data[log.positions[i] : log.positions[i + 1]]
        if not messages:
            assert part == reference_encode(name, messages, fields)
            continue
        (batch,), _ = reference_decode(name, part)
        assert batch.codec == codec
        assert batch.raw == REFERENCES[name].plain(messages=messages, fields=fields)
        around = partial(REFERENCES[name].around, messages=messages, fields=fields, codec=codec)
        assert part == around(payload=part[len(around(payload=b"")) :])


def check_decoded(back: DecodedLog, batches: Sequence[Batch]) -> None:
    """Check that every field of every decoded batch and record equals that of the reference's batches."""
    assert len(back) == len(batches)
    assert back.bounds.tolist() == np.cumsum([0, *(len(batch.messages) for batch in batches)]).tolist()
    expected = [message for batch in batches for message in batch.messages]
    assert messages_of(back.records, back.create_timestamps_ms.tolist()) == expected
    assert back.records.timestamps_ms.tolist() == [stamp for batch in batches for stamp in batch.read_timestamps_ms()]
    assert [dict(tags) for tags in back.tagged_fields] == [dict(batch.tagged_fields) for batch in batches]
    rows = back.batches.to_dict("records")
    for row, batch in zip(rows, batches, strict=True):
        described = describe(batch)
        assert {name: row[name] for name in described} == described


def describe(batch: Batch) -> dict[str, Any]:
    """Return a batch of the reference under the column names of `DecodedLog.batches`."""
    base = batch.base_timestamp_ms
    return {
        "position": batch.position,
        "size_bytes": batch.size_bytes,
        "magic": batch.magic,
        "crc": batch.crc,
        "attributes": batch.attributes if batch.attributes < 2**15 else batch.attributes - 2**16,
        "codec": batch.codec,
        "timestamp_type": "none" if batch.magic == 0 else "append" if batch.is_append_time else "create",
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": len(batch.messages),
        "base_timestamp_ms": -1 if base is None else base,
        "max_timestamp_ms": batch.max_timestamp_ms,
        "append_time_ms": batch.append_time_ms,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "last_sequence": batch.last_sequence,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": -1 if batch.delete_horizon_ms is None else batch.delete_horizon_ms,
        "records_size_bytes": len(batch.raw),
    }


def one_batch(*messages: Message, **fields: Any) -> Case:
    return Case(batches=(messages,), fields=(Fields(**fields),))


def check_against_reference(name: str, case: Case) -> None:
    check_bytes(name, case)
    check_reads(name, case)


def check_codec_against_reference(name: str, case: Case, codec: str) -> None:
    check_compressed(name, case, codec)
    check_reads(name, case, codec)
