"""Expiry by time: whole segments, or the head of the first living one as well (seed proposal "Enriched metadata").

Kafka deletes segments from the oldest on while the largest timestamp of each is older than `retention.ms` asks for
(`UnifiedLog.deleteRetentionMsBreachedSegments`). One young record keeps all the old ones before it in its segment. The
proposal cuts those off: an index entry says that all batches before its position are old.

A file cannot lose its head in place: what is left is written anew, unless the file system collapses the range
(`FALLOC_FL_COLLAPSE_RANGE`: ext4, xfs), and that takes whole blocks. Kafka's own way to forget a head
(`DeleteRecords`, the log start offset) frees no byte before the segment goes.

v0 has no timestamps, so Kafka goes by the time its segments' files were last written, which a new replica or a restored
copy has from the day it was made. No head can be cut off: nothing says what is old inside. Among others a batch without
a timestamp is taken to be as old as what stands before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

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
BLOCK_BYTES: Final = 4096  # of a file system


@dataclass(frozen=True, kw_only=True)
class Expired:
    """The segments that are left, as views of what came in; the first is written anew, without the `head_bytes` that
    went from it, where there are any.

    deleted_segments: how many went whole. deleted_bytes: all that went. granularity: what decided where the log now
    begins. work: the index entries and headers that were read to know, and the new segment. Batches are counted where
    their headers were read: with indexes nobody knows how many there are.
    """

    segments: tuple[Bytes, ...]
    deleted_segments: int
    head_bytes: int
    deleted_bytes: int
    granularity: Literal["segment", "index entry", "batch"]
    before_ms: int
    fmt: Format | None
    work: Work

    @property
    def collapsed_bytes(self) -> int:
        """How much of the head a file system could take away in whole blocks, with nothing written."""
        return self.head_bytes // BLOCK_BYTES * BLOCK_BYTES

    @cached_property
    def overdue_bytes(self) -> int:
        """Batches that are left though every record in them is older than was asked.

        No part of the work: every header that is left is read when this is first asked for. Raises CorruptLog.
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
    """Deletes what is older than before_ms, from the oldest segment on.

    by: "segment", or "head": the first living segment is cut off at its last index entry before which all is old; with
    exact=True headers are read on from there, to the first batch that is not. indexes: one a segment, as a broker has
    them; None: built here with interval_bytes, from every header. active=False: the last segment, which is written to,
    stays as it is (Kafka rolls it where it is old enough, and so does active=True; an empty last one always stays).
    modified_ms: when each file was last written, for segments without any timestamp, which only go whole. Raises
    Refused for such a segment without that, CorruptLog, InvalidRecords, IllegalCombination.
    """
    if by not in ("segment", "head"):
        raise IllegalCombination(f'by: "segment" or "head" is wanted, not {by!r}')
    for name, given in (("indexes", indexes), ("modified_ms", modified_ms)):
        if given is not None and len(given) != len(segments):
            raise InvalidRecords(f"{name}: {len(given)} items for {len(segments)} segments")
    found = None if fmt is None else find(fmt)
    data = [bytes_of(segment) for segment in segments]
    work, first, head = Work(), 0, 0
    last = len(data) if active and data and len(data[-1]) else len(data) - 1
    rows, index = None, None  # of the segment that is looked at
    while first < last:
        if indexes is None:
            rows = headers(data[first], found)
            index = TimeIndex.of_headers(rows, interval_bytes)
            work += Work(read_bytes=index.work.read_bytes)
        else:
            index = indexes[first]
        work += Work(read_bytes=ENTRY_BYTES)  # the last entry: the largest timestamp
        largest = index.largest_ms
        if largest == NO_TIMESTAMP and len(data[first] if rows is None else rows):
            if modified_ms is None:
                raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "no timestamp says how old the segment is")
            largest, index = modified_ms[first], None
        if largest >= before_ms:
            break
        work += Work(dropped=0 if rows is None else len(rows))
        first, rows, index = first + 1, None, None
    granularity: Literal["segment", "index entry", "batch"] = "segment"
    if by == "head" and index is not None:
        head, granularity = index.by_time(before_ms), "batch" if exact else "index entry"
        work += Work(read_bytes=index.lookup_bytes)
        if exact:
            passed = headers(data[first], found, head, to_ms=before_ms)
            work += Work(read_bytes=int(passed["header_bytes"].sum()))
            head = int(passed["position"][-1])  # one is young enough: the segment is alive
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
        fmt=found,
        work=work,
    )


def _old_bytes(rows: NDArray[np.void], before_ms: int) -> int:
    """The batches that hold no record of that time or later, and say so."""
    old = (rows["max_timestamp_ms"] < before_ms) & (rows["max_timestamp_ms"] != NO_TIMESTAMP)
    return int(rows["size_bytes"][old].sum())


__all__ = ["Expired", "expire"]
