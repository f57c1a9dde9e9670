"""`agreement` compares the CPU times of two runs: slower code, also of the base, is told from a slower machine."""

from collections.abc import Mapping

import numpy as np
import pytest

from kfbench.comparison.agreement import Agreement, BaseChange, agreement, change, together, verdict
from kfbench.comparison.compare import Comparison
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.schema import table
from tests.comparison.conftest import V3, Against, Row, each, of, times, without

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
            factor = took.get("aa" if arm == "aa" else name, 1.0)
            cpu_ns = 1e6 * (1 + i) * effect * factor * random.lognormal(0, 0.003, 19)
            row = {"cell_id": f"c{i}", "format": name, "arm": arm, "cpu_ns": cpu_ns.astype(np.int64).tolist()}
            found.append(common | row)
    return found


def compared(before: list[Row], after: list[Row]) -> Agreement:
    return agreement(table(before), table(after), 0.03)


def base(found: Agreement) -> BaseChange:
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
        assert [cell.row.cell_id for cell in group.cells] == [f"c{i}" for i in range(CELLS)]


# Runs on disk


def test_a_slower_machine_is_no_regression_and_is_seen_in_the_base(against: Against) -> None:
    timed = lambda row: bool(row.get("cpu_ns"))  # noqa: E731
    found = against(each(timed, cpu_ns=times(2.0)))
    assert not found.is_regression and not found.slower_bases
    base = bases(found)["cpu", "encode"]
    assert base.change == pytest.approx(2.0, rel=1e-3) and base.yardstick == 1.0 and base.verdict == "unclear"


def bases(found: Comparison) -> dict[tuple[str, str], BaseChange]:
    return {(base.kind, base.operation): base for base in found.cpu.bases}


def test_a_slower_base_is_a_regression_though_every_ratio_to_it_got_smaller(against: Against) -> None:
    found = against(each(of(kind="cpu", format="v2", operation="encode"), cpu_ns=times(1.5)))
    assert found.is_regression and not found.slower_groups
    (base,) = found.slower_bases
    assert (base.formats, base.operation) == (("v2",), "encode") and ("v3", "encode") in base.unmoved
    entry = next(base for base in found.to_dict()["cpu"]["bases"] if base["operation"] == "encode")
    assert entry["verdict"] == "slower" and found.to_dict()["is_regression"] is True


def test_a_base_that_slows_down_with_some_of_the_others_is_a_regression(against: Against) -> None:
    """v2 and v3 share code that got slower. v0 and v1 did not change, so the machine is not the cause."""
    shared = lambda row: row["kind"] == "cpu" and row["format"] not in ("v0", "v1")  # noqa: E731
    found = against(each(shared, cpu_ns=times(1.3)))
    assert {base.operation for base in found.slower_bases} == {"encode", "decode"}
    assert {name for base in found.slower_bases for name, _ in base.unmoved} == {"v0", "v1"}


def test_formats_that_got_faster_do_not_make_the_base_slower(against: Against) -> None:
    found = against(each(V3, cpu_ns=times(0.5)))
    assert not found.is_regression and not bases(found)["cpu", "encode"].unmoved
    slow_day = each(lambda row: bool(row.get("cpu_ns")), cpu_ns=times(2.0), yardstick_ns=lambda ns: ns and 2 * ns)
    found = against(each(V3, cpu_ns=times(0.5)), slow_day)
    assert not found.is_regression and bases(found)["cpu", "encode"].yardstick == pytest.approx(2.0)


def test_a_base_among_few_cells_is_slower_where_each_is(against: Against) -> None:
    few = without(lambda row: row["kind"] != "cpu" or row["grid"] != "large")
    slow = each(of(kind="cpu", format="v2", operation="encode"), cpu_ns=times(1.5))
    assert [base.operation for base in against(few, slow, first=(few,), profile_text="else").slower_bases] == ["encode"]


# Intervals


def test_the_change_is_the_quotient_and_equal_errors_add_up_as_squares() -> None:
    found = change(Interval(0.8, 0.8 / 1.03, 0.8 * 1.03), Interval(1.2, 1.2 / 1.04, 1.2 * 1.04))
    assert found.median == pytest.approx(1.5)
    width = np.log(found.high / found.median)
    assert width == pytest.approx(np.hypot(np.log(1.03), np.log(1.04)))
    assert np.log(found.median / found.low) == pytest.approx(width)


def test_the_lower_end_is_of_the_later_ones_lower_and_the_earlier_ones_upper() -> None:
    exact = Interval(1.0, 1.0, 1.0)
    assert change(exact, Interval(1.0, 0.9, 1.3)) == pytest.approx((1.0, 0.9, 1.3))
    assert change(Interval(1.0, 0.9, 1.3), exact) == pytest.approx((1.0, 1 / 1.3, 1 / 0.9))


def test_intervals_hold_an_unchanged_ratio_about_95_times_in_100() -> None:
    """Measure the same call twice with 19 rounds each, 2,000 times.

    About 95 % of the intervals contain the ratio 1, as stated.
    """
    rounds = np.random.default_rng(3).normal(1.2, 0.03, (2_000, 2, 19))
    pairs = [[paired_ratio(each, np.ones(19)) for each in both] for both in rounds]
    changes = [change(before, after) for before, after in pairs]
    assert 0.94 <= np.mean([found.low <= 1 <= found.high for found in changes]) <= 0.99


def test_intervals_that_hold_together_are_wider_in_one_proportion() -> None:
    found = Interval(1.1, 1.0, 1.3)
    assert together(found, 1) == pytest.approx(found)
    wide = together(found, 1_000)  # a normal quantile of 4.06 instead of 1.96
    assert np.log(1.1 / wide.low) / np.log(1.1 / 1.0) == pytest.approx(4.0556 / 1.96, rel=1e-3)
    assert np.log(wide.high / 1.1) / np.log(1.3 / 1.1) == pytest.approx(4.0556 / 1.96, rel=1e-3)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1.031, 1.5), "slower"),
        ((1.029, 1.5), "unclear"),
        ((0.98, 1.02), "within"),
        ((0.5, 0.97), "faster"),
        ((0.5, 0.972), "unclear"),
        ((0.5, 1.5), "unclear"),
    ],
)
def test_the_whole_interval_counts(interval: tuple[float, float], expected: str) -> None:
    assert verdict(Interval(1.0, *interval), 0.03) == expected
