"""The rate of a log in bytes per day, by the timestamps of its records or as the user gives it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final, Literal

from kfbench.errors import InvalidConfig
from kfbench.layouts import DAY_MS
from kfbench.whatif.record_times import TimeHistogram
from kfbench.whatif.sums import StoredSource

DAY_S: Final = 86_400
LEAST_SPAN_MS: Final = 60_000  # a topic whose timestamps span less time gives no rate
MB: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class TopicRate:
    """The size of a topic and the time span in which its records came.

    If the topic is unknown, a file or folder takes its place.

    Args:
        first_ms, last_ms: the first and the last timestamp of all records.
        bulk_first_ms, bulk_last_ms: the first and the last timestamp without the records at both ends (see
            `TimeHistogram.bulk`). The rate is computed from these.
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
    streams: tuple[TopicRate, ...] = ()


def rate_of(sources: Iterable[StoredSource], times: Mapping[str, TimeHistogram]) -> Rate | None:
    """Return the sum of all topics' rates; None if the timestamps of each topic span less than LEAST_SPAN_MS.

    The rate of a topic is computed without the records at both ends. Their share of the bytes is left out, too.

    times: `LogSums.times`.
    """
    parts_by_stream: dict[str, list[StoredSource]] = {}
    for source in sources:
        if source.first_ms >= 0:
            parts_by_stream.setdefault(source.stream, []).append(source)
    streams, untold_bytes = list[TopicRate](), 0
    for name, parts in parts_by_stream.items():
        size_bytes, bulk = sum(part.base_bytes for part in parts), times[name].bulk()
        if bulk is None or (span_ms := bulk.last_ms - bulk.first_ms) < LEAST_SPAN_MS:
            untold_bytes += size_bytes
            continue
        stream = TopicRate(
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
