"""Columnar batches written by hand: the reference and the kernels both read, or both refuse, each of them.

A batch is hexadecimal from its attributes on; NO_TIME is the maximum timestamp of a batch without timestamps.
"""

import struct
from dataclasses import replace

import pytest

from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference import codecs
from tests.reference.model import Fields, Message, RefusedError
from tests.reference.varint import unsigned
from tests.research.columnar import reference as columnar
from tests.research.columnar.reference_columns import Nature, Reader, column, read_column
from tests.strategies import INT32, INT64, NOW_MS

NO_TIME = "ffffffffffff"


def batch(covered: str, base_offset: int = 0) -> bytes:
    """Return a batch with correct length and checksum. covered: its bytes from the attributes on."""
    return sealed(struct.pack(">qiibI", base_offset, 0, -1, columnar.MAGIC, 0) + bytes.fromhex(covered))


def records(*each: Message) -> list[Message]:
    return [replace(message, offset=i) for i, message in enumerate(each)]


def times(*each: int) -> list[Message]:
    return records(*(Message(offset=0, timestamp_ms=time) for time in each))


def headers(*each: tuple[str, bytes | None]) -> Message:
    return Message(offset=0, headers=each)


NOTHING = Message(offset=0)
EMPTY = Message(offset=0, key=b"", value=b"")
A_KEY = ("k", b"v")

# The bytes that the encoder writes for these records, where the header has these fields.
WRITTEN: list[tuple[str, list[Message], Fields]] = [
    (f"0000 {NO_TIME} 01", [NOTHING], Fields()),
    # Keys before values: codes 1 and 2, 3 and 2.
    (f"0c00 {NO_TIME} 02  02 09  02 0b  6b 7677 78",
     records(Message(offset=0, key=b"", value=b"vw"), Message(offset=0, key=b"k", value=b"x")), Fields()),
    # Nulls: codes 3, 0 and 4.
    (f"0800 {NO_TIME} 03  03 0301  6162 616263",
     records(Message(offset=0, value=b"ab"), NOTHING, Message(offset=0, value=b"abc")), Fields()),
    # The anchor (create-time maximum) is 1000. The append time that readers see is 100.
    ("4108 000000000064 02  00000000000003e8  01 02", times(1000, 999), Fields(append_time_ms=100)),
    ("8000 000000000000 01  7fffffffffffffff", times(INT64), Fields()),
    (f"0200 {NO_TIME} 02 f6ffffff0f 44 13 0a", [Message(offset=100), Message(offset=90)], Fields()),
    (f"0200 {NO_TIME} 00 09", [], Fields(base_offset=0, last_offset=9)),
    *((f"1000 {NO_TIME} {written}", records(*messages), Fields()) for written, messages in [
        ("01  02 01 02 00 00  6b 76", [headers(A_KEY, ("", None))]),
        # One header per record, stored by position: one value, plain, plain with a null, dictionary, template.
        ("02  01 01  01 01 02  6b 76", [headers(A_KEY)] * 2),
        ("02  01 01  01 ff 02 0a  6b 213f", [headers(("k", b"!")), headers(("k", b"?"))]),
        ("02  01 01  01 ff 02 02  6b 21", [headers(("k", b"!")), headers(("k", None))]),
        ("03  01 01  01 02 06 07 02  6b 6669727374 7365636f6e64",
         [headers(("k", each)) for each in (b"first", b"second", b"first")]),
        ("03  01 01  01 fe 05 10  6b 783d612d 09f0", [headers(("k", b"x=a-" + each)) for each in (b"0", b"9", b"f")]),
        # Two headers per record, stored by position.
        ("02  01 02  01 01 02  00 01 01  6b 76", [headers(A_KEY, ("", b""))] * 2),
        # Stored by record.
        ("02  00 01 02  01 02  6b 76", [headers(), headers(A_KEY)]),
        ("02  00 01 03  01 02 02 02  6b 76 6b6b 76", [headers(A_KEY), headers(("kk", b"v"))]),
        ("02  00 02 08  01 02 01 00  6b 76 6b", [headers(), headers(A_KEY, ("k", None))]),
    ]),
]  # fmt: skip

# Other bytes, which our encoder does not write for these records.
GZIP_OF_NOTHING = codecs.compress("gzip", b"", 2).hex()
READ: list[tuple[str, list[Message]]] = [
    (f"0000 {NO_TIME} e807", records(*[NOTHING] * 1000)),
    *((f"0c0{codec} {NO_TIME} 02  01 03 01 03", records(EMPTY, EMPTY)) for codec in range(6)),
    *((f"020{codec} {NO_TIME} 00 05", []) for codec in range(6)),
    (f"0c01 {NO_TIME} 02  01 03 01 03 {GZIP_OF_NOTHING}", records(EMPTY, EMPTY)),
    (f"0c00 {NO_TIME} 02  00 00", records(NOTHING, NOTHING)),
    (f"0800 {NO_TIME} 01  00", [NOTHING]),
    ("0100 000000000064 03  01 05", times(99, 100, 99)),
    ("0100 000000000064 01  03", times(102)),
    *((f"0100 000000000064 03  {ages}", times(98, 99, 100))
      for ages in ("80 04 01 00", "81 04 03 03 00", "80 04 03 02 02 01 01")),
    ("8000 00000000002a 01  7fffffffffffffff", times(INT64)),  # the 48-bit time is ignored there
    (f"0200 {NO_TIME} 03 05  02 0c", [Message(offset=offset) for offset in (0, 3, 0)]),
    (f"0200 {NO_TIME} 02 01  40 feffffff0f", [Message(offset=INT32)] * 2),
    (f"4200 {NO_TIME} 00 09  0000000000000000", []),
    # A dictionary with equal values; one that is not used, out of order; by record, although all have the same keys.
    *((f"1000 {NO_TIME} {written}", records(*(headers(("", value)) for value in values))) for written, values in [
        ("02  01 01  00 02 02 02 00  61 61", [b"a", b"a"]),
        ("02  01 01  00 03 00 02 02 09  61 62", [b"a", b"b"]),
        ("02  00 40 02  00 01 00 01", [b"", b""]),
    ]),
]  # fmt: skip

SHARED_BYTES = b"\x01\x01\x00\x01" + unsigned(1001) + b"x" * 1000  # a header value of 1,000 bytes that all records have
TOO_LARGE = (f"1000 {NO_TIME} {unsigned(1 << 19).hex()} {SHARED_BYTES.hex()}", "headers of 524288000 bytes")
REFUSED: list[tuple[str, str]] = [
    (f"0000 {NO_TIME} 81808008", "16777217 records"),
    (f"0000 {NO_TIME} ffffffff07", "2147483647 records"),
    (f"0c00 {NO_TIME} 02  02 09  02 0b  6b 7677 78 79", "1 bytes after the payload"),
    (f"0c00 {NO_TIME} 02  02 09  02 0b  6b 7677", "1 bytes wanted, 0 are left"),
    *((f"0c0{codec} {NO_TIME} 02  01 03 01 03", f"codec {codec}") for codec in (6, 7)),
    (f"0800 {NO_TIME} 01  82808080 01", "length 268435457"),
    (f"0800 {NO_TIME} 02  40 8480808002", "length 268435457"),
    (f"0200 {NO_TIME} 02 01  40 8080808010", "offset delta"),
    (f"0200 {NO_TIME} 01 8080808080 00", "varint of more than 5 bytes"),
    (f"0000 {NO_TIME} 00", "empty batch"),
    *((f"{attributes} {NO_TIME} 00 09", "empty batch") for attributes in ("0300", "0600", "0a00", "1200")),
    *((f"020{codec} {NO_TIME} 00 09  00", "1 bytes behind it") for codec in range(6)),
    (f"4000 {NO_TIME} 01  00000000000000", "bytes wanted"),
    (f"2040 {NO_TIME} 01  0000000000000007 0000000000000007", "base timestamp and delete horizon"),
    (f"0080 {NO_TIME} 01", "bytes wanted"),
    (f"0c20 {NO_TIME} 01  04 07 000000 000000000000", "version and a type"),
    *((f"1000 {NO_TIME} {written}", why) for written, why in [
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
    ]),
    # Columns of ages: the number of records, and the column.
    *((f"0100 {NO_TIME} {written}", why) for written, why in [
        ("02 c0 00 00 00", "kind 3"),
        ("02 01 04", "padding"),
        ("02 01", "bytes wanted"),
        ("02 41 00", "bytes wanted"),
        ("02 80 00 00", "varint"),
        ("02 80 00 00 02 00 00 00", "patches"),
        ("03 80 00 00 01 02 01", "padding"),
        ("04 80 00 00 01 03 01", "positions"),
        ("05 80 00 00 02 05 01 01", "positions"),  # 1 and 1
        ("05 80 00 00 02 01 01 01", "positions"),  # 1 and 0
        ("02 80 00 00 01 00", "patch 0"),
        ("02 b8 00 00" + "00" * 7 + "01 8002", "patch 256"),
        ("02 bf 00 00" + "00" * 8 + "01 01", "patch 1"),
        *((f"03 {kind << 6 | width:02x} 00 00 " + "00" * 40, "width code")
          for kind in range(3) for width in (57, 58, 62)),
    ]),
    # Columns of lengths, of lengths of headers, and of numbers of headers: at most 31 bits above a base of 31 bits.
    *((f"{before} {written}", why) for written, why in [
        ("20" + "00" * 8, "32 bits"),
        ("3f" + "00" * 16, "64 bits"),
        ("60 02" + "00" * 8, "32 bits"),
        ("40 01", "above -1"),
        ("40 8080808010", "above 2147483648"),
        ("81 00 00 01 00 8080808004", "patch 1073741824"),
        ("9f 00" + "00" * 8 + "01 00 01", "patch 1"),
    ] for before in (f"0800 {NO_TIME} 02", f"1000 {NO_TIME} 02 00", f"1000 {NO_TIME} 02 01 01 00 ff")),
]  # fmt: skip


@pytest.mark.parametrize(("covered", "messages", "fields"), WRITTEN)
def test_bytes_that_are_written(covered: str, messages: list[Message], fields: Fields) -> None:
    data = batch(covered, messages[0].offset if messages else 0)
    assert columnar.encode(messages, fields) == data
    assert columnar.decode_one(data, 0).messages == messages
    check_agrees_with_reference(data)


@pytest.mark.parametrize(("covered", "messages"), READ)
def test_other_bytes_that_are_read(covered: str, messages: list[Message]) -> None:
    data = batch(covered)
    found = columnar.decode_one(data, 0)
    assert (found.size_bytes, list(found.messages)) == (len(data), messages)
    check_agrees_with_reference(data)


@pytest.mark.parametrize(("covered", "why"), [*REFUSED, pytest.param(*TOO_LARGE, marks=pytest.mark.compiled_only)])
def test_bytes_that_are_refused(covered: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        columnar.decode_one(batch(covered), 0)
    check_agrees_with_reference(batch(covered))


@pytest.mark.parametrize(
    ("covered", "fields"),
    [
        (f"0040 {NO_TIME} 01  0000000000000007", {"delete_horizon_ms": 7, "base_timestamp_ms": 7}),
        (f"2000 {NO_TIME} 01  0000000000000007", {"delete_horizon_ms": None, "base_timestamp_ms": 7}),
        (f"c040 {NO_TIME} 01  0000000000000001 0000000000000002 0000000000000003",
         {"delete_horizon_ms": 1, "max_timestamp_ms": 3}),
        (f"0080 {NO_TIME} 0000000000000007 0001 00000002 01",
         {"producer_id": 7, "producer_epoch": 1, "base_sequence": 2}),
    ],
)  # fmt: skip
def test_optional_fields(covered: str, fields: dict[str, int | None]) -> None:
    found = columnar.decode_one(batch(covered), 0)
    assert {name: getattr(found, name) for name in fields} == fields
    check_agrees_with_reference(batch(covered))


@pytest.mark.parametrize(("time", "is_wide"), [(2**47 - 1, False), (2**47, True)])
def test_where_48_bits_end(time: int, is_wide: bool) -> None:
    data = columnar.encode(times(time))
    assert len(data) == (38 if is_wide else 30)
    assert columnar.decode_one(data, 0).max_timestamp_ms == time
    wide = columnar.encode([], Fields(base_offset=0, last_offset=0, max_timestamp_ms=-time - 1))
    assert len(wide) == (39 if is_wide else 31)
    assert columnar.decode_one(wide, 0).max_timestamp_ms == -time - 1


def test_fields_that_an_encoder_needs_or_refuses() -> None:
    for fields in (Fields(last_offset=2**31), Fields(base_offset=-(2**31))):
        with pytest.raises(RefusedError, match="int32"):
            columnar.encode(records(NOTHING, NOTHING), fields)
    assert not columnar.encode([NOTHING], Fields(partition_leader_epoch=3))[22] & 0x80
    for fields in (Fields(producer_id=0), Fields(producer_epoch=0), Fields(base_sequence=0)):
        assert len(columnar.encode([NOTHING], fields)) == 44
    marker = Message(offset=0, key=bytes(4), value=bytes(6))
    assert columnar.decode_one(columnar.encode([marker], Fields(is_control=True)), 0).is_control


def test_damage_of_the_batch_header() -> None:
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


def read(data: str, count: int, nature: Nature) -> list[int]:
    reader = Reader(bytes.fromhex(data) + b"?", 0)
    values = read_column(reader, count, nature)
    assert reader.rest() == b"?"
    return values


@pytest.mark.parametrize(
    ("values", "nature", "written"),
    [
        ([0, 0], "offsets", "00"),
        ([1, 0, 3], "offsets", "02 31"),  # packed bits: 1 | 0 << 2 | 3 << 4
        ([7, 7, 7], "lengths", "40 0e"),
        ([-1, 0, -1], "offsets", "41 01 02"),
        ([0, 3, 6], "lengths", "03 9801"),
        ([0, 5, 10, 15, 20], "offsets", "80 00 0a 00"),
        ([20, 15, 10, 5, 0], "ages", "80 28 09 00"),
        ([2**63 - 1, -(2**63)], "offsets", "80 feffffffffffffffff01 02 00"),  # one step of 1, modulo 2**64
        ([3] * 20 + [503], "lengths", "80 06 01 14 f403"),  # patch: one of 21 values is 500 above 3
        ([*range(20), *range(119, 139)], "offsets", "80 00 02 01 13 63"),  # patch: one of 39 steps is 99 above 1
        ([*range(10000, 4999, -500), *range(5000, -1, -500)], "ages", "80 a09c01 e707 01 0a f403"),  # one step of 0
        ([1 << 56, 0], "offsets", "3f 0000000000000001 0000000000000000"),  # 57 bits are stored as 64
    ],
)
def test_columns_by_hand(values: list[int], nature: Nature, written: str) -> None:
    assert column(values, nature) == bytes.fromhex(written)
    assert read(written, len(values), nature) == values


def test_columns_that_our_encoder_does_not_write() -> None:
    assert read("02 00", 2, "lengths") == [0, 0]  # wider than needed
    assert read("80 05 01 01 03", 2, "ages") == [-3, -1]  # one step, its position takes no byte
    assert read("80 00 00", 2, "lengths") == [0, 0]  # patched, without a patch
    assert read("81 02 05 01 02 03", 4, "lengths") == [2, 1, 8, 1]  # value 2 is 1 + 1, and its patch 3 << 1
