"""What the tests of v0 and v1 share: both are messages, and wrappers around compressed sets of them."""

import struct
import zlib

import pytest

from kfbench import FORMATS, Records, read_log
from kfbench.errors import CorruptLog
from tests.common import LEGACY, check_codec_against_reference, messages_of, one_batch
from tests.formats.fuzz import sealed
from tests.reference import codecs, v01
from tests.reference.model import Message
from tests.strategies import NOW_MS

CODECS = ["gzip", "snappy", "lz4"]
FIXED_BYTES = {"v0": 26, "v1": 34}


def small(name: str, n: int = 3, first_offset: int = 0) -> list[Message]:
    stamp = NOW_MS if name == "v1" else -1
    return [
        Message(offset=first_offset + i, timestamp_ms=stamp, key=b"k%d" % i, value=b"value-%d" % i) for i in range(n)
    ]


def wrapped(name: str, messages: list[Message], codec: str = "gzip", raw: bytes | None = None) -> bytes:
    """A wrapper around `raw`, or around the inner set of `messages`."""
    magic = LEGACY[name]
    inner = v01.inner_set(magic, messages) if raw is None else raw
    return v01.wrapper(magic, codec, messages, codecs.compress(codec, inner, magic))


def check_overhead(name: str) -> None:
    for key, value in [(None, None), (b"", b""), (b"k", None), (b"key" * 40, b"v" * 1000)]:
        records = Records.from_lists([value] * 5, keys=[key] * 5)
        sizes = FORMATS[name].size(records, 2)
        assert sizes.sum() - records.shapes.payload_bytes == 5 * FIXED_BYTES[name]
        assert sizes.tolist() == [
            count * (FIXED_BYTES[name] + len(key or b"") + len(value or b"")) for count in (2, 2, 1)
        ]


def check_single_record_wrapper(name: str) -> None:
    for codec in CODECS:
        check_codec_against_reference(name, one_batch(*small(name, 1, first_offset=321)), codec)


def check_refusals(name: str) -> None:
    """What a wrapper may not be, each by the field that breaks it."""
    messages, magic = small(name), LEGACY[name]
    nested = v01.inner_set(magic, messages[:1]) + wrapped(name, messages[1:])
    flipped = bytearray(v01.inner_set(magic, messages))
    flipped[-1] ^= 1
    other = bytearray(v01.inner_set(magic, messages))
    other[16] = 2
    for data, field, promise in [
        (wrapped(name, messages, raw=b""), "value", "holds no message"),
        (wrapped(name, messages, raw=nested), "attributes", "inside a compressed message"),
        (wrapped(name, messages, raw=bytes(flipped)), "crc", "inner message"),
        (wrapped(name, messages, raw=bytes(other)), "magic", "."),
        (wrapped(name, messages, raw=bytes(8) + struct.pack(">i", 13) + bytes(30)), "record length", "."),
        (v01.entry(magic, 2, 1, NOW_MS, None, None), "value", "needs a value"),
        (v01.entry(magic, 2, 4, NOW_MS, None, b"\x28\xb5\x2f\xfd"), "attributes", "codec"),
        (v01.entry(magic, 2, 7, NOW_MS, None, b""), "attributes", "codec"),
        (v01.entry(magic, 2, 1, NOW_MS, None, b"not gzip"), "records", "gzip"),
    ]:
        with pytest.raises(CorruptLog, match=promise) as refusal:
            FORMATS[name].decode(data)
        assert (refusal.value.position, refusal.value.field) == (0, field)


def check_broken_lengths(name: str) -> None:
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
        data = sealed(sound[:at] + struct.pack(">i", new) + sound[at + 4 :])
        with pytest.raises(CorruptLog) as refusal:
            FORMATS[name].decode(data)
        assert refusal.value.field == field
    for new, value in [(-2, None), (4, b"valu")]:  # Kafka reads on: null, and bytes that nobody looks at
        back = read_log(sealed(sound[: key_at + 7] + struct.pack(">i", new) + sound[key_at + 11 :]))
        assert back.records.value(0) == value
        assert not back.batches["canonical"].any()
    for size in range(14, 14 + (8 if magic else 0) + 8):
        cut = sound[:8] + struct.pack(">i", size) + sound[12 : 12 + size]
        cut = cut[:12] + struct.pack(">I", zlib.crc32(cut[16:])) + cut[16:]
        with pytest.raises(CorruptLog):
            FORMATS[name].decode(cut)


def check_cut_inner_set(name: str) -> None:
    """Kafka takes a set that ends inside a message for one that ends before it."""
    messages = small(name)
    raw = v01.inner_set(LEGACY[name], messages)
    last = len(v01.inner_set(LEGACY[name], messages[2:]))
    for cut in (1, 5, last - 1):
        back = FORMATS[name].decode(wrapped(name, messages[:2], raw=raw[: len(raw) - cut]))
        assert messages_of(back.records) == messages[:2]
