"""v3-headers-first stores the metadata of all records before their payload. Inconsistent metadata is refused."""

import struct
from typing import NamedTuple

import pytest

from kfbench import FORMATS
from kfbench.errors import CorruptLog
from tests.common import messages_of
from tests.formats.fuzz import READ, check_refused, check_verdict, sealed
from tests.reference import codecs, v23
from tests.reference.model import Message
from tests.reference.varint import unsigned
from tests.strategies import NOW_MS

NAMES = [name for name, (_, bits) in v23.FEATURES.items() if bits & v23.HEADERS_FIRST]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
ATTRIBUTES_AT = 21
MESSAGES = [
    Message(offset=i, timestamp_ms=NOW_MS, key=b"k", value=b"value", headers=(("h", b"x"), ("i", None))[: i + 1])
    for i in range(2)
]


class Parts(NamedTuple):
    """The three parts of a batch: its header with tags, the metadata without its length, the payload."""

    header: bytes
    metadata: bytes
    payload: bytes


def parts(name: str) -> Parts:
    data, section = v23.encode(name, MESSAGES), v23.records_section(name, MESSAGES)
    size = section[0]
    assert size < 0x80
    return Parts(data[: -len(section)], section[1 : 1 + size], section[1 + size :])


def rebuilt(header: bytes, section: bytes, codec: str) -> bytes:
    batch = bytearray(header + codecs.compress(codec, section, 2))
    batch[ATTRIBUTES_AT + 1] |= CODECS.index(codec)
    return sealed(bytes(batch))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_metadata_length_is_refused(name: str, codec: str) -> None:
    header, metadata, payload = parts(name)
    sound = rebuilt(header, unsigned(len(metadata)) + metadata + payload, codec)
    assert messages_of(FORMATS[name].decode(sound).records) == MESSAGES
    for claimed in range(200):
        if claimed == len(metadata):
            continue
        check_refused(rebuilt(header, unsigned(claimed) + metadata + payload, codec), name)
    for claim in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80", b"\xff" * 6):
        check_refused(rebuilt(header, claim + metadata + payload, codec), name)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", NAMES)
def test_metadata_and_payload_that_disagree(name: str, codec: str) -> None:
    """Add or remove bytes of metadata or payload and correct the stored metadata length.

    The reader refuses the batch.
    """
    header, metadata, payload = parts(name)
    for changed, content in [
        (metadata + b"\0", payload),
        (metadata[:-1], payload),
        (metadata, payload + b"\0"),
        (metadata, payload[:-1]),
        (metadata, b""),
        (b"", payload),
        (b"", b""),
    ]:
        check_refused(rebuilt(header, unsigned(len(changed)) + changed + content, codec), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_count_that_the_metadata_cannot_hold(name: str) -> None:
    header, metadata, payload = parts(name)
    section = unsigned(len(metadata)) + metadata + payload
    count = header.index(struct.pack(">i", 2), 37)
    for claimed in (1, 3, 100, 2**31 - 1):
        lie = header[:count] + struct.pack(">i", claimed) + header[count + 4 :]
        for codec in CODECS:
            check_refused(rebuilt(lie, section, codec), name)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_sum_of_lengths_is_checked(name: str) -> None:
    """Records have no length of their own, so the reader accepts a key one byte shorter and a value one byte longer."""
    header, metadata, payload = parts(name)
    key_at = 2
    step = 1 if name == "v3-full" else 2
    moved = bytearray(metadata)
    moved[key_at] -= step
    moved[key_at + 1] += step
    back = FORMATS[name].decode(rebuilt(header, unsigned(len(moved)) + bytes(moved) + payload, "none"))
    assert [back.records.key(i) for i in range(2)] == [b"", b"k"]
    assert [back.records.value(i) for i in range(2)] == [b"kvalue", b"value"]


@pytest.mark.parametrize("name", NAMES)
def test_an_over_long_metadata_length_is_read_but_not_canonical(name: str) -> None:
    header, metadata, payload = parts(name)
    over_long = bytes([len(metadata) | 0x80, 0])
    check_verdict(rebuilt(header, over_long + metadata + payload, "none"), name, READ)


@pytest.mark.parametrize("raw", [2**31 + 1, 2**31 + 7, 2**32 - 1])
def test_a_length_beyond_int32_is_refused(raw: int) -> None:
    """A length beyond int32 is refused, also by a reader that reads only metadata and decompresses no payload."""
    plain = bytearray(v23.encode("v3-full", [Message(offset=0, key=b"k", value=b"v")]))
    body = v23.records_section("v3-full", [Message(offset=0, key=b"k", value=b"v")])
    assert body[:6] == bytes([5, 0, 0, 2, 2, 0])
    section = bytes([9, 0, 0]) + unsigned(raw) + bytes([2, 0]) + b"kv"
    batch = plain[: len(plain) - len(body)] + codecs.compress("gzip", section, 2)
    batch[22] |= 1
    for read in (FORMATS["v3"].decode, FORMATS["v3"].decode_metadata):
        with pytest.raises(CorruptLog, match="key length"):
            read(sealed(bytes(batch)))
