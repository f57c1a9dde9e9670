"""The cost of a month of a log in storage and network, from its rate in bytes per day."""

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
LEAST_SPAN_MS: Final = 60_000  # a topic whose times span less gives no rate
MB: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A topic, or a file or folder in its place: its bytes and the time in which they came.

    first_ms, last_ms: of all records. bulk_first_ms, bulk_last_ms: without the ends (`Times.bulk`); the rate comes from
    these. strange: records with a time that no clock shows.
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
    """Bytes per day before replication: as stored now, or of plain v2 where the source has no batches.

    told_by: the origin of the rate. streams: the most bytes per day first. untold_bytes: of streams that span less than
    LEAST_SPAN_MS and are not in the rate.
    """

    bytes_a_day: float
    told_by: Literal["timestamps", "user"]
    untold_bytes: int = 0
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Month:
    """A month of a log: bytes kept by all replicas, bytes in and out of brokers, and their US$."""

    stored_bytes: float
    network_bytes: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.storage + self.network


def rate_of(sources: Iterable[Source], times: Mapping[str, Times]) -> Rate | None:
    """Sum the rates of all streams: the bytes of a stream's bulk over the time of its bulk.

    None where no stream spans LEAST_SPAN_MS. times: `Tally.times`.
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
    """Return the rate that the user gives: rate_mb_s * 10**6 bytes per second. Raises InvalidConfig."""
    if not isfinite(rate_mb_s) or rate_mb_s <= 0:
        raise InvalidConfig(f"rate_mb_s: {rate_mb_s:g} is not above 0")
    return Rate(bytes_a_day=rate_mb_s * MB * DAY_S, told_by="user")


def month(bytes_a_day: float, traffic: Traffic, prices: Prices) -> Month:
    """Return a month's storage and network, counted as in `migration.bills.load`.

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
