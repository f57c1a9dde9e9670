"""Read timestamps and partition numbers from table columns, as int64.

A time may be a number, an Arrow timestamp, a date or text. Text is a number, or ISO 8601, where no zone means UTC. The
same value means the same in every type of column. A number does not tell its unit: `whatif.record_times` finds it.
"""

from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.errors import InvalidConfig, InvalidRecords
from kfbench.layouts import NO_TIMESTAMP
from kfbench.sources.arrow_text import Array, is_text, join_parts

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Final[dict[Unit, int]] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # per second

# RFC 3339, ISO 8601 with or without separators, and as Java, Go, Python, Ruby and databases print times.
ISO_8601: Final = (
    r"^\s*(?P<year>\d{4})(?:-(?P<month>\d{2})-(?P<day>\d{2})|(?P<month_day>\d{4}))"
    r"(?:[Tt ]\s*(?P<hour>\d{2})(?::?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?)?"
    r" ?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?(?: ?(?:UTC|GMT))?(?:\[[^\]]*\])?)?\s*$"
)
DIGITS: Final = r"(?:\d{1,18}|[1-8]\d{18})"  # that fit int64
INTEGER: Final = f"^-?{DIGITS}$"
NUMBER: Final = rf"^\s*\+?(?P<whole>-?{DIGITS})(?:\.(?P<fraction>\d*))?\s*$"
WITH_EXPONENT: Final = r"^\s*\+?(?P<number>-?\d+(?:\.\d*)?[eE][+-]?\d+)\s*$"
LAST_MS: Final = np.iinfo(np.int64).max // 2  # the sum of this and a producer's linger time must fit int64
LARGEST_FLOAT: Final = 2.0**62
# A number with a fraction is in seconds if it is in this range: 1973 to 5138. Larger ones are rounded down.
FIRST_S, END_S = 10**8, 10**11


class Integers(NamedTuple):
    """One integer per row: values int64[n]. is_bad bool[n]: True if the cell has no integer; its value is then -1."""

    values: Int64
    is_bad: NDArray[np.bool_]


class ColumnTimes(NamedTuple):
    """One time per row: values int64[n], since 1970.

    is_bad: bool[n], True if the cell has no time, or one before 1970. is_ms: bool[n], True if the value is in ms;
    False: it is the number of the cell, in an unknown unit.
    """

    values: Int64
    is_bad: NDArray[np.bool_]
    is_ms: NDArray[np.bool_]


class _Numbers(NamedTuple):
    """One number per row, rounded down: values int64[n]. is_bad: bool[n], True if the cell has no number.

    thousandths: int64[n], the digits after the point. is_whole: bool[n].
    """

    values: Int64
    is_bad: NDArray[np.bool_]
    thousandths: Int64
    is_whole: NDArray[np.bool_]

    @classmethod
    def whole(cls, values: Int64, is_bad: NDArray[np.bool_]) -> "_Numbers":
        return cls(values, is_bad, np.zeros(len(values), np.int64), np.ones(len(values), np.bool_))

    def put(self, rows: Int64, other: "_Numbers") -> "_Numbers":
        """Return the numbers with those of `other` in these rows, int64[n]."""
        columns: list[Any] = [column.copy() for column in self]
        for column, others in zip(columns, other, strict=True):
            column[rows] = others
        return _Numbers(*columns)


def check_unit(unit: str | None) -> None:
    """Raise InvalidConfig if `unit` is no unit of timestamps. None is accepted."""
    if unit is not None and unit not in UNITS:
        raise InvalidConfig(f"timestamp_unit: {unit!r} is not one of {', '.join(UNITS)}")


def to_ms(times: Int64, unit: Unit) -> Int64:
    """Convert times to ms, rounded down. NO_TIMESTAMP stays. What is too large for int64 becomes about LAST_MS."""
    if unit == "ms":
        return times
    if unit == "s":
        most = LAST_MS // 1000
        return np.where(times == NO_TIMESTAMP, NO_TIMESTAMP, 1000 * np.clip(times, -most, most))
    return times // (UNITS[unit] // 1000)


def times_of(array: Array, column: str) -> ColumnTimes:
    """Return one timestamp per row.

    column: the column's name for messages. Raises InvalidRecords for a type of column that cannot have times.
    """
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        array = array.cast(pa.timestamp("ms")) if pa.types.is_date(kind) else array
        times = array.cast(pa.int64()).fill_null(NO_TIMESTAMP).to_numpy(zero_copy_only=False)
        known = np.ones(len(times), np.bool_)
        found = ColumnTimes(to_ms(times, array.type.unit), ~known, known)
    else:
        values, is_bad, thousandths, is_whole = _numbers_of(array, column)
        is_seconds = ~is_bad & ~is_whole & (values >= FIRST_S) & (values < END_S)
        is_bad = is_bad | (~is_whole & (values < FIRST_S))
        found = ColumnTimes(np.where(is_seconds, 1000 * values + thousandths, values), is_bad, is_seconds)
        if is_text(kind):
            found = _with_iso_8601(array.cast(pa.large_binary()), found)
    return found._replace(is_bad=found.is_bad | (found.values < 0) | (found.values > LAST_MS))


def integers_of(array: Array, column: str) -> Integers:
    """Return one integer per row. Whole floats are accepted, because a null turns a column of integers into floats.

    column: the column's name for messages. Raises InvalidRecords for a type of column that cannot have integers.
    """
    numbers = _numbers_of(array, column)
    is_bad = numbers.is_bad | ~numbers.is_whole
    return Integers(np.where(is_bad, -1, numbers.values), is_bad)


def _numbers_of(array: Array, column: str) -> _Numbers:
    kind = array.type
    if pa.types.is_null(kind):
        array = array.cast(pa.int64())
    elif is_text(kind) or pa.types.is_decimal(kind):
        return _numbers_of_texts(array.cast(pa.large_string() if pa.types.is_decimal(kind) else pa.large_binary()))
    elif pa.types.is_floating(kind):
        return _numbers_of_floats(array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
    elif pa.types.is_uint64(kind):
        array = pc.if_else(pc.less(array, pa.scalar(2**63, pa.uint64())), array, None)
    elif not pa.types.is_integer(kind):
        raise InvalidRecords(f"{column}: numbers, text or times are wanted, not {kind}")
    bad = array.is_null().to_numpy(zero_copy_only=False)
    return _Numbers.whole(array.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), bad)


def _numbers_of_floats(numbers: NDArray[np.float64]) -> _Numbers:
    is_bad = ~(np.abs(numbers) < LARGEST_FLOAT)
    numbers = np.where(is_bad, -1.0, numbers)
    whole = np.floor(numbers)
    # A float of seconds is exact to a microsecond, but its thousandths are not.
    thousandths = np.rint((numbers - whole) * 1e6) // 1000
    return _Numbers(whole.astype(np.int64), is_bad, thousandths.astype(np.int64), numbers == whole)


def _numbers_of_texts(texts: Array) -> _Numbers:
    integers = pc.if_else(pc.match_substring_regex(texts, INTEGER), texts, None).cast(pa.large_string())
    bad = integers.is_null().to_numpy(zero_copy_only=False)
    found = _Numbers.whole(integers.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), bad)
    left, parts = _match(texts, np.flatnonzero(bad), NUMBER)
    if len(left):
        fraction = parts["fraction"]
        whole = parts["whole"].cast(pa.int64()).to_numpy(zero_copy_only=False)
        thousandths = pc.utf8_slice_codeunits(join_parts(fraction, "000"), 0, 3).cast(pa.int64())
        is_whole = pc.match_substring_regex(fraction, "^0*$").to_numpy(zero_copy_only=False)
        numbers = _Numbers(whole, np.zeros(len(left), np.bool_), thousandths.to_numpy(zero_copy_only=False), is_whole)
        found = found.put(left, numbers)
    left, parts = _match(texts, np.flatnonzero(found.is_bad), WITH_EXPONENT)
    if len(left):
        floats = parts["number"].cast(pa.float64()).to_numpy(zero_copy_only=False)
        found = found.put(left, _numbers_of_floats(floats))
    return found


def _match(texts: Array, rows: Int64, pattern: str) -> tuple[Int64, dict[str, Array]]:
    """Return those of the rows that match a pattern, int64[n], and the text of each named group, large_string[n]."""
    if not len(rows):
        return rows, {}
    found = pc.extract_regex(texts.take(rows), pattern)
    is_match = found.is_valid().to_numpy(zero_copy_only=False)
    found = found.filter(found.is_valid())
    return rows[is_match], {each.name: found.field(each.name).cast(pa.large_string()) for each in found.type}


def _with_iso_8601(texts: Array, found: ColumnTimes) -> ColumnTimes:
    """Return the times with those of the cells that are ISO 8601."""
    left, parts = _match(texts, np.flatnonzero(found.is_bad), ISO_8601)
    if not len(left):
        return found
    month_day = parts["month_day"]
    month = join_parts(parts["month"], pc.utf8_slice_codeunits(month_day, 0, 2))
    day = join_parts(parts["day"], pc.utf8_slice_codeunits(month_day, 2, 4))
    hour, minute, second = (pc.if_else(pc.equal(parts[n], ""), "00", parts[n]) for n in ("hour", "minute", "second"))
    fraction = pc.utf8_slice_codeunits(join_parts(parts["fraction"], "000"), 0, 3)
    zone = pc.if_else(pc.match_substring_regex(parts["zone"], "^[+-]"), parts["zone"], "Z")
    texts = join_parts(parts["year"], "-", month, "-", day, "T", hour, ":", minute, ":", second, ".", fraction, zone)
    times, is_bad = _parse_iso_8601(texts)
    values, bad, is_ms = found.values.copy(), found.is_bad.copy(), found.is_ms.copy()
    values[left], bad[left], is_ms[left] = times, is_bad, True
    return ColumnTimes(values, bad, is_ms)


def _parse_iso_8601(texts: Array) -> Integers:
    """Convert ISO 8601 texts with zones to milliseconds since 1970.

    Arrow refuses all texts if one of them is invalid. So the texts are halved until the invalid one is found.
    """
    try:
        times = texts.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        return Integers(times.to_numpy(zero_copy_only=False), np.zeros(len(texts), np.bool_))
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return Integers(np.full(1, -1, np.int64), np.ones(1, np.bool_))
    half = len(texts) // 2
    before, after = _parse_iso_8601(texts[:half]), _parse_iso_8601(texts[half:])
    return Integers(*(np.concatenate(halves) for halves in zip(before, after, strict=True)))
