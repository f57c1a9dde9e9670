"""Comparing two runs: slower code of v2, the base of all ratios, is distinguished from a slower machine."""

import pytest

from kfbench.comparison.agreement import Base
from kfbench.comparison.compare import Comparison
from tests.comparison.edits import V3, Against, each, of, times, without


def test_a_slower_machine_is_no_regression_and_is_seen_in_the_base(against: Against) -> None:
    timed = lambda row: bool(row.get("cpu_ns"))  # noqa: E731
    found = against(each(timed, cpu_ns=times(2.0)))
    assert not found.is_regression and not found.slower_bases
    base = bases(found)["cpu", "encode"]
    assert base.change == pytest.approx(2.0, rel=1e-3) and base.yardstick == 1.0 and base.verdict == "unclear"


def bases(found: Comparison) -> dict[tuple[str, str], Base]:
    return {(base.kind, base.operation): base for base in found.cpu.bases}


def test_a_slower_base_is_a_regression_though_every_ratio_to_it_got_smaller(against: Against) -> None:
    found = against(each(of(kind="cpu", format="v2", operation="encode"), cpu_ns=times(1.5)))
    assert found.is_regression and not found.slower_groups
    (base,) = found.slower_bases
    assert (base.formats, base.operation) == (("v2",), "encode") and ("v3", "encode") in base.unmoved
    entry = next(each for each in found.to_dict()["cpu"]["bases"] if each["operation"] == "encode")
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
