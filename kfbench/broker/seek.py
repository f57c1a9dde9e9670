"""Seek in a segment: find the batch that holds an offset, or the first record of a time (`FileRecords`).

By offset, Kafka reads headers up to the first batch whose last offset is large enough. Every header has the last
offset: v0 and v1 as the wrapper's offset, v2 and v3 as base offset and delta. The *first* offset of a compressed set of
v0 or v1 is inside the set. An enriched set has the first offset in its header, and the last one follows only if there
are no holes. If the offset may be in a hole, the set is opened.

By time, Kafka opens the first batch whose largest timestamp is late enough. If records are out of order, this batch may
hold no such record at or after the starting offset. Then the search continues after the batch. v0 has no timestamps.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.batches import DecodedMetadata, EncodedLog
from kfbench.broker.batch_headers import headers
from kfbench.broker.source import bytes_of, find
from kfbench.broker.time_index import TimeIndex
from kfbench.broker.work import Work
from kfbench.errors import CorruptLog, Refused
from kfbench.formats import BY_MAGIC, Format
from kfbench.layouts import UNSET
from kfbench.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Found:
    """The batch at byte `position`, and the record that was found in it.

    Args:
        offset: by time, that of the record (`TimestampAndOffset`); by offset, the batch's last (`LogOffsetPosition`).
        base_offset: the batch's first offset; None: only its records have it, and they were not read.
        timestamp_ms: of the record; None by offset.
        work: headers that were read and batches that were opened.
        index_bytes: bytes read in the index.
    """

    position: int
    size_bytes: int
    offset: int
    base_offset: int | None
    timestamp_ms: int | None
    work: Work
    index_bytes: int = 0


def seek_offset(
    log: EncodedLog | Any,
    offset: int,
    *,
    fmt: Format | str | None = None,
    index: TimeIndex | None = None,
    base_offset: bool = False,
    limits: Limits | None = None,
) -> Found | None:
    """Find the first batch whose last offset is `offset` or more; None: the log ends before it.

    base_offset: also find the first offset of the batch, which opens a compressed set of v0 or v1. Only opened batches
    have their checksum checked. `Found.offset` of an enriched set is a lower bound. Raises CorruptLog.
    """
    search = _Search(bytes_of(log), None if fmt is None else find(fmt), limits)
    start = index.by_offset(offset) if index else 0
    rows = headers(search.data, search.fmt, start, to_offset=offset)
    search.pass_by(rows)
    wanted = len(rows) - 1
    # The last offset of a set with holes may be larger than its header says.
    reached = bool(len(rows)) and rows[-1]["last_offset"] >= offset
    before = wanted - 1 if reached else wanted
    if before >= 0 and rows[before]["last_is_least"] and not (reached and rows[wanted]["base_offset"] <= offset):
        last = int(search.open(rows[before]).offsets[-1])
        if last >= offset:
            wanted, reached = before, True
            rows["last_offset"][wanted] = last
    if not reached:
        return None
    row = rows[wanted]
    first = None if row["base_offset"] == UNSET else int(row["base_offset"])
    if first is None and base_offset:
        first = int(search.open(row).offsets[0])
    return Found(
        position=int(row["position"]),
        size_bytes=int(row["size_bytes"]),
        offset=int(row["last_offset"]),
        base_offset=first,
        timestamp_ms=None,
        work=search.work,
        index_bytes=index.lookup_bytes if index else 0,
    )


def seek_time(
    log: EncodedLog | Any,
    timestamp_ms: int,
    *,
    fmt: Format | str | None = None,
    index: TimeIndex | None = None,
    start_offset: int = 0,
    limits: Limits | None = None,
) -> Found | None:
    """Find the first record of this time or later, from start_offset on; None: there is none.

    Only the metadata of a batch with headers first is decompressed. Any other batch is decompressed completely; Kafka's
    reader stops after the codec's block with the record. Batches of v0 among others are skipped. Raises CorruptLog, and
    Refused for a log of v0 alone.
    """
    search = _Search(bytes_of(log), None if fmt is None else find(fmt), limits)
    if search.fmt is not None and not search.fmt.capabilities.timestamps:
        raise _without_timestamps()
    position = index.by_time(timestamp_ms) if index else 0
    if index and start_offset > 0:
        position = max(position, index.by_offset(start_offset))
    has_only_v0, passed = True, 0
    while True:
        rows = headers(search.data, search.fmt, position, to_ms=timestamp_ms, from_offset=start_offset)
        search.pass_by(rows)
        passed += len(rows)
        has_only_v0 = has_only_v0 and not rows["magic"].any()
        if not len(rows) or rows[-1]["max_timestamp_ms"] < timestamp_ms:
            break
        row = rows[-1]
        position = int(row["position"] + row["size_bytes"])
        ends_before = row["last_offset"] < start_offset and not row["last_is_least"]  # only the log's last batch can
        if row["magic"] == 0 or ends_before:
            continue
        inside = search.open(row)
        found = np.flatnonzero((inside.timestamps_ms >= timestamp_ms) & (inside.offsets >= start_offset))
        if len(found):
            return Found(
                position=int(row["position"]),
                size_bytes=int(row["size_bytes"]),
                offset=int(inside.offsets[found[0]]),
                base_offset=int(inside.offsets[0]) if row["base_offset"] == UNSET else int(row["base_offset"]),
                timestamp_ms=int(inside.timestamps_ms[found[0]]),
                work=search.work,
                index_bytes=index.lookup_bytes if index else 0,
            )
    if has_only_v0 and passed:
        raise _without_timestamps()
    return None


def _without_timestamps() -> Refused:
    return Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "Cannot search offsets based on timestamp in v0")


@dataclass
class _Search:
    """A search and its work so far."""

    data: Bytes
    fmt: Format | None
    limits: Limits | None
    work: Work = field(default_factory=Work)

    def pass_by(self, rows: NDArray[np.void]) -> None:
        self.work += Work(untouched=len(rows), read_bytes=int(rows["header_bytes"].sum()))

    def open(self, row: Any) -> DecodedMetadata:
        """Read the metadata of a batch's records. Raise CorruptLog."""
        position, size = int(row["position"]), int(row["size_bytes"])
        fmt = self.fmt or BY_MAGIC[int(row["magic"])]
        try:
            inside = fmt.decode_metadata(self.data[position : position + size], limits=self.limits)
        except CorruptLog as error:
            raise CorruptLog(position + error.position, error.field, error.promise) from None
        self.work += Work(
            read_bytes=size - int(row["header_bytes"]),
            decompressed_bytes=0
            if fmt.has_bare_metadata or not (row["codec"] and row["count"])
            else inside.plain_bytes,
        )
        return inside
