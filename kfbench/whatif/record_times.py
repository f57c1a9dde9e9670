"""The timestamps of a log's records: their unit, a histogram, and the time span of most records.

Kafka's timestamps are in ms, but a producer may write any number. `TimeUnits` counts numbers by their magnitude, and
tells the unit of a topic. A part is read before its topic is known. So `TimeReader` takes the unit of the part's first
numbers. If the topic's unit turns out to be another one, the source is read again (`ask`).

Histograms of parts add up. A histogram has at most MOST_BINS bins that are not empty. A bin is 2**shift ms wide. The
width is the smallest that gives at most MOST_BINS bins. So it depends only on the records, not on the order in which
parts are added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.layouts import NO_TIMESTAMP
from kfbench.present.table import listed
from kfbench.sources.time_columns import UNITS, Unit, to_ms
from kfbench.text import percent
from kfbench.whatif.rebatch import LATEST_MS, SentRecords

COUNTER_END: Final = 10**8  # smaller numbers may be counters; as seconds, it is in 1973
# The seconds from 1995 to 2099. Other counts (100 ns since 1601 or the year 1, digits of a date) fall outside.
PLAUSIBLE_S: Final = (788_918_400, 4_102_444_800)
LIMITS: Final = np.array([1, *(limit * scale for scale in UNITS.values() for limit in (COUNTER_END, *PLAUSIBLE_S))])
# The unit of a number by its place among the limits: 0 or less, a counter, then three places in each unit.
UNIT_OF: Final[tuple[Unit, ...]] = ("s", "s", *(unit for unit in UNITS for _ in range(3)))
SYMBOLS: Final[Mapping[Unit, str]] = {"s": "s", "ms": "ms", "us": "µs", "ns": "ns"}
MOST_NAMES: Final = 3  # topics or files in one line
FEWEST: Final = 10  # timestamps that show whether all are whole seconds
MOST_OTHERS: Final = 0.01  # the largest share of timestamps that may look like another unit
MOST_ABSENT: Final = 0.1  # the largest share of timestamps of 0 or less, which tell nothing

FIRST_SHIFT: Final = 10  # 1,024 ms: a sixtieth of the shortest span that gives a rate
MOST_BINS: Final = 512
ENDS: Final = 50  # one in 50 records at the beginning, and as many at the end, are not in the bulk


def unknown_unit(doubts: Mapping[str, str]) -> str:
    """Return a line that names topics or files whose unit is unknown, and the option that settles it.

    doubts: name -> `TopicUnit.doubt`.
    """
    names = [f"{name} ({doubt})" for name, doubt in doubts.items()]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES:] = [f"{len(names) - MOST_NAMES:,} more"]
    units = "|".join(UNITS)
    return (
        f"{listed(names)}: timestamps of unknown unit tell no batches by linger.ms: give it by --timestamp-unit {units}"
    )


@dataclass(frozen=True)
class TimeUnits:
    """Counts of the timestamps of a part or topic by their magnitude, which tells the unit.

    Args:
        numbers: the counts of timestamps that are plain numbers: 0 or less, counters, then before 1995, plausible and
            after 2099 for each unit. All timestamps of a log are plain numbers.
        in_ms: the count of the other timestamps of a table. Their type has a unit.
        whole_seconds: the count of timestamps that are whole seconds, as they were read.
        read_as: the units in which numbers were read.
    """

    numbers: tuple[int, ...] = (0,) * len(UNIT_OF)
    in_ms: int = 0
    whole_seconds: int = 0
    read_as: frozenset[Unit] = frozenset()

    @classmethod
    def of(cls, numbers: Int64) -> Self:
        known = numbers[numbers != NO_TIMESTAMP]
        counts = np.bincount(np.searchsorted(LIMITS, known, "right"), minlength=len(UNIT_OF))
        return cls(tuple(counts.tolist()))

    def plus(self, other: Self) -> Self:
        return type(self)(
            tuple(one + more for one, more in zip(self.numbers, other.numbers, strict=True)),
            self.in_ms + other.in_ms,
            self.whole_seconds + other.whole_seconds,
            self.read_as | other.read_as,
        )

    @property
    def known(self) -> int:
        """The number of timestamps."""
        return sum(self.numbers) + self.in_ms

    @property
    def has_numbers(self) -> bool:
        """True if there is a number above 0. What time it is depends on the unit."""
        return any(self.numbers[1:])

    @property
    def has_whole_seconds(self) -> bool:
        """True if nearly all timestamps are whole seconds, and not by chance."""
        return self.known >= FEWEST and self.whole_seconds >= (1 - MOST_OTHERS) * self.known

    @property
    def likely(self) -> Unit:
        """The unit of the median of the numbers above 0; ms if there are none, or most may be counters."""
        until = np.cumsum((0, *self.numbers[1:]))
        if self.numbers[1] * 2 > until[-1] or not until[-1]:
            return "ms"
        return UNIT_OF[int(np.searchsorted(until, (until[-1] + 1) // 2))]

    @property
    def doubt(self) -> str | None:
        """The reason why the unit of the numbers is unknown; None: it is `likely`, or there are no numbers."""
        numbers = sum(self.numbers)
        most_others = MOST_OTHERS * self.known
        if numbers <= most_others:
            return None
        absent, counters, *of_units = self.numbers
        if (absent + counters) * 2 > numbers:
            return f"{percent((absent + counters) / numbers)} are below {COUNTER_END:,}, as counters are"
        if absent > MOST_ABSENT * numbers:
            return f"{percent(absent / numbers)} are 0 or less"
        by_unit = {unit: of_units[3 * i : 3 * i + 3] for i, unit in enumerate(UNITS)}
        early, plausible, late = by_unit[self.likely]
        others = numbers - absent - plausible
        if others <= most_others:
            return None
        if others - early - late <= most_others:
            share, unit = percent((early + late) / numbers, 2), SYMBOLS[self.likely]
            return f"{share} would be before 1995 or after 2099 in {unit}"
        shares = [f"{percent(sum(n) / numbers, 2)} look like {SYMBOLS[unit]}" for unit, n in by_unit.items() if any(n)]
        return ", ".join([f"{percent(counters / numbers, 2)} like counters"] * bool(counters) + shares)


class TopicUnit(NamedTuple):
    """The unit of a topic's numbers, and how it is known; None: there are no numbers, or the unit is unknown.

    doubt: the reason why it is unknown.
    """

    unit: Unit | None = None
    known_from: Literal["values", "option"] | None = None
    doubt: str | None = None

    @classmethod
    def of(cls, units: TimeUnits, option: Unit | None) -> Self:
        """Return the unit. option: the unit that the user gives, if any."""
        if option is not None:
            return cls(option, "option") if any(units.numbers) else cls()
        if units.doubt is not None:
            return cls(doubt=units.doubt)
        is_told = any(units.numbers[2:])  # a counter tells no unit
        return cls(units.likely, "values") if is_told else cls()


class TimeReader:
    """Reads the timestamps of a part in ms.

    Args:
        unit: the unit of numbers; None: that of the first numbers of the part.
    """

    def __init__(self, unit: Unit | None = None) -> None:
        self.units = TimeUnits()
        self._unit = unit

    def read(self, given: SentRecords, is_ms: NDArray[np.bool_] | None) -> SentRecords:
        """Return the records with their times in ms. Those of a log keep their timestamps; a table's get the times.

        is_ms: see `Chunk`.
        """
        stored = given.records.timestamps_ms
        found = TimeUnits.of(stored if is_ms is None else stored[~is_ms])
        if self._unit is None and found.has_numbers:
            self._unit = found.likely
        times_ms = to_ms(stored, self._unit or "ms")
        if is_ms is not None:
            times_ms = np.where(is_ms, stored, times_ms)
            given = given._replace(records=given.records.at_times(times_ms))
        known = times_ms[times_ms != NO_TIMESTAMP]
        read_as = frozenset({self._unit} if self._unit and found.has_numbers else ())
        in_ms = 0 if is_ms is None else int((is_ms & (stored != NO_TIMESTAMP)).sum())
        self.units = self.units.plus(TimeUnits(found.numbers, in_ms, int((known % 1000 == 0).sum()), read_as))
        given.owners["time_ms"] = times_ms
        return given


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
class TimeHistogram:
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
        while len(starts := np.flatnonzero(np.diff(ordered >> shift, prepend=-1))) > MOST_BINS:
            shift += 1
        ends = np.append(starts[1:], len(ordered))
        columns = (ordered[starts] >> shift, ordered[starts], ordered[ends - 1], ends - starts)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return cls(shift, {number: Bin(*row) for number, *row in rows}, strange)

    def plus(self, other: Self) -> Self:
        shift = max(self.shift, other.shift)
        while len(bins := _merge_bins((self, other), shift)) > MOST_BINS:
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
        first, last = (np.searchsorted(np.cumsum(each), most_left_out, "right") for each in (counts, counts[::-1]))
        end = len(bins) - last
        return Bulk(bins[first].first_ms, bins[end - 1].last_ms, sum(counts[first:end]) / sum(counts))


def _merge_bins(parts: tuple[TimeHistogram, ...], shift: int) -> dict[int, Bin]:
    bins: dict[int, Bin] = {}
    for times in parts:
        for number, each in times.bins.items():
            wider = number >> (shift - times.shift)
            known = bins.get(wider) or each._replace(records=0)
            first_ms, last_ms = min(known.first_ms, each.first_ms), max(known.last_ms, each.last_ms)
            bins[wider] = Bin(first_ms, last_ms, known.records + each.records)
    return bins
