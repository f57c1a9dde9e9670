"""The batch size from which on one format is smaller than another."""

import dataclasses

import pandas as pd
import pytest

from kfbench.report.data.results import Results
from kfbench.report.topics import break_even
from tests.report.columns import some


@pytest.mark.parametrize(
    ("smaller_from", "bracket", "words"),
    [(1, (None, 1), "1 (always)"), (3, (2, 3), "3"), (5, (3, 5), "4–5"), (99, (10, None), "never")],
)
def test_break_even_is_the_first_size_from_which_a_format_is_always_smaller(
    smaller_from: int, bracket: tuple[int | None, int | None], words: str
) -> None:
    sizes = pd.DataFrame({"v2": 10.0, "v0": [9.0 if n < smaller_from else 11.0 for n in (1, 2, 3, 5, 10)]})
    sizes.index = pd.Index([1, 2, 3, 5, 10])
    found = break_even.first_smaller(sizes, "v2", "v0")
    assert found == bracket
    assert break_even.bracket_words(found) == words and break_even.bracket_words(found).rank == found[1]


def test_a_tie_is_not_smaller_and_a_relapse_counts() -> None:
    sizes = pd.DataFrame({"v2": [5.0, 10.0, 5.0], "v0": [6.0, 10.0, 6.0]}, index=[1, 2, 3])
    assert break_even.first_smaller(sizes, "v2", "v0") == (2, 3)


def test_the_break_even_table_is_of_this_run(results: Results) -> None:
    table = some(break_even.break_even_table(results))
    found = {(row[0], row[1]): row[2] for row in table.rows}
    assert found["v2", "v0"] == "4–5"
    assert found["v2", "v1"] == "3"
    assert found["v3", "v2"] == "1 (always)"
    assert ("v2", "v2") not in found


def test_a_single_record_has_no_spread_and_counts_in_every_setting(results: Results) -> None:
    """A single record has no timestamp spread, so it is stored at spread 0. It counts in the slices of every spread."""
    parts = results.slices(results.uncompressed, "batch_size")
    apart = [
        dataclasses.replace(
            part,
            rows=part.rows[part.rows["batch_size"] > 1],
            fixed={**part.fixed, "timestamp_spread_ms": 64},
        )
        for part in parts[:1]
    ]
    single, spread = break_even._with_single_records([parts[0], *apart])
    assert spread.loc[1].to_dict() == single.loc[1].to_dict()
    assert list(spread.index) == list(single.index)
    (alone,) = break_even._with_single_records(apart)
    assert alone.index[0] == 2
