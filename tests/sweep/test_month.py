"""A month: the rate that timestamps tell, and what a rate costs, by hand."""

import pytest

from kfbench.broker.migrate import DAYS_A_MONTH, Prices, Traffic
from kfbench.errors import InvalidConfig
from kfbench.measure.tally import Source
from kfbench.sweep.month import month, rate_of, rate_of_user

DAY_MS = 86_400_000


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
        kinds={},
        damage=(),
        damaged_places=0,
        damaged_bytes=0,
        trailing_bytes=0,
    )


def test_a_topic_lasts_from_its_first_record_to_its_last() -> None:
    a = [source("a", 600, 0, DAY_MS), source("a", 400, DAY_MS, 2 * DAY_MS)]
    b = [source("b", 1_000, 5 * DAY_MS, 5 * DAY_MS + DAY_MS // 2)]
    moment = [source("c", 77, 0, 59_999), source("d", 5, -1, -1)]
    found = rate_of([*a, *b, *moment])
    assert found is not None
    assert (found.bytes_a_day, found.untold_bytes, found.told_by) == (500 + 2_000, 77, "timestamps")
    assert rate_of(moment) is None


def test_a_month_by_hand() -> None:
    traffic = Traffic(fan_out=2, replication=3, retention_days=10)
    found = month(1e9, traffic, Prices(storage_gb_month=0.1, network_gb=0.01))
    assert found.stored_bytes == pytest.approx(30e9)
    # In: one from producers, two by followers; out: two to consumers, two to followers.
    assert found.network_bytes == pytest.approx(7 * DAYS_A_MONTH * 1e9)
    assert found.storage == pytest.approx(30 * 0.1)
    assert found.network == pytest.approx(7 * DAYS_A_MONTH * 0.01)
    assert found.total == found.storage + found.network


def test_a_rate_of_ones_own() -> None:
    assert rate_of_user(2).bytes_a_day == 2e6 * 86_400
    for rate in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InvalidConfig, match="rate_mb_s"):
            rate_of_user(rate)
