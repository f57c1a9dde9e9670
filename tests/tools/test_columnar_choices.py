"""The figures of columnar's decisions are the stored ones, the stored ones what the reference codec gives."""

import json
from itertools import accumulate
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


@given(seed=st.integers(0, 2**32), count=st.integers(2, 120), name=st.sampled_from(columnar_cases.SHAPE_NAMES))
def test_a_column_is_as_large_as_the_reference_writes_it(seed: int, count: int, name: str) -> None:
    draw = columnar_cases.Draw(seed)
    mean = draw.choice([1, 20, 5000])
    tail = [int(draw.expovariate(1 / mean)) for _ in range(count)]
    few = [draw.choice(tail[:17]) for _ in range(count)]
    for values in (columnar_cases.shaped(draw, name, count), tail, few, sorted(accumulate(tail), reverse=True)):
        for nature in choices.EVERY:
            written = columnar.column(values, nature)
            assert choices.smallest(values, nature) == len(written)


FEW_LARGE = [0] * 60 + [1, 2, 3, 15]


def test_kinds_of_a_nature_by_hand() -> None:
    assert choices.kinds([3, 3], "lengths") == {"bits": 2, "base": 2}
    assert list(choices.kinds([3, 3], "offsets")) == ["bits", "base", "delta"]
    patches, quotients = 1 + 3 + 4, 11  # 6 bits each of 4 positions; 64 ones and 21 zeros
    found = choices.kinds(FEW_LARGE, "lengths")
    few = 3 + 24  # five values of 4 bits, 64 indexes of 3
    uneven = {"patched": 2 + 1 + patches, "rice": 2 + 1 + quotients, "dictionary": 2 + 1 + 1 + few}
    assert found == {"bits": 33, "base": 34} | uneven
    assert choices.chosen(FEW_LARGE, "lengths") == ("patched", 11)
    assert "rice" not in choices.kinds(FEW_LARGE, "codes")
    assert choices.kinds([0, 16] * 8, "codes")["dictionary"] == 2 + 1 + 1 + 2 + 2
    assert "dictionary" not in choices.kinds([0, 7] * 8, "codes")
    assert "dictionary" not in choices.kinds([0, 16] * 8, "ages")
    assert "dictionary" in choices.kinds([*range(0, 256, 16)], "lengths")
    assert "dictionary" not in choices.kinds([*range(0, 257, 16)], "lengths")


def test_a_column_of_ages_falls() -> None:
    """One long gap is a patch of what ages fall, and the base of what they rise."""
    rising = [10 * i + (1_000_000 if i >= 20 else 0) for i in range(40)]
    falling = rising[::-1]
    assert choices.kinds(falling, "ages")["patched delta"] == 2 + 3 + 1 + (1 + 1 + 3)
    assert choices.kinds(falling, "ages", choices.BY_RULES["ages_rise"]) == choices.kinds(falling, "offsets")
    assert choices.kinds(falling, "offsets")["delta"] > 39 * 20 // 8  # each step is a million above the long gap's
    assert choices.kinds(rising, "offsets")["patched delta"] == 2 + 1 + 1 + (1 + 1 + 3)


def test_rice_is_taken_where_it_is_small_enough() -> None:
    values = [1] * 100 + [3, 5, 9, 17]
    sizes = choices.kinds(values, "lengths")
    others = min(size for kind, size in sizes.items() if kind not in choices.RICE)
    for eighths in range(9):
        kind, size = choices.chosen(values, "lengths", choices.Rules(rice_eighths=eighths))
        assert (kind in choices.RICE) == (8 * sizes["rice"] <= eighths * others)
        assert size == sizes[kind]


def test_a_design_differs_by_what_it_leaves_out() -> None:
    for cell in choices.cells(["transactional"]):
        for values, nature in choices.every_column(cell) if cell.size > 1 else ():
            for name, without in (("no_rice", choices.RICE), ("no_dictionary", {"dictionary"})):
                found = choices.kinds(values, nature, choices.BY_RULES[name])
                assert found == {
                    kind: size for kind, size in choices.kinds(values, nature).items() if kind not in without
                }
            least = min(choices.kinds(values, nature).values())
            assert choices.smallest(values, nature, choices.BY_RULES["rice_where_smaller"]) == least


def test_designs_by_hand() -> None:
    assert choices.in_blocks([7] * 64) == 1 + 2 * 2
    assert choices.in_blocks([0] * 32 + [1000, 1003] * 16) == 1 + 2 + (3 + 8)
    assert choices.cumulative([4] * 10) == 3  # a line
    assert choices.fine_slope([0, 1, 3, 4, 6, 7, 9]) == 1 + 1 + 3  # 1.5 a value, to the last
    aligned = choices.BY_RULES["byte_aligned"]
    assert choices.smallest([0, 200], "lengths", aligned) == 3
    assert choices.smallest([0, 300], "lengths", aligned) == 5
    assert choices.rice([1, 1, 1, 1, 1, 1, 1, 1], 1, running_sums=False) == 1 + 1
    assert choices.rice([1, 1, 1, 1, 1, 1, 1, 1], 1, running_sums=True) == 1 + 2
    assert choices.code_bits({5: 8, 6: 8}) == 16
    assert choices.coded([3, 4] * 8, "lengths") == 2 + 1 + (2 + 2)  # how many have 0 bits and 1
    assert choices.coded([2 + i // 2 for i in range(16)], "offsets") == 1 + 2 + 1 + (2 + 2)  # their steps
