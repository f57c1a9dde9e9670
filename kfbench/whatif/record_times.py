"""When the records of a log were made, as sums that add up over its parts, and the time that their bulk spans.

A histogram of at most MOST_BINS bins that hold something. Bins are 2**shift ms wide, and the width is the least that
gives so few: it follows from the records alone, not from the order in which parts are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

import numpy as np

from kfbench.arrays import Int64
from kfbench.layouts import NO_TIMESTAMP
from kfbench.whatif.rebatch import LATEST_MS

FIRST_SHIFT: Final = 10  # 1,024 ms: a sixtieth of the shortest span that says anything
MOST_BINS: Final = 512
ENDS: Final = 50  # at either end, one in so many records may have any time


def moment(time_ms: int) -> str:
    """A time as people read it, in UTC; what no clock shows as a number."""
    if not 0 <= time_ms <= LATEST_MS:
        return f"{time_ms} ms"
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


class Bulk(NamedTuple):
    """The times of all records but those at the ends, and which share of all records they are."""

    first_ms: int
    last_ms: int
    share: float


@dataclass(frozen=True)
class Times:
    """bins: number of the bin -> (first, last, records), in ms since 1970. strange: records whose time is 0, before
    1970 or after LATEST_MS, which are in no bin; records without a time are nowhere."""

    shift: int = FIRST_SHIFT
    bins: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
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
        return cls(shift, {number: (first, last, records) for number, first, last, records in rows}, strange)

    def plus(self, other: Self) -> Self:
        shift = max(self.shift, other.shift)
        while len(bins := _merged((self, other), shift)) > MOST_BINS:
            shift += 1
        return type(self)(shift, bins, self.strange + other.strange)

    def bulk(self) -> Bulk | None:
        """Without the first and the last one in ENDS, one record at least where there are four; None: no times."""
        bins = sorted(self.bins.values())
        if not bins:
            return None
        records = sum(number for _, _, number in bins)
        may_go = max(records // ENDS, records > 3)
        first, end = _beyond([number for *_, number in bins], may_go), len(bins)
        end -= _beyond([number for *_, number in reversed(bins)], may_go)
        kept = bins[first:end]
        return Bulk(kept[0][0], kept[-1][1], sum(number for *_, number in kept) / records)


def _starts(numbers: Int64) -> Int64:
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _merged(each: tuple[Times, ...], shift: int) -> dict[int, tuple[int, int, int]]:
    bins: dict[int, tuple[int, int, int]] = {}
    for times in each:
        for number, (first, last, records) in times.bins.items():
            there = bins.get(to := number >> (shift - times.shift), (first, last, 0))
            bins[to] = min(there[0], first), max(there[1], last), there[2] + records
    return bins


def _beyond(numbers: list[int], may_go: int) -> int:
    """How many of them together are `may_go` at most."""
    gone = 0
    for i, number in enumerate(numbers):
        gone += number
        if gone > may_go:
            return i
    return len(numbers)
