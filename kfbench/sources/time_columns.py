"""Read timestamps and partition numbers from table columns, as int64.

Timestamps may be integers in ms, Arrow timestamps, dates or text. Text is an integer in ms, or ISO 8601, where no zone
means UTC.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.errors import InvalidRecords
from kfbench.sources.arrow_text import Array, is_text, join_parts

ISO_8601: Final = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,](?P<fraction>\d{1,9}))?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?$"
)
INTEGER: Final = r"^-?\d{1,18}$"
LAST_MS: Final = np.iinfo(np.int64).max // 2  # the sum of this and a producer's linger time must fit int64


class Integers(NamedTuple):
    """One integer per row: values int64[n]. is_bad bool[n]: True if the cell has no integer; its value is then -1."""

    values: Int64
    is_bad: NDArray[np.bool_]


def times_of(array: Array, column: str) -> Integers:
    """Return one timestamp per row, in ms since 1970.

    A cell is bad if it has no time, or a time before 1970. column: the column's name for messages. Raises
    InvalidRecords for a type of column that cannot have times.
    """
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        whole = array.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
        times_ms, bad = whole.fill_null(-1).to_numpy(zero_copy_only=False), np.zeros(len(array), np.bool_)
    elif is_text(kind):
        times_ms, bad = _parse_texts(array.cast(pa.large_binary()))
    else:
        times_ms, bad = integers_of(array, column)
    return Integers(times_ms, bad | (times_ms < 0) | (times_ms > LAST_MS))


def integers_of(array: Array, column: str) -> Integers:
    """Return one integer per row. Whole floats are accepted, because a null turns a column of integers into floats.

    column: the column's name for messages. Raises InvalidRecords for a type of column that cannot have integers.
    """
    kind = array.type
    if pa.types.is_null(kind):
        array = array.cast(pa.int64())
    elif is_text(kind):
        array = array.cast(pa.large_binary())
        array = pc.if_else(pc.match_substring_regex(array, INTEGER), array, None).cast(pa.large_string())
    elif pa.types.is_floating(kind):
        numbers = array.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
        array = pc.if_else(whole, numbers, None)
    elif pa.types.is_uint64(kind):
        array = pc.if_else(pc.less(array, pa.scalar(2**63, pa.uint64())), array, None)
    elif not pa.types.is_integer(kind):
        raise InvalidRecords(f"{column}: integers, text or times are wanted, not {kind}")
    bad = array.is_null().to_numpy(zero_copy_only=False)
    return Integers(array.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), bad)


def _parse_texts(array: Array) -> Integers:
    times_ms, bad = integers_of(array, "")
    left = np.flatnonzero(bad)
    if not len(left):
        return Integers(times_ms, bad)
    found = pc.extract_regex(array.take(left), ISO_8601)
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    left, found = left[matched], found.filter(found.is_valid())
    if not len(left):
        return Integers(times_ms, bad)
    day, time, fraction, zone = (
        found.field(name).cast(pa.large_string()) for name in ("day", "time", "fraction", "zone")
    )
    time = pc.if_else(pc.equal(time, ""), "00:00", time)
    seconds, is_bad = _seconds(join_parts(day, "T", time))
    milliseconds = pc.utf8_slice_codeunits(join_parts(fraction, "000"), 0, 3).cast(pa.int64())
    digits = pc.replace_substring_regex(zone, "[^0-9]", "")
    digits = pc.utf8_slice_codeunits(join_parts(digits, "0000"), 0, 4)
    hours, minutes = (pc.utf8_slice_codeunits(digits, at, at + 2).cast(pa.int64()).to_numpy() for at in (0, 2))
    is_behind_utc = pc.starts_with(zone, "-").to_numpy(zero_copy_only=False)
    offset_s = np.where(is_behind_utc, -1, 1) * (3600 * hours + 60 * minutes)
    is_bad |= (hours >= 24) | (minutes >= 60)
    times_ms, bad = times_ms.copy(), bad.copy()
    times_ms[left] = np.where(is_bad, -1, 1000 * (seconds - offset_s) + milliseconds.to_numpy())
    bad[left] = is_bad
    return Integers(times_ms, bad)


def _seconds(texts: Array) -> Integers:
    """Convert ISO 8601 texts to seconds since 1970.

    Arrow refuses all texts if one of them is invalid. So the texts are halved until the invalid one is found.
    """
    try:
        seconds = texts.cast(pa.timestamp("s")).cast(pa.int64())
        return Integers(seconds.to_numpy(zero_copy_only=False), np.zeros(len(texts), np.bool_))
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return Integers(np.full(1, -1, np.int64), np.ones(1, np.bool_))
    half = len(texts) // 2
    before, after = _seconds(texts[:half]), _seconds(texts[half:])
    return Integers(*(np.concatenate(halves) for halves in zip(before, after, strict=True)))
