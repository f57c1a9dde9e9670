"""Seek in a segment: find the batch with an offset, or the first record at or after a time (`FileRecords`).

By offset, Kafka reads headers up to the first batch whose last offset is large enough. Every header has the last
offset: v0 and v1 as the wrapper's offset, v2 and v3 as base offset and delta. The *first* offset of a compressed set of
v0 or v1 is inside the set. An enriched set has the first offset in its header. Its last offset can be computed only if
there are no gaps (holes) between offsets. If the offset may be in a hole, the set is decoded.

By time, Kafka decodes the first batch whose largest timestamp is late enough. This batch may still have no such record
at or after the starting offset, if records are out of order. Then the search continues after the batch. v0 has no
timestamps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.batches import DecodedMetadata, EncodedLog
from kfbench.broker.source import bytes_of, find, headers
from kfbench.broker.time_index import TimeIndex
from kfbench.broker.work import Work
from kfbench.codecs import Dictionary
from kfbench.errors import CorruptLog, Refused
from kfbench.formats import BY_MAGIC, Format
from kfbench.layouts import UNSET
from kfbench.limits import Limits


@dataclass(frozen=True, kw_only=True)
class SeekResult:
    """The batch that was found, at byte `position`, and in a search by time the record in it.

    Args:
        size_bytes: size of the batch.
        offset: by time, the offset of the record (`TimestampAndOffset`); by offset, the batch's last one
            (`LogOffsetPosition`).
        base_offset: the batch's first offset; None: only its records have it, and they were not read.
        timestamp_ms: the timestamp of the record; None in a search by offset.
        work: headers that were read and batches that were decoded.
        index_bytes: number of bytes read in the index.
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
    dictionaries: Iterable[Dictionary] = (),
) -> SeekResult | None:
    """Find the first batch whose last offset is `offset` or more; None: the log ends before it.

    Checksums are checked only in batches that are decoded. Raises CorruptLog.

    Args:
        fmt: the format of the log; None: found by the magic of each batch.
        index: an index from which the search starts; None: it starts at the first batch.
        base_offset: also find the first offset of the batch. For this a compressed set of v0 or v1 is decoded.

    Returns:
        The batch. In an enriched set `SeekResult.offset` is a lower bound of the last offset.
    """
    search = _Search(bytes_of(log), None if fmt is None else find(fmt), index, limits, dictionaries)
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
    return search.result_at(row, int(row["last_offset"]), first)


def seek_time(
    log: EncodedLog | Any,
    timestamp_ms: int,
    *,
    fmt: Format | str | None = None,
    index: TimeIndex | None = None,
    start_offset: int = 0,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> SeekResult | None:
    """Find the first record of this time or later, from start_offset on; None: there is none.

    Only the metadata of a batch with headers first is decompressed. Any other batch is decompressed completely; Kafka's
    reader stops after the codec's block with the record. v0 batches are skipped if the log has others, too.

    Raises CorruptLog. Raises Refused if all batches are v0.
    """
    search = _Search(bytes_of(log), None if fmt is None else find(fmt), index, limits, dictionaries)
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
        ends_before = row["last_offset"] < start_offset and not row["last_is_least"]  # possible for the last batch only
        if row["magic"] == 0 or ends_before:
            continue
        inside = search.open(row)
        found = np.flatnonzero((inside.timestamps_ms >= timestamp_ms) & (inside.offsets >= start_offset))
        if len(found):
            first = int(inside.offsets[0]) if row["base_offset"] == UNSET else int(row["base_offset"])
            return search.result_at(row, int(inside.offsets[found[0]]), first, int(inside.timestamps_ms[found[0]]))
    if has_only_v0 and passed:
        raise _without_timestamps()
    return None


def _without_timestamps() -> Refused:
    return Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", 0, "Cannot search offsets based on timestamp in v0")


@dataclass
class _Search:
    data: Bytes
    fmt: Format | None
    index: TimeIndex | None
    limits: Limits | None
    dictionaries: Iterable[Dictionary]
    work: Work = field(default_factory=Work)

    def pass_by(self, rows: NDArray[np.void]) -> None:
        self.work += Work(untouched=len(rows), read_bytes=int(rows["header_bytes"].sum()))

    def result_at(self, row: Any, offset: int, base_offset: int | None, timestamp_ms: int | None = None) -> SeekResult:
        return SeekResult(
            position=int(row["position"]),
            size_bytes=int(row["size_bytes"]),
            offset=offset,
            base_offset=base_offset,
            timestamp_ms=timestamp_ms,
            work=self.work,
            index_bytes=self.index.lookup_bytes if self.index else 0,
        )

    def open(self, row: Any) -> DecodedMetadata:
        """Decode the metadata of the records in one batch. row: its header row. Raise CorruptLog."""
        position, size = int(row["position"]), int(row["size_bytes"])
        fmt = self.fmt or BY_MAGIC[int(row["magic"])]
        try:
            inside = fmt.decode_metadata(
                self.data[position : position + size], limits=self.limits, dictionaries=self.dictionaries
            )
        except CorruptLog as error:
            raise error.at(position + error.position) from None
        self.work += Work(
            read_bytes=size - int(row["header_bytes"]),
            decompressed_bytes=inside.plain_bytes if row["codec"] and row["count"] else 0,
        )
        return inside
