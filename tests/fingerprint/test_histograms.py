"""The histograms of a fingerprint: right, without buckets of few members, and close for similar logs."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kfbench import BatchFields, Records
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.histograms import (
    HISTOGRAMS,
    Counts,
    codes_of,
    count_values,
    least_of,
    merged_histograms,
)
from kfbench.fingerprint.measure import fingerprint
from kfbench.sources import Chunk
from tests.recorded import FOLDER

NOW_MS = 1_712_345_678_901
BOUND = 3  # docs/fingerprint.md states it
Rows = list[tuple[int, int, int]]


def counted(records: Records, per_batch: int | Sequence[int] = 10) -> Counts:
    n = len(records)
    bounds = np.append(np.arange(0, n, per_batch), n) if isinstance(per_batch, int) else np.array(per_batch)
    chunk = Chunk(records=records, size_bytes=1, bounds=bounds, fields=BatchFields())
    return count_values(SimpleNamespace(chunks=lambda: iter([chunk])))


def rows(counts: Counts, k: int = 10) -> dict[str, Rows]:
    found = merged_histograms(counts, k)
    return {name: [(each.least, each.most, each.members) for each in buckets] for name, buckets in found.items()}


@given(st.integers(-(2**62), 2**62))
@example(2**49)
@example(0)
def test_a_bucket_contains_its_numbers(number: int) -> None:
    number = int(float(number))  # beyond 2**53, buckets are those of the rounded number
    code = int(codes_of(np.array([number]))[0])
    least, most = least_of(code), least_of(code + 1) - 1
    assert least <= number <= most
    assert (most - least) * 8 <= max(abs(least), abs(most))


def test_the_numbers_are_those_of_the_records() -> None:
    n = 1_000
    records = Records.from_lists(
        [None if i % 4 == 0 else b"v" * (100 + i % 2) for i in range(n)],
        [b"key-%03d" % (i // 2 % 100) for i in range(n)],
        NOW_MS + np.cumsum(np.arange(n) % 10 == 0) * 50,
        [[("name", b"x" * 8), ("trace", None)] for _ in range(n)],
    )
    assert rows(counted(records)) == {
        "record_bytes": [(24, 25, 250), (120, 127, 750)],
        "key_bytes": [(7, 7, 1_000)],
        "value_bytes": [(-1, -1, 250), (96, 103, 750)],
        "headers": [(2, 2, 1_000)],
        "header_bytes": [(16, 17, 1_000)],
        "records_per_batch": [(10, 10, 100)],
        "time_steps_ms": [(0, 0, 900), (48, 51, 99)],
    }


@given(st.dictionaries(st.integers(-30, 200), st.integers(1, 30), max_size=30), st.integers(2, 40))
def test_merging_keeps_all_members_and_their_order(members: dict[int, int], k: int) -> None:
    found = rows(Counter({("headers", code): n for code, n in members.items()}), k)["headers"]
    total = sum(members.values())
    assert sum(n for *_, n in found) == (total if total >= k else 0)
    assert all(n >= k for *_, n in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))
    if not any(n < k for n in members.values()):
        assert found == [(least_of(code), least_of(code + 1) - 1, members[code]) for code in sorted(members)]


@pytest.mark.parametrize("k", [-1, 0, 1, 10**9])
def test_other_least_members_are_refused(k: int) -> None:
    with pytest.raises(InvalidConfig, match=r"least_members: .* is not 2 to 1,000,000"):
        fingerprint(FOLDER / "activity-none.log", least_members=k)


# Each message is a key, a value, headers, and a step of time.
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from([None, b"", b"a", b"bb", b"key-7"]),
        st.sampled_from([None, b"", b"v" * 9, b"w" * 200]),
        st.sampled_from([(), (("h", b"1"),), (("h", None), ("trace", b"x" * 30))]),
        st.sampled_from([0, 1, -5, 7_000, 10**9]),
    ),
    min_size=2, max_size=40,
)  # fmt: skip


def counts_of(messages: Sequence[tuple[Any, ...]], times: Any, batch_of: Any) -> Counts:
    keys, values, headers, _ = zip(*messages, strict=True)
    bounds = np.append(np.flatnonzero(np.diff(batch_of, prepend=-1)), len(messages))
    return counted(Records.from_lists(values, keys, times, headers), bounds.tolist())


@settings(max_examples=100)
@given(MESSAGES, st.data())
def test_one_record_changes_few_counts(messages: list[tuple[Any, ...]], data: st.DataObject) -> None:
    """Leave out one record. Before buckets are merged, counts of each histogram differ by the stated bound."""
    n = len(messages)
    times = NOW_MS + np.cumsum([each[3] for each in messages])
    batch_of = np.sort(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    kept = np.delete(np.arange(n), data.draw(st.integers(0, n - 1)))
    whole = counts_of(messages, times, batch_of)
    without = counts_of([messages[i] for i in kept], times[kept], batch_of[kept])
    for name in HISTOGRAMS:
        keys = {key for key in whole.keys() | without.keys() if key[0] == name}
        assert sum(abs(whole[key] - without[key]) for key in keys) <= BOUND, name


def test_a_date_is_no_step_of_time() -> None:
    """Many records at 1970 between those of today do not tell today's date."""
    times = np.where(np.arange(400) % 2, NOW_MS + np.arange(400), 3)
    assert not rows(counted(Records.from_lists([b"x"] * 400, timestamps_ms=times)))["time_steps_ms"]
