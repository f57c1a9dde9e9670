"""Delete old records: whole segments, or also the head of the first remaining one (proposal "Enriched metadata").

Kafka deletes the oldest segments as long as the largest timestamp of each is older than `retention.ms`
(`UnifiedLog.deleteRetentionMsBreachedSegments`). One young record keeps all older records of its segment. The proposal
cuts off these older records: an index entry proves that all batches before its position are old.

The head of a file cannot be removed in place. The rest is copied to a new file, unless the file system can remove whole
blocks from the middle of a file (`FALLOC_FL_COLLAPSE_RANGE`: ext4, xfs). Kafka's `DeleteRecords` only moves the log
start offset. It frees no byte before the whole segment is deleted.

v0 has no timestamps, so Kafka uses the modification time of the segment's file. For a new replica or a restored copy
this is the time of the copy. The head of a v0 segment cannot be cut off. In other formats a batch without a timestamp
counts as old as the batches before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.batches import EncodedLog
from kfbench.broker.source import bytes_of, find, headers
from kfbench.broker.time_index import ENTRY_BYTES, INTERVAL_BYTES, TimeIndex
from kfbench.broker.work import Work
from kfbench.errors import IllegalCombination, InvalidRecords, Refused
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP

By = Literal["segment", "head"]


@dataclass(frozen=True, kw_only=True)
class ExpireResult:
    """The log after the deletion.

    Args:
        segments: the remaining segments, as views of the input. If `head_bytes` is not 0, the first one is a copy
            without its head.
        deleted_segments: number of segments that were deleted as a whole.
        head_bytes: number of bytes cut off the first remaining segment.
        work: index entries and headers that were read, and the bytes of the copied segment. Batches count only if their
            headers were read, which is not necessary with indexes.
    """

    segments: tuple[Bytes, ...]
    deleted_segments: int
    head_bytes: int
    work: Work


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
) -> ExpireResult:
    """Delete records older than before_ms, starting with the oldest segment.

    Raises Refused if modified_ms is needed and missing, CorruptLog, InvalidRecords, IllegalCombination.

    Args:
        segments: the segments of a log, the oldest first.
        by: "segment", or "head": also cut off the old head of the first remaining segment, at an index entry.
        fmt: the format of the segments; None: found by the magic of each batch.
        indexes: one per segment, as a broker has them. None: each is built from all headers of its segment.
        interval_bytes: the least number of bytes between two entries of an index that is built.
        exact: from this index entry on, read headers up to the first batch that is not old, and cut there.
        active: also delete the last segment if it is old and not empty, because Kafka rolls it.
        modified_ms: the modification time of each file, for segments without timestamps. These are deleted whole only.
    """
    if by not in ("segment", "head"):
        raise IllegalCombination(f'by: "segment" or "head" is wanted, not {by!r}')
    for name, given in (("indexes", indexes), ("modified_ms", modified_ms)):
        if given is not None and len(given) != len(segments):
            raise InvalidRecords(f"{name}: {len(given)} items for {len(segments)} segments")
    known = None if fmt is None else find(fmt)
    data = [bytes_of(segment) for segment in segments]
    end = len(data) if active and data and len(data[-1]) else len(data) - 1
    alive = _first_alive(data, before_ms, end, known, indexes, interval_bytes, modified_ms)
    first, head, rows, work = alive.number, 0, alive.rows, alive.work
    if by == "head" and alive.time_index is not None:
        head = alive.time_index.by_time(before_ms)
        work += Work(read_bytes=alive.time_index.lookup_bytes)
        if exact:
            passed = headers(data[first], known, head, to_ms=before_ms)
            work += Work(read_bytes=int(passed["header_bytes"].sum()))
            head = int(passed["position"][-1])  # one batch of this segment is young enough
            rows = passed if rows is None else rows
    kept = data[first:]
    if head:
        kept[0] = kept[0][head:].copy()
        work += Work(read_bytes=len(kept[0]), written_bytes=len(kept[0]))
    if rows is not None:
        gone = int(np.searchsorted(rows["position"], head))
        left = len(rows) - gone
        work += Work(dropped=gone, shifted=left if head else 0, untouched=0 if head else left)
    return ExpireResult(segments=tuple(kept), deleted_segments=first, head_bytes=head, work=work)


class _Alive(NamedTuple):
    """The first segment that is not deleted.

    Args:
        number: its index.
        time_index: its index file, if this decided that it stays.
        rows: its header rows, if they were read.
    """

    number: int
    work: Work
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
) -> _Alive:
    """Find the first segment that is not old. Segments from number `end` on are not examined and stay."""
    work = Work()
    for number in range(end):
        rows: NDArray[np.void] | None = None
        if indexes is None:
            rows = headers(data[number], fmt)
            index = TimeIndex.of_headers(rows, interval_bytes)
            work += Work(read_bytes=int(rows["header_bytes"].sum()))
        else:
            index = indexes[number]
        work += Work(read_bytes=ENTRY_BYTES)  # the last entry has the largest timestamp
        largest_ms = index.largest_ms
        decisive: TimeIndex | None = index
        if largest_ms == NO_TIMESTAMP and len(data[number] if rows is None else rows):
            if modified_ms is None:
                raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "no timestamp says how old the segment is")
            largest_ms, decisive = modified_ms[number], None
        if largest_ms >= before_ms:
            return _Alive(number, work, decisive, rows)
        work += Work(dropped=0 if rows is None else len(rows))
    return _Alive(max(end, 0), work)
