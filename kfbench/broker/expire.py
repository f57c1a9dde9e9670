"""Expiry by time: whole segments, or also the head of the first living one (seed proposal "Enriched metadata").

Kafka deletes segments, the oldest first, while the largest timestamp of each is too old by `retention.ms`
(`UnifiedLog.deleteRetentionMsBreachedSegments`). One young record keeps all older ones in its segment. The proposal
cuts those off: an index entry says that all batches before its position are old.

A file cannot lose its head in place. The rest is written anew, unless the file system collapses the range
(`FALLOC_FL_COLLAPSE_RANGE`: ext4, xfs) in whole blocks. Kafka's `DeleteRecords` (the log start offset) frees no byte
before the whole segment is deleted.

v0 has no timestamps, so Kafka uses the time when a segment's file was last written: a new replica or a restored copy
has it from the day it was made. No head can be cut off there. In other formats a batch without a timestamp counts as
old as the batches before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.batches import EncodedLog
from kfbench.broker.batch_headers import headers
from kfbench.broker.source import bytes_of, find
from kfbench.broker.time_index import ENTRY_BYTES, INTERVAL_BYTES, TimeIndex
from kfbench.broker.work import Work
from kfbench.errors import IllegalCombination, InvalidRecords, Refused
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP

By = Literal["segment", "head"]
Granularity = Literal["segment", "index entry", "batch"]
BLOCK_BYTES: Final = 4096  # of a file system


@dataclass(frozen=True, kw_only=True)
class Expired:
    """The segments that are left, as views of those given. With `head_bytes` the first is written anew without them.

    deleted_segments: whole segments. deleted_bytes: all bytes that went. granularity: the kind of position where the
    log now begins. work: index entries and headers that were read, and the new segment. Batches are counted only where
    their headers were read, which indexes make unnecessary.
    """

    segments: tuple[Bytes, ...]
    deleted_segments: int
    head_bytes: int
    deleted_bytes: int
    granularity: Granularity
    before_ms: int
    fmt: Format | None
    work: Work

    @property
    def collapsed_bytes(self) -> int:
        """The bytes of the head that a file system could remove in whole blocks, with nothing written."""
        return self.head_bytes // BLOCK_BYTES * BLOCK_BYTES

    @cached_property
    def overdue_bytes(self) -> int:
        """The bytes of remaining batches that hold only records older than before_ms.

        Not part of the work: all remaining headers are read at the first use. Raises CorruptLog.
        """
        return sum(_old_bytes(headers(segment, self.fmt), self.before_ms) for segment in self.segments)


def expire(
    segments: Sequence[EncodedLog | Any],
    before_ms: int,
    by: By = "segment",
    *,
    fmt: Format | str | None = None,
    indexes: Sequence[TimeIndex] | None = None,
    interval_bytes: int = INTERVAL_BYTES,
    exact: bool = False,
    active: bool = True,
    modified_ms: Sequence[int] | None = None,
) -> Expired:
    """Delete records older than before_ms, from the oldest segment on.

    by: "segment", or "head": the first living segment is also cut off, at the last index entry before which all is
    old. exact: from there, headers are read up to the first batch that is not old. indexes: one per segment, as a
    broker has them; None: built from every header with interval_bytes. active: False: the last segment, which is
    written to, stays; True: it is deleted when it is old enough, as Kafka rolls it. An empty last segment always stays.
    modified_ms: the time of the last write of each file, for segments without timestamps, which are only deleted whole.
    Raises Refused for such a segment without modified_ms, CorruptLog, InvalidRecords, IllegalCombination.
    """
    if by not in ("segment", "head"):
        raise IllegalCombination(f'by: "segment" or "head" is wanted, not {by!r}')
    for name, given in (("indexes", indexes), ("modified_ms", modified_ms)):
        if given is not None and len(given) != len(segments):
            raise InvalidRecords(f"{name}: {len(given)} items for {len(segments)} segments")
    known = None if fmt is None else find(fmt)
    data = [bytes_of(segment) for segment in segments]
    end = len(data) if active and data and len(data[-1]) else len(data) - 1
    first, work, alive = _first_alive(data, before_ms, end, known, indexes, interval_bytes, modified_ms)
    head, rows = 0, alive.rows
    granularity: Granularity = "segment"
    if by == "head" and alive.time_index is not None:
        head, granularity = alive.time_index.by_time(before_ms), "batch" if exact else "index entry"
        work += Work(read_bytes=alive.time_index.lookup_bytes)
        if exact:
            passed = headers(data[first], known, head, to_ms=before_ms)
            work += Work(read_bytes=int(passed["header_bytes"].sum()))
            head = int(passed["position"][-1])  # the segment is alive, so one batch is young enough
            rows = passed if rows is None else rows
    kept = data[first:]
    if head:
        kept[0] = kept[0][head:].copy()
        work += Work(read_bytes=len(kept[0]), written_bytes=len(kept[0]))
    if rows is not None:
        gone = int(np.searchsorted(rows["position"], head))
        left = len(rows) - gone
        work += Work(dropped=gone, shifted=left if head else 0, untouched=0 if head else left)
    return Expired(
        segments=tuple(kept),
        deleted_segments=first,
        head_bytes=head,
        deleted_bytes=sum(map(len, data[:first])) + head,
        granularity=granularity,
        before_ms=before_ms,
        fmt=known,
        work=work,
    )


class _Segment(NamedTuple):
    """The knowledge of a segment: its index where that decided, and its headers where they were read."""

    time_index: TimeIndex | None = None
    rows: NDArray[np.void] | None = None


def _first_alive(
    data: Sequence[Bytes],
    before_ms: int,
    end: int,
    fmt: Format | None,
    indexes: Sequence[TimeIndex] | None,
    interval_bytes: int,
    modified_ms: Sequence[int] | None,
) -> tuple[int, Work, _Segment]:
    """Return the number of the first living segment (at most `end`), the work, and the knowledge of that segment."""
    work = Work()
    for number in range(end):
        rows = headers(data[number], fmt) if indexes is None else None
        if rows is None:
            assert indexes is not None
            index: TimeIndex | None = indexes[number]
        else:
            index = TimeIndex.of_headers(rows, interval_bytes)
            work += Work(read_bytes=index.work.read_bytes)
        assert index is not None
        work += Work(read_bytes=ENTRY_BYTES)  # the last entry: the largest timestamp
        largest_ms = index.largest_ms
        if largest_ms == NO_TIMESTAMP and len(data[number] if rows is None else rows):
            if modified_ms is None:
                raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "no timestamp says how old the segment is")
            largest_ms, index = modified_ms[number], None
        if largest_ms >= before_ms:
            return number, work, _Segment(index, rows)
        work += Work(dropped=0 if rows is None else len(rows))
    return max(end, 0), work, _Segment()


def _old_bytes(rows: NDArray[np.void], before_ms: int) -> int:
    """Return the bytes of batches whose largest timestamp is before before_ms."""
    old = (rows["max_timestamp_ms"] < before_ms) & (rows["max_timestamp_ms"] != NO_TIMESTAMP)
    return int(rows["size_bytes"][old].sum())


__all__ = ["Expired", "expire"]
