"""v0 and v1: plain messages, and wrappers (messages around compressed sets of messages; KIP-31, KIP-32)."""

import struct
import zlib
from itertools import product
from typing import Any

import pytest

from kfbench import FORMATS, BatchFields, Records, read_log
from kfbench.errors import CorruptLog
from tests.common import (
    ENRICHED,
    LEGACY,
    MESSAGES,
    REFERENCES,
    messages_of,
    reference_encode,
)
from tests.formats.fuzz import READ, check_verdict, sealed
from tests.reference import codecs, enriched, lz4, v01
from tests.reference.model import Fields, Message
from tests.strategies import NOW_MS

V0, V1 = FORMATS["v0"], FORMATS["v1"]
every_name = pytest.mark.parametrize("name", LEGACY)


def small(name: str, n: int = 3) -> list[Message]:
    stamp = -1 if name == "v0" else NOW_MS
    return [Message(offset=i, timestamp_ms=stamp, key=b"k%d" % i, value=b"value-%d" % i) for i in range(n)]


def inner_set(name: str, messages: list[Message]) -> bytes:
    return REFERENCES[name].plain(messages=messages, fields=Fields())


def wrapped(name: str, messages: list[Message], raw: bytes | None = None) -> bytes:
    """Return a wrapper message. Its value is `raw` compressed, or else the inner set of `messages`."""
    payload = codecs.compress("gzip", inner_set(name, messages) if raw is None else raw, FORMATS[name].magic)
    return REFERENCES[name].around(messages=messages, fields=Fields(), codec="gzip", payload=payload)


def outer(name: str, codec: int, value: bytes | None) -> bytes:
    """Return a wrapper message with this value."""
    if name in ENRICHED:
        return enriched.entry(2, codec, NOW_MS // 1000, None, value)
    return v01.entry(LEGACY[name], 2, codec, NOW_MS, None, value)


def with_byte(data: bytes, at: int, byte: int) -> bytes:
    return data[:at] + bytes([byte]) + data[at + 1 :]


def test_a_message_by_hand() -> None:
    old = V0.encode(Records.from_lists([None], keys=[b"k"], offsets=[5]))
    assert bytes(old) == bytes.fromhex("0000000000000005 0000000f 908204f6 00 00 00000001 6b ffffffff")
    new = V1.encode(Records.from_lists([b"v"], timestamps_ms=[NOW_MS], offsets=[5]))
    assert bytes(new) == bytes.fromhex("0000000000000005 00000017 c1672ac5 01 00 0000018bcfe56800 ffffffff 00000001 76")


@pytest.mark.parametrize("name", MESSAGES)
def test_wrappers_that_are_refused(name: str) -> None:
    messages = small(name)
    sound, nested = inner_set(name, messages), wrapped(name, messages[1:])
    for data, field in [
        (wrapped(name, messages, b""), "value"),
        (wrapped(name, messages, nested), "attributes"),
        (wrapped(name, messages, inner_set(name, messages[:1]) + nested), "attributes"),
        (wrapped(name, messages, with_byte(sound, len(sound) - 1, 0)), "crc"),
        (wrapped(name, messages, with_byte(sound, 16, 2)), "magic"),
        (wrapped(name, messages, with_byte(sound, 16, 0 if name in ENRICHED else 3)), "magic"),
        (wrapped(name, messages, bytes(8) + struct.pack(">i", 13) + bytes(30)), "record length"),
        (outer(name, 1, None), "value"),
        (outer(name, 4, b"\x28\xb5\x2f\xfd"), "attributes"),
        (outer(name, 7, b""), "attributes"),
        (outer(name, 1, b"not gzip"), "records"),
        (outer(name, 2, b""), "records"),
    ]:
        check_verdict(data, name, field)


@every_name
def test_lengths_that_do_not_add_up(name: str) -> None:
    magic = LEGACY[name]
    sound = v01.entry(magic, 0, 0, NOW_MS, b"key", b"value")
    key_at = 26 if magic else 18
    for at, new, field in [
        (key_at, 2**31 - 1, "key length"),
        (key_at, 12, "key length"),
        (key_at, 2, "value length"),
        (key_at + 7, 6, "value length"),
        (key_at + 7, 2**31 - 1, "value length"),
    ]:
        check_verdict(sealed(sound[:at] + struct.pack(">i", new) + sound[at + 4 :]), name, field)
    for new, value in [(-2, None), (4, b"valu")]:  # as Kafka, we read a null value here, and bytes after the value
        data = sealed(sound[: key_at + 7] + struct.pack(">i", new) + sound[key_at + 11 :])
        assert read_log(data).records.value(0) == value
        check_verdict(data, name, READ)
    for size in range(14, 14 + (8 if magic else 0) + 8):
        with pytest.raises(CorruptLog):
            FORMATS[name].decode(sealed(sound[: 12 + size]))


@pytest.mark.parametrize("name", MESSAGES)
def test_an_inner_set_that_is_cut_short(name: str) -> None:
    """The reader leaves out a last message that the set cuts short, like Kafka's reader."""
    messages = small(name)
    raw, last = inner_set(name, messages), len(inner_set(name, messages[2:]))
    for cut in (1, 5, last - 1):
        back = FORMATS[name].decode(wrapped(name, messages[:2], raw[: len(raw) - cut]))
        assert messages_of(back.records) == messages[:2]


# v0


def test_inner_offsets_are_absolute_whatever_the_wrapper_says() -> None:
    records = Records.from_lists([b"a", b"b"], offsets=[100, 103])
    back = V0.decode(V0.encode(records, codec="gzip", batch_fields=BatchFields(last_offset=5000)))
    assert back.records.offsets.tolist() == [100, 103]
    assert back.batches["last_offset"].tolist() == [5000]


def test_the_lz4_header_checksum_is_wrong_as_kafkas_was() -> None:
    data = V0.encode(Records.from_lists([b"x" * 500] * 3), codec="lz4").data.tobytes()
    frame = lz4.read_frame(data[26:])
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=0)


@pytest.mark.parametrize("magic", [0, 2])
def test_either_lz4_header_checksum_is_read(magic: int) -> None:
    messages = small("v0")
    payload = lz4.compress(v01.inner_set(0, messages), magic)
    assert messages_of(V0.decode(v01.wrapper(0, "lz4", messages, payload)).records) == messages


# v1


def with_wrapper_offset(offset: int, inner: list[int]) -> bytes:
    """Return a wrapper with the given offset. inner: the offset that is written in each inner message."""
    raw = b"".join(v01.entry(1, at, 0, NOW_MS, None, b"v") for at in inner)
    return v01.entry(1, offset, 1, NOW_MS, None, codecs.compress("gzip", raw, 1))


@pytest.mark.parametrize(
    ("offset", "inner", "absolute"),
    [
        (102, [0, 1, 2], [100, 101, 102]),
        (250, [0, 3, 4, 150], [100, 103, 104, 250]),
        (2, [0, 1, 2], [0, 1, 2]),
        (0, [0], [0]),
        (0, [0, 1, 2], [0, 1, 2]),
        (41, [40, 41], [40, 41]),
        (5, [0, 0, 0], [5, 5, 5]),
        (2**40, [0, 1], [2**40 - 1, 2**40]),
    ],
)
def test_absolute_offsets_count_back_from_the_wrapper(offset: int, inner: list[int], absolute: list[int]) -> None:
    back = V1.decode(with_wrapper_offset(offset, inner))
    assert back.records.offsets.tolist() == absolute
    row = back.batches.iloc[0]
    assert (row["base_offset"], row["last_offset"], row["count"]) == (absolute[0], offset, len(inner))


@pytest.mark.parametrize(("offset", "inner"), [(3, [0, 5]), (1, [0, 1, 2]), (-1, [0])])
def test_a_wrapper_below_its_last_inner_message(offset: int, inner: list[int]) -> None:
    with pytest.raises(CorruptLog, match="wrapper's offset") as refusal:
        V1.decode(with_wrapper_offset(offset, inner))
    assert refusal.value.field == "offset"
    sound = with_wrapper_offset(12, [0, 1])
    kept = V1.decode(sound + with_wrapper_offset(offset, inner) + sound, on_error="skip")
    assert kept.records.offsets.tolist() == [11, 12, 11, 12]
    assert kept.bounds.tolist() == [0, 2, 4]


@pytest.mark.parametrize(("name", "first"), [("v1", 4998), *((name, 5000) for name in ENRICHED)])
def test_a_broker_sets_the_wrapper_alone(name: str, first: int) -> None:
    """KIP-31, KAFKA-527: a broker assigns offsets to a compressed set by changing 8 bytes. No checksum changes."""
    for codec in ("gzip", "lz4"):
        data = bytearray(FORMATS[name].encode(Records.from_lists([b"a", b"b", b"c"]), codec=codec).data)
        data[:8] = struct.pack(">q", 5000)
        assert FORMATS[name].decode(data).records.offsets.tolist() == [first, first + 1, first + 2]


def test_the_wrappers_timestamp_is_the_largest() -> None:
    stamps = [NOW_MS, NOW_MS + 50, -1, NOW_MS + 7]
    back = V1.decode(V1.encode(Records.from_lists([b""] * 4, timestamps_ms=stamps), codec="gzip"))
    assert back.batches["max_timestamp_ms"].tolist() == [NOW_MS + 50]
    assert back.records.timestamps_ms.tolist() == stamps


def test_a_message_of_v0_inside_a_wrapper_of_v1() -> None:
    """KAFKA-4298: a v1 wrapper may contain v0 messages of old producers. Both kinds are read."""
    raw = v01.entry(1, 0, 0, NOW_MS, None, b"new") + v01.entry(0, 1, 0, -1, None, b"old")
    data = v01.entry(1, 11, 2, NOW_MS, None, codecs.compress("snappy", raw, 1))
    back = V1.decode(data)
    assert messages_of(back.records) == [
        Message(offset=10, timestamp_ms=NOW_MS, value=b"new"),
        Message(offset=11, timestamp_ms=-1, value=b"old"),
    ]
    assert back.batches["mixed_magic"].tolist() == [True]
    assert not back.batches["canonical"].any()


@pytest.mark.parametrize("name", ["v1", *ENRICHED])
def test_the_lz4_header_checksum_is_right_and_checked(name: str) -> None:
    data = bytes(FORMATS[name].encode(Records.from_lists([b"x" * 500] * 3), codec="lz4"))
    frame = lz4.read_frame(data[data.index(lz4.MAGIC) :])
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=1)
    given = {"messages": small("v1"), "fields": Fields()}
    payload = lz4.compress(REFERENCES[name].plain(**given), magic=0)
    with pytest.raises(CorruptLog, match="lz4"):
        FORMATS[name].decode(REFERENCES[name].around(**given, codec="lz4", payload=payload))


@pytest.mark.parametrize(
    ("name", "bits"),
    [*(("v1", bits) for bits in (0x10, 0x40, 0x80)), *product(ENRICHED, (0x10, 0x20, 0x40, 0x80))],
)
def test_unused_attribute_bits_are_read_but_not_canonical(name: str, bits: int) -> None:
    messages = small("v1", 1)
    data = bytearray(reference_encode(name, messages, Fields()))
    data[17] |= bits
    check_verdict(sealed(bytes(data)), name, READ)


def test_a_v0_message_inside_a_wrapper_has_no_append_time() -> None:
    # LegacyRecord.timestamp: a v0 message has no timestamp, even in a wrapper with an append time (KAFKA-4298).
    inner = b"".join(
        bytes(FORMATS[name].encode(Records.from_lists([b"v"], timestamps_ms=[time], offsets=[offset])))
        for name, time, offset in (("v0", -1, 0), ("v1", NOW_MS, 1))
    )
    wrapper = FORMATS["v1"].encode(
        Records.from_lists([codecs.compress("gzip", inner, 1)], timestamps_ms=[NOW_MS], offsets=[1]),
        batch_fields=BatchFields(append_time_ms=NOW_MS + 5),
    )
    data = bytearray(bytes(wrapper))
    data[17] |= 1
    data[12:16] = zlib.crc32(data[16:]).to_bytes(4, "big")
    log = FORMATS["v1"].decode(bytes(data))
    assert log.records.timestamps_ms.tolist() == [-1, NOW_MS + 5]
    assert log.create_timestamps_ms.tolist() == [-1, NOW_MS]


@pytest.mark.parametrize(
    ("inner", "canonical"),
    [
        ({}, True),
        ({"attributes": 0x70}, False),
        ({"key_length": -7}, False),
        ({"behind": b"junk"}, False),
        ({"cut": True}, False),
        ({"first_offset": 3}, True),  # the first messages were compacted away; offsets count from the first one left
    ],
)
def test_a_wrapper_is_canonical_if_its_messages_are(inner: dict[str, Any], canonical: bool) -> None:
    """The reader accepts all of these sets, as Kafka does. Those that an encoder would write are marked canonical."""

    def message(offset: int, attributes: int = 0, key_length: int = -1, behind: bytes = b"") -> bytes:
        body = struct.pack(">bbqi", 1, attributes, NOW_MS, key_length) + struct.pack(">i", 1) + b"v" + behind
        return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body

    first = inner.pop("first_offset", 0)
    tail = b"\0" * 5 if inner.pop("cut", False) else b""
    plain = message(first) + message(first + 1, **inner) + tail
    data = v01.wrapper(1, "gzip", [Message(offset=first + i, timestamp_ms=NOW_MS) for i in range(2)],
                       codecs.compress("gzip", plain, 1), Fields())  # fmt: skip
    log = V1.decode(data)
    assert len(log.records) == 2
    assert log.batches["canonical"].tolist() == [canonical]
