"""The "Enriched Message Metadata" proposal: wrappers and tags by hand, and timestamps in seconds."""

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Records
from kfbench.errors import CorruptLog
from tests import strategies
from tests.common import ENRICHED, messages_of
from tests.formats.fuzz import (
    CANONICAL,
    READ,
    check_agrees_with_reference,
    check_refused,
    check_verdict,
    mutations,
    sealed,
)
from tests.reference import codecs, enriched, v01
from tests.reference.model import Message
from tests.strategies import NOW_MS

CODECS = ["gzip", "snappy", "lz4"]
every_name = pytest.mark.parametrize("name", ENRICHED)
WRAPPER_TAGS = {32: 3, 33: 1, 34: 1}
MESSAGES = [Message(offset=i, timestamp_ms=NOW_MS, key=b"k%d" % i, value=b"value-%d" % i) for i in range(3)]


@pytest.mark.parametrize(
    ("name", "size", "tags"),
    [("enriched", "00000017", "ffffffff"), ("enriched-ms", "00000020", "00000009 00 0000018bcfe56800")],
)
def test_a_message_by_hand(name: str, size: str, tags: str) -> None:
    data = bytes(FORMATS[name].encode(Records.from_lists([b"v"], timestamps_ms=[NOW_MS], offsets=[5])))
    body = bytes.fromhex(f"01 00 6553f100 {tags} ffffffff 00000001 76")
    assert data == bytes.fromhex(f"0000000000000005 {size}") + struct.pack(">I", zlib.crc32(body)) + body


@pytest.mark.parametrize(
    ("name", "size", "tags"),
    [
        ("enriched", "00000009", "20 00000002 21 01 22 01"),
        ("enriched-ms", "00000012", "00 0000018bcfe56fd0 20 00000002 21 01 22 01"),
    ],
)
def test_a_wrapper_by_hand(name: str, size: str, tags: str) -> None:
    """A wrapper (message around a compressed set) has the first offset and the largest timestamp.

    Inner offsets count from the first.
    """
    stamps = [NOW_MS + 2000, NOW_MS]
    records = Records.from_lists([b"v", None], keys=[None, b"k"], timestamps_ms=stamps, offsets=[100, 103])
    data = bytes(FORMATS[name].encode(records, codec="gzip"))
    value_at = 34 + len(bytes.fromhex(tags))
    assert data[16:value_at] == bytes.fromhex(f"01 01 6553f102 {size} {tags} ffffffff {len(data) - value_at:08x}")
    assert data[:12] == struct.pack(">qi", 100, len(data) - 12)
    inner = []
    for offset, time_s, time_ms, rest in [
        (0, "6553f102", "0000018bcfe56fd0", "ffffffff 00000001 76"),
        (3, "6553f100", "0000018bcfe56800", "00000001 6b ffffffff"),
    ]:
        tags_hex = "ffffffff" if name == "enriched" else f"00000009 00 {time_ms}"
        body = bytes.fromhex(f"01 00 {time_s} {tags_hex} {rest}")
        inner.append(struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body)
    assert codecs.decompress("gzip", data[value_at:], 1) == b"".join(inner)


# Reading tags


def wrapper(
    inner: bytes, tags: bytes = enriched.tags_field(WRAPPER_TAGS), offset: int = 100, codec: str = "gzip"
) -> bytes:
    kind = v01.CODECS.index(codec)
    return enriched.entry(offset, kind, NOW_MS // 1000, None, codecs.compress(codec, inner, 1), tags)


def inner_of(name: str, offsets: list[int] | None = None) -> bytes:
    at = offsets or [0, 1, 2]
    return enriched.plain(name, [replace(m, offset=offset) for m, offset in zip(MESSAGES, at, strict=True)])


def read_offsets(data: bytes, verdict: str = READ) -> list[int]:
    check_verdict(data, "enriched", verdict)
    offsets: list[int] = FORMATS["enriched"].decode(data).records.offsets.tolist()
    return offsets


@pytest.mark.parametrize(
    ("offset", "inner", "has_relative_offsets", "absolute"),
    [
        (100, [0, 1, 2], 1, [100, 101, 102]),
        (100, [5, -3, 2], 1, [105, 97, 102]),
        (100, [0, 1, 2**40], 1, [100, 101, 100 + 2**40]),
        (0, [0, 1, 2], 1, [0, 1, 2]),
        (100, [0, 3, 150], 1, [100, 103, 250]),
        (100, [2, 3, 4], 1, [102, 103, 104]),
        (100, [0, 3, 150], 0, [100, 101, 102]),
        (100, [7, 7, 7], 0, [100, 101, 102]),
        (2**40, [0, 0, 5], 1, [2**40, 2**40, 2**40 + 5]),
    ],
)
def test_offsets_count_from_the_wrapper(
    offset: int, inner: list[int], has_relative_offsets: int, absolute: list[int]
) -> None:
    """With tag 33 the stored inner offsets keep gaps that compaction left.

    A mirror clears this tag. The reader then numbers the messages from 0.
    """
    data = wrapper(inner_of("enriched", inner), enriched.tags_field({**WRAPPER_TAGS, 33: has_relative_offsets}), offset)
    assert read_offsets(data, CANONICAL if has_relative_offsets else READ) == absolute
    row = FORMATS["enriched"].decode(data).batches.iloc[0]
    assert (row["base_offset"], row["last_offset"], row["count"]) == (offset, absolute[-1], 3)


@pytest.mark.parametrize(
    "tags",
    [
        "ffffffff",
        "00000000",
        "00000002 2101",
        "00000002 2201",
        "00000005 2000000003",
        "00000009 2000000003 2101 2200",
        "00000009 2101 2000000003 2201",
        "0000000a 2000000003 2101 2201 23",
        "0000000d 63 0000000000000000 0000 2100",
        "00000001 7f",
        "00000001 ff",
        "0000000b 2000000003 2101 2201 2201",
    ],
)
def test_tags_that_are_missing_unknown_or_in_another_order(tags: str) -> None:
    """The size of an unknown tag is not stored. So the reader skips all tags from the first unknown one on."""
    data = wrapper(inner_of("enriched", [0, 2, 4]), bytes.fromhex(tags))
    assert read_offsets(data) == [100, 102, 104]


@pytest.mark.parametrize(
    "tags",
    [
        "fffffffe",
        "80000000",
        "7fffffff",
        "000003e8",
        "00000009 2000000002 2101 2201",
        "00000009 2000000004 2101 2201",
        "00000009 20ffffffff 2101 2201",
        "00000004 20000000",
        "00000001 20",
        "00000003 2101 22",
        "00000001 21",
        "00000008 00 00000000000000",
        "00000001 00",
    ],
)
def test_tags_that_are_refused(tags: str) -> None:
    """The reader refuses tags beyond the message, a known tag that is cut short, and a wrong number of messages."""
    data = wrapper(inner_of("enriched"), bytes.fromhex(tags))
    for name in ENRICHED:
        check_refused(data, name)


def test_tags_on_a_plain_message() -> None:
    """Tags that belong to wrappers are ignored on a plain message. Tag 0 is its timestamp in both enriched formats."""
    for tags, stamp in [
        ("00000002 2100", NOW_MS),
        ("00000005 20 00000009", NOW_MS),
        ("00000009 00 0000000000000007", 7),
        ("00000009 00 ffffffffffffffff", -1),
        ("0000000a 7f 00 0000000000000007", NOW_MS),
    ]:
        data = enriched.entry(5, 0, NOW_MS // 1000, None, b"v", bytes.fromhex(tags))
        for name in ENRICHED:
            back = FORMATS[name].decode(data)
            assert messages_of(back.records) == [Message(offset=5, timestamp_ms=stamp, value=b"v")]
            check_verdict(data, name, READ)


# Types


@pytest.mark.parametrize("kind", [4, 5, 6, 7, 13, 14, 15])
def test_unknown_types_are_refused(kind: int) -> None:
    plain = enriched.entry(0, kind, -1, bytes(4), bytes(6))
    for data in (plain, wrapper(plain, enriched.tags_field({32: 1, 33: 1, 34: 1}))):
        check_verdict(data, "enriched", "attributes")


def test_the_start_of_a_transaction_is_a_control_message() -> None:
    data = enriched.entry(0, 9, -1, struct.pack(">hh", 0, 42), b"")
    assert FORMATS["enriched"].decode(data).batches["is_control"].all()
    check_verdict(data, "enriched", READ)


# Wrappers


def small(offset: int, kind: int = 0, timestamp_s: int = 5, tags: str = "") -> bytes:
    key = struct.pack(">hh", 0, 2) if kind else None
    return enriched.entry(offset, kind, timestamp_s, key, b"v", bytes.fromhex(tags))


def tags_of(messages: int) -> bytes:
    return enriched.tags_field({32: messages, 33: 1, 34: 0})


@pytest.mark.parametrize(
    ("data", "offsets"),
    [
        (wrapper(small(0) + small(1, 8), tags_of(2)), [100, 101]),
        (wrapper(small(0, 8) + small(1), tags_of(2)), [100, 101]),
        (wrapper(small(0, 12) + small(1, 8), tags_of(2)), [100, 101]),
        (small(7, 12), [7]),
        (small(7, timestamp_s=-5), [7]),
        (wrapper(small(0, timestamp_s=-(2**31)), tags_of(1)), [100]),
        (wrapper(small(0) + small(4), bytes.fromhex("00000004 2101 2100")), [100, 101]),
        (wrapper(small(0) + small(4), bytes.fromhex("00000004 2100 2101")), [100, 104]),
        (wrapper(small(0) + small(4), bytes.fromhex("0000000a 2000000001 2000000002")), [100, 104]),
        (wrapper(small(0) + small(4), bytes.fromhex("00000002 21ff")), [100, 104]),
        (wrapper(small(0) + small(1)[:-1], tags_of(1)), [100]),
        (wrapper(small(0) + bytes(5), tags_of(1)), [100]),
        (wrapper(small(7, tags="00000002 2100"), tags_of(1)), [107]),
        (wrapper(small(0, 0x40), tags_of(1)), [100]),
    ],
    ids=range(14),
)
def test_corners_that_are_read_but_not_canonical(data: bytes, offsets: list[int]) -> None:
    """Oddities that kfbench reads but does not write.

    They are mixed control records, types that differ from their key, times before 1970, repeated tags and cut sets. The
    last of repeated tags counts.
    """
    assert read_offsets(data) == offsets


def test_lengths_that_do_not_add_up() -> None:
    sound = enriched.entry(0, 0, -1, b"key", b"value")
    for at, new in [
        (26, -2), (26, 2**31 - 1), (26, 13), (26, 2), (33, -2), (33, 4), (33, 6), (33, 2**31 - 1),
    ]:  # fmt: skip
        assert "length" in check_refused(sealed(sound[:at] + struct.pack(">i", new) + sound[at + 4 :]), "enriched")
    for size in range(14, 14 + 16):
        with pytest.raises(CorruptLog):
            FORMATS["enriched"].decode(sealed(sound[: 12 + size]))


# Damage under a correct checksum


@every_name
@given(data=st.data())
def test_changed_wrappers(name: str, data: st.DataObject) -> None:
    """Damage any byte outside the compressed bytes.

    The compressed bytes stay, because decompression libraries differ on damage.
    """
    messages = data.draw(strategies.message_lists(min_size=1, max_size=3, headers=False))
    codec = data.draw(st.sampled_from(CODECS))
    payload = codecs.compress(codec, enriched.inner_set(name, messages), 1)
    whole = enriched.wrapper(name, codec, messages, payload)
    changed = data.draw(mutations(whole[: len(whole) - len(payload)]))
    check_agrees_with_reference(sealed(changed + payload), name)
