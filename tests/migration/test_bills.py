"""Migrations with invented costs.

Loads, bills (US dollars per GiB produced) and break-even shares equal values computed by hand or in a second way.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.migration.bills import GIB, Cost, Costs, Counted, Load, break_even, load, loads
from kfbench.migration.plans import PLANS, Operation, Plan, operations
from kfbench.money import DAYS_A_MONTH, Bill, Prices, Traffic, month

KIP31, KIP724, V3 = (PLANS[name] for name in ("kip31", "kip724", "v3"))


def costs_of(plan: Plan, sizes: Mapping[str, int], cpu_ns: Mapping[str, float], codec: str = "lz4") -> Costs:
    """Return invented costs. cpu_ns: by path; "append" is an append in place, "convert" is any conversion."""
    found = {}
    for operation in operations(plan, codec):
        path, source, target = operation
        converts = source != target and path in ("append", "down-convert", "upgrade")
        found[operation] = Cost(
            source_bytes=sizes[source],
            target_bytes=sizes[source] if path in ("copy", "zero-copy", "scan") else sizes[target],
            cpu_ns=cpu_ns["convert" if converts else path],
        )
    return Costs(codec=codec, size_bytes=sizes, operations=found)


SIZES = {"v0": 900, "v1": 1_000, "v2": 800, "v3": 700}
CPU_NS = {
    "append": 100.0,
    "convert": 900.0,
    "zero-copy": 1.0,
    "scan": 20.0,
    "copy": 50.0,
    "down-convert upgraded": 2_000.0,
}


def test_a_phase_in_numbers() -> None:
    costs = costs_of(V3, SIZES, CPU_NS)
    traffic = Traffic(old_producers=0.25, old_consumers=0.5, fan_out=4, replication=3)
    found = load(V3, V3.phase("phase 2"), costs, traffic)
    unit = GIB / 800
    # A follower receives the bytes that the leader sends.
    assert isclose(found.in_bytes, unit * (0.25 * 800 + 0.75 * 700) + 2 * unit * 700)
    assert isclose(found.disk_bytes, 3 * unit * 700)
    consumed = unit * 4 * (0.5 * 800 + 0.5 * 700)
    assert isclose(found.out_bytes, 2 * unit * 700 + consumed)
    assert isclose(found.zero_copy_bytes, 2 * unit * 700 + unit * 4 * 0.5 * 700)
    assert isclose(found.append_cpu_s, unit * (0.25 * 900 + 0.75 * 100) / 1e9)
    assert isclose(found.fetch_cpu_s, unit * (2 * 1 + 4 * (0.5 * 900 + 0.5 * 1)) / 1e9)
    assert isclose(found.down_convert_cpu_s, unit * 4 * 0.5 * 900 / 1e9)
    assert found.cpu_s == found.append_cpu_s + found.fetch_cpu_s
    assert found.zero_copy_share == found.zero_copy_bytes / found.out_bytes


def test_a_gib_in_the_old_format_takes_a_gib_before() -> None:
    for plan in PLANS.values():
        costs = costs_of(plan, SIZES, CPU_NS)
        found = load(plan, plan.phase(plan.before), costs, Traffic(replication=3))
        assert found == load(plan, plan.phase(plan.before), costs, Traffic(old_producers=1, old_consumers=1))
        assert (found.refused_produced, found.refused_fetched, found.down_convert_cpu_s) == (0, 0, 0)
        assert isclose(found.in_bytes, 3 * GIB)
        assert isclose(found.disk_bytes, 3 * GIB)
        assert found.zero_copy_share == 1


def test_old_data_costs_old_readers_zero_copy() -> None:
    costs = costs_of(KIP31, SIZES, CPU_NS)
    phase = KIP31.phase("phase 2")
    fresh, mixed = (
        load(KIP31, phase, costs, Traffic(old_consumers=1, replication=1, fan_out=1, old_data=share))
        for share in (0, 1)
    )
    assert fresh.zero_copy_share == mixed.zero_copy_share == 0
    assert mixed.fetch_cpu_s < fresh.fetch_cpu_s  # read, but not converted
    young = load(KIP31, phase, costs, Traffic(old_consumers=0, old_data=0.5))
    assert young.zero_copy_share == 1


def test_only_old_readers_pay_for_the_scan_of_batches() -> None:
    costs = costs_of(KIP724, SIZES, CPU_NS)
    phase = KIP724.phase("before 3.0, v2")
    traffic = Traffic(old_consumers=1, old_data=1, replication=1, fan_out=1)
    found = load(KIP724, phase, costs, traffic)
    assert isclose(found.fetch_cpu_s, GIB / 1_000 * CPU_NS["scan"] / 1e9)
    assert found.zero_copy_share == 1
    new = load(KIP724, phase, costs, replace(traffic, old_consumers=0))
    assert isclose(new.fetch_cpu_s, GIB / 1_000 * CPU_NS["zero-copy"] / 1e9)


@pytest.mark.compiled_only
def test_upgraded_data_is_read_at_its_upgraded_size() -> None:
    traffic = Traffic(old_consumers=0.5, old_data=1, replication=1, fan_out=1)
    for codec in ("none", "lz4"):
        costs = costs_of(KIP724, SIZES, CPU_NS, codec)
        upgrade = Operation("upgrade", "v1", "v2")
        wide = {**costs.operations, upgrade: replace(costs.of(upgrade), target_bytes=1_600)}
        found = load(KIP724, KIP724.phase("3.0, forced upgrade"), replace(costs, operations=wide), traffic)
        assert isclose(found.zero_copy_bytes, GIB / 1_000 * 0.5 * 1_600)
        assert isclose(found.out_bytes, GIB / 1_000 * 0.5 * (1_600 + 1_000))
        # Batches of one record have their own conversion cost. Compressed sets stay as they are.
        down_ns = {"none": 2_000.0, "lz4": 900.0}[codec]
        assert isclose(found.fetch_cpu_s, GIB / 1_000 * 0.5 * (down_ns + CPU_NS["zero-copy"] * 1_600 / 800) / 1e9)
        assert isclose(found.down_convert_cpu_s, GIB / 1_000 * 0.5 * down_ns / 1e9)


def test_refused_records_are_neither_stored_nor_read() -> None:
    costs = costs_of(KIP724, SIZES, CPU_NS)
    traffic = Traffic(old_producers=0.25, old_consumers=0.5, fan_out=1, replication=1)
    found = load(KIP724, KIP724.phase("4.0"), costs, traffic)
    assert (found.refused_produced, found.refused_fetched) == (0.25, 0.5)
    assert isclose(found.disk_bytes, 0.75 * GIB / 1_000 * 800)
    assert isclose(found.out_bytes, 0.5 * 0.75 * GIB / 1_000 * 800)
    nobody = load(KIP724, KIP724.phase("4.0"), costs, Traffic(old_producers=1, old_consumers=1))
    assert nobody.zero_copy_share is None
    assert nobody.disk_bytes == 0
    unreadable = load(KIP724, KIP724.phase("after 4.0"), costs, Traffic(old_consumers=0, old_data=0.5))
    assert unreadable.refused_fetched == 0.5


def test_a_canary_in_numbers() -> None:
    costs = costs_of(KIP31, SIZES, CPU_NS)
    traffic = Traffic(canary_leaders=0.25, replication=3)
    found = loads(KIP31, costs, traffic)
    assert list(found) == ["before", "phase 1", "canary: that broker", "canary: the cluster", "phase 2"]
    own = found["canary: that broker"]
    assert own.zero_copy_bytes == 0
    # Its followers store v0, because they fetch in that format.
    assert isclose(own.disk_bytes, GIB / 900 * (1_000 + 2 * 900))
    cluster = own * 0.25 + found["phase 1"] * 0.75
    assert cluster == found["canary: the cluster"]
    assert loads(KIP31, costs, replace(traffic, canary_leaders=0))["canary: the cluster"] == found["phase 1"]


def test_a_cost_that_was_not_measured() -> None:
    costs = replace(costs_of(V3, SIZES, CPU_NS), operations={})
    with pytest.raises(InvalidConfig, match="append of v2 was not measured"):
        load(V3, V3.phase("before"), costs, Traffic())


def test_a_bill_in_numbers() -> None:
    found = Load(append_cpu_s=1_800, fetch_cpu_s=1_800, in_bytes=1e9, out_bytes=2e9, disk_bytes=3e9)
    prices = Prices(cpu_core_hour=2, storage_gb_month=5, network_gb=7)
    a_month = Traffic(retention_days=365.25 / 12)
    assert found.bill(a_month, prices) == Bill(cpu=2, storage=15, network=21)
    assert found.bill(a_month, prices).total == 38


@pytest.mark.parametrize("replication", [1, 3])
def test_a_month_equals_the_last_phase_of_a_migration(replication: int) -> None:
    traffic = Traffic(old_producers=0, old_consumers=0, fan_out=2, replication=replication, retention_days=5)
    prices, plan, phase = Prices(cpu_core_hour=0), V3, V3.phases[-1]
    free = Cost(source_bytes=GIB, target_bytes=GIB, cpu_ns=0)
    costs = Costs(
        codec="none", size_bytes=dict.fromkeys(FORMATS, GIB), operations=dict.fromkeys(operations(plan), free)
    )
    options = load(plan, phase, costs, traffic).bill(traffic, prices)
    found = month(GIB / DAYS_A_MONTH, traffic, prices)
    assert [found.storage, found.network] == pytest.approx([options.storage, options.network])


def test_a_month_by_hand() -> None:
    traffic = Traffic(fan_out=2, replication=3, retention_days=10)
    found = month(1e9, traffic, Prices(storage_gb_month=0.1, network_gb=0.01))
    assert found.stored_bytes == pytest.approx(30e9)
    # In: one copy from producers, two to followers. Out: two to consumers, two to followers.
    assert found.network_bytes == pytest.approx(7 * DAYS_A_MONTH * 1e9)
    assert found.storage == pytest.approx(30 * 0.1)
    assert found.network == pytest.approx(7 * DAYS_A_MONTH * 0.01)
    assert found.total == found.storage + found.network


# Break-even

TRAFFICS = st.builds(
    Traffic,
    old_producers=st.floats(0, 1),
    fan_out=st.floats(0.1, 20),
    replication=st.integers(1, 5),
    retention_days=st.floats(0, 400),
)
PRICES = st.builds(Prices, cpu_core_hour=st.floats(0, 1), storage_gb_month=st.floats(0, 1), network_gb=st.floats(0, 1))
COSTS = st.builds(
    lambda new, append, convert: costs_of(
        V3, {"v2": 1_000, "v3": new}, {"append": append, "convert": convert, "zero-copy": 1, "copy": 10}
    ),
    st.integers(500, 1_500),
    st.floats(1, 1e5),
    st.floats(1, 1e6),
)


def phase_bill(phase: str, costs: Costs, traffic: Traffic, prices: Prices, counted: Counted) -> float:
    found = load(V3, V3.phase(phase), costs, traffic)
    total = found.bill(traffic, prices)
    if counted == "everything":
        return total.total
    return total.storage + total.network + found.down_convert_cpu_s / 3600 * prices.cpu_core_hour


def saved_at(share: float, before: Costs, goal: Costs, traffic: Traffic, prices: Prices, counted: Counted) -> float:
    """Return the bill before the migration, with only old clients, minus the bill after it (US dollars per GiB).

    share: the share of old consumers after the migration, from 0 to 1.
    """
    all_old = replace(traffic, old_producers=1, old_consumers=1)
    then = phase_bill(V3.before, before, all_old, prices, counted)
    return then - phase_bill(V3.goal, goal, replace(traffic, old_consumers=share), prices, counted)


@given(COSTS, TRAFFICS, PRICES, st.sampled_from(["down-conversion", "everything"]))
def test_at_the_break_even_share_both_cost_the_same(
    costs: Costs, traffic: Traffic, prices: Prices, counted: Counted
) -> None:
    found = break_even(V3, costs, traffic, prices, counted)
    ends = [saved_at(share, costs, costs, traffic, prices, counted) for share in (0, 1)]
    near = 1e-9 * load_total(costs, traffic, prices)
    assert found.saved_without == pytest.approx(ends[0], abs=near)
    assert found.saved_with_all == pytest.approx(ends[1], abs=near)
    ends = [found.saved_without, found.saved_with_all]
    if found.share is None:
        assert found.pays == ("always" if ends[0] >= 0 else "never")
        assert (ends[0] >= 0) == (ends[1] >= 0)
        return
    assert 0 <= found.share <= 1
    scale = max(map(abs, ends)) + load_total(costs, traffic, prices)
    assert abs(saved_at(found.share, costs, costs, traffic, prices, counted)) <= 1e-9 * scale
    assert found.pays == ("below" if ends[0] >= 0 else "above")


def load_total(costs: Costs, traffic: Traffic, prices: Prices) -> float:
    return load(V3, V3.phase("before"), costs, traffic).bill(traffic, prices).total


def reach(costs: Costs, traffic: Traffic, prices: Prices) -> float:
    """Return the largest share of old consumers (0 to 1) at which the new format costs less."""
    found = break_even(V3, costs, traffic, prices)
    assume(found.pays != "above")
    return {"always": 1.0, "never": 0.0}.get(found.pays, found.share or 0.0)


# Conversions take much CPU, and the new format is smaller.
DEARER = {"append": 100.0, "convert": 5_000.0, "zero-copy": 1.0, "copy": 10.0}
SMALLER = st.integers(700, 999).map(lambda new: costs_of(V3, {"v2": 1_000, "v3": new}, DEARER))


@given(SMALLER, TRAFFICS, PRICES, st.floats(0, 400))
def test_dearer_storage_and_longer_retention_favour_a_smaller_format_and_dearer_cpu_does_not(
    costs: Costs, traffic: Traffic, prices: Prices, more: float
) -> None:
    share = reach(costs, traffic, prices)
    assert reach(costs, traffic, replace(prices, storage_gb_month=prices.storage_gb_month + more)) >= share - 1e-9
    assert reach(costs, traffic, replace(prices, cpu_core_hour=prices.cpu_core_hour + more)) <= share + 1e-9
    assert reach(costs, replace(traffic, retention_days=traffic.retention_days + more), prices) >= share - 1e-9


def test_up_conversions_for_old_producers_are_not_down_conversion() -> None:
    cheap = costs_of(V3, {"v2": 1_000, "v3": 900}, DEARER)
    up = Operation("append", "v2", "v3")
    dear = replace(cheap, operations={**cheap.operations, up: replace(cheap.of(up), cpu_ns=1e9)})
    assert break_even(V3, dear, Traffic(), Prices()) == break_even(V3, cheap, Traffic(), Prices())
    whole = [break_even(V3, costs, Traffic(), Prices(), "everything").saved_without for costs in (cheap, dear)]
    assert whole[1] < whole[0]


def test_a_format_that_saves_nothing_never_pays_and_one_that_costs_nothing_always() -> None:
    larger = costs_of(V3, {"v2": 1_000, "v3": 1_001}, DEARER)
    free = costs_of(V3, {"v2": 1_000, "v3": 900}, dict.fromkeys(DEARER, 0.0))
    for costs, pays in ((larger, "never"), (free, "always")):
        found = break_even(V3, costs, Traffic(), Prices())
        assert (found.pays, found.share) == (pays, None)


def test_the_span_of_a_break_even_follows_from_the_intervals_of_costs() -> None:
    exact = costs_of(V3, {"v2": 1_000, "v3": 900}, DEARER)
    assert break_even(V3, exact, Traffic(), Prices()).span is None
    spread = {name: replace(c, span_ns=(0.9 * c.cpu_ns, 1.2 * c.cpu_ns)) for name, c in exact.operations.items()}
    dear = Prices(cpu_core_hour=1e6)
    found = break_even(V3, replace(exact, operations=spread), Traffic(), dear)
    assert found.share is not None and found.span is not None
    assert found.span == pytest.approx((found.share / 1.2, found.share / 0.9))
    whole = break_even(V3, replace(exact, operations=spread), Traffic(), dear, "everything")
    assert whole.share is None or whole.span is None or whole.span[0] <= whole.share <= whole.span[1]


@given(COSTS, TRAFFICS, PRICES, st.sampled_from(["down-conversion", "everything"]), st.floats(0, 1))
def test_outside_of_its_span_both_ends_of_the_intervals_agree(
    costs: Costs, traffic: Traffic, prices: Prices, counted: Counted, share: float
) -> None:
    each = costs.operations.items()
    spread = replace(costs, operations={n: replace(c, span_ns=(0.5 * c.cpu_ns, 2 * c.cpu_ns)) for n, c in each})
    low, high = spread.at(0), spread.at(1)
    near = 1e-9 * (load_total(high, traffic, prices) + 1e-9)
    saved = [saved_at(share, *ends, traffic, prices, counted) for ends in ((low, high), (high, low))]
    assume(min(map(abs, saved)) > near)
    span = break_even(V3, spread, traffic, prices, counted).span
    is_open = span is not None and span[0] <= share <= span[1]
    assert is_open == ((saved[0] > 0) != (saved[1] > 0))


def test_refused_traffic_is_no_saving() -> None:
    costs = costs_of(KIP724, SIZES, CPU_NS)
    served, refused = (load(KIP724, KIP724.phase(name), costs, Traffic()) for name in ("3.0", "4.0"))
    assert not served.refuses and refused.refuses
    assert refused.bill(Traffic(), Prices()).total < served.bill(Traffic(), Prices()).total
    with pytest.raises(InvalidConfig, match=r"kip724: '4\.0' refuses a part of the traffic"):
        break_even(structs.replace(KIP724, goal="4.0"), costs, Traffic(), Prices())
