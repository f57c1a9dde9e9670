"""v1 against the reference: relative offsets (KIP-31), timestamps and append time (KIP-32)."""

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import CorruptLog
from tests import strategies
from tests.common import check_against_reference, check_codec_against_reference, messages_of
from tests.formats import messages as shared
from tests.formats.fuzz import check_agrees_with_reference, mutations, sealed
from tests.reference import codecs, lz4, v01
from tests.reference.model import Fields, Message
from tests.strategies import NOW_MS, Case

V1 = FORMATS["v1"]


@given(strategies.legacy_cases("v1"))
def test_the_bytes_are_the_references(case: Case) -> None:
    check_against_reference("v1", case)


@pytest.mark.compiled_only
@pytest.mark.parametrize("codec", shared.CODECS)
@given(case=strategies.legacy_cases("v1", max_batches=2))
def test_the_decompressed_bytes_are_the_references(codec: str, case: Case) -> None:
    check_codec_against_reference("v1", case, codec)


def test_a_message_by_hand() -> None:
    records = Records.from_lists([b"v"], timestamps_ms=[NOW_MS], offsets=[5])
    data = V1.encode(records).data.tobytes()
    assert data == bytes.fromhex("0000000000000005 00000017 c1672ac5 01 00 0000018bcfe56800 ffffffff 00000001 76")


def test_34_bytes_a_record() -> None:
    shared.check_overhead("v1")


def test_a_wrapper_of_one() -> None:
    shared.check_single_record_wrapper("v1")


def test_what_a_wrapper_may_not_be() -> None:
    shared.check_refusals("v1")


def test_lengths_that_do_not_add_up() -> None:
    shared.check_broken_lengths("v1")


def test_an_inner_set_that_is_cut_short() -> None:
    shared.check_cut_inner_set("v1")


def with_wrapper_offset(offset: int, inner: list[int]) -> bytes:
    """A wrapper at `offset` whose inner messages have the offsets `inner`, as they stand."""
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


def test_a_broker_sets_the_wrapper_alone() -> None:
    """KIP-31: assigning offsets changes 8 bytes and no checksum."""
    records = Records.from_lists([b"a", b"b", b"c"])
    data = bytearray(V1.encode(records, codec="gzip").data)
    data[:8] = struct.pack(">q", 5000)
    assert V1.decode(data).records.offsets.tolist() == [4998, 4999, 5000]


def test_the_wrappers_timestamp_is_the_largest() -> None:
    stamps = [NOW_MS, NOW_MS + 50, -1, NOW_MS + 7]
    back = V1.decode(V1.encode(Records.from_lists([b""] * 4, timestamps_ms=stamps), codec="gzip"))
    assert back.batches["max_timestamp_ms"].tolist() == [NOW_MS + 50]
    assert back.records.timestamps_ms.tolist() == stamps


def test_append_time_on_a_wrapper_stands_for_all_and_leaves_the_producers() -> None:
    stamps = [NOW_MS, NOW_MS - 5]
    records = Records.from_lists([b"a", b"b"], timestamps_ms=stamps)
    back = V1.decode(V1.encode(records, codec="snappy", batch_fields=BatchFields(append_time_ms=NOW_MS + 99)))
    assert back.records.timestamps_ms.tolist() == [NOW_MS + 99] * 2
    assert back.create_timestamps_ms.tolist() == stamps
    assert back.batches["timestamp_type"].tolist() == ["append"]


def test_append_time_on_plain_messages_takes_the_producers_place() -> None:
    records = Records.from_lists([b"a", b"b"], timestamps_ms=[1, 2])
    back = V1.decode(V1.encode(records, batch_fields=BatchFields(append_time_ms=NOW_MS)))
    assert back.records.timestamps_ms.tolist() == back.create_timestamps_ms.tolist() == [NOW_MS] * 2
    assert back.batches["timestamp_type"].tolist() == ["append"] * 2


def test_a_message_of_v0_inside_a_wrapper_of_v1() -> None:
    """KAFKA-4298: old producers' messages inside a newer wrapper."""
    raw = v01.entry(1, 0, 0, NOW_MS, None, b"new") + v01.entry(0, 1, 0, -1, None, b"old")
    data = v01.entry(1, 11, 2, NOW_MS, None, codecs.compress("snappy", raw, 1))
    back = V1.decode(data)
    assert messages_of(back.records) == [
        Message(offset=10, timestamp_ms=NOW_MS, value=b"new"),
        Message(offset=11, timestamp_ms=-1, value=b"old"),
    ]
    assert back.batches["mixed_magic"].tolist() == [True]
    assert not back.batches["canonical"].any()


def test_the_lz4_header_checksum_is_right_and_checked() -> None:
    data = V1.encode(Records.from_lists([b"x" * 500] * 3), codec="lz4").data.tobytes()
    frame = lz4.read_frame(data[34:])
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=1)
    messages = shared.small("v1")
    wrong = v01.wrapper(1, "lz4", messages, lz4.compress(v01.inner_set(1, messages), magic=0))
    with pytest.raises(CorruptLog, match="lz4"):
        V1.decode(wrong)


@pytest.mark.parametrize("bits", [0x10, 0x40, 0x80])
def test_unused_attribute_bits_are_read_and_told(bits: int) -> None:
    messages = shared.small("v1", 1)
    data = bytearray(v01.plain(1, messages))
    data[17] |= bits
    back = V1.decode(sealed(bytes(data)))
    assert messages_of(back.records) == messages
    assert back.batches["canonical"].tolist() == [False]


@given(st.data())
def test_changed_bytes_read_as_the_reference_reads_them(data: st.DataObject) -> None:
    messages = data.draw(strategies.message_lists(min_size=1, max_size=1, headers=False))
    fields = Fields(append_time_ms=data.draw(st.sampled_from([None, NOW_MS])))
    check_agrees_with_reference(data.draw(mutations(v01.plain(1, messages, fields))))


@given(st.data())
def test_changed_bytes_inside_a_codec(data: st.DataObject) -> None:
    messages = data.draw(strategies.message_lists(min_size=1, max_size=3, headers=False))
    codec = data.draw(st.sampled_from(shared.CODECS))
    inner = v01.inner_set(1, messages)
    first = int.from_bytes(inner[8:12], "big") + 12
    changed = data.draw(mutations(inner[:first])) + inner[first:]
    check_agrees_with_reference(shared.wrapped("v1", list(messages), codec, raw=changed))


def test_a_v0_message_inside_a_wrapper_has_no_append_time() -> None:
    # LegacyRecord.timestamp: magic 0 has none, whatever the wrapper says (KAFKA-4298 made such sets readable).
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
        ({"first_offset": 3}, True),  # where the first ones are gone; encoded anew, offsets count from what is left
    ],
)
def test_a_wrapper_is_canonical_if_what_is_in_it_is(inner: dict[str, Any], canonical: bool) -> None:
    """Kafka reads all of these; only the first is what an encoder writes."""

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
