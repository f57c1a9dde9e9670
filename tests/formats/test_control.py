"""Control batches: encoders and decoders refuse records that Kafka cannot read as control records."""

import struct

import pytest

from kfbench import FORMATS, BatchFields
from kfbench.errors import CorruptLog, InvalidRecords
from tests.common import (
    ENRICHED,
    REFERENCES,
    check_against_reference,
    messages_of,
    one_batch,
    records_of,
)
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference import codecs, enriched
from tests.reference.model import Message
from tests.strategies import NOW_MS

NAMES = [name for name in REFERENCES if "is_control" in FORMATS[name].capabilities.batch_fields]
every_name = pytest.mark.parametrize("name", NAMES)
MARKER = struct.pack(">hi", 0, 15)


def control(kind: int, value: bytes | None = MARKER, version: int = 0) -> Message:
    return Message(offset=200, timestamp_ms=NOW_MS - NOW_MS % 1000, key=struct.pack(">hh", version, kind), value=value)


def with_key(key: bytes | None, value: bytes | None = MARKER) -> Message:
    return Message(offset=200, timestamp_ms=-1, key=key, value=value)


@pytest.mark.sampled
@every_name
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4, 5, 6, 42, -1, 2**15 - 1])
def test_control_records_of_every_type(name: str, kind: int) -> None:
    for message in (
        control(kind),
        control(kind, MARKER + b"more", version=1),
        control(kind, struct.pack(">hi", 9, -1)),
    ):
        check_against_reference(name, one_batch(message, is_control=True))
        check_against_reference(name, one_batch(message, is_control=True), "gzip")
        if "producer_id" in FORMATS[name].capabilities.batch_fields:
            producer = {"producer_id": 4711, "producer_epoch": 3, "is_transactional": kind < 2}
            check_against_reference(name, one_batch(message, is_control=True, **producer))
    if kind not in (0, 1):
        for value in (None, b"", b"\xff\xff"):
            check_against_reference(name, one_batch(control(kind, value), is_control=True))


BAD = [
    with_key(None),
    with_key(b""),
    with_key(b"\0\0\0"),
    with_key(b"\xff\xff\0\2"),
    with_key(b"\x80\0\0\2"),
    control(0, None),
    control(1, None),
    control(0, b""),
    control(1, MARKER[:5]),
    control(0, struct.pack(">hi", -1, 0)),
    control(1, struct.pack(">hi", -(2**15), 0)),
]


def unchecked(name: str, messages: list[Message], codec: str) -> bytes:
    """Return a control batch with these messages. The encoder has not checked them."""
    if name in ENRICHED:
        tags = enriched.tags_field({0: -1}) if name == "enriched-ms" else b""
        plain = [enriched.entry(m.offset, 12, -1, m.key, m.value, tags) for m in messages]
        if codec == "none":
            return b"".join(plain)
        return enriched.wrapper(name, codec, messages, codecs.compress(codec, b"".join(plain), 1))
    data = bytearray(bytes(FORMATS[name].encode(records_of(messages), codec=codec)))
    checksum = FORMATS[name].checksum
    data[max(18, checksum.covers_from + 1 if checksum else 0)] |= 32
    return sealed(bytes(data), name)


@pytest.mark.sampled
@every_name
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.key!r}:{bad.value!r}")
def test_invalid_control_records_are_refused(name: str, bad: Message) -> None:
    fmt, fields = FORMATS[name], BatchFields(is_control=True)
    good = control(2)
    for messages in ([bad], [good, bad], [bad, good]):
        assert messages_of(fmt.decode(fmt.encode(records_of([with_key(b"")]))).records)  # a data batch may have it
        for codec in ("none", "gzip"):
            with pytest.raises(InvalidRecords, match="control"):
                fmt.encode(records_of(messages), codec=codec, batch_fields=fields)
            with pytest.raises(CorruptLog, match="control"):
                fmt.decode(unchecked(name, messages, codec))
            assert fmt.decode(unchecked(name, [good, good], codec)).batches["is_control"].all()
            check_agrees_with_reference(unchecked(name, [bad], codec), name)


def test_v0_and_v1_leave_control_batches_out() -> None:
    records = records_of([control(0), control(1)])
    for name in ("v0", "v1"):
        fmt = FORMATS[name]
        log = fmt.encode(records, 1, batch_fields=BatchFields(is_control=[True, False]), lossy=True)
        assert len(fmt.decode(log).records) == 1
