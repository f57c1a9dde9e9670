"""The figures of columnar's decisions are the stored ones, the stored ones what the reference codec gives."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import columnar, columnar_cases
from tools.columnar import choices, reach

FOUND: dict[str, Any] = json.loads(choices.STORED.read_text(encoding="utf-8"))
WRITTEN = choices.tables(FOUND)


@pytest.mark.parametrize("number", WRITTEN)
def test_the_decisions_say_what_is_stored(number: str) -> None:
    block = choices.blocks()[number]
    page = block.page.read_text(encoding="utf-8")
    assert block.spliced(page, WRITTEN[number]) == page


def test_the_times_are_the_stored_ones() -> None:
    page = reach.DECISION.read_text(encoding="utf-8")
    rows = json.loads(reach.STORED.read_text(encoding="utf-8"))["rows"]
    assert reach.block().spliced(page, reach.table(rows)) == page


def test_a_workload_measured_again() -> None:
    """Without a codec: compressed bytes are those of one build."""
    every = list(choices.cells(["service-events"]))
    for name, rows in (("columns", choices.column_rows(every)), ("headers", choices.header_rows(every))):
        stored = [row for row in FOUND[name] if row["workload"] == "service-events"]
        plain = [row for row in rows if row.get("codec", "none") == "none"]
        assert plain
        assert plain == [row for row in stored if row.get("codec", "none") == "none"]


def test_every_workload_is_in_it() -> None:
    for name in ("codecs", "columns", "state"):
        assert {row["workload"] for row in FOUND[name]} == set(choices.NAMES)


@given(seed=st.integers(0, 2**32), count=st.integers(2, 40), name=st.sampled_from(columnar_cases.SHAPE_NAMES))
def test_a_column_is_as_large_as_the_reference_writes_it(seed: int, count: int, name: str) -> None:
    values = columnar_cases.shaped(columnar_cases.Draw(seed), name, count)
    for is_sloped in (True, False):
        column = columnar.column(values, "offsets" if is_sloped else "lengths")
        assert choices.smallest(values, is_sloped) == len(column)


def test_designs_by_hand() -> None:
    assert choices.with_dictionary([5, 300, 5, 5]) == 1 + 1 + 3 + 1
    assert choices.in_blocks([7] * 64) == 1 + 2 * 2
    assert choices.in_blocks([0] * 32 + [1000, 1003] * 16) == 1 + 2 + (3 + 8)
    assert choices.cumulative([4] * 10) == 3  # a line
    assert choices.fine_slope([0, 1, 3, 4, 6, 7, 9]) == 1 + 1 + 3  # 1.5 a value, to the last
    assert choices.smallest([0, 200], False, choices.whole_bytes) == 3
    assert choices.smallest([0, 300], False, choices.whole_bytes) == 5
