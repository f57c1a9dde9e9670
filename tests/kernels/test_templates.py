"""Templates write numbers and times as Python does, and each record where it belongs."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from kfbench.arrays import Int32, Int64
from kfbench.workloads.payload.template import Template
from tests.templates import cases

SEED, PURPOSE = 11, 4


def written(text: str, numbers: list[int], times_ms: list[int] | None = None) -> list[bytes]:
    template, given = Template.parse(text), np.array(numbers, np.int64)
    times = None if times_ms is None else np.array(times_ms, np.int64)
    data, starts = template.fill(SEED, PURPOSE, given, timestamps_ms=times)
    return [part.tobytes() for part in np.split(data, starts[1:])]


def test_every_width_of_a_number() -> None:
    ends = [10**k + step for k in range(19) for step in (-1, 0, 1)]
    numbers = [0, *ends, 2**62, 2**63 - 1, *(-end for end in ends), -(2**63) + 1]
    assert written("<count 0>", numbers) == [b"%d" % number for number in numbers]
    assert Template.parse("<count 0>").natural(SEED, PURPOSE, np.array(numbers)).tolist() == [
        len(str(number)) for number in numbers
    ]


def days() -> Iterator[date]:
    """Yield days around the ends of months, leap years and centuries, and every 997th day."""
    for year in (1970, 1972, 1999, 2000, 2001, 2024, 2026, 2096, 2099, 2100, 2101, 2200, 2286):
        for month, day in ((1, 1), (2, 28), (3, 1), (10, 31)):
            yield date(year, month, day)
            yield date(year, month, day) + timedelta(days=1)
    for number in range(0, 115_000, 997):
        yield date(1970, 1, 1) + timedelta(days=number)


def test_every_kind_of_day() -> None:
    at = [datetime(day.year, day.month, day.day, 23, 59, 59, 7_000, tzinfo=UTC) for day in days()]
    ms = [int(time.timestamp()) * 1000 + 7 for time in at]
    records = written("<time iso>|<time clf>", list(range(len(ms))), ms)
    assert [record.decode() for record in records] == [
        f"{time:%Y-%m-%dT%H:%M:%S}.007Z|{time:%d/%b/%Y:%H:%M:%S +0000}" for time in at
    ]


@pytest.mark.parametrize(
    ("template", "numbers", "lengths", "keys"), [case[1:] for case in cases()], ids=[case[0] for case in cases()]
)
def test_a_record_has_its_length_and_ends_before_the_next(
    template: Template, numbers: Int64, lengths: Int32 | None, keys: Int64
) -> None:
    """One call writes all records, and may write past the end of each before it writes the next.

    The result equals records written one by one.
    """
    data, starts = template.fill(SEED, PURPOSE, numbers, lengths, keys=keys)
    if lengths is None:
        lengths = template.natural(SEED, PURPOSE, numbers, keys=keys)
    for i in range(0, len(numbers), 4):
        alone, _ = template.fill(SEED, PURPOSE, numbers[i : i + 1], lengths[i : i + 1], keys=keys[i : i + 1])
        length = max(int(lengths[i]), 0)
        assert data[starts[i] : starts[i] + length].tobytes() == alone[:length].tobytes()
        assert len(alone[:length]) == length
