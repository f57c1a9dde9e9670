"""The index of seed proposal "Kafka Enriched Message Metadata": (offset, timestamp, position) in one file.

Kafka keeps two: the offset index (relative offset i32, position i32) and the time index (timestamp i64, relative offset
i32), whose entries lead to a position through the first. Both, and this one, get an entry each `interval_bytes`
(`index.interval.bytes`); this one is 16 bytes an entry: relative offset i32, timestamp i64, position i32.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import EncodedLog
from kfbench.broker.batch_headers import headers
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import Work
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP

ENTRY_BYTES: Final = 16
OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12  # Kafka's `OffsetIndex` and `TimeIndex`
INTERVAL_BYTES: Final = 4096  # index.interval.bytes


@dataclass(frozen=True, kw_only=True)
class TimeIndex:
    """Entry i: the batch at positions[i] has the last offset offsets[i], and no timestamp up to its end is larger than
    timestamps_ms[i] (int64[entries] each, rising).

    largest_ms: of the whole segment, -1 where no batch has a timestamp. time_entries: how many Kafka's time index would
    have: it takes none without a later timestamp. work: what was read to build it.
    """

    offsets: Int64
    timestamps_ms: Int64
    positions: Int64
    largest_ms: int
    time_entries: int
    work: Work = field(default_factory=Work)

    @classmethod
    def build(
        cls, log: EncodedLog | Any, interval_bytes: int = INTERVAL_BYTES, *, fmt: Format | str | None = None
    ) -> Self:
        """From the headers of a log's batches, as `LogSegment.recover` does it; no record is looked at.

        An entry for each batch that begins more than interval_bytes behind the one before; 0: for every batch but the
        first. Raises CorruptLog.
        """
        return cls.of_headers(headers(bytes_of(log), None if fmt is None else find(fmt)), interval_bytes)

    @classmethod
    def of_headers(cls, rows: NDArray[np.void], interval_bytes: int = INTERVAL_BYTES) -> Self:
        """As `build`, from the HEADER rows of all batches."""
        largest = np.maximum.accumulate(rows["max_timestamp_ms"])
        entries = _spaced(rows["position"], interval_bytes)
        last = int(largest[-1]) if len(rows) else NO_TIMESTAMP
        said = np.append(largest[entries], last)  # the last one is written when a segment is closed
        return cls(
            offsets=rows["last_offset"][entries],
            timestamps_ms=largest[entries],
            positions=rows["position"][entries],
            largest_ms=last,
            time_entries=len(np.unique(said[said > NO_TIMESTAMP])),
            work=Work(untouched=len(rows), read_bytes=int(rows["header_bytes"].sum())),
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def index_bytes(self) -> int:
        """What it takes on disk, with a last entry for the segment's largest timestamp."""
        return ENTRY_BYTES * (len(self) + 1)

    @property
    def kafka_bytes(self) -> int:
        """What Kafka's two take for the same segment."""
        return OFFSET_ENTRY_BYTES * len(self) + TIME_ENTRY_BYTES * self.time_entries

    @cached_property
    def lookup_bytes(self) -> int:
        """What a binary search looks at, at most."""
        return ENTRY_BYTES * len(self).bit_length()

    def by_offset(self, offset: int) -> int:
        """Where a search for this offset begins: the last entry that is not behind it, else the segment's start."""
        return self._at(int(np.searchsorted(self.offsets, offset, side="right")))

    def by_time(self, timestamp_ms: int) -> int:
        """Where a search for the first record of this time or later begins: all batches before it are older."""
        return self._at(int(np.searchsorted(self.timestamps_ms, timestamp_ms, side="left")))

    def _at(self, entries: int) -> int:
        return int(self.positions[entries - 1]) if entries else 0


def _spaced(positions: Int64, interval_bytes: int) -> Int64:
    """The batches that get an entry."""
    if interval_bytes <= 0:
        return np.arange(1, len(positions))
    found, last = list[int](), 0
    while True:
        at = int(np.searchsorted(positions, last + interval_bytes, side="right"))
        if at >= len(positions):
            return np.array(found, np.int64)
        found.append(at)
        last = int(positions[at])
