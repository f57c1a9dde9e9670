"""`append` of damaged columnar requests.

It refuses damage in headers and columns, and cannot see damage in a compressed payload.
"""

import gzip
import struct
from typing import Any

import numpy as np
import pytest

from kfbench import Limits
from kfbench.batches import EncodedLog
from kfbench.broker.append import append
from kfbench.errors import CorruptLog, Refused
from tests.formats.fuzz import sealed
from tests.reference.model import Fields, Message
from tests.research.columnar import reference as columnar
from tests.research.columnar.batches import (
    ANCHOR_MS,
    ATTRIBUTES_AT,
    CODECS,
    COLUMNAR,
    COUNT_AT,
    encoded,
    messages,
    with_payload,
)
from tests.strategies import NOW_MS

PAYLOAD = columnar.payload_section(messages())
GZIPPED = gzip.compress(PAYLOAD)
MARKER = (b"\0\0\0\1", bytes(6))
# Header values whose template stores hexadecimal digits in half a byte each. The half behind the fifth is not 0.
DIGITS = [
    Message(offset=i, timestamp_ms=NOW_MS, value=b"", headers=(("h", b"%x" % digit),))
    for i, digit in enumerate([1, 2, 3, 10, 11])
]
DAMAGED_DIGITS = b"h\x12\x3a\xb1"


def control(key: bytes, value: bytes, codec: str) -> bytes:
    """Return a control batch of one record, which has other contents than such records have."""
    sound = [Message(offset=0, timestamp_ms=NOW_MS, key=b"0123"[: len(key)], value=b"012345"[: len(value)])]
    payload = key + value if codec == "none" else gzip.compress(key + value)
    batch = bytearray(columnar.batch(sound, Fields(), codec, payload))
    batch[22] |= columnar.CONTROL
    return sealed(bytes(batch))


CONTROLS = ((b"\0\0", MARKER[1]), (MARKER[0], b"\0"), (b"\xff\xff\0\1", MARKER[1]))
SMALL = Limits(batch_bytes=10**5, log_expansion=1)
# A batch whose payload is damaged, what a reader says of it, and the limits of both.
STORED: dict[str, tuple[bytes, str, Limits | None]] = {
    **{codec: (with_payload(b"\xfe no codec has made this \xfe", codec), "decompress", None) for codec in CODECS},
    "a payload that is too short": (with_payload(gzip.compress(PAYLOAD[:-1]), "gzip"), "payload: ", None),
    "too long": (with_payload(gzip.compress(PAYLOAD + b"\0"), "gzip"), "grows past the limit of", None),
    "a size in the codec's frame": (
        with_payload(GZIPPED[:-4] + struct.pack("<I", len(PAYLOAD) + 1), "gzip"), "decompress", None,
    ),
    "padding of digits": (columnar.batch(DIGITS, Fields(), "gzip", gzip.compress(DAMAGED_DIGITS)), "padding: ", None),
    "past every limit": (with_payload(gzip.compress(bytes(10**6)), "gzip"), "limit", SMALL),
    **{f"control {codec} {i}": (control(*each, codec), "control record", None)
       for codec in ("none", "gzip") for i, each in enumerate(CONTROLS)},
}  # fmt: skip
OPAQUE = with_payload(b"\xfe" * 30, "zstd")  # no reader can decompress it, so append has not


def ored(at: int, bits: int) -> bytes:
    broken = bytearray(OPAQUE)
    broken[at] |= bits
    return sealed(bytes(broken))


KEYLESS = [Message(offset=i, timestamp_ms=NOW_MS, key=None if i == 3 else b"k", value=b"v") for i in range(5)]
WHOLE = bytes(encoded(producer_id=7, producer_epoch=1, base_sequence=3))
# Damage that append sees: the batch, options of append, what the refusal says, and its error.
REFUSED: dict[str, tuple[bytes, dict[str, Any], str, str]] = {
    **{f"a plain payload of {len(wrong)} bytes": (with_payload(wrong), {}, "payload: ", "INVALID_RECORD")
       for wrong in (PAYLOAD[:-1], PAYLOAD + b"\0", b"")},
    "padding of digits": (columnar.batch(DIGITS, Fields(), "none", DAMAGED_DIGITS), {}, "padding: ", "INVALID_RECORD"),
    "control records of clients": (
        control(*CONTROLS[0], "none"), {"origin": "client"}, "clients are not allowed", "INVALID_RECORD",
    ),
    "times too far off": (
        OPAQUE, {"now_ms": ANCHOR_MS, "before_max_ms": 3}, f"timestamp {NOW_MS} of record 0 is out of range",
        "INVALID_TIMESTAMP",
    ),
    "no key": (
        columnar.batch(KEYLESS, Fields(), "zstd", b"\xfe" * 30), {"compacted": True}, "without key: record 3",
        "INVALID_RECORD",
    ),
    "a column": (ored(COUNT_AT + 1, 0xFF), {}, "column", "INVALID_RECORD"),
    "the count": (ored(COUNT_AT, 0x80), {}, "count|column|offset range|batch header", "INVALID_RECORD"),
    "8 bytes of columns as a timestamp": (ored(ATTRIBUTES_AT, 0x80), {}, "column", "INVALID_RECORD"),
    # Other rules are not checked, because the fields would be read from the next batch.
    **{f"cut at {end}": (sealed(WHOLE[:end]), {}, "a varint runs past the batch", "INVALID_RECORD")
       for end in range(COUNT_AT + 1, COUNT_AT + 15)},
}  # fmt: skip


@pytest.mark.parametrize(("batch", "promise", "limits"), STORED.values(), ids=STORED)
def test_damage_inside_a_payload_is_stored_and_found_by_readers(
    batch: bytes, promise: str, limits: Limits | None
) -> None:
    done = append(batch, base_offset=7, limits=limits, origin="coordinator")
    assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
    assert bytes(done.data)[21:] == batch[21:]
    with pytest.raises(CorruptLog, match=promise):
        COLUMNAR.decode(done.data, limits=limits)


@pytest.mark.parametrize(("batch", "options", "promise", "error"), REFUSED.values(), ids=REFUSED)
def test_damage_outside_of_a_codec_is_refused(batch: bytes, options: dict[str, Any], promise: str, error: str) -> None:
    log = np.frombuffer(batch, np.uint8).copy()
    with pytest.raises(Refused, match=promise) as refusal:
        append(log, in_place=True, **options)
    assert (refusal.value.error, log.tobytes()) == (error, batch)


def test_times_and_keys_within_the_rules() -> None:
    append(OPAQUE, now_ms=ANCHOR_MS, before_max_ms=4)
    assert append(columnar.batch(KEYLESS, Fields(), "zstd", b"\xfe" * 30)).work.in_place == 1
    assert columnar.payload_section(DIGITS) == DAMAGED_DIGITS[:-1] + b"\xb0"


def test_a_batch_that_claims_more_records_than_a_log_may_hold() -> None:
    """A batch of fewer than 34 bytes holds 1,000 records without bytes.

    The refusal is CorruptLog, because Kafka has no error code for it.
    """
    null = [Message(offset=i, timestamp_ms=NOW_MS, key=None, value=None) for i in range(1000)]
    sent = columnar.encode(null)
    assert len(sent) < 34
    assert append(sent, limits=Limits(batch_records=1000)).next_offset == 1000
    with pytest.raises(CorruptLog, match=r"limits\.batch_records"):
        append(sent, limits=Limits(batch_records=999))
    two = EncodedLog(data=np.frombuffer(sent * 2, np.uint8), positions=np.arange(3) * len(sent))
    with pytest.raises(CorruptLog, match=r"limits\.log_expansion"):
        append(two, limits=Limits(batch_records=1000, log_expansion=1))
