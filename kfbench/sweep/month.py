"""What a month of one's own log costs in storage and network, and what fewer bytes would save of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal

from kfbench.broker.migrate import DAYS_A_MONTH, Bill, Load, Prices, Traffic, bill
from kfbench.errors import InvalidConfig
from kfbench.measure.tally import Source

DAY_MS: Final = 86_400_000
DAY_S: Final = 86_400
LEAST_SPAN_MS: Final = 60_000  # a topic whose times span less says nothing of a month
MB: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Bytes a day as they lie now, before replication. told_by: the records' timestamps, or the user.

    untold_bytes: of topics that span less than LEAST_SPAN_MS and are not in it.
    """

    bytes_a_day: float
    told_by: Literal["timestamps", "user"]
    untold_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Month:
    """A month of records in some format: bytes kept by all replicas, bytes in and out of brokers, dollars."""

    stored_bytes: float
    network_bytes: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.storage + self.network


def rate_of(sources: Iterable[Source]) -> Rate | None:
    """The sum of all topics' rates: the bytes of each over the time from its first record to its last. None where no
    topic spans LEAST_SPAN_MS."""
    topics: dict[str, list[Source]] = {}
    for source in sources:
        if source.first_ms >= 0:
            topics.setdefault(source.topic, []).append(source)
    bytes_a_day, untold_bytes = 0.0, 0
    for parts in topics.values():
        size_bytes = sum(part.sound_bytes for part in parts)
        span_ms = max(part.last_ms for part in parts) - min(part.first_ms for part in parts)
        if span_ms >= LEAST_SPAN_MS:
            bytes_a_day += size_bytes * DAY_MS / span_ms
        else:
            untold_bytes += size_bytes
    return Rate(bytes_a_day=bytes_a_day, told_by="timestamps", untold_bytes=untold_bytes) if bytes_a_day else None


def rate_of_user(rate_mb_s: float) -> Rate:
    """rate_mb_s: 10**6 bytes a second. Raises InvalidConfig."""
    if not isfinite(rate_mb_s) or rate_mb_s <= 0:
        raise InvalidConfig(f"rate_mb_s: {rate_mb_s:g} is not above 0")
    return Rate(bytes_a_day=rate_mb_s * MB * DAY_S, told_by="user")


def month(bytes_a_day: float, traffic: Traffic, prices: Prices) -> Month:
    """As `broker.migrate.load` counts: bytes in come from producers to leaders and from them to followers, bytes out go
    to consumers and followers; each replica keeps what it gets for the retention."""
    produced = bytes_a_day * DAYS_A_MONTH
    copies = produced * (traffic.replication - 1)
    found = Load(
        in_bytes=produced + copies, out_bytes=copies + produced * traffic.fan_out, disk_bytes=produced + copies
    )
    asked: Bill = bill(found, traffic, prices)
    return Month(
        stored_bytes=bytes_a_day * traffic.retention_days * traffic.replication,
        network_bytes=found.in_bytes + found.out_bytes,
        storage=asked.storage,
        network=asked.network,
    )
