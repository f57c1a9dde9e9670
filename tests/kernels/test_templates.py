"""Template kernels write text with random placeholders. It equals the same text made in plain Python."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

from kfbench.arrays import Int32, Int64
from kfbench.kernels.workload import templates
from kfbench.workloads.payload.parser import channel_of
from kfbench.workloads.payload.template import Template
from tests.kernels.splitmix64 import mixed, stream_of, word
from tests.templates import cases

SEED, PURPOSE = 11, 4


def written(text: str, numbers: list[int], times_ms: list[int] | None = None) -> list[bytes]:
    template, given = Template.parse(text), np.array(numbers, np.int64)
    times = None if times_ms is None else np.array(times_ms, np.int64)
    data, starts = template.fill(SEED, PURPOSE, given, timestamps_ms=times)
    return [part.tobytes() for part in np.split(data, starts[1:])]


def scaled(drawn: int, span: int) -> int:
    return (drawn >> 32) * span >> 32


def letters(state: int, count: int, alphabet: bytes) -> bytes:
    """Return `count` characters. Each is chosen from `alphabet` by 16 random bits."""
    draws = (word(state, k // 4) >> 16 * (k % 4) & 0xFFFF for k in range(count))
    return bytes(alphabet[drawn * len(alphabet) >> 16] for drawn in draws)


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


@pytest.mark.parametrize("number", [0, 1, 65_536, 2**62])
def test_draws_in_plain_integers(number: int) -> None:
    """A placeholder (slot) draws from the random word of its record, run of records, or key.

    The word is mixed with the slot's own channel.
    """
    record, key = word(stream_of(SEED, PURPOSE), number), word(stream_of(SEED, templates.KEYS_PURPOSE), number)
    run = word(stream_of(SEED, PURPOSE), number // 5)
    text = "<7x>;<$k key:5d>;<$e every 5:int 10..99>;<int 0..9223372036854>;<$ even:a|b|c|d>;<id 3>"
    sevens, keyed, ranged, wide, one = (
        state ^ channel_of(f"{slot} 0 0")
        for slot, state in (("1", record), ("$k", key), ("$e", run), ("4", record), ("5", record))
    )
    expected = [
        letters(sevens, 7, b"0123456789abcdef"),
        letters(keyed, 5, b"0123456789"),
        b"%d" % (10 + scaled(mixed(ranged), 90)),
        b"%d" % (mixed(wide) % 9_223_372_036_855),
        b"abcd"[(mixed(one) >> 56) // 64 :][:1],
        b"%03d" % ((number % 1000 * 618_033_989 + stream_of(SEED, templates.KEYS_PURPOSE) % 1000) % 1000),
    ]
    assert written(text, [number]) == [b";".join(expected)]


@pytest.mark.parametrize("of", [1, 2, 3, 7, 100, 2**31])
def test_choosing_among_few(of: int) -> None:
    octaves = of.bit_length()
    for number in range(20):
        record, stream = word(stream_of(SEED, PURPOSE), number), stream_of(SEED, PURPOSE)
        drawn = mixed(record ^ channel_of("$n"))
        chosen = 2 ** scaled(drawn, octaves) - 1
        chosen = (chosen + (drawn & chosen)) % of
        state = word(stream, chosen) ^ channel_of("$n 0 0")
        assert written(f"<$n of {of}:9w>", [number])[0] == letters(
            state, 9, b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        )


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
