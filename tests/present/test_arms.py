"""Stored rows of several seeds and blocks are joined to one row per arm, and ratios of arms know what a tie is."""

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from kfbench.measure.cpu import Interval
from kfbench.present.arms import arms_of, middle_95, one_per_arm, ties, time_ratio, work_words
from kfbench.present.table import Band
from tests.present.made import Row, built, cells, counted, failed, rows_of, timed

SIZES = [
    counted(name, size, field_bytes=json.dumps({"offset": size})) for name, size in {"v2": 2000, "v3": 1900}.items()
]
TIMES = [timed(name, ns) for name, ns in {"v2": [100, 110, 120], "v3": [150, 110, 240]}.items()]


def again(rows: list[Row], **other: Any) -> list[Row]:
    """Return the rows, and those of a second seed."""
    return [*rows, *(row | {"seed": 2} | other for row in rows)]


def arms(rows: list[Row]) -> pd.DataFrame:
    """Return the numbers of each arm by its format."""
    return one_per_arm(rows_of(rows).every).set_index("format")


def test_bytes_of_seeds_are_added_and_the_largest_memory_counts() -> None:
    more = [row | {"extra_bytes": 10 * row["seed"]} for row in again(SIZES, records=30, size_bytes=3000)]
    found = arms(more).loc["v3"]
    assert (found["size_bytes"], found["records"], found["batches"], found["extra_bytes"]) == (4900, 40, 20, 20)
    assert json.loads(found["field_bytes"]) == {"offset": 3800}
    assert len(arms(more)) == 2


def test_rounds_of_a_seed_are_paired_with_those_of_the_same_seed() -> None:
    """Everything is 100 times slower under the second seed, and no ratio changes."""
    slow = [row | {"seed": 2, "cpu_ns": [100 * ns for ns in row["cpu_ns"]]} for row in TIMES]
    table = built([*TIMES, *slow], metrics=["time_ratio"], base={"format": "v2"}).table
    assert table is not None
    ((_, ratio),) = table.rows
    assert isinstance(ratio, Interval) and ratio.median == pytest.approx(1.5)  # 1.5, 1 and 2, twice
    joined = arms(again(TIMES))
    assert len(joined.loc["v3", "cpu_ns"]) == 6 and joined.loc["v3", "inner_loops"] == 1


def test_rounds_are_scaled_to_the_records_of_all_seeds() -> None:
    """Ten records take 100 ns, thirty take 300 ns: it is 10 ns per record."""
    rows = [timed("v2", [100] * 3), timed("v2", [1200] * 3, seed=2, records=30, inner_loops=4)]
    found = built(rows, metrics=["ns"]).table
    assert cells(found) == {1: {"v2": pytest.approx(10.0)}}


def test_a_seed_that_a_format_lacks_counts_for_none() -> None:
    two = again(SIZES)
    two[-1] = failed(two[-1])
    found = arms(two)
    assert found.loc["v2", "records"] == found.loc["v3", "records"] == 10


def test_a_format_that_failed_in_each_seed_leaves_the_others_all_seeds() -> None:
    two = [failed(row) if row["format"] == "v3" else row for row in again(SIZES)]
    found = arms(two)
    assert found.loc["v2", "records"] == 20 and found.loc["v3", "status"] == "error"


def test_a_copy_in_another_block_counts_once_and_no_error_hides_a_number() -> None:
    copies = [row | {"grid": "h"} for row in SIZES]
    errors = [failed(row) | {"grid": "a-block-before"} for row in SIZES]
    found = arms([*errors, *SIZES, *copies])
    assert found["size_bytes"].tolist() == [2000, 1900] and set(found["status"]) == {"ok"}


@pytest.mark.parametrize(
    ("low", "high", "noise", "is_tie"),
    [
        (0.9, 1.1, None, True),
        (1.02, 1.1, None, False),
        (1.02, 1.1, Band(0.98, 1.03), True),  # the interval reaches into the noise
        (1.034, 1.1, Band(0.98, 1.03), True),  # as printed, both ends are 1.03
        (1.036, 1.1, Band(0.98, 1.03), False),
        (0.8, 0.97, Band(0.98, 1.03), False),
        (0.8, 0.98, Band(0.98, 1.03), True),
    ],
)
def test_an_interval_that_reaches_into_the_noise_is_a_tie(low: float, high: float, noise: Band, is_tie: bool) -> None:
    assert ties(Interval(median=(low + high) / 2, low=low, high=high), noise) == is_tie


def test_the_noise_is_the_middle_95_percent_of_the_ratios_of_a_base_to_itself() -> None:
    assert middle_95([]) is None
    assert middle_95([1 + i / 1000 for i in range(-20, 21)]) == pytest.approx((0.981, 1.019))
    assert middle_95([1.1, 1.2]) == pytest.approx((1.0, 1.1975))  # it always holds 1


def test_an_interval_is_widened_by_the_spread_between_arms() -> None:
    rows = rows_of([timed("v2", [100] * 21), timed("v3", [100, 101, 102] * 7)])
    base, arm = rows.typed({"kind": "cpu"})
    narrow, wide = (time_ratio(replace(arm, spread=spread), base) for spread in (0.0, 0.05))
    assert narrow.median == wide.median == pytest.approx(1.01)
    assert wide.low < 0.97 < narrow.low and narrow.high < 1.05 < wide.high


@pytest.mark.parametrize(
    ("counts", "operation", "words"),
    [
        ({"batches_in_place": 4}, "append", "in place"),
        ({"batches_in_place": 3, "batches_rewritten": 1}, "append", "in place 75 %, rewritten 25 %"),
        ({"batches_untouched": 4}, "fetch-scan", "zero-copy"),
        ({}, "fetch", "zero-copy"),
        ({}, "append", "nothing"),
        ({"status": "skipped"}, "append", "skipped"),
    ],
)
def test_what_became_of_the_batches_is_put_into_words(counts: Row, operation: str, words: str) -> None:
    row = counted("v2", 1000, kind="broker", operation=operation, batches_dropped=0) | counts
    assert [work_words(arm) for arm in arms_of(one_per_arm(rows_of([row]).every))] == [words]
