"""The index of the proposal "Kafka Enriched Message Metadata": offset, timestamp and position in one file.

Kafka has two indexes. An entry of the offset index is: relative offset i32, position i32. An entry of the time index
is: timestamp i64, relative offset i32. A search by time looks up this offset in the offset index. Each index gets an
entry every `interval_bytes` (`index.interval.bytes`).

An entry of the proposed index has 16 bytes: relative offset i32, timestamp i64, position i32.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import EncodedLog
from kfbench.broker.source import bytes_of, find, headers
from kfbench.broker.work import Work
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP

ENTRY_BYTES: Final = 16
INTERVAL_BYTES: Final = 4096  # index.interval.bytes


@dataclass(frozen=True, kw_only=True)
class TimeIndex:
    """An index of a segment. The columns offsets, timestamps_ms and positions are int64[entries] and rise.

    Args:
        offsets: offsets[i] is the last offset of the batch that begins at byte positions[i].
        timestamps_ms: timestamps_ms[i] is the largest timestamp from the segment's start to the end of this batch.
        positions: see `offsets`.
        largest_ms: the largest timestamp of the whole segment; -1: no batch has a timestamp.
        work: counters of building the index.
    """

    offsets: Int64
    timestamps_ms: Int64
    positions: Int64
    largest_ms: int
    work: Work = field(default_factory=Work)

    @classmethod
    def build(
        cls, log: EncodedLog | Any, interval_bytes: int = INTERVAL_BYTES, *, fmt: Format | str | None = None
    ) -> Self:
        """Build the index from the headers of a log's batches, as `LogSegment.recover` does. Raise CorruptLog.

        A batch gets an entry if it begins more than interval_bytes after the last batch with an entry. With 0 every
        batch except the first gets one.
        """
        return cls.of_headers(headers(bytes_of(log), None if fmt is None else find(fmt)), interval_bytes)

    @classmethod
    def of_headers(cls, rows: NDArray[np.void], interval_bytes: int = INTERVAL_BYTES) -> Self:
        """Build the index from the header rows (dtype HEADER) of all batches."""
        largest = np.maximum.accumulate(rows["max_timestamp_ms"])
        entries = _spaced_entries(rows["position"], interval_bytes)
        return cls(
            offsets=rows["last_offset"][entries],
            timestamps_ms=largest[entries],
            positions=rows["position"][entries],
            largest_ms=int(largest[-1]) if len(rows) else NO_TIMESTAMP,
            work=Work(untouched=len(rows), read_bytes=int(rows["header_bytes"].sum())),
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def lookup_bytes(self) -> int:
        """The largest number of bytes that a binary search reads in the index."""
        return ENTRY_BYTES * len(self).bit_length()

    def by_offset(self, offset: int) -> int:
        """Return the byte position where the search for an offset starts.

        It is the position of the last entry whose offset is `offset` or less. Without one, it is 0, the segment's
        start.
        """
        return self._at(int(np.searchsorted(self.offsets, offset, side="right")))

    def by_time(self, timestamp_ms: int) -> int:
        """Return the byte position where the search for a time starts. All batches before it are older."""
        return self._at(int(np.searchsorted(self.timestamps_ms, timestamp_ms, side="left")))

    def _at(self, entries: int) -> int:
        return int(self.positions[entries - 1]) if entries else 0


def _spaced_entries(positions: Int64, interval_bytes: int) -> Int64:
    if interval_bytes <= 0:
        return np.arange(1, len(positions))
    found, last = list[int](), 0
    while True:
        at = int(np.searchsorted(positions, last + interval_bytes, side="right"))
        if at >= len(positions):
            return np.array(found, np.int64)
        found.append(at)
        last = int(positions[at])
