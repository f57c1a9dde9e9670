"""The timestamps of a log's records as a histogram, and the time span of most records.

Histograms of parts add up. A histogram has at most MOST_BINS bins that are not empty. A bin is 2**shift ms wide. The
width is the smallest that gives at most MOST_BINS bins. So it depends only on the records, not on the order in which
parts are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

import numpy as np

from kfbench.arrays import Int64
from kfbench.layouts import NO_TIMESTAMP
from kfbench.whatif.rebatch import LATEST_MS

FIRST_SHIFT: Final = 10  # 1,024 ms: a sixtieth of the shortest span that gives a rate
MOST_BINS: Final = 512
ENDS: Final = 50  # one in 50 records at the beginning, and as many at the end, are not in the bulk


def moment(time_ms: int) -> str:
    """Return a time as a date in UTC; as a number of ms if it is negative or after LATEST_MS."""
    if not 0 <= time_ms <= LATEST_MS:
        return f"{time_ms} ms"
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


class Bin(NamedTuple):
    """The first and the last timestamp in a bin of the histogram, and its number of records."""

    first_ms: int
    last_ms: int
    records: int


class Bulk(NamedTuple):
    """The first and the last timestamp without the records at both ends. share: share of all records between them."""

    first_ms: int
    last_ms: int
    share: float


@dataclass(frozen=True)
class Times:
    """A histogram of timestamps. Records without a timestamp are not counted.

    Args:
        shift: each bin is 2**shift ms wide.
        bins: number of the bin -> `Bin`. A timestamp is in bin number `timestamp >> shift`.
        strange: number of records in no bin, because their timestamp is 0, before 1970 or not before LATEST_MS.
    """

    shift: int = FIRST_SHIFT
    bins: Mapping[int, Bin] = field(default_factory=dict)
    strange: int = 0

    @classmethod
    def of(cls, times_ms: Int64) -> Self:
        known = times_ms[times_ms != NO_TIMESTAMP]
        ordered = np.sort(known[(known > 0) & (known < LATEST_MS)])
        strange, shift = len(known) - len(ordered), FIRST_SHIFT
        if not len(ordered):
            return cls(strange=strange)
        while len(starts := _starts(ordered >> shift)) > MOST_BINS:
            shift += 1
        ends = np.append(starts[1:], len(ordered))
        columns = (ordered[starts] >> shift, ordered[starts], ordered[ends - 1], ends - starts)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return cls(shift, {number: Bin(*row) for number, *row in rows}, strange)

    def plus(self, other: Self) -> Self:
        shift = max(self.shift, other.shift)
        while len(bins := _merged((self, other), shift)) > MOST_BINS:
            shift += 1
        return type(self)(shift, bins, self.strange + other.strange)

    def bulk(self) -> Bulk | None:
        """Return the time span without the earliest and the latest records. None: there are no timestamps.

        At either end, at most one in ENDS records is left out. If this is none, one record may be left out of four or
        more. Only whole bins are left out.
        """
        bins = sorted(self.bins.values())
        if not bins:
            return None
        counts = [each.records for each in bins]
        most_left_out = max(sum(counts) // ENDS, sum(counts) > 3)
        first, end = _leading(counts, most_left_out), len(bins) - _leading(counts[::-1], most_left_out)
        return Bulk(bins[first].first_ms, bins[end - 1].last_ms, sum(counts[first:end]) / sum(counts))


def _starts(numbers: Int64) -> Int64:
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _merged(parts: tuple[Times, ...], shift: int) -> dict[int, Bin]:
    bins: dict[int, Bin] = {}
    for times in parts:
        for number, each in times.bins.items():
            wider = number >> (shift - times.shift)
            known = bins.get(wider) or each._replace(records=0)
            first_ms, last_ms = min(known.first_ms, each.first_ms), max(known.last_ms, each.last_ms)
            bins[wider] = Bin(first_ms, last_ms, known.records + each.records)
    return bins


def _leading(counts: list[int], limit: int) -> int:
    """Return how many of the first counts have a sum of at most `limit`."""
    total = 0
    for i, count in enumerate(counts):
        total += count
        if total > limit:
            return i
    return len(counts)
