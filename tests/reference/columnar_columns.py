"""Write and read columns of magic 4 value by value (docs/columnar.md).

column: descriptor u8 (kind in bits 6-7, width code in bits 0-5), the fields of the kind, values packed from bit 0 up
"""

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from tests.reference import varint
from tests.reference.model import RefusedError, signed
from tests.reference.varint import unsigned, zigzag

BITS, FRAME, SLOPE, OTHER = range(4)
DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, COLUMN_DICTIONARY = range(6)
WIDEST, WHOLE, WHOLE_CODE = 56, 64, 63  # a width of 57 to 63 bits is stored as 64, whose code is 63
TRIED_VALUES, MOST_VALUES = 16, 255  # values in a dictionary: our encoder's limit, a reader's limit
INT32_MAX = 2**31 - 1
FIELD_BYTES = 256 << 20  # default of kfbench.Limits.field_bytes

# The contents of a column. "codes" are lengths with null as 0. Numbers of headers count as "lengths".
Nature = Literal["ages", "offsets", "lengths", "codes"]


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


def _width_code(width: int) -> int:
    return WHOLE_CODE if width == WHOLE else width


def packed(values: Sequence[int], width: int) -> bytes:
    stream = 0
    for i, value in enumerate(values):
        stream |= value << (i * width)
    return stream.to_bytes(-(-len(values) * width // 8), "little")


def coded_length(content: bytes | None) -> bytes:
    """Return the bytes of a length plus 1, or of 0 for null."""
    return unsigned(0 if content is None else len(content) + 1)


# Columns


def _smallest(candidates: Sequence[bytes]) -> bytes:
    return min(candidates, key=len)  # the first of equally small ones


def _descriptor(kind: int, low: int) -> bytes:
    return struct.pack(">B", kind << 6 | low)


def column(values: Sequence[int], nature: Nature) -> bytes:
    """Return the smallest column for at least two values.

    A column with quotients must save an eighth of the others' size.
    """
    candidates = []
    least = min(values)
    if least >= 0:
        width = _width(values)
        candidates.append(_descriptor(BITS, _width_code(width)) + packed(values, width))
    above = [above_base(value, least) for value in values]
    width = _width(above)
    candidates.append(_descriptor(FRAME, _width_code(width)) + zigzag(least) + packed(above, width))
    if nature in ("lengths", "codes"):
        candidates += _patched(PATCHED, b"", least, above)
        candidates += _dictionary(least, above)
        quick = _smallest(candidates)
        return quick if nature == "codes" else _with_quotients(quick, _rice(RICE, b"", least, above))

    slope = wrapped(values[-1] - values[0]) // (len(values) - 1)
    if len(values) >= 3 and slope:
        levels = [wrapped(value - i * slope) for i, value in enumerate(values)]
        lowest = min(levels)
        over = [above_base(level, lowest) for level in levels]
        width = _width(over)
        front = _descriptor(SLOPE, _width_code(width)) + zigzag(lowest) + zigzag(slope)
        candidates.append(front + packed(over, width))
    steps = _steps(values, nature)
    shortest = min(steps)
    beyond = [above_base(step, shortest) for step in steps]
    width = _width(beyond)
    first = zigzag(values[0])
    front = _descriptor(OTHER, DELTA) + struct.pack(">B", _width_code(width)) + first + zigzag(shortest)
    candidates.append(front + packed(beyond, width))
    candidates += _patched(PATCHED, b"", least, above)
    candidates += _patched(PATCHED_DELTA, first, shortest, beyond)
    coded = _rice(RICE, b"", least, above) + _rice(RICE_DELTA, first, shortest, beyond)
    return _with_quotients(_smallest(candidates), coded)


def _steps(values: Sequence[int], nature: Nature) -> list[int]:
    """Return the difference of each value to the one before. For ages it is negated."""
    rises = [wrapped(after - before) for before, after in pairwise(values)]
    return [wrapped(-rise) for rise in rises] if nature == "ages" else rises


def _patched(form: int, first: bytes, base: int, above: Sequence[int]) -> list[bytes]:
    """Return a list with the smallest column of this patched form, or an empty list if patches are not tried."""
    most = max(above).bit_length()
    mean = sum(above) // len(above)
    if most < (3 if len(above) < 16 else 4) + mean.bit_length() and most + len(above).bit_length() <= 63:
        return []
    widths = range(min(most - 1, WIDEST), -1, -1)
    return [_smallest([patched(form, first, base, above, width) for width in widths])]


def patched(form: int, first: bytes, base: int, above: Sequence[int], width: int) -> bytes:
    """Return a patched column: it stores the low `width` bits of each value.

    Values with higher bits get a patch with these bits.
    """
    low = [value & ((1 << width) - 1) for value in above]
    at = [i for i, value in enumerate(above) if value >> width]
    return (
        _descriptor(OTHER, form)
        + struct.pack(">B", width)
        + first
        + zigzag(base)
        + packed(low, width)
        + unsigned(len(at))
        + packed(at, (len(above) - 1).bit_length())
        + b"".join(unsigned(above[i] >> width) for i in at)
    )


def _with_quotients(quick: bytes, coded: Sequence[bytes]) -> bytes:
    """Return the smallest column. One of `coded` counts only if it is an eighth smaller than `quick`."""
    return _smallest([quick, *(each for each in coded if 8 * len(each) <= 7 * len(quick))])


def _rice(form: int, first: bytes, base: int, above: Sequence[int]) -> list[bytes]:
    """Return a list with the column of this Rice form, or an empty list if it is not tried."""
    most, mean = max(above).bit_length(), (sum(above) // len(above)).bit_length()
    if most < 2 + mean or most + len(above).bit_length() > 63:
        return []
    return [rice(form, first, base, above, min(max(mean - 1, 0), WIDEST))]


def rice(form: int, first: bytes, base: int, above: Sequence[int], width: int) -> bytes:
    """Return a Rice-coded column.

    The low `width` bits of each value are packed. Its higher bits are the quotient, stored in unary code.
    """
    low = [value & ((1 << width) - 1) for value in above]
    front = _descriptor(OTHER, form) + struct.pack(">B", width) + first + zigzag(base)
    return front + packed(low, width) + _quotients([value >> width for value in above])


def _quotients(values: Sequence[int]) -> bytes:
    """Return the quotients in unary code: for each, as many zero bits as its value, then a one bit."""
    stream, bits = 0, 0
    for value in values:
        bits += value + 1
        stream |= 1 << (bits - 1)
    return stream.to_bytes(-(-bits // 8), "little")


def _dictionary(base: int, above: Sequence[int]) -> list[bytes]:
    """Return a list with the dictionary column, or an empty list if it is not tried."""
    distinct = list(dict.fromkeys(above))  # order of first appearance
    if max(above).bit_length() < 4 or not 2 <= len(distinct) <= TRIED_VALUES:
        return []
    return [dictionary(base, distinct, [distinct.index(value) for value in above])]


def dictionary(base: int, distinct: Sequence[int], indexes: Sequence[int]) -> bytes:
    """Return a dictionary column. distinct: its values minus `base`. indexes: index into `distinct` per value."""
    width = _width(distinct)
    front = _descriptor(OTHER, COLUMN_DICTIONARY) + struct.pack(">B", _width_code(width)) + zigzag(base)
    front += struct.pack(">B", len(distinct)) + packed(distinct, width)
    return front + packed(indexes, (len(distinct) - 1).bit_length())


def lengths_column(contents: Sequence[bytes | None], has_nulls: bool) -> bytes:
    """Return the column of at least two lengths.

    With nulls, the column has codes: 0 for null, else the length minus the shortest, plus 1.
    """
    lengths = [len(content) for content in contents if content is not None]
    if not has_nulls:
        return column(lengths, "lengths")
    least = min(lengths, default=0)
    codes = [0 if content is None else len(content) - least + 1 for content in contents]
    return unsigned(least) + column(codes, "codes")


def field_lengths(contents: Sequence[bytes | None]) -> bytes:
    """Return the column of the lengths of keys or values. At least one is not null."""
    if len(contents) > 1:
        return lengths_column(contents, None in contents)
    (content,) = contents
    assert content is not None
    return unsigned(len(content))


def numbers(values: Sequence[int], nature: Literal["ages", "offsets"]) -> bytes:
    return column(values, nature) if len(values) > 1 else zigzag(values[0])


# Reading


class Reader(varint.Reader):
    """A reader of byte strings that can also read columns."""

    def length(self) -> int:
        return checked_length(self.number())

    def nullable_length(self) -> int | None:
        code = self.number()
        return checked_length(code - 1) if code else None

    def packed(self, count: int, width: int) -> list[int]:
        stream = int.from_bytes(self.take(-(-count * width // 8)), "little")
        if stream >> (count * width):
            raise RefusedError("padding")
        return [stream >> (i * width) & ((1 << width) - 1) for i in range(count)]

    def quotients(self, count: int) -> list[int]:
        """Read `count` quotients in unary code, and skip the rest of the last byte."""
        found: list[int] = []
        zeros = 0
        while len(found) < count:
            byte = self.byte()
            for k in range(8):
                if len(found) == count:
                    if byte >> k:
                        raise RefusedError("padding")
                    break
                zeros += 1
                if byte >> k & 1:
                    found.append(zeros - 1)
                    zeros = 0
        return found

    def content(self, length: int | None) -> bytes | None:
        return None if length is None else self.take(length)


def checked_length(value: int) -> int:
    if not 0 <= value <= FIELD_BYTES:
        raise RefusedError(f"length {value}")
    return value


def _read_width(code: int, widest: int = WHOLE) -> int:
    width = WHOLE if code == WHOLE_CODE else code
    if WIDEST < code != WHOLE_CODE or width > widest:
        raise RefusedError(f"width code {code}")
    return width


def read_column(reader: Reader, count: int, nature: Nature) -> list[int]:
    """Read a column of `count` values (at least two) as int64s."""
    descriptor = reader.byte()
    kind, low = descriptor >> 6, descriptor & 63
    if kind == BITS:
        return [wrapped(bits) for bits in reader.packed(count, _read_width(low))]
    if kind == FRAME:
        width, base = _read_width(low), reader.zigzag()
        return [wrapped(base + bits) for bits in reader.packed(count, width)]
    if kind == SLOPE:
        width, base, slope = _read_width(low), reader.zigzag(), reader.zigzag()
        return [wrapped(base + i * slope + bits) for i, bits in enumerate(reader.packed(count, width))]
    if low > COLUMN_DICTIONARY:
        raise RefusedError(f"column {descriptor:#04x}")
    width = _read_width(reader.byte(), WHOLE if low in (DELTA, COLUMN_DICTIONARY) else WIDEST)
    first = reader.zigzag() if low in (DELTA, PATCHED_DELTA, RICE_DELTA) else None
    base = reader.zigzag()
    if low == COLUMN_DICTIONARY:
        return [wrapped(base + value) for value in _read_dictionary(reader, count, width)]
    number = count if first is None else count - 1
    if low == DELTA:
        above = reader.packed(number, width)
    elif low in (PATCHED, PATCHED_DELTA):
        above = _read_patched(reader, number, width)
    else:
        above = [
            bits + (q << width) for bits, q in zip(reader.packed(number, width), reader.quotients(number), strict=True)
        ]
    if first is None:
        return [wrapped(base + value) for value in above]
    values, sign = [first], -1 if nature == "ages" else 1
    for value in above:
        values.append(wrapped(values[-1] + sign * (base + value)))
    return values


def _read_patched(reader: Reader, count: int, width: int) -> list[int]:
    values = reader.packed(count, width)
    patches = reader.number()
    if not 1 <= patches <= count:
        raise RefusedError(f"{patches} patches of {count} values")
    positions = reader.packed(patches, (count - 1).bit_length())
    if any(after <= before for before, after in pairwise(positions)) or positions[-1] >= count:
        raise RefusedError("positions of patches")
    for position in positions:
        high = reader.number(64)
        if not 1 <= high < 1 << (64 - width):
            raise RefusedError(f"patch {high}")
        values[position] |= high << width
    return values


def _read_dictionary(reader: Reader, count: int, width: int) -> list[int]:
    number = reader.byte()
    if not 2 <= number <= MOST_VALUES:
        raise RefusedError(f"dictionary of {number}")
    distinct = reader.packed(number, width)
    return [distinct[index] for index in read_indexes(reader, count, number)]


def read_indexes(reader: Reader, count: int, number: int) -> list[int]:
    """Read `count` indexes into a dictionary with `number` values."""
    indexes = reader.packed(count, (number - 1).bit_length())
    if max(indexes) >= number:
        raise RefusedError(f"index {max(indexes)} of {number}")
    return indexes


def read_lengths(reader: Reader, count: int, has_nulls: bool) -> list[int | None]:
    if not has_nulls:
        return [checked_length(value) for value in read_column(reader, count, "lengths")]
    least = reader.number()
    if least > INT32_MAX:
        raise RefusedError(f"minimum {least}")
    codes = read_column(reader, count, "codes")
    if min(codes) < 0:
        raise RefusedError(f"code {min(codes)}")
    return [checked_length(code - 1 + least) if code else None for code in codes]
