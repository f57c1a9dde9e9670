"""Columns of the columnar reference: each kind is read back, and the smallest kind is written."""

import struct
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import columnar_cases, columnar_columns
from tests.reference.columnar_by_hand import NO_TIME, refused
from tests.reference.columnar_columns import Nature
from tests.reference.varint import zigzag
from tests.strategies import INT64

INT64S = st.integers(-(2**63), INT64)
NATURES: tuple[Nature, ...] = get_args(Nature)

COLUMNS = st.lists(INT64S, min_size=2, max_size=20) | st.builds(
    lambda name, seed, count: columnar_cases.shaped(columnar_cases.Draw(seed), name, count),
    st.sampled_from(columnar_cases.WILD_NAMES),
    st.integers(0, 2**32),
    st.integers(2, 80),
)


def steps_of(values: list[int], nature: Nature) -> list[int]:
    sign = -1 if nature == "ages" else 1
    return [columnar_columns.wrapped(sign * (after - before)) for before, after in pairwise(values)]


def every_column(values: list[int], nature: Nature) -> list[bytes]:
    """Return the values as columns of every kind, at several widths."""
    n, wrapped, above = len(values), columnar_columns.wrapped, columnar_columns.above_base
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
                columns.append(columnar_columns.patched(form, start, under, over, width))
    for form, start, under, of in ((3, b"", least, values), (4, first, low, steps)):
        over = [above(value, under) for value in of]
        shortest = max(0, max(over).bit_length() - 8)  # a quotient takes up to 256 bits in unary code
        columns += [columnar_columns.rice(form, start, under, over, width) for width in {min(shortest, 56), 56}]
    distinct = sorted({above(value, base) for value in values} | {0, 2**64 - 1})
    columns.append(
        columnar_columns.dictionary(base, distinct, [distinct.index(above(value, base)) for value in values])
    )
    return columns


@given(values=COLUMNS)
def test_every_kind_of_column_reads_alike(values: list[int]) -> None:
    for nature in NATURES:
        for column in [columnar_columns.column(values, nature), *every_column(values, nature)]:
            reader = columnar_columns.Reader(column + b"?", 0)
            assert columnar_columns.read_column(reader, len(values), nature) == values
            assert reader.rest() == b"?"


@given(values=COLUMNS)
def test_no_plain_kind_is_smaller_than_the_written_one(values: list[int]) -> None:
    def packed_bytes(of: list[int], base: int) -> int:
        bits = max(columnar_columns.above_base(value, base) for value in of).bit_length()
        return -(-len(of) * (bits if bits <= 56 else 64) // 8)

    least = min(values)
    frame = 1 + len(zigzag(least)) + packed_bytes(values, least)
    bits = 1 + packed_bytes(values, 0) if least >= 0 else frame
    for nature in NATURES:
        column, plain = columnar_columns.column(values, nature), min(bits, frame)
        if nature in ("ages", "offsets"):
            steps = steps_of(values, nature)
            plain = min(plain, 2 + len(zigzag(values[0]) + zigzag(min(steps))) + packed_bytes(steps, min(steps)))
        assert len(column) <= (plain * 7 // 8 if column[0] in (0xC3, 0xC4) else plain)


@given(values=COLUMNS)
def test_only_allowed_kinds_are_written(values: list[int]) -> None:
    """Each content of a column uses only the kinds that docs/columnar.md allows.

    allowed: kind 0, 1 or 2, or a whole descriptor byte of kind 3.
    """
    allowed = {
        "ages": {0, 1, 2, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4},
        "offsets": {0, 1, 2, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4},
        "lengths": {0, 1, 0xC1, 0xC3, 0xC5},
        "codes": {0, 1, 0xC1, 0xC5},
    }
    for nature in NATURES:
        first = columnar_columns.column(values, nature)[0]
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
def test_cases_have_the_kinds_they_are_drawn_for(nature: Nature, shape: str, kinds: set[int]) -> None:
    """At least 10 of 100 drawn columns have the kind for which their values were designed."""
    found = []
    for seed in range(100):
        draw = columnar_cases.Draw(seed)
        values = columnar_cases.shaped(draw, shape, 64)
        if nature == "ages":
            values = [max(values) - value for value in values]
        if nature == "codes":
            values = [value - min(values) + 1 if draw.random() < 0.7 else 0 for value in values]
        found.append(columnar_columns.column(values, nature)[0])
    assert sum(first in kinds for first in found) >= 10


@pytest.mark.parametrize(
    ("values", "nature", "column"),
    [
        ([0, 0], "offsets", "00"),
        ([1, 0, 3], "offsets", "02 31"),  # packed bits: 1 | 0 << 2 | 3 << 4
        ([7, 7, 7], "lengths", "40 0e"),
        ([-1, 0, -1], "offsets", "41 01 02"),
        ([0, 3, 6], "lengths", "03 9801"),
        ([0, 5, 10, 15, 20], "offsets", "80 00 0a"),
        ([20, 15, 10, 5, 0], "offsets", "80 28 09"),
        ([20, 15, 10, 5, 0], "ages", "80 28 09"),  # in ages, too, the slope is added
        ([2**63 - 1, -(2**63)], "offsets", "c0 00 feffffffffffffffff01 02"),  # one step of 1, modulo 2**64
        ([2**63 - 1, -(2**63)], "ages", "c0 00 feffffffffffffffff01 01"),  # as ages: one step of -1, stored as a fall
        ([3] * 20 + [503], "lengths", "c1 00 06 01 14 f403"),  # patch: one of 21 values is 500 above 3
        ([*range(20), *range(119, 139)], "offsets", "c2 00 00 02 01 13 63"),  # patch: one of 39 steps is 99 above 1
        ([*range(138, 118, -1), *range(19, -1, -1)], "ages", "c2 00 9402 02 01 13 63"),
        ([1 << 56, 0], "lengths", "3f 0000000000000001 0000000000000000"),  # 57 bits are stored as 64
        # Rice: 27 quotients 0 (bit 1), three quotients 3 (bits 0001). For offsets, rice delta is as large.
        ([1] * 27 + [4] * 3, "lengths", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "ages", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "offsets", "c3 00 02 ffffff4744"),
        ([1] * 27 + [4] * 3, "codes", "42 02 000000000000c00f"),
        # Quotients: 20 times bit 1, 18 times bits 01, twice 00001. The low bits of the values come first.
        ([0, 1] * 10 + [3] * 18 + [8, 9], "lengths", "c3 01 00 aaaafaffbf ffffafaaaaaaaa1002"),
        # Rice delta: 26 steps of 1, one of 4, one of 2.
        ([*range(27), 30, 32], "offsets", "c4 00 00 02 ffffffa3"),
        ([*range(32, 5, -1), 2, 0], "ages", "c4 00 40 02 ffffffa3"),
        # 7 bytes instead of 8 are enough for Rice, 8 instead of 9 are not.
        ([0] * 26 + [3, 1], "lengths", "c3 00 00 ffffffa3"),
        ([0] * 29 + [3, 3, 2], "lengths", "02 00000000000000bc"),
        # A dictionary with 0 and 295 above 5, by first appearance, then one index bit per value.
        ([5, 300, 5, 5, 300, 5, 5, 5], "lengths", "c5 09 0a 02 004e02 12"),
        ([5, 300, 5, 5, 300, 5, 5, 5], "codes", "c5 09 0a 02 004e02 12"),
        ([300, 5] * 4, "lengths", "c5 09 0a 02 270100 aa"),
        ([0, 15] * 7, "lengths", "c5 04 00 02 f0 aa2a"),
        ([0, 15] * 6, "lengths", "04 f0f0f0f0f0f0"),  # another kind is as small and has a lower number
    ],
)
def test_columns_by_hand(values: list[int], nature: Nature, column: str) -> None:
    assert columnar_columns.column(values, nature) == bytes.fromhex(column)
    assert read_column(column, len(values), nature) == values


@pytest.mark.parametrize(
    ("values", "nature", "first"),
    [
        ([0, 8] * 50, "lengths", 0xC5),
        ([0, 7] * 50, "lengths", 0x03),  # the value in 3 bits
        ([0, 8] * 50, "ages", 0x04),
        ([0, 8] * 50, "offsets", 0x04),
        ([1000 * i for i in range(16)] * 6, "codes", 0xC5),
        ([1000 * i for i in range(17)] * 6, "codes", 0x0E),  # more than 16 values: no dictionary
    ],
)
def test_where_a_dictionary_is_tried(values: list[int], nature: Nature, first: int) -> None:
    column, distinct = columnar_columns.column(values, nature), [*dict.fromkeys(values)]
    assert column[0] == first
    assert len(columnar_columns.dictionary(0, distinct, [distinct.index(value) for value in values])) <= len(column)


def read_column(column: str, count: int, nature: Nature = "lengths") -> list[int]:
    return columnar_columns.read_column(columnar_columns.Reader(bytes.fromhex(column), 0), count, nature)


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
        ("c3 01 00 04 03", 2, "padding"),  # in the packed bits
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
    """The quotient 257, shifted by 56 bits, wraps to 1 << 56 in 64 bits."""
    assert read_column("c3 38 02" + "00" * 14 + "00" * 32 + "06", 2) == [(1 << 56) + 1, 1]


@pytest.mark.parametrize("nature", ["offsets", "lengths", "codes"])
def test_steps_fall_in_ages_alone(nature: Nature) -> None:
    for column, rises, falls in [
        ("c0 02 05 02 0d", [-3, -1, 3], [-3, -5, -9]),  # steps of 1 + 1, 1 + 3
        ("c2 00 05 02 01 01 03", [-3, -2, 2], [-3, -4, -8]),  # the second by 3 more
        ("c4 01 05 02 02 06", [-3, 0, 2], [-3, -6, -8]),  # 1 + 0 + (1 << 1), 1 + 1
    ]:
        assert read_column(column, 3, nature) == rises
        assert read_column(column, 3, "ages") == falls


def test_the_largest_dictionary() -> None:
    assert read_column("c5 08 01 ff" + bytes(range(255)).hex() + "fe00", 2) == [253, -1]
    # Dictionaries: values of 64 bits, a value twice, a value that is not used.
    assert read_column("c5 3f 02 03" + "ff" * 16 + "00" * 8 + "01", 2) == [0, 0]
