"""Columns of the columnar reference: each kind is read back, and the smallest kind is written."""

import struct
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.varint import zigzag
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar import reference_columns as columnar_columns
from tests.research.columnar.by_hand import NO_TIME, refused
from tests.research.columnar.reference_columns import Nature
from tests.strategies import INT64

NATURES: tuple[Nature, ...] = get_args(Nature)

COLUMNS = st.lists(st.integers(-(2**63), INT64), min_size=2, max_size=20) | st.builds(
    lambda name, seed, count: columnar_cases.shaped(columnar_cases.Draw(seed), name, count),
    st.sampled_from(columnar_cases.WILD_NAMES),
    st.integers(0, 2**32),
    st.integers(2, 80),
)
SHORT_COLUMNS = st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=20) | st.builds(
    lambda name, seed, count: columnar_cases.shaped(columnar_cases.Draw(seed), name, count),
    st.sampled_from(columnar_cases.LENGTH_SHAPES),
    st.integers(0, 2**32),
    st.integers(2, 80),
)


def steps_of(values: list[int]) -> list[int]:
    return [columnar_columns.wrapped(after - before) for before, after in pairwise(values)]


def read_column(column: bytes, count: int, nature: Nature = "lengths") -> list[int]:
    reader = columnar_columns.Reader(column + b"?", 0)
    values = columnar_columns.read_column(reader, count, nature)
    assert reader.rest() == b"?"
    return values


def with_patches(first: bytes, values: list[int], most_bits: int) -> list[bytes]:
    """Return columns of the kind patched at several widths."""
    above = [columnar_columns.above_base(value, min(values)) for value in values]
    widths = [width for width in (0, 1, 13, 31, 56) if width <= most_bits]
    return [columnar_columns.patched(first, min(values), above, width) for width in widths]


@given(values=COLUMNS)
def test_every_kind_of_ages_and_offsets_reads_alike(values: list[int]) -> None:
    def whole(of: list[int], under: int) -> bytes:
        return b"".join(struct.pack("<Q", columnar_columns.above_base(value, under)) for value in of)

    base, steps, first = columnar_columns.wrapped(values[0] - 1), steps_of(values), zigzag(values[0])
    columns = [
        b"\x3f" + whole(values, 0),
        b"\x7f" + zigzag(base) + whole(values, base),
        b"\xbf" + first + zigzag(7) + whole(steps, 7) + b"\0",
        *with_patches(first, steps, 64),
    ]
    for nature in ("ages", "offsets"):
        for column in [columnar_columns.column(values, nature), *columns]:
            assert read_column(column, len(values), nature) == values


@given(values=SHORT_COLUMNS)
def test_every_kind_of_lengths_reads_alike(values: list[int]) -> None:
    above = [value - min(values) for value in values]
    columns = [
        b"\x1f" + columnar_columns.packed(values, 31),
        b"\x5f" + zigzag(min(values)) + columnar_columns.packed(above, 31),
        *with_patches(b"", values, 31),
    ]
    for column in [columnar_columns.column(values, "lengths"), *columns]:
        assert read_column(column, len(values)) == values


@given(values=COLUMNS)
def test_no_plain_kind_is_smaller_than_the_written_one(values: list[int]) -> None:
    def packed_bytes(of: list[int], base: int) -> int:
        bits = max(columnar_columns.above_base(value, base) for value in of).bit_length()
        return -(-len(of) * (bits if bits <= 56 else 64) // 8)

    least = min(values)
    base = 1 + len(zigzag(least)) + packed_bytes(values, least)
    bits = 1 + packed_bytes(values, 0) if least >= 0 else base
    for nature in NATURES:
        plain = min(bits, base)
        if nature != "lengths":
            steps = steps_of(values)
            plain = min(plain, 2 + len(zigzag(values[0]) + zigzag(min(steps))) + packed_bytes(steps, min(steps)))
        column = columnar_columns.column(values, nature)
        assert len(column) <= plain
        assert column[0] >> 6 <= columnar_columns.PATCHED


@pytest.mark.parametrize(
    ("values", "nature", "column"),
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
def test_columns_by_hand(values: list[int], nature: Nature, column: str) -> None:
    assert columnar_columns.column(values, nature) == bytes.fromhex(column)
    assert read_column(bytes.fromhex(column), len(values), nature) == values


@pytest.mark.parametrize("width", [57, 58, 62])
def test_widths_that_have_no_code(width: int) -> None:
    room = "00" * 40
    for kind in (0, 1, 2):
        refused(f"0100 {NO_TIME} 03 {kind << 6 | width:02x} 00 00 {room}", "width code")


@pytest.mark.parametrize(
    ("column", "count", "why"),
    [
        ("c0 00 00 00", 2, "kind 3"),
        ("01 04", 2, "padding"),
        ("01", 2, "bytes wanted"),
        ("41 00", 2, "bytes wanted"),
        ("80 00 00", 2, "varint"),
        ("80 00 00 02 00 00 00", 2, "patches"),
        ("80 00 00 01 02 01", 3, "padding"),
        ("80 00 00 01 03 01", 4, "positions"),
        ("80 00 00 02 05 01 01", 5, "positions"),  # 1 and 1
        ("80 00 00 02 01 01 01", 5, "positions"),  # 1 and 0
        ("80 00 00 01 00", 2, "patch 0"),
        ("b8 00 00" + "00" * 7 + "01 8002", 2, "patch 256"),
        ("bf 00 00" + "00" * 8 + "01 01", 2, "patch 1"),
        ("3a" + "00" * 16, 2, "width code"),
    ],
)
def test_columns_of_ages_that_are_refused(column: str, count: int, why: str) -> None:
    refused(f"0100 {NO_TIME} {count:02x} {column}", why)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("20" + "00" * 8, "32 bits"),
        ("3f" + "00" * 16, "64 bits"),
        ("60 02" + "00" * 8, "32 bits"),
        ("40 01", "above -1"),
        ("40 8080808010", "above 2147483648"),
        ("81 00 00 01 00 8080808004", "patch 1073741824"),
        ("9f 00" + "00" * 8 + "01 00 01", "patch 1"),
    ],
)
def test_columns_of_lengths_that_are_refused(column: str, why: str) -> None:
    """Lengths, lengths of headers and numbers of headers have at most 31 bits above a base of at most 31 bits."""
    refused(f"0800 {NO_TIME} 02 {column}", why)
    refused(f"1000 {NO_TIME} 02 00 {column}", why)
    refused(f"1000 {NO_TIME} 02 01 01 00 ff {column}", why)


def test_columns_that_our_encoder_does_not_write() -> None:
    assert read_column(bytes.fromhex("02 00"), 2) == [0, 0]  # wider than needed
    assert read_column(bytes.fromhex("80 05 01 01 03"), 2, "ages") == [-3, -1]  # one step, its position takes no byte
    assert read_column(bytes.fromhex("80 00 00"), 2) == [0, 0]  # patched, without a patch
