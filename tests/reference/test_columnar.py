"""The reference of columnar against its text: what it writes reads back, what the text forbids it refuses.

Batches by hand are the kernels' too: they refuse what the reference refuses, and read the rest alike.
"""

import struct
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.formats.fuzz import check_agrees_with_reference, mutations, sealed
from tests.reference import codecs, columnar, columnar_cases
from tests.reference.model import CODEC_NAMES, Fields, Message, RefusedError
from tests.reference.varint import unsigned, zigzag
from tests.strategies import INT32, INT64, NOW_MS

INT64S = st.integers(-(2**63), INT64)
NO_TIME = "ffffffffffff"
NATURES: tuple[columnar.Nature, ...] = get_args(columnar.Nature)


def batch(covered: str, magic: int = 4) -> bytes:
    """From the attributes on, in hexadecimal; sealed, of base offset 0."""
    return sealed(struct.pack(">qiibI", 0, 0, -1, magic, 0) + bytes.fromhex(covered))


def read(covered: str) -> list[Message]:
    data = batch(covered)
    found = columnar.decode_one(data, 0)
    assert found.size_bytes == len(data)
    check_agrees_with_reference(data)
    return list(found.messages)


def refused(covered: str, why: str) -> None:
    data = batch(covered)
    with pytest.raises(RefusedError, match=why):
        columnar.decode_one(data, 0)
    check_agrees_with_reference(data)


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
def test_what_is_written_reads_back(data: st.DataObject) -> None:
    messages = data.draw(columnar_cases.BATCHES)
    check_round_trip(messages, data.draw(columnar_cases.fields_of(messages)), data.draw(st.sampled_from(CODEC_NAMES)))


@given(data=st.data())
def test_what_other_formats_are_asked_reads_back(data: st.DataObject) -> None:
    case = data.draw(strategies.cases(max_batches=2, falling=True))
    for messages, fields in zip(case.batches, case.fields, strict=True):
        check_round_trip(messages, fields, data.draw(st.sampled_from(CODEC_NAMES)))


# Columns

COLUMNS = st.lists(INT64S, min_size=2, max_size=20) | st.builds(
    lambda name, seed, count: columnar_cases.shaped(columnar_cases.Draw(seed), name, count),
    st.sampled_from(columnar_cases.WILD_NAMES),
    st.integers(0, 2**32),
    st.integers(2, 80),
)


def steps_of(values: list[int], nature: columnar.Nature) -> list[int]:
    sign = -1 if nature == "ages" else 1
    return [columnar._wrapped(sign * (after - before)) for before, after in pairwise(values)]


def every_column(values: list[int], nature: columnar.Nature) -> list[bytes]:
    """Each way to write a column, at widths of the writer's own choice."""
    n, wrapped, above = len(values), columnar._wrapped, columnar._above
    least, slope = min(values), wrapped(wrapped(values[-1] - values[0]) // (n - 1) + 1)
    base, levels = wrapped(values[0] - 1), [wrapped(value - i * slope) for i, value in enumerate(values)]
    steps = steps_of(values, nature)
    low, first = min(steps), zigzag(values[0])

    def whole(of: list[int], under: int) -> bytes:
        return b"".join(struct.pack("<Q", above(value, under)) for value in of)

    columns = [
        b"\x3f" + whole(values, 0),
        b"\x7f" + zigzag(base) + whole(values, base),
        b"\xbf" + zigzag(levels[0]) + zigzag(slope) + whole(levels, levels[0]),
        b"\xc0\x3f" + first + zigzag(7) + whole(steps, 7),
    ]
    for width in (0, 1, 13, 56):
        for form, start, under, of in ((1, b"", least, values), (2, first, low, steps)):
            over = [above(value, under) for value in of]
            if any(value >> width for value in over):
                columns.append(columnar.patched(form, start, under, over, width))
    for form, start, under, of in ((3, b"", least, values), (4, first, low, steps)):
        over = [above(value, under) for value in of]
        shortest = max(0, max(over).bit_length() - 8)  # a quotient takes up to 256 bits
        columns += [columnar.rice(form, start, under, over, width) for width in {min(shortest, 56), 56}]
    distinct = sorted({above(value, base) for value in values} | {0, 2**64 - 1})
    columns.append(columnar.dictionary(base, distinct, [distinct.index(above(value, base)) for value in values]))
    return columns


@given(values=COLUMNS)
def test_every_kind_of_column_reads_alike(values: list[int]) -> None:
    for nature in NATURES:
        for column in [columnar.column(values, nature), *every_column(values, nature)]:
            reader = columnar._Reader(column + b"?", 0)
            assert columnar._read_column(reader, len(values), nature) == values
            assert reader.rest() == b"?"


@given(values=COLUMNS)
def test_plain_kinds_are_no_smaller_than_the_one_that_is_taken(values: list[int]) -> None:
    def packed_bytes(of: list[int], base: int) -> int:
        bits = max(columnar._above(value, base) for value in of).bit_length()
        return -(-len(of) * (bits if bits <= 56 else 64) // 8)

    least = min(values)
    frame = 1 + len(zigzag(least)) + packed_bytes(values, least)
    bits = 1 + packed_bytes(values, 0) if least >= 0 else frame
    for nature in NATURES:
        column, plain = columnar.column(values, nature), min(bits, frame)
        if nature in ("ages", "offsets"):
            steps = steps_of(values, nature)
            plain = min(plain, 2 + len(zigzag(values[0]) + zigzag(min(steps))) + packed_bytes(steps, min(steps)))
        assert len(column) <= (plain * 7 // 8 if column[0] in (0xC3, 0xC4) else plain)


@given(values=COLUMNS)
def test_no_column_is_of_a_kind_that_is_not_for_it(values: list[int]) -> None:
    """Kinds by their descriptors, 0 to 2 by the two bits that they have."""
    allowed = {
        "ages": {0, 1, 2, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4},
        "offsets": {0, 1, 2, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4},
        "lengths": {0, 1, 0xC1, 0xC3, 0xC5},
        "codes": {0, 1, 0xC1, 0xC5},
    }
    for nature in NATURES:
        first = columnar.column(values, nature)[0]
        assert (first if first >> 6 == 3 else first >> 6) in allowed[nature]


@pytest.mark.parametrize(
    ("nature", "shape", "kinds"),
    [
        ("ages", "a tail below", {0xC3}),
        ("ages", "gaps", {0xC4}),
        ("offsets", "a tail", {0xC3}),
        ("offsets", "gaps", {0xC4}),
        ("lengths", "a tail", {0xC3}),
        ("lengths", "few", {0xC5}),
        ("codes", "few", {0xC5}),
    ],
)
def test_cases_have_the_kinds_that_they_are_drawn_for(nature: columnar.Nature, shape: str, kinds: set[int]) -> None:
    """A tenth of them at the least, as batches have their columns."""
    found = []
    for seed in range(100):
        draw = columnar_cases.Draw(seed)
        values = columnar_cases.shaped(draw, shape, 64)
        if nature == "ages":
            values = [max(values) - value for value in values]
        if nature == "codes":
            values = [value - min(values) + 1 if draw.random() < 0.7 else 0 for value in values]
        found.append(columnar.column(values, nature)[0])
    assert sum(first in kinds for first in found) >= 10


@pytest.mark.parametrize(
    ("values", "nature", "column"),
    [
        ([0, 0], "offsets", "00"),
        ([1, 0, 3], "offsets", "02 31"),  # 1 | 0 << 2 | 3 << 4
        ([7, 7, 7], "lengths", "40 0e"),
        ([-1, 0, -1], "offsets", "41 01 02"),
        ([0, 3, 6], "lengths", "03 9801"),
        ([0, 5, 10, 15, 20], "offsets", "80 00 0a"),
        ([20, 15, 10, 5, 0], "offsets", "80 28 09"),
        ([20, 15, 10, 5, 0], "ages", "80 28 09"),  # a slope is added here, too
        ([2**63 - 1, -(2**63)], "offsets", "c0 00 feffffffffffffffff01 02"),  # a step of 1, modulo 2**64
        ([2**63 - 1, -(2**63)], "ages", "c0 00 feffffffffffffffff01 01"),  # which falls by -1
        ([3] * 20 + [503], "lengths", "c1 00 06 01 14 f403"),  # one of 21 values is 500 above 3
        ([*range(20), *range(119, 139)], "offsets", "c2 00 00 02 01 13 63"),  # one of 39 steps is 99 above 1
        ([*range(138, 118, -1), *range(19, -1, -1)], "ages", "c2 00 9402 02 01 13 63"),
        ([1 << 56, 0], "lengths", "3f 0000000000000001 0000000000000000"),  # 57 bits are written as 64
        # Rice: 27 ones, three times 0001. Of offsets rice delta would take as much.
        ([1] * 27 + [4] * 3, "lengths", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "ages", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "offsets", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "codes", "42 02 000000000000c00f"),
        # 20 ones, 18 times 01, twice 00001; the lowest bit of each in front.
        ([0, 1] * 10 + [3] * 18 + [8, 9], "lengths", "c3 01 00 aaaafaffbf ffffafaaaaaaaa1002"),
        # Rice delta: 26 steps of 1, one of 4, one of 2.
        ([*range(27), 30, 32], "offsets", "c4 00 00 02 ffffffa3"),
        ([*range(32, 5, -1), 2, 0], "ages", "c4 00 40 02 ffffffa3"),
        # 7 bytes of 8, 8 bytes of 9.
        ([0] * 26 + [3, 1], "lengths", "c3 00 00 ffffffa3"),
        ([0] * 29 + [3, 3, 2], "lengths", "02 00000000000000bc"),
        # A dictionary: 0 and 295 above 5 by first appearance, an index of one bit each.
        ([5, 300, 5, 5, 300, 5, 5, 5], "lengths", "c5 09 0a 02 004e02 12"),
        ([5, 300, 5, 5, 300, 5, 5, 5], "codes", "c5 09 0a 02 004e02 12"),
        ([300, 5] * 4, "lengths", "c5 09 0a 02 270100 aa"),
        ([0, 15] * 7, "lengths", "c5 04 00 02 f0 aa2a"),
        ([0, 15] * 6, "lengths", "04 f0f0f0f0f0f0"),  # as large, and an earlier kind
    ],
)
def test_columns_by_hand(values: list[int], nature: columnar.Nature, column: str) -> None:
    assert columnar.column(values, nature) == bytes.fromhex(column)
    assert read_column(column, len(values), nature) == values


@pytest.mark.parametrize(
    ("values", "nature", "first"),
    [
        ([0, 8] * 50, "lengths", 0xC5),
        ([0, 7] * 50, "lengths", 0x03),  # in 3 bits
        ([0, 8] * 50, "ages", 0x04),
        ([0, 8] * 50, "offsets", 0x04),
        ([1000 * i for i in range(16)] * 6, "codes", 0xC5),
        ([1000 * i for i in range(17)] * 6, "codes", 0x0E),  # 17 values
    ],
)
def test_where_a_dictionary_is_tried(values: list[int], nature: columnar.Nature, first: int) -> None:
    column, distinct = columnar.column(values, nature), [*dict.fromkeys(values)]
    assert column[0] == first
    assert len(columnar.dictionary(0, distinct, [distinct.index(value) for value in values])) <= len(column)


def read_column(column: str, count: int, nature: columnar.Nature = "lengths") -> list[int]:
    return columnar._read_column(columnar._Reader(bytes.fromhex(column), 0), count, nature)


@pytest.mark.parametrize("width", [57, 58, 62])
def test_widths_that_have_no_code(width: int) -> None:
    room = "00" * 40
    for column in (f"{width:02x}", f"{0x40 | width:02x} 00", f"{0x80 | width:02x} 00 00"):
        refused(f"0100 {NO_TIME} 03 {column} {room}", "width code")
    for low in range(6):
        for code in (width, width + 64, 0x40, *([63] if low in (1, 2, 3, 4) else [])):
            refused(f"0100 {NO_TIME} 03 {0xC0 | low:02x} {code:02x} 00 02 {room}", f"width code {code}")


@pytest.mark.parametrize(
    ("column", "count", "why"),
    [
        ("c6 00 00", 2, "column"),
        ("ff 00 00", 2, "column"),
        ("01 04", 2, "padding"),
        ("01", 2, "bytes wanted"),
        ("41 00", 2, "bytes wanted"),
        ("c1 00 00 00", 2, "patches"),
        ("c1 00 00 03 00 00 00 00", 2, "patches"),
        ("c1 00 00 01 02 01", 2, "padding"),
        ("c1 00 00 01 03 01", 3, "positions"),
        ("c1 00 00 02 05 01 01", 4, "positions"),  # 1 and 1
        ("c1 00 00 02 01 01 01", 4, "positions"),  # 1 and 0
        ("c1 00 00 01 00 00", 2, "patch 0"),
        ("c1 38 00" + "00" * 14 + "01 00 8002", 2, "patch 256"),
        ("c3 00 00", 2, "bytes wanted"),
        ("c3 00 00 01", 2, "bytes wanted"),  # one of two
        ("c3 00 00 80 00", 2, "bytes wanted"),
        ("c3 00 00 07", 2, "padding"),
        ("c3 00 00 83", 2, "padding"),
        ("c3 01 00 04 03", 2, "padding"),  # of the bits
        ("c4 00 00 00 03", 2, "padding"),  # one step
        ("c5 00 00 00 00", 2, "dictionary of 0"),
        ("c5 00 00 01 00", 2, "dictionary of 1"),
        ("c5 01 00 03 07 03", 2, "index 3 of 3"),
        ("c5 01 00 03 0f 00", 2, "padding"),
        ("c5 01 00 03 07 10", 2, "padding"),
        ("c5 01 00 02 03", 2, "bytes wanted"),
        ("c5 3f 00 02 00000000000000 0000000000000000", 2, "bytes wanted"),
        ("c5 08 00 03 00", 2, "bytes wanted"),
        ("c5 02 00 03 64 00", 2, "padding"),
        ("c5 02 00 03 24 10", 2, "padding"),
        ("c1 01 00 00 03 00 00 00 00", 2, "patches"),
        ("3a" + "00" * 16, 2, "width code"),
    ],
)
def test_columns_that_are_refused(column: str, count: int, why: str) -> None:
    refused(f"0100 {NO_TIME} {count:02x} {column}", why)


def test_columns_that_our_encoder_does_not_write() -> None:
    assert read_column("02 00", 2) == [0, 0]  # wider than needed
    assert read_column("80 02 04", 3) == [1, 3, 5]
    assert read_column("c2 00 05 00 01 03", 2) == [-3, 0]  # one step, whose position takes no byte
    assert read_column("c3 01 01 02 06", 2) == [1, 0]  # quotients 1, 0


def test_a_quotient_that_is_more_than_a_uint64() -> None:
    """257 << 56 is 1 << 56."""
    assert read_column("c3 38 02" + "00" * 14 + "00" * 32 + "06", 2) == [(1 << 56) + 1, 1]


@pytest.mark.parametrize("nature", ["offsets", "lengths", "codes"])
def test_steps_fall_in_ages_alone(nature: columnar.Nature) -> None:
    for column, rises, falls in [
        ("c0 02 05 02 0d", [-3, -1, 3], [-3, -5, -9]),  # steps of 1 + 1, 1 + 3
        ("c2 00 05 02 01 01 03", [-3, -2, 2], [-3, -4, -8]),  # the second by 3 more
        ("c4 01 05 02 02 06", [-3, 0, 2], [-3, -6, -8]),  # 1 + 0 + (1 << 1), 1 + 1
    ]:
        assert read_column(column, 3, nature) == rises
        assert read_column(column, 3, "ages") == falls


def test_a_dictionary_of_as_many_as_there_may_be() -> None:
    assert read_column("c5 08 01 ff" + bytes(range(255)).hex() + "fe00", 2) == [253, -1]
    # Values of 64 bits, the same twice, one that is not used.
    assert read_column("c5 3f 02 03" + "ff" * 16 + "00" * 8 + "01", 2) == [0, 0]


# Forms of a batch. Here the attributes and the latest time, 8 bytes, come first.


def test_a_record_of_nothing() -> None:
    data = batch(f"0000 {NO_TIME} 01")
    assert len(data) == 30
    assert columnar.decode_one(data, 0).messages == [Message(offset=0)]
    assert columnar.encode([Message(offset=0)]) == data


def test_records_that_cost_no_byte() -> None:
    assert len(read(f"0000 {NO_TIME} e807")) == 1000
    refused(f"0000 {NO_TIME} 81808008", "16777217 records")
    refused(f"0000 {NO_TIME} ffffffff07", "2147483647 records")


def test_payload_split_and_by_rows() -> None:
    messages = [
        Message(offset=0, key=b"", value=b"vw"),
        Message(offset=1, key=b"k", value=b"x"),
    ]
    assert read(f"1400 {NO_TIME} 02  01 02  02 06  6b 7677 78") == messages
    assert read(f"9400 {NO_TIME} 02  01 04 00  01 02  02 06  7677 6b 78") == messages
    assert columnar.encode(messages) == batch(f"1400 {NO_TIME} 02  01 02  02 06  6b 7677 78")
    refused(f"1400 {NO_TIME} 02  01 02  02 06  6b 7677 78 79", "1 bytes after the payload")
    refused(f"1400 {NO_TIME} 02  01 02  02 06  6b 7677", "1 bytes wanted, 0 are left")


def test_a_payload_of_no_bytes_under_a_codec() -> None:
    for codec in range(5):
        assert read(f"140{codec} {NO_TIME} 02  00 00") == [Message(offset=i, key=b"", value=b"") for i in range(2)]
        assert read(f"020{codec} {NO_TIME} 00 05") == []
    for codec in (5, 6, 7):
        refused(f"140{codec} {NO_TIME} 02  00 00", f"codec {codec}")
    empty = codecs.compress("gzip", b"", 2).hex()
    assert read(f"1401 {NO_TIME} 02  00 00 {empty}") == read(f"1400 {NO_TIME} 02  00 00")


def test_nulls() -> None:
    messages = [Message(offset=0, value=b"ab"), Message(offset=1), Message(offset=2, value=b"abc")]
    written = f"3000 {NO_TIME} 03  02  02 21  6162 616263"  # codes 1, 0, 2 above a minimum of 2
    assert columnar.encode(messages) == batch(written)
    assert read(written) == messages
    refused(f"2000 {NO_TIME} 03  02 00", "attributes 0x2000")
    refused(f"0800 {NO_TIME} 03  02 00", "attributes 0x0800")
    refused(f"3000 {NO_TIME} 01  02", "attributes 0x3000 of 1")
    refused(f"0c00 {NO_TIME} 01  02", "attributes 0x0c00 of 1")
    refused(f"3000 {NO_TIME} 02  00 40 01", "code -1")
    refused(f"3000 {NO_TIME} 02  00 40 8280808010", "length 2147483648")
    refused(f"1000 {NO_TIME} 02  40 01", "length -1")
    refused(f"1000 {NO_TIME} 01  81808080 01", "length 268435457")


@pytest.mark.parametrize(
    "covered",
    [
        f"3000 {NO_TIME} 02  ffffffff0f 00",
        f"0c00 {NO_TIME} 02  8080808008 00",
        f"4000 {NO_TIME} 02  01 01  00 02 8080808008 00",
        f"4000 {NO_TIME} 02  00 01 03  00  01 ffffffff0f 00",
    ],
)
def test_a_minimum_that_is_no_length(covered: str) -> None:
    """Refused where no record has it, too."""
    refused(covered, "minimum")


def test_times() -> None:
    assert [message.timestamp_ms for message in read("0100 000000000064 03  01 05")] == [99, 100, 99]
    assert [message.timestamp_ms for message in read("0100 000000000064 01  03")] == [102]
    for ages in ("c0 00 04 02", "c2 00 04 00 02 02 01 01", "c4 00 04 02 03"):  # 2, 1, 0
        assert [message.timestamp_ms for message in read(f"0100 000000000064 03  {ages}")] == [98, 99, 100]
    # An anchor of 1000 under an append time of 100, which readers see.
    appended = "8108 000000000064 02  01 02 08 00000000000003e8  01 02"
    found = columnar.decode_one(batch(appended), 0)
    assert [message.timestamp_ms for message in found.messages] == [1000, 999]
    assert found.read_timestamps_ms() == [100, 100]
    assert columnar.encode(found.messages, Fields(append_time_ms=100)) == batch(appended)
    far = "8000 000000000000 01  01 03 08 7fffffffffffffff"
    assert columnar.encode([Message(offset=0, timestamp_ms=INT64)]) == batch(far)
    assert read(far) == [Message(offset=0, timestamp_ms=INT64)]
    assert read(far.replace("8000 000000000000", "8000 00000000002a")) == read(far)  # what is not read may be anything


@pytest.mark.parametrize(("time", "is_wide"), [(2**47 - 1, False), (2**47, True)])
def test_where_48_bits_end(time: int, is_wide: bool) -> None:
    data = columnar.encode([Message(offset=0, timestamp_ms=time)])
    assert len(data) == (41 if is_wide else 30)
    assert columnar.decode_one(data, 0).max_timestamp_ms == time
    wide = columnar.encode([], Fields(base_offset=0, last_offset=0, max_timestamp_ms=-time - 1))
    assert len(wide) == (42 if is_wide else 31)
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
    for attributes in ("0300", "0600", "0a00", "1200", "2200", "4200"):
        refused(f"{attributes} {NO_TIME} 00 09", "empty batch")
    for codec in range(5):
        refused(f"020{codec} {NO_TIME} 00 09  00", "1 bytes behind it")
    assert read(f"8200 {NO_TIME} 00 09  01 02 08 0000000000000000") == []


HORIZON = "01 08 0000000000000007"


def test_extensions() -> None:
    horizon = columnar.decode_one(batch(f"8040 {NO_TIME} 01  01 {HORIZON}"), 0)
    assert (horizon.delete_horizon_ms, horizon.base_timestamp_ms) == (7, 7)
    based = columnar.decode_one(batch(f"8000 {NO_TIME} 01  01 00 08 0000000000000007"), 0)
    assert (based.delete_horizon_ms, based.base_timestamp_ms) == (None, 7)
    refused(f"8000 {NO_TIME} 01  00", "no extension")
    refused(f"8000 {NO_TIME} 01  01 05 00", "extension 5 of 0 bytes")
    refused(f"8000 {NO_TIME} 01  01 00 07 00000000000000", "extension 0 of 7 bytes")
    refused(f"8000 {NO_TIME} 01  01 04 01 00", "extension 4 of 1 bytes")
    refused(f"8000 {NO_TIME} 01  02 04 00 04 00", "extension 4 of 0 bytes")
    refused(f"8000 {NO_TIME} 01  02 04 00 02 08 0000000000000007", "extension 2 of 8 bytes")
    refused(f"8000 {NO_TIME} 01  01 {HORIZON}", "horizon")
    refused(f"0040 {NO_TIME} 01", "horizon")
    refused(f"8040 {NO_TIME} 01  01 04 00", "horizon")
    refused(f"8040 {NO_TIME} 01  02 00 08 0000000000000007 {HORIZON}", "base timestamp and delete horizon")


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
    refused(f"1420 {NO_TIME} 01  03 06 000000 000000000000", "version and a type")


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
        # One position: constant, plain, plain with a null, dictionary, template.
        ([headers(A_KEY)] * 2, "02  01 01  01 00 02  6b 76"),
        ([headers(("k", b"!")), headers(("k", b"?"))], "02  01 01  01 01 01 03  6b 213f"),
        ([headers(("k", b"!")), headers(("k", None))], "02  01 01  01 02 01 01 01  6b 21"),
        (
            [headers(("k", b"first")), headers(("k", b"second")), headers(("k", b"first"))],
            "03  01 01  01 03 02 06 07 02  6b 6669727374 7365636f6e64",
        ),
        (
            [headers(("k", b"x=a-0")), headers(("k", b"x=a-9")), headers(("k", b"x=a-f"))],
            "03  01 01  01 04 05 10  6b 783d612d 09f0",
        ),
        # Two positions.
        ([headers(A_KEY, ("", b""))] * 2, "02  01 02  01 00 02  00 00 01  6b 76"),
        # By record: one header in all, and several.
        ([headers(), headers(A_KEY)], "02  00 01 02  01 02  6b 76"),
        ([headers(A_KEY), headers(("kk", b"v"))], "02  00 01 03  02 09  00 01 03  6b 76 6b6b 76"),
        ([headers(), headers(A_KEY, ("k", None))], "02  00 02 08  01 03  01 01 01 01  6b 76 6b"),
        ([headers(), headers(("", None), ("", None))], "02  00 02 08  00  01 00 00"),
    ],
)
def test_headers_by_hand(messages: list[Message], written: str) -> None:
    assert columnar.encode(records(*messages)) == batch(f"4000 {NO_TIME} {written}")
    assert read(f"4000 {NO_TIME} {written}") == records(*messages)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("02  01 01  00 02 00 01 03", [b"", b""]),  # no null among those that may be null
        ("02  01 01  00 03 02 02 02 00  61 61", [b"a", b"a"]),  # values that are equal
        ("02  01 01  00 03 03 00 02 02 09  61 62", [b"a", b"b"]),  # one that is not used, not in order
        ("02  00 40 02  00  00 00", [b"", b""]),  # by record where by position would do
    ],
)
def test_headers_that_our_encoder_does_not_write(written: str, values: list[bytes]) -> None:
    assert read(f"4000 {NO_TIME} {written}") == records(*(headers(("", value)) for value in values))


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("01  00", "0 headers"),
        ("02  01 00", "0 headers"),
        ("02  00 00", "0 headers"),
        ("02  02 01", "headers of mode 2"),
        ("02  00 40 01", "number of headers"),
        ("02  00 40 feffffff1f", "number of headers"),
        ("02  00 40 8080801e", "headers"),
        ("02  00 40 02  00  02 00", "nulls 2"),
        ("02  01 01  00 05", "header of form 5"),
        ("02  01 01  00 03 01 01", "dictionary of 1"),
        ("02  01 01  00 03 8102", "dictionary of 257"),
        ("02  01 01  00 03 03 01 01 01 03", "index 3 of 3"),
        ("02  01 01  00 03 02 01 01 04", "padding"),
        ("02  01 01  00 04 00", "template of no characters"),
        ("02  01 01  00 04 02 00  4142", "template of no digits"),
        ("02  01 01  00 04 01 03  00", "padding"),
        ("03  01 01  00 04 01 01  0001", "padding"),
        ("02  01 8080800c", "50331648 headers|100663296 headers"),
        ("02  01 01  8280808001 00 00", "length 268435458"),
    ],
)
def test_headers_that_are_refused(written: str, why: str) -> None:
    refused(f"4000 {NO_TIME} {written}", why)


def test_shared_headers_that_stand_for_more_than_a_log_may() -> None:
    text = b"x" * 1000
    many = 1 << 19
    written = b"\x01\x01\x00\x00" + unsigned(len(text) + 1) + text
    refused(f"4000 {NO_TIME} {unsigned(many).hex()} {written.hex()}", "headers of 524288000 bytes")


# A header of its own


def test_other_damage() -> None:
    data = columnar.encode([Message(offset=0, value=b"v", timestamp_ms=NOW_MS)])
    for broken, why in [
        (data[:28], "no room"),
        (data[:16] + b"\x05" + data[17:], "magic 5"),
        (data[:-1], "length"),
        (data[:17] + bytes(4) + data[21:], "crc"),
        (sealed(data[:29]), "length"),
    ]:
        with pytest.raises(RefusedError, match=why):
            columnar.decode_one(broken, 0)
    refused(f"0200 {NO_TIME} 01 8080808080 00", "varint of more than 5 bytes")


@given(data=st.data())
def test_damage_is_refused_or_read(data: st.DataObject) -> None:
    """Nothing else comes of it: no other error, no endless loop."""
    messages = data.draw(columnar_cases.batches(max_count=9))
    damaged = data.draw(mutations(columnar.encode(messages, data.draw(columnar_cases.fields_of(messages)))))
    try:
        found = columnar.decode_one(damaged, 0)
    except RefusedError:
        return
    assert found.size_bytes == len(damaged)
