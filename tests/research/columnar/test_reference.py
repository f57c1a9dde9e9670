"""The columnar reference codec reads what it writes, and refuses what docs/columnar.md forbids.

Batches by hand are also checked with the kernels, which must refuse and read the same ones.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.formats.fuzz import mutations, sealed
from tests.reference import codecs
from tests.reference.model import CODEC_NAMES, Fields, Message, RefusedError
from tests.reference.varint import unsigned
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar import reference as columnar
from tests.research.columnar.by_hand import NO_TIME, batch, read, refused
from tests.strategies import INT32, INT64, NOW_MS

CODECS = CODEC_NAMES[:5]  # a dictionary is not chosen here

# Round trips


def check_round_trip(messages: tuple[Message, ...], fields: Fields, codec: str = "none") -> None:
    data = columnar.encode(messages, fields, codec)
    back = columnar.decode_one(b"before" + data + b"after", 6)
    assert (back.position, back.size_bytes) == (6, len(data))
    assert list(back.messages) == list(messages)
    assert back.codec == (codec if messages else "none")
    assert back.raw == columnar.payload_section(messages)
    again = Fields(
        **{name: getattr(back, name) for name in ("producer_id", "producer_epoch", "base_sequence",
                                                  "is_transactional", "is_control", "delete_horizon_ms",
                                                  "partition_leader_epoch", "base_offset", "last_offset",
                                                  "base_timestamp_ms", "max_timestamp_ms")},
        append_time_ms=back.append_time_ms if back.is_append_time else None,
    )  # fmt: skip
    assert columnar.encode(back.messages, again, codec) == data
    for name in ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control",
                 "delete_horizon_ms", "partition_leader_epoch"):  # fmt: skip
        assert getattr(back, name) == getattr(fields, name), name
    assert back.is_append_time == fields.readers_see_append_time
    for name in ("base_offset", "last_offset", "max_timestamp_ms"):
        assert getattr(fields, name) in (None, getattr(back, name)), name


@given(data=st.data())
def test_round_trip(data: st.DataObject) -> None:
    messages = data.draw(columnar_cases.BATCHES)
    check_round_trip(messages, data.draw(columnar_cases.fields_of(messages)), data.draw(st.sampled_from(CODECS)))


@given(data=st.data())
def test_round_trip_of_the_cases_of_other_formats(data: st.DataObject) -> None:
    case = data.draw(strategies.cases(max_batches=2, falling=True))
    for messages, fields in zip(case.batches, case.fields, strict=True):
        check_round_trip(messages, fields, data.draw(st.sampled_from(CODECS)))


# Batches by hand. The hexadecimal starts with 8 bytes: attributes and maximum timestamp.


def test_a_record_of_nothing() -> None:
    data = batch(f"0000 {NO_TIME} 01")
    assert len(data) == 30
    assert columnar.decode_one(data, 0).messages == [Message(offset=0)]
    assert columnar.encode([Message(offset=0)]) == data


def test_records_that_take_no_byte() -> None:
    assert len(read(f"0000 {NO_TIME} e807")) == 1000
    refused(f"0000 {NO_TIME} 81808008", "16777217 records")
    refused(f"0000 {NO_TIME} ffffffff07", "2147483647 records")


def test_keys_before_values() -> None:
    messages = [
        Message(offset=0, key=b"", value=b"vw"),
        Message(offset=1, key=b"k", value=b"x"),
    ]
    written = f"0c00 {NO_TIME} 02  02 09  02 0b  6b 7677 78"  # codes 1 and 2, 3 and 2
    assert read(written) == messages
    assert columnar.encode(messages) == batch(written)
    refused(f"{written} 79", "1 bytes after the payload")
    refused(written[:-2], "1 bytes wanted, 0 are left")


def test_a_payload_of_no_bytes_under_a_codec() -> None:
    empty = [Message(offset=i, key=b"", value=b"") for i in range(2)]
    for codec in range(6):
        assert read(f"0c0{codec} {NO_TIME} 02  01 03 01 03") == empty
        assert read(f"020{codec} {NO_TIME} 00 05") == []
    for codec in (6, 7):
        refused(f"0c0{codec} {NO_TIME} 02  01 03 01 03", f"codec {codec}")
    frame = codecs.compress("gzip", b"", 2).hex()
    assert read(f"0c01 {NO_TIME} 02  01 03 01 03 {frame}") == read(f"0c00 {NO_TIME} 02  01 03 01 03")


def test_nulls() -> None:
    messages = [Message(offset=0, value=b"ab"), Message(offset=1), Message(offset=2, value=b"abc")]
    written = f"0800 {NO_TIME} 03  03 0301  6162 616263"  # codes 3, 0 and 4
    assert columnar.encode(messages) == batch(written)
    assert read(written) == messages
    assert read(f"0c00 {NO_TIME} 02  00 00") == [Message(offset=0), Message(offset=1)]
    assert read(f"0800 {NO_TIME} 01  00") == [Message(offset=0)]
    refused(f"0800 {NO_TIME} 01  82808080 01", "length 268435457")
    refused(f"0800 {NO_TIME} 02  40 8480808002", "length 268435457")


def test_times() -> None:
    assert [message.timestamp_ms for message in read("0100 000000000064 03  01 05")] == [99, 100, 99]
    assert [message.timestamp_ms for message in read("0100 000000000064 01  03")] == [102]
    for ages in ("80 04 01 00", "81 04 03 03 00", "80 04 03 02 02 01 01"):  # ages 2, 1, 0
        assert [message.timestamp_ms for message in read(f"0100 000000000064 03  {ages}")] == [98, 99, 100]
    # The anchor (create-time maximum) is 1000. The append time that readers see is 100.
    appended = "4108 000000000064 02  00000000000003e8  01 02"
    found = columnar.decode_one(batch(appended), 0)
    assert [message.timestamp_ms for message in found.messages] == [1000, 999]
    assert found.read_timestamps_ms() == [100, 100]
    assert columnar.encode(found.messages, Fields(append_time_ms=100)) == batch(appended)
    far = "8000 000000000000 01  7fffffffffffffff"
    assert columnar.encode([Message(offset=0, timestamp_ms=INT64)]) == batch(far)
    assert read(far) == [Message(offset=0, timestamp_ms=INT64)]
    assert read(far.replace("8000 000000000000", "8000 00000000002a")) == read(far)  # the 48-bit time is ignored there


@pytest.mark.parametrize(("time", "is_wide"), [(2**47 - 1, False), (2**47, True)])
def test_where_48_bits_end(time: int, is_wide: bool) -> None:
    data = columnar.encode([Message(offset=0, timestamp_ms=time)])
    assert len(data) == (38 if is_wide else 30)
    assert columnar.decode_one(data, 0).max_timestamp_ms == time
    wide = columnar.encode([], Fields(base_offset=0, last_offset=0, max_timestamp_ms=-time - 1))
    assert len(wide) == (39 if is_wide else 31)
    assert columnar.decode_one(wide, 0).max_timestamp_ms == -time - 1


def test_offsets() -> None:
    assert [message.offset for message in read(f"0200 {NO_TIME} 03 05  02 0c")] == [0, 3, 0]
    falling = [Message(offset=100), Message(offset=90)]
    data = columnar.encode(falling)
    assert data[23:] == bytes.fromhex(f"{NO_TIME} 02 f6ffffff0f 44 13 0a")
    assert columnar.decode_one(data, 0).messages == falling
    assert columnar.decode_one(data, 0).last_offset == 90
    refused(f"0200 {NO_TIME} 02 01  40 8080808010", "offset delta")
    assert [message.offset for message in read(f"0200 {NO_TIME} 02 01  40 feffffff0f")] == [INT32, INT32]
    for fields in (Fields(last_offset=2**31), Fields(base_offset=-(2**31))):
        with pytest.raises(RefusedError, match="int32"):
            columnar.encode([Message(offset=0), Message(offset=1)], fields)


def test_an_empty_batch() -> None:
    fields = Fields(base_offset=0, last_offset=9)
    assert columnar.encode([], fields, "zstd") == batch(f"0200 {NO_TIME} 00 09")
    refused(f"0000 {NO_TIME} 00", "empty batch")
    for attributes in ("0300", "0600", "0a00", "1200"):
        refused(f"{attributes} {NO_TIME} 00 09", "empty batch")
    for codec in range(6):
        refused(f"020{codec} {NO_TIME} 00 09  00", "1 bytes behind it")
    assert read(f"4200 {NO_TIME} 00 09  0000000000000000") == []


def test_optional_timestamps() -> None:
    horizon = columnar.decode_one(batch(f"0040 {NO_TIME} 01  0000000000000007"), 0)
    assert (horizon.delete_horizon_ms, horizon.base_timestamp_ms) == (7, 7)
    based = columnar.decode_one(batch(f"2000 {NO_TIME} 01  0000000000000007"), 0)
    assert (based.delete_horizon_ms, based.base_timestamp_ms) == (None, 7)
    found = columnar.decode_one(batch(f"c040 {NO_TIME} 01  0000000000000001 0000000000000002 0000000000000003"), 0)
    assert (found.delete_horizon_ms, found.messages[0].timestamp_ms, found.max_timestamp_ms) == (1, 2, 3)
    refused(f"4000 {NO_TIME} 01  00000000000000", "bytes wanted")
    refused(f"2040 {NO_TIME} 01  0000000000000007 0000000000000007", "base timestamp and delete horizon")


def test_producer_state() -> None:
    found = columnar.decode_one(batch(f"0080 {NO_TIME} 0000000000000007 0001 00000002 01"), 0)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 1, 2)
    assert not columnar.encode([Message(offset=0)], Fields(partition_leader_epoch=3))[22] & 0x80
    for fields in (Fields(producer_id=0), Fields(producer_epoch=0), Fields(base_sequence=0)):
        assert len(columnar.encode([Message(offset=0)], fields)) == 44
    refused(f"0080 {NO_TIME} 01", "bytes wanted")


def test_control_records() -> None:
    data = columnar.encode([Message(offset=0, key=bytes(4), value=bytes(6))], Fields(is_control=True))
    assert columnar.decode_one(data, 0).is_control
    refused(f"0c20 {NO_TIME} 01  04 07 000000 000000000000", "version and a type")


# Headers


def headers(*each: tuple[str, bytes | None]) -> Message:
    return Message(offset=0, headers=each)


def records(*each: Message) -> list[Message]:
    return [replace(message, offset=i) for i, message in enumerate(each)]


A_KEY = ("k", b"v")


@pytest.mark.parametrize(
    ("messages", "written"),
    [
        ([headers(A_KEY, ("", None))], "01  02 01 02 00 00  6b 76"),
        # One header per record, stored by position: one value, plain, plain with a null, dictionary, template.
        ([headers(A_KEY)] * 2, "02  01 01  01 01 02  6b 76"),
        ([headers(("k", b"!")), headers(("k", b"?"))], "02  01 01  01 ff 02 0a  6b 213f"),
        ([headers(("k", b"!")), headers(("k", None))], "02  01 01  01 ff 02 02  6b 21"),
        (
            [headers(("k", b"first")), headers(("k", b"second")), headers(("k", b"first"))],
            "03  01 01  01 02 06 07 02  6b 6669727374 7365636f6e64",
        ),
        (
            [headers(("k", b"x=a-0")), headers(("k", b"x=a-9")), headers(("k", b"x=a-f"))],
            "03  01 01  01 fe 05 10  6b 783d612d 09f0",
        ),
        # Two headers per record, stored by position.
        ([headers(A_KEY, ("", b""))] * 2, "02  01 02  01 01 02  00 01 01  6b 76"),
        # Stored by record.
        ([headers(), headers(A_KEY)], "02  00 01 02  01 02  6b 76"),
        ([headers(A_KEY), headers(("kk", b"v"))], "02  00 01 03  01 02 02 02  6b 76 6b6b 76"),
        ([headers(), headers(A_KEY, ("k", None))], "02  00 02 08  01 02 01 00  6b 76 6b"),
    ],
)
def test_headers_by_hand(messages: list[Message], written: str) -> None:
    assert columnar.encode(records(*messages)) == batch(f"1000 {NO_TIME} {written}")
    assert read(f"1000 {NO_TIME} {written}") == records(*messages)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("02  01 01  00 02 02 02 00  61 61", [b"a", b"a"]),  # a dictionary with equal values
        ("02  01 01  00 03 00 02 02 09  61 62", [b"a", b"b"]),  # one is not used; they are not in order
        ("02  00 40 02  00 01 00 01", [b"", b""]),  # stored by record, although all records have the same keys
    ],
)
def test_headers_that_our_encoder_does_not_write(written: str, values: list[bytes]) -> None:
    assert read(f"1000 {NO_TIME} {written}") == records(*(headers(("", value)) for value in values))


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("01  00", "0 headers"),
        ("02  01 00", "0 headers"),
        ("02  00 00", "0 headers"),
        ("02  02 01", "headers of mode 2"),
        ("02  00 40 01", "above -1"),
        ("02  00 40 feffffff1f", "above 4294967295"),
        ("02  00 40 8080801e", "headers"),
        ("02  01 01  00 00", "header of form 0"),
        ("02  01 01  00 fd 01 01", "varint runs past the end"),
        ("02  01 01  00 03 01 01 01 03", "index 3 of 3"),
        ("02  01 01  00 02 01 01 04", "padding"),
        ("02  01 01  00 fe 00", "template of no characters"),
        ("02  01 01  00 fe 02 00  4142", "template of no digits"),
        ("02  01 01  00 fe 01 03  00", "padding"),
        ("03  01 01  00 fe 01 01  0001", "padding"),
        ("02  01 8080800c", "50331648 headers|100663296 headers"),
        ("02  01 01  8280808001 01 00", "length 268435458"),
    ],
)
def test_headers_that_are_refused(written: str, why: str) -> None:
    refused(f"1000 {NO_TIME} {written}", why)


def test_shared_headers_that_stand_for_more_than_a_log_may() -> None:
    text = b"x" * 1000
    many = 1 << 19
    written = b"\x01\x01\x00\x01" + unsigned(len(text) + 1) + text
    refused(f"1000 {NO_TIME} {unsigned(many).hex()} {written.hex()}", "headers of 524288000 bytes")


# The batch header


def test_other_damage() -> None:
    data = columnar.encode([Message(offset=0, value=b"v", timestamp_ms=NOW_MS)])
    for broken, why in [
        (data[:28], "length"),
        (data[:16] + b"\x04" + data[17:], "magic 4"),
        (data[:-1], "length"),
        (data[:17] + bytes(4) + data[21:], "crc"),
        (sealed(data[:29]), "length"),
    ]:
        with pytest.raises(RefusedError, match=why):
            columnar.decode_one(broken, 0)
    refused(f"0200 {NO_TIME} 01 8080808080 00", "varint of more than 5 bytes")


@given(data=st.data())
def test_damage_is_refused_or_read(data: st.DataObject) -> None:
    messages = data.draw(columnar_cases.batches(max_count=9))
    damaged = data.draw(mutations(columnar.encode(messages, data.draw(columnar_cases.fields_of(messages)))))
    try:
        found = columnar.decode_one(damaged, 0)
    except RefusedError:
        return
    assert found.size_bytes == len(damaged)
