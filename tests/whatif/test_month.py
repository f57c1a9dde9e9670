"""The monthly cost in a what-if: the rate derived from timestamps, and costs computed by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kfbench.formats import FORMATS
from kfbench.layouts import DAY_MS
from kfbench.migration.bills import DAYS_A_MONTH, GIB, Cost, Costs, Prices, Traffic, bill, load
from kfbench.migration.plans import find, operations
from kfbench.whatif.month import month, rate_of
from kfbench.whatif.record_times import Times
from kfbench.whatif.source import Source


def source(topic: str, size_bytes: int, first_ms: int, last_ms: int) -> Source:
    return Source(
        path=f"{topic}/{first_ms}",
        topic=topic,
        partition=0,
        size_bytes=size_bytes,
        sound_bytes=size_bytes,
        batches=1,
        records=1,
        payload_bytes=1,
        first_ms=first_ms,
        last_ms=last_ms,
        kinds={"v2 none": 1},
        damage=(),
        damaged_places=0,
        damaged_bytes=0,
        trailing_bytes=0,
    )


def times_of(times_ms: Sequence[int]) -> Times:
    return Times.of(np.array(times_ms, np.int64))


def test_the_rate_is_derived_from_first_and_last_records() -> None:
    a = [source("a", 600, 1, DAY_MS), source("a", 400, DAY_MS, 2 * DAY_MS + 1)]
    b = [source("b", 1_000, 5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2)]
    moment = [source("c", 77, 1, 60_000), source("d", 5, -1, -1)]
    times = {
        "a": times_of([1, DAY_MS]).plus(times_of([2 * DAY_MS + 1])),
        "b": times_of([5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2]),
        "c": times_of([1, 60_000]),
        "d": Times(),
    }
    found = rate_of([*a, *b, *moment], times)
    assert found is not None
    assert (found.bytes_a_day, found.untold_bytes, found.told_by) == (500 + 2_000, 77, "timestamps")
    assert [(each.name, each.first_ms, each.last_ms) for each in found.streams] == [
        ("b", 5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2), ("a", 1, 2 * DAY_MS + 1)
    ]  # fmt: skip
    assert rate_of(moment, times) is None


@pytest.mark.parametrize("wrong_ms", [0, 1_700_000_000, 3_976_000_000_000])
def test_one_wrong_time_leaves_the_rate(wrong_ms: int) -> None:
    now_ms = 1_700_000_000_000
    times = [now_ms + i * DAY_MS // 1_000 for i in range(1_000)]
    sound = rate_of([source("a", 10**9, times[0], times[-1])], {"a": times_of(times)})
    times[7] = wrong_ms
    found = rate_of([source("a", 10**9, min(times), max(times))], {"a": times_of(times)})
    assert found is not None and sound is not None
    assert found.bytes_a_day == pytest.approx(sound.bytes_a_day, rel=0.01)
    [stream] = found.streams
    assert (stream.first_ms, stream.last_ms, stream.strange) == (min(times), max(times), wrong_ms == 0)
    assert now_ms <= stream.bulk_first_ms < stream.bulk_last_ms <= now_ms + DAY_MS


def test_the_rate_of_a_table_counts_plain_v2() -> None:
    table = replace(source("a", 300, 1, DAY_MS + 1), plain_bytes=1_000, kinds={})
    found = rate_of([table], {"a": times_of([1, DAY_MS + 1])})
    assert found is not None and found.bytes_a_day == 1_000


@pytest.mark.parametrize("replication", [1, 3])
def test_a_month_equals_the_last_phase_of_a_migration(replication: int) -> None:
    traffic = Traffic(old_producers=0, old_consumers=0, fan_out=2, replication=replication, retention_days=5)
    prices, plan = Prices(cpu_core_hour=0), find("v3")
    phase = plan.phases[-1]
    free = Cost(source_bytes=GIB, target_bytes=GIB, cpu_ns=0)
    costs = Costs(
        codec="none", size_bytes=dict.fromkeys(FORMATS, GIB), operations=dict.fromkeys(operations(plan), free)
    )
    options = bill(load(plan, phase, costs, traffic), traffic, prices)
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
