"""`agreement` judges two runs on generated rows: 24 cells of four formats, each slowed down by a random factor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kfbench.comparison.agreement import Agreement, Base, agreement
from kfbench.measure.schema import table

Row = dict[str, Any]
CELLS = 24
OTHERS = ("v0", "v1", "v3")


def day(seed: int, drift: float, took: Mapping[str, float], formats: tuple[str, ...] = OTHERS) -> list[Row]:
    """Generate a run with rows of v2, of v2 timed a second time (the "aa" arm), and of `formats`.

    drift: spread of a random factor per cell, equal for all its rows. took: CPU time factor per format or for "aa".
    """
    random, found = np.random.default_rng(seed), []
    common = {"kind": "cpu", "status": "ok", "grid": "g", "workload": "grid", "seed": 1, "codec": "none", "host": "h"}
    common |= {"operation": "encode", "cache": "resident", "records": 100, "inner_loops": 1, "yardstick_ns": 70_000}
    for i in range(CELLS):
        effect = random.lognormal(0, drift)
        for name, arm in (*((name, "measure") for name in ("v2", *formats)), ("v2", "aa")):
            times = took.get("aa" if arm == "aa" else name, 1.0)
            cpu_ns = 1e6 * (1 + i) * effect * times * random.lognormal(0, 0.003, 19)
            row = {"cell_id": f"c{i}", "format": name, "arm": arm, "cpu_ns": cpu_ns.astype(np.int64).tolist()}
            found.append(common | row)
    return found


def compared(before: list[Row], after: list[Row]) -> Agreement:
    return agreement(table(before), table(after), 0.03)


def base(found: Agreement) -> Base:
    (only,) = found.bases
    return only


@pytest.mark.parametrize("seed", range(8))
def test_a_day_that_slows_the_base_most_and_the_others_too_is_no_regression(seed: int) -> None:
    """Every timed call took longer, v2 most. The cause is a busy machine and not the code."""
    slow = dict.fromkeys(OTHERS, 1.07) | dict.fromkeys(("v2", "aa"), 1.12)
    found = compared(day(2 * seed, 0.06, {}), day(2 * seed + 1, 0.06, slow))
    assert {group.verdict for group in found.judged} == {"faster"}
    assert base(found).unmoved == () and base(found).verdict != "slower"


def test_a_base_that_slowed_down_alone_is_a_regression() -> None:
    found = compared(day(1, 0.01, {}), day(2, 0.01, {"v2": 1.12, "aa": 1.12}))
    assert {name for name, _ in base(found).unmoved} == set(OTHERS) and base(found).verdict == "slower"
    (v3,) = (group for group in found.judged if group.format == "v3")
    assert v3.change is not None and v3.change.median == pytest.approx(1 / 1.12, rel=0.01)


def test_an_aa_arm_does_not_prove_that_the_base_got_slower() -> None:
    """v2 got slower, but its second timing (the A/A arm) did not, so their ratio fell. That is noise of the run."""
    found = compared(day(1, 0.01, {}, formats=()), day(2, 0.01, {"v2": 1.5}, formats=()))
    assert [(group.is_aa, group.verdict) for group in found.groups] == [(True, "faster")]
    assert base(found).unmoved == () and base(found).verdict == "unclear"


def test_cells_that_moved_alike_stay_in_the_order_of_their_rows() -> None:
    """Bootstrap resamples choose cells by index.

    Another order of the cells would give other intervals for the same runs.
    """
    rows = day(1, 0.01, {})
    for group in compared(rows, rows).groups:
        assert [each.row.cell_id for each in group.cells] == [f"c{i}" for i in range(CELLS)]
