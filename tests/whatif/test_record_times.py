"""Histograms of timestamps do not depend on how the log is cut.

A few wrong timestamps do not widen the bins of the others.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.layouts import DAY_MS
from kfbench.whatif.record_times import MOST_BINS, Times, moment

NOW_MS = 1_700_000_000_000


@given(st.lists(st.integers(0, 2**31), min_size=2, max_size=5), st.sampled_from([1 << 12, 1 << 24, 1 << 41]))
def test_sums_do_not_depend_on_the_order(seeds: list[int], most_ms: int) -> None:
    pieces = [np.random.default_rng(seed).integers(-2, most_ms, 1 + seed % 700) for seed in seeds]
    each, sums = [Times.of(piece) for piece in pieces], Times()
    for times in each:
        sums = sums.plus(times)
    backwards = Times()
    for times in reversed(each):
        backwards = times.plus(backwards)
    whole = Times.of(np.concatenate(pieces))
    assert sums == backwards == whole and len(whole.bins) <= MOST_BINS


@pytest.mark.parametrize("wrong_ms", [0, 1_700_000_000, 3_976_000_000_000, 2**62, -(2**40)])
@pytest.mark.parametrize("records", [10, 20_000])
def test_a_wrong_time_does_not_stretch_the_bulk(wrong_ms: int, records: int) -> None:
    times = NOW_MS + np.arange(records) * (DAY_MS // records)
    times[records // 2] = wrong_ms
    bulk = Times.of(times).bulk()
    assert bulk is not None
    records_per_day = bulk.share * records * DAY_MS / (bulk.last_ms - bulk.first_ms)
    assert records_per_day == pytest.approx(records, rel=0.02 if records > 10 else 0.2)
    assert Times.of(times).strange == (wrong_ms <= 0 or wrong_ms > 2**42)


def test_records_without_a_time_are_not_counted() -> None:
    times = Times.of(np.array([-1, -1, 5]))
    assert (times.strange, times.bulk()) == (0, (5, 5, 1.0))
    assert Times.of(np.array([-1, 0, -7])) == Times(strange=2) and Times(strange=2).bulk() is None


def test_a_moment_in_words() -> None:
    assert moment(1_700_000_000_999) == "2023-11-14 22:13:20"
    assert (moment(-5), moment(2**62)) == ("-5 ms", f"{2**62} ms")
