"""The cost of storing and transferring a log for a month, computed from its rate in bytes per day."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal

from kfbench.errors import InvalidConfig
from kfbench.layouts import DAY_MS
from kfbench.migration.bills import DAYS_A_MONTH, Bill, Load, Prices, Traffic, bill
from kfbench.whatif.record_times import Times
from kfbench.whatif.source import Source

DAY_S: Final = 86_400
LEAST_SPAN_MS: Final = 60_000  # a topic whose timestamps span less time gives no rate
MB: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The size of a topic and the time span in which its records came.

    If the topic is unknown, a file or folder takes its place.

    Args:
        first_ms, last_ms: the first and the last timestamp of all records.
        bulk_first_ms, bulk_last_ms: the first and the last timestamp without the records at both ends (see
            `Times.bulk`). The rate is computed from these.
        strange: number of records with a timestamp that no clock shows.
    """

    name: str
    size_bytes: int
    first_ms: int
    last_ms: int
    bulk_first_ms: int
    bulk_last_ms: int
    strange: int
    bytes_a_day: float


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The rate of a log in bytes per day, before replication.

    Bytes are counted as stored now. If the source has no batches, they are bytes of uncompressed v2.

    Args:
        told_by: the origin of the rate.
        is_dated: False if the times of `streams` count from the first record, as in a fingerprint.
        untold_bytes: bytes of topics that span less than LEAST_SPAN_MS. They are not in the rate.
        streams: the rate of each topic, the largest rate first.
    """

    bytes_a_day: float
    told_by: Literal["timestamps", "user"]
    is_dated: bool = True
    untold_bytes: int = 0
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Month:
    """The cost of a log in a month.

    Args:
        stored_bytes: bytes on the disks of all replicas.
        network_bytes: bytes in and out of brokers.
        storage, network: their cost in US$.
    """

    stored_bytes: float
    network_bytes: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.storage + self.network


def rate_of(sources: Iterable[Source], times: Mapping[str, Times]) -> Rate | None:
    """Return the sum of all topics' rates; None if the timestamps of each topic span less than LEAST_SPAN_MS.

    The rate of a topic is computed without the records at both ends. Their share of the bytes is left out, too.

    times: `Tally.times`.
    """
    parts_by_stream: dict[str, list[Source]] = {}
    for source in sources:
        if source.first_ms >= 0:
            parts_by_stream.setdefault(source.stream, []).append(source)
    streams, untold_bytes = list[Stream](), 0
    for name, parts in parts_by_stream.items():
        size_bytes, bulk = sum(part.base_bytes for part in parts), times[name].bulk()
        if bulk is None or (span_ms := bulk.last_ms - bulk.first_ms) < LEAST_SPAN_MS:
            untold_bytes += size_bytes
            continue
        stream = Stream(
            name=name,
            size_bytes=size_bytes,
            first_ms=min(part.first_ms for part in parts),
            last_ms=max(part.last_ms for part in parts),
            bulk_first_ms=bulk.first_ms,
            bulk_last_ms=bulk.last_ms,
            strange=times[name].strange,
            bytes_a_day=size_bytes * bulk.share * DAY_MS / span_ms,
        )
        streams.append(stream)
    if not streams:
        return None
    streams.sort(key=lambda stream: (-stream.bytes_a_day, stream.name))
    return Rate(
        bytes_a_day=sum(stream.bytes_a_day for stream in streams),
        told_by="timestamps",
        untold_bytes=untold_bytes,
        streams=tuple(streams),
    )


def rate_of_user(rate_mb_s: float) -> Rate:
    """Return the rate that the user gives: rate_mb_s * 10**6 bytes per second. Raise InvalidConfig."""
    if not isfinite(rate_mb_s) or rate_mb_s <= 0:
        raise InvalidConfig(f"rate_mb_s: {rate_mb_s:g} is not above 0")
    return Rate(bytes_a_day=rate_mb_s * MB * DAY_S, told_by="user")


def month(bytes_a_day: float, traffic: Traffic, prices: Prices) -> Month:
    """Return the cost of a month's storage and network. Bytes are counted as in `migration.bills.load`.

    Bytes in go from producers to leaders and from leaders to followers. Bytes out go to consumers and followers. Each
    replica keeps its bytes for the retention.
    """
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
