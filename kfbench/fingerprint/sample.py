"""The sample of a topic: all records of a small topic, or records from several places of its largest file."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.errors import KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.log.segment import join_records
from kfbench.sources.log import Segment
from kfbench.sources.time_columns import Unit
from kfbench.whatif.rebatch import Sent, sent
from kfbench.whatif.record_times import TimeReader

SAMPLE_BYTES: Final = 1 << 20
"""The size of the sample of a larger topic."""
SAMPLE_PLACES: Final = 4


class Sample(NamedTuple):
    """Records of a topic. is_whole: True if no others can be read."""

    sent: Sent
    is_whole: bool


def sample_of(files: Sequence[Segment], whole_bytes: int, unit: Unit | None = None) -> Sample | None:
    """Return all records of a topic up to `whole_bytes`, or SAMPLE_BYTES of a larger one. None: nothing can be read.

    The sample has as many bytes from each of several places of the largest file that can be read. If batches are too
    large for that, it has the first records.

    unit: the unit of timestamps; None: the sample tells it.
    """
    if whole := _whole(files, whole_bytes):
        return Sample(TimeReader(unit).read(whole, None), True)
    for file in sorted(files, key=lambda file: -file.size_bytes):
        if part := _part_of(file):
            return Sample(TimeReader(unit).read(part, None), False)
    return None


def _part_of(file: Segment) -> Sent | None:
    """Return the sample of a large file. None: nothing can be read."""
    starts = [file.size_bytes * i // SAMPLE_PLACES for i in range(SAMPLE_PLACES)]
    place_bytes = SAMPLE_BYTES // SAMPLE_PLACES
    places = [_first(replace(file, start=start, piece_bytes=place_bytes), place_bytes) for start in starts]
    if all(places):
        found = _joined([place.sent for place in places if place])
        if (np.diff(found.records.offsets) > 0).all():
            return found
    first = _first(file, SAMPLE_BYTES)
    return first.sent if first else None


def _whole(files: Sequence[Segment], most_bytes: int) -> Sent | None:
    """Return all records, unless they have more than `most_bytes` bytes. No batch has records of two files."""
    if sum(file.size_bytes for file in files) > most_bytes:  # as single batches, they take more bytes than stored
        return None
    pieces = list[Sent]()
    for number, file in enumerate(files):
        if first := _first(file, most_bytes):
            first.sent.owners["partition"] = number
            pieces.append(first.sent)
            most_bytes -= first.size_bytes
            if not first.is_all or most_bytes < 0:
                return None
    return _joined(pieces) if pieces else None


class _First(NamedTuple):
    """The first records of a file or share.

    Args:
        size_bytes: their size in v2 with one record per batch.
        is_all: True if there are no others.
    """

    sent: Sent
    size_bytes: int
    is_all: bool


def _first(segment: Segment, most_bytes: int) -> _First | None:
    """Return the first records, up to a size; at least one. None: nothing can be read."""
    pieces, sizes, total_bytes = list[Sent](), list[Int64](), 0
    try:
        for chunk in segment.chunks():
            piece = sent(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
            if len(piece.records):
                pieces.append(piece)
                sizes.append(FORMATS[BASE_FORMAT].size(piece.records, 1))
                total_bytes += int(sizes[-1].sum())
            if total_bytes > most_bytes:
                break
    except (KfbenchError, OSError):
        pass  # `tally` reports it
    if not pieces:
        return None
    found = _joined(pieces)
    if total_bytes <= most_bytes:
        return _First(found, total_bytes, True)
    ends = np.cumsum(np.concatenate(sizes))
    count = max(int(np.searchsorted(ends, most_bytes)), 1)
    return _First(found.at(np.arange(count)), int(ends[count - 1]), False)


def _joined(pieces: Sequence[Sent]) -> Sent:
    return Sent(join_records([piece.records for piece in pieces]), np.concatenate([piece.owners for piece in pieces]))
