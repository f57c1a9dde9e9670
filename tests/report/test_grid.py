"""The smallest formats on maps of the grid, and the fronts of bytes and CPU time, on made-up rows."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from kfbench.arrays import Bracket
from kfbench.report.sources.grid import bracket_words, break_even, winners
from kfbench.report.sources.pareto import pareto
from tests.present.made import counted, runs_of, timed
from tests.report.workload_rows import Row, workload_rows

FIXED: Final = {"v0": 26, "v1": 34, "v2": 9, "v3": 8}  # bytes per record
SHARED: Final = {"v0": 0, "v1": 0, "v2": 61, "v3": 49}  # bytes per batch
LOSSES: Final = {"v0": '{"timestamps":10}'}


def plane(batches: Sequence[int] = (1, 10, 100), values: Sequence[int] = (-1, 10, 1_000)) -> list[Row]:
    """Return the sizes of 1,000 records in these batches, with values of these sizes (-1 is null)."""
    return [
        counted(name, 1000 * max(value, 0) + 1000 * FIXED[name] + 1000 // batch * SHARED[name], batch, records=1000,
                batches=1000 // batch, value_bytes=value, losses=LOSSES.get(name, "{}"))
        for batch in batches for value in values for name in FIXED
    ]  # fmt: skip


def test_each_cell_of_a_map_has_its_smallest_and_what_it_saves() -> None:
    found = winners(runs_of(plane())).set_index(["batch_size", "value"])
    assert len(found) == 9 and set(found["with_codec"]) == {"none"}
    cell = found["words"][1, "null"]
    assert cell == "v1 −51 %" and cell.rank == pytest.approx(-36 / 70)  # 34 bytes of 70; v0 has no times
    assert found["words"][10, "null"] == "v3 −15 %"
    ties = found[found["words"] == "tie"]
    assert list(ties.index) == [(10, "1,000"), (100, "1,000")] and {each.rank for each in ties["words"]} == {0.0}
    assert winners(runs_of(workload_rows())).empty


@pytest.mark.parametrize(
    ("smaller", "words"),
    [((None, 1), "1 (always)"), ((None, 2), "≤ 2"), ((2, 3), "3"), ((3, 5), "4–5"), ((10, None), "never")],
)
def test_a_change_between_two_measured_sizes_has_words(smaller: tuple[int | None, int | None], words: str) -> None:
    found = bracket_words(Bracket(*smaller))
    assert (found, found.rank) == (words, smaller[1])


def test_break_even_is_between_two_measured_batch_sizes() -> None:
    found = break_even(runs_of(plane((1, 2, 3, 5, 10), [100]))).set_index(["format", "smaller_than"])["start"]
    assert found["v2", "v0"] == "4–5"  # 9 + 61 / n < 26 from n = 3.6 on
    assert found["v2", "v1"] == "3" and found["v3", "v2"] == "1 (always)"


@pytest.mark.parametrize(("sizes", "start"), [((5, 10, 5), "3"), ((5, 11, 5), "3"), ((11, 11, 10), "never")])
def test_a_tie_is_not_smaller_and_a_relapse_counts(sizes: Sequence[int], start: str) -> None:
    rows = [counted("v2", size, batch) for batch, size in enumerate(sizes, 1)]
    rows += [counted("v0", size, batch) for batch, size in enumerate((6, 10, 6), 1)]
    (found,) = break_even(runs_of(rows))["start"]
    assert found == start


def fronts(*formats: tuple[str, int, float, str]) -> dict[str, Any]:
    """Return the place on the front of encode of formats: name, bytes, time relative to v2, losses."""
    random, rounds = np.random.default_rng(1), np.linspace(0.999, 1.001, 19)
    rows = [counted(name, size, losses=losses) for name, size, _, losses in formats]
    rows += [
        timed(name, [int(1e6 * time * each) for each in random.permutation(rounds)]) for name, _, time, _ in formats
    ]
    return dict(pareto(runs_of(rows)).set_index("format")["encode_front"])


FRONTS: Final[list[tuple[list[tuple[str, int, float, str]], dict[str, str]]]] = [
    # A format is on the front if it takes less time than all with fewer bytes.
    (
        [("v1", 1000, 2.0, "{}"), ("kip98", 1500, 3.0, "{}"), ("v2", 2000, 1.0, "{}"), ("v3", 2100, 1.0, "{}")],
        {"v1": "yes", "v2": "yes", "kip98": "no", "v3": "no"},
    ),
    # Formats of as many bytes and the same time share the front. Times whose intervals overlap are the same.
    ([("v2", 1000, 1.0, "{}"), ("v3", 1000, 1.0, "{}")], {"v2": "yes", "v3": "yes"}),
    ([("v2", 2000, 1.0, "{}"), ("v3", 1000, 1.0002, "{}")], {"v2": "no", "v3": "yes"}),
    # What loses something is on no front, and beats nobody.
    ([("v0", 900, 0.5, LOSSES["v0"]), ("v2", 2000, 1.0, "{}")], {"v0": "not compared", "v2": "yes"}),
    # Nothing is compared without v2.
    ([("v1", 1000, 2.0, "{}"), ("v3", 2000, 1.0, "{}")], {}),
]


@pytest.mark.parametrize(("formats", "places"), FRONTS)
def test_places_on_the_front(formats: list[tuple[str, int, float, str]], places: dict[str, str]) -> None:
    assert fronts(*formats) == places


def test_without_times_there_is_no_front() -> None:
    assert pareto(runs_of([counted("v2", 2000), counted("v3", 1900)])).empty
