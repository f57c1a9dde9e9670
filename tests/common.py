"""Checks of four laws that every format keeps. The test of each format calls them.

1. `size` equals the length that `encode` writes, batch by batch, from records or from shapes alone.
2. Encoded records decode to the same records and header fields.
3. `breakdown` adds up to `size` and has an entry for the payload.
4. The bytes equal the reference's. Under a codec, the decompressed bytes and all bytes around the payload do.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
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


def check_against_reference(name: str, case: Case, codec: str = "none") -> None:
    """Check law 4, and that kfbench and the reference decode our bytes to equal fields of every batch and record.

    The reference decompresses with other libraries than kfbench uses.
    """
    fmt, reference = FORMATS[name], REFERENCES[name]
    log: EncodedLog = fmt.encode(
        records_of(case.messages), bounds_of(case), codec=codec, batch_fields=batch_fields_of(case)
    )
    assert log.data.dtype == np.uint8 and not log.losses
    assert (len(log.positions), log.positions[-1]) == (len(case.batches) + 1, len(log.data))
    for (start, end), messages, fields in zip(pairwise(log.positions.tolist()), case.batches, case.fields, strict=True):
        written = log.data[start:end].tobytes()
        if codec == "none" or not messages:
            assert written == reference.encode(messages, fields, "none")
            continue
        (batch,), _ = reference_decode(name, written)
        assert (batch.codec, batch.raw) == (codec, reference.plain(messages=messages, fields=fields))
        around = partial(reference.around, messages=messages, fields=fields, codec=codec)
        assert written == around(payload=written[len(around(payload=b"")) :])
    check_decoded(fmt.decode(log.data), reference_decode(name, bytes(log))[0])


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
    """Check law 2: encoded records decode to the same records, which with their header fields give the same bytes."""
    fmt, records, bounds = FORMATS[name], records_of(case.messages), bounds_of(case)
    log = fmt.encode(records, bounds, codec=codec, batch_fields=batch_fields_of(case))
    back = fmt.decode(log)
    assert (back.trailing_bytes, list(back.errors)) == (0, [])
    assert back.batches["canonical"].all()
    if name in MESSAGES and codec == "none":  # each message is read as a batch
        assert back.records.offsets.tolist() == records.offsets.tolist()
    else:
        assert back.source_records == records
        assert back.bounds.tolist() == bounds
    # A set of v1 does not show its base offset if that is below its first record.
    both = zip(case.batches, case.fields, strict=True)
    is_below = (fields.base_offset not in (None, messages[0].offset) for messages, fields in both)
    if name != "v1" or codec == "none" or not any(is_below):
        again = fmt.encode(back.source_records, back.bounds, codec=codec, batch_fields=back.batch_fields)
        assert bytes(again) == bytes(log)


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
