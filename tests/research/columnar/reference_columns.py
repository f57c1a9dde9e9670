"""Write and read columns of magic 5 value by value (docs/columnar.md).

column: descriptor u8 (kind in bits 6-7, width code in bits 0-5), the fields of the kind, values packed from bit 0 up
"""

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from tests.reference import varint
from tests.reference.model import RefusedError, signed
from tests.reference.varint import unsigned, zigzag

BITS, BASE, PATCHED = range(3)
WIDEST, WHOLE, WHOLE_CODE = 56, 64, 63  # a width of 57 to 63 bits is stored as 64, whose code is 63
SHORT_BITS = 31  # most bits of a value above the base in a column of lengths
INT32_MAX = 2**31 - 1
FIELD_BYTES = 256 << 20  # default of kfbench.Limits.field_bytes

# The contents of a column. "lengths" are lengths plus 1 and 0 for null, or numbers of headers.
Nature = Literal["ages", "offsets", "lengths"]


# Integers


def wrapped(value: int) -> int:
    """Wrap an integer to an int64, modulo 2**64."""
    return signed(value, 64)


def above_base(value: int, base: int) -> int:
    """Return value - base as a uint64, modulo 2**64."""
    return (value - base) & (2**64 - 1)


def _width(values: Sequence[int]) -> int:
    bits = max(values, default=0).bit_length()
    return bits if bits <= WIDEST else WHOLE


def packed(values: Sequence[int], width: int) -> bytes:
    stream = 0
    for i, value in enumerate(values):
        stream |= value << (i * width)
    return stream.to_bytes(-(-len(values) * width // 8), "little")


def length_code(content: bytes | None) -> int:
    """Return a length plus 1, or 0 for null."""
    return 0 if content is None else len(content) + 1


# Columns


def _descriptor(kind: int, width: int) -> bytes:
    return struct.pack(">B", kind << 6 | (WHOLE_CODE if width == WHOLE else width))


def _smallest(columns: Sequence[bytes]) -> bytes:
    return min(columns, key=len)  # of equals the first


def column(values: Sequence[int], nature: Nature) -> bytes:
    """Return the smallest column for at least two values."""
    candidates = []
    least = min(values)
    if least >= 0:
        width = _width(values)
        candidates.append(_descriptor(BITS, width) + packed(values, width))
    above = [above_base(value, least) for value in values]
    width = _width(above)
    candidates.append(_descriptor(BASE, width) + zigzag(least) + packed(above, width))
    if nature == "lengths":
        return _smallest([*candidates, *_patched(b"", least, above)])
    steps = [wrapped(after - before) for before, after in pairwise(values)]
    shortest, first = min(steps), zigzag(values[0])
    beyond = [above_base(step, shortest) for step in steps]
    return _smallest(
        [*candidates, patched(first, shortest, beyond, _width(beyond)), *_patched(first, shortest, beyond)]
    )


def _patched(first: bytes, base: int, above: Sequence[int]) -> list[bytes]:
    """Return a list with the smallest column that has patches, or an empty list if patches are not tried."""
    most = max(above).bit_length()
    mean = sum(above) // len(above)
    if most < (3 if len(above) < 16 else 4) + mean.bit_length() and most + len(above).bit_length() <= 63:
        return []
    widths = range(min(most - 1, WIDEST), -1, -1)
    return [_smallest([patched(first, base, above, width) for width in widths])]


def patched(first: bytes, base: int, above: Sequence[int], width: int) -> bytes:
    """Return a column of the kind PATCHED: it stores the low `width` bits of each value above the base.

    Values with higher bits get a patch with these bits. first: value 0, if the others are steps.
    """
    low = [value & ((1 << width) - 1) for value in above]
    at = [i for i, value in enumerate(above) if value >> width]
    return (
        _descriptor(PATCHED, width)
        + first
        + zigzag(base)
        + packed(low, width)
        + unsigned(len(at))
        + packed(at, (len(above) - 1).bit_length())
        + b"".join(unsigned(above[i] >> width) for i in at)
    )


def lengths_column(contents: Sequence[bytes | None]) -> bytes:
    """Return the column of at least two lengths, as codes: 0 for null, else the length plus 1."""
    return column([length_code(content) for content in contents], "lengths")


def field_lengths(contents: Sequence[bytes | None]) -> bytes:
    """Return the column of the lengths of keys or values. At least one is not null."""
    return lengths_column(contents) if len(contents) > 1 else unsigned(length_code(contents[0]))


def numbers(values: Sequence[int], nature: Literal["ages", "offsets"]) -> bytes:
    return column(values, nature) if len(values) > 1 else zigzag(values[0])


# Reading


class Reader(varint.Reader):
    """A reader of byte strings that can also read columns."""

    def length(self) -> int:
        return checked_length(self.number())

    def nullable_length(self) -> int | None:
        return length_of(self.number())

    def packed(self, count: int, width: int) -> list[int]:
        stream = int.from_bytes(self.take(-(-count * width // 8)), "little")
        if stream >> (count * width):
            raise RefusedError("padding")
        return [stream >> (i * width) & ((1 << width) - 1) for i in range(count)]

    def content(self, length: int | None) -> bytes | None:
        return None if length is None else self.take(length)


def checked_length(value: int) -> int:
    if not 0 <= value <= FIELD_BYTES:
        raise RefusedError(f"length {value}")
    return value


def length_of(code: int) -> int | None:
    return checked_length(code - 1) if code else None


def read_column(reader: Reader, count: int, nature: Nature) -> list[int]:
    """Read a column of `count` values (at least two) as int64s."""
    descriptor = reader.byte()
    kind, code = descriptor >> 6, descriptor & 63
    if kind > PATCHED or WIDEST < code != WHOLE_CODE:
        raise RefusedError(f"kind {kind}, width code {code}")
    width, are_steps = WHOLE if code == WHOLE_CODE else code, kind == PATCHED and nature != "lengths"
    first = reader.zigzag() if are_steps else 0
    base = reader.zigzag() if kind != BITS else 0
    if nature == "lengths" and (width > SHORT_BITS or not 0 <= base <= INT32_MAX):
        raise RefusedError(f"lengths of {width} bits above {base}")
    above = reader.packed(count - 1 if are_steps else count, width)
    if kind == PATCHED:
        _read_patches(reader, above, width, SHORT_BITS if nature == "lengths" else 64)
    if not are_steps:
        return [wrapped(base + value) for value in above]
    values = [first]
    for value in above:
        values.append(wrapped(values[-1] + base + value))
    return values


def _read_patches(reader: Reader, values: list[int], width: int, most_bits: int) -> None:
    """Read the patches of a column and add them to its packed values."""
    count, patches = len(values), reader.number()
    if patches > count:
        raise RefusedError(f"{patches} patches of {count} values")
    positions = reader.packed(patches, (count - 1).bit_length())
    if any(after <= before for before, after in pairwise(positions)) or max(positions, default=0) >= count:
        raise RefusedError("positions of patches")
    for position in positions:
        high = reader.number(64)
        if not high or high.bit_length() + width > most_bits:
            raise RefusedError(f"patch {high}")
        values[position] |= high << width


def read_lengths(reader: Reader, count: int) -> list[int | None]:
    return [length_of(code) for code in read_column(reader, count, "lengths")]
