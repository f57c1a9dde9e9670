"""Histograms of timestamps, and the rate of a log by them. Wrong times and cuts of the log change neither."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.layouts import DAY_MS
from kfbench.whatif.rate import rate_of
from kfbench.whatif.record_times import MOST_BINS, TimeHistogram, moment
from kfbench.whatif.sums import StoredSource

NOW_MS = 1_700_000_000_000


@given(st.lists(st.integers(0, 2**31), min_size=2, max_size=5), st.sampled_from([1 << 12, 1 << 24, 1 << 41]))
def test_sums_do_not_depend_on_the_order(seeds: list[int], most_ms: int) -> None:
    pieces = [np.random.default_rng(seed).integers(-2, most_ms, 1 + seed % 700) for seed in seeds]
    each, sums = [TimeHistogram.of(piece) for piece in pieces], TimeHistogram()
    for times in each:
        sums = sums.plus(times)
    backwards = TimeHistogram()
    for times in reversed(each):
        backwards = times.plus(backwards)
    whole = TimeHistogram.of(np.concatenate(pieces))
    assert sums == backwards == whole and len(whole.bins) <= MOST_BINS


@pytest.mark.parametrize("wrong_ms", [0, 1_700_000_000, 3_976_000_000_000, 2**62, -(2**40)])
@pytest.mark.parametrize("records", [10, 20_000])
def test_a_wrong_time_does_not_stretch_the_bulk(wrong_ms: int, records: int) -> None:
    times = NOW_MS + np.arange(records) * (DAY_MS // records)
    times[records // 2] = wrong_ms
    bulk = TimeHistogram.of(times).bulk()
    assert bulk is not None
    records_per_day = bulk.share * records * DAY_MS / (bulk.last_ms - bulk.first_ms)
    assert records_per_day == pytest.approx(records, rel=0.02 if records > 10 else 0.2)
    assert TimeHistogram.of(times).strange == (wrong_ms <= 0 or wrong_ms > 2**42)


def test_records_without_a_time_are_not_counted() -> None:
    times = TimeHistogram.of(np.array([-1, -1, 5]))
    assert (times.strange, times.bulk()) == (0, (5, 5, 1.0))
    assert (
        TimeHistogram.of(np.array([-1, 0, -7])) == TimeHistogram(strange=2) and TimeHistogram(strange=2).bulk() is None
    )


def test_a_moment_in_words() -> None:
    assert moment(1_700_000_000_999) == "2023-11-14 22:13:20"
    assert (moment(-5), moment(2**62)) == ("-5 ms", f"{2**62} ms")


def source(topic: str, size_bytes: int, first_ms: int, last_ms: int) -> StoredSource:
    return StoredSource(
        path=f"{topic}/{first_ms}", topic=topic, partition=0, sound_bytes=size_bytes, records=1, first_ms=first_ms,
        last_ms=last_ms, kinds={"v2 none": 1},
    )  # fmt: skip


def times_of(times_ms: Sequence[int]) -> TimeHistogram:
    return TimeHistogram.of(np.array(times_ms, np.int64))


def test_the_rate_is_derived_from_first_and_last_records() -> None:
    a = [source("a", 600, 1, DAY_MS), source("a", 400, DAY_MS, 2 * DAY_MS + 1)]
    b = [source("b", 1_000, 5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2)]
    moment = [source("c", 77, 1, 60_000), source("d", 5, -1, -1)]
    times = {
        "a": times_of([1, DAY_MS]).plus(times_of([2 * DAY_MS + 1])),
        "b": times_of([5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2]),
        "c": times_of([1, 60_000]),
        "d": TimeHistogram(),
    }
    found = rate_of([*a, *b, *moment], times)
    assert found is not None
    assert (found.bytes_a_day, found.untold_bytes, found.told_by) == (500 + 2_000, 77, "timestamps")
    assert [(each.name, each.first_ms, each.last_ms) for each in found.streams] == [
        ("b", 5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2), ("a", 1, 2 * DAY_MS + 1)
    ]  # fmt: skip
    assert rate_of(moment, times) is None


@pytest.mark.parametrize("wrong_ms", [0, 1_700_000_000, 3_976_000_000_000])
def test_one_wrong_time_leaves_the_rate(wrong_ms: int) -> None:
    times = [NOW_MS + i * DAY_MS // 1_000 for i in range(1_000)]
    sound = rate_of([source("a", 10**9, times[0], times[-1])], {"a": times_of(times)})
    times[7] = wrong_ms
    found = rate_of([source("a", 10**9, min(times), max(times))], {"a": times_of(times)})
    assert found is not None and sound is not None
    assert found.bytes_a_day == pytest.approx(sound.bytes_a_day, rel=0.01)
    [stream] = found.streams
    assert (stream.first_ms, stream.last_ms, stream.strange) == (min(times), max(times), wrong_ms == 0)
    assert NOW_MS <= stream.bulk_first_ms < stream.bulk_last_ms <= NOW_MS + DAY_MS


def test_the_rate_of_a_table_counts_plain_v2() -> None:
    table = replace(source("a", 300, 1, DAY_MS + 1), plain_bytes=1_000, kinds={})
    found = rate_of([table], {"a": times_of([1, DAY_MS + 1])})
    assert found is not None and found.bytes_a_day == 1_000
