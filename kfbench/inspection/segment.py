"""Read one log segment in chunks. Sum up its batches, producers, offsets, timestamps and damage.

Memory does not grow with the file, except for 16 bytes per batch.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import DecodedLog
from kfbench.codecs import Dictionary
from kfbench.errors import KfbenchError
from kfbench.kernels.wire.frames import START
from kfbench.limits import LIMITS
from kfbench.log import read_log
from kfbench.log.damage import Damage, WithoutDictionary, segment_size
from kfbench.log.dictionaries import stored_dictionaries
from kfbench.log.segment import begins_batch
from kfbench.log.tail import follow_each_other, nothing_in
from kfbench.sources.log import NO_RECORDS, segment_at

QUANTILES: Final = (0.01, 0.25, 0.5, 0.75, 0.99)
PIECE_BYTES: Final = 2 << 20  # bytes to read at a time


@dataclass(frozen=True)
class SegmentPiece:
    """Some batches of a segment, and the damage next to them.

    start, end: `log` and `damage` come from the bytes start to end - 1 of the file.
    """

    log: DecodedLog
    start: int
    end: int
    damage: tuple[Damage, ...]

    @property
    def positions(self) -> Int64:
        """The byte of the file at which each batch begins: int64[batches]."""
        return np.asarray(self.log.batches["position"], np.int64) + self.start


@dataclass(frozen=True)
class MissingBatches:
    """The batches of a segment that name the same missing dictionary.

    number: the dictionary's number. reason: says if it is missing, or another dictionary has its number.
    """

    number: int
    reason: str
    first_position: int
    batches: int = 0
    size_bytes: int = 0


@dataclass(kw_only=True)
class Inspection:
    """The sums over a segment. They are complete when the iterator `SegmentReader.parts` has ended.

    trailing_bytes: the size of an incomplete batch that a broker is writing. allocated_bytes: the number of zeros after
    the last batch. Neither is damage (kfbench.log.tail). gaps: the number of places with missing offsets, between
    neighbouring batches or inside batches after compaction. missing_offsets: the number of offsets that are missing
    there. unreadable_reason: the reason if reading ended early. dictionaries: the zstd dictionaries that stand in the
    segment, by number. damage: the damaged places, without the batches in `missing`.
    """

    path: str
    size_bytes: int
    batch_count: int = 0
    record_count: int = 0
    magics: Counter[int] = field(default_factory=Counter)
    codecs: Counter[str] = field(default_factory=Counter)
    first_ms: int | None = None
    last_ms: int | None = None
    producers: set[int] = field(default_factory=set)
    control_batches: int = 0
    transactional_batches: int = 0
    gaps: int = 0
    missing_offsets: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    _end_offset: int | None = None
    damage: tuple[Damage, ...] = ()
    trailing_bytes: int = 0
    allocated_bytes: int = 0
    unreadable_reason: str | None = None
    first_bytes: bytes = b""
    dictionaries: dict[int, Dictionary] = field(default_factory=dict)
    missing: tuple[MissingBatches, ...] = ()
    _record_counts: list[Int64] = field(default_factory=list)
    _sizes: list[Int64] = field(default_factory=list)

    @property
    def unreadable(self) -> str | None:
        """The reason why the segment has no batch. None: it has a batch, or `damage` gives the reason."""
        if self.unreadable_reason:
            return self.unreadable_reason
        if self.damage or self.missing or self.batch_count:
            return None
        return nothing_in(self.size_bytes - self.allocated_bytes)

    @property
    def begins_batch(self) -> bool:
        """True if the first bytes of the file look like a batch, so that it may be a log."""
        return bool(self.first_bytes) and begins_batch(np.frombuffer(self.first_bytes, np.uint8))

    @property
    def is_empty(self) -> bool:
        """True for a file without bytes, or with zeros only: a partition to which nobody has written."""
        return self.size_bytes == self.allocated_bytes

    @property
    def records_per_batch(self) -> dict[str, float]:
        """The minimum, the maximum and quantiles of the number of records per batch; empty without batches."""
        return _quantiles(self._record_counts)

    @property
    def bytes_per_batch(self) -> dict[str, float]:
        return _quantiles(self._sizes)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as plain values for JSON, without the batches."""
        return {
            "file": self.path,
            "size_bytes": self.size_bytes,
            "batch_count": self.batch_count,
            "record_count": self.record_count,
            "magics": {str(magic): count for magic, count in sorted(self.magics.items())},
            "codecs": dict(sorted(self.codecs.items())),
            "records_per_batch": self.records_per_batch,
            "bytes_per_batch": self.bytes_per_batch,
            "first_timestamp_ms": self.first_ms,
            "last_timestamp_ms": self.last_ms,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "gaps": self.gaps,
            "missing_offsets": self.missing_offsets,
            "producers": len(self.producers),
            "control_batches": self.control_batches,
            "transactional_batches": self.transactional_batches,
            "damaged": [vars(each) for each in self.damage],
            "trailing_bytes": self.trailing_bytes,
            "allocated_bytes": self.allocated_bytes,
            "dictionaries": [dictionary_values(each) for each in self.dictionaries.values()],
            "missing_dictionaries": [vars(each) for each in self.missing],
        }

    def add(self, log: DecodedLog) -> None:
        """Add a decoded log to the sums. Its batches must follow those that were added before."""
        if not len(log):
            return
        rows = log.batch_rows
        counts = np.diff(log.bounds)
        self.batch_count += len(log)
        self.record_count += len(log.records)
        self._record_counts.append(counts)
        self._sizes.append(rows["size_bytes"].astype(np.int64))
        self.magics.update(log.batches["magic"].tolist())
        self.codecs.update(log.batches["codec"].tolist())
        self.producers.update(np.unique(rows["producer_id"][rows["producer_id"] >= 0]).tolist())
        self.control_batches += int(rows["is_control"].sum())
        self.transactional_batches += int(rows["is_transactional"].sum())
        if log.dictionaries:
            self.dictionaries |= {each.number: each for each in stored_dictionaries(log)}
        times = log.records.timestamps_ms[log.records.timestamps_ms >= 0]
        if len(times):
            first, last = int(times.min()), int(times.max())
            self.first_ms = first if self.first_ms is None else min(self.first_ms, first)
            self.last_ms = last if self.last_ms is None else max(self.last_ms, last)
        self._add_offsets(rows["base_offset"], rows["last_offset"], counts)

    def add_damage(self, places: Iterable[Damage]) -> None:
        """Add damaged places. Count the batches without their dictionary by its number."""
        by_dictionary = {(each.number, each.reason): each for each in self.missing}
        damage: list[Damage] = []
        for each in places:
            if isinstance(each, WithoutDictionary):
                key = each.number, each.promise
                known = by_dictionary.get(key) or MissingBatches(*key, first_position=each.position)
                size_bytes = known.size_bytes + each.size_bytes
                by_dictionary[key] = replace(known, batches=known.batches + 1, size_bytes=size_bytes)
            else:
                damage.append(each)
        self.damage, self.missing = (*self.damage, *damage), tuple(by_dictionary.values())

    def _add_offsets(self, base: Int64, last: Int64, counts: Int64) -> None:
        previous = np.append(base[0] - 1 if self._end_offset is None else self._end_offset, last[:-1])
        between, inside = base - previous - 1, last - base + 1 - counts
        self.gaps += int((between > 0).sum()) + int((inside > 0).sum())
        self.missing_offsets += int(between[between > 0].sum()) + int(inside[inside > 0].sum())
        first, self._end_offset = int(base.min()), int(last[-1])
        self.first_offset = first if self.first_offset is None else min(first, self.first_offset)
        self.last_offset = int(last.max()) if self.last_offset is None else max(int(last.max()), self.last_offset)


def dictionary_values(dictionary: Dictionary) -> dict[str, Any]:
    """Return a dictionary without its data, for JSON."""
    return {
        "number": dictionary.number,
        "size_bytes": len(dictionary.data),
        "sha256": dictionary.sha256.hex(),
        "is_raw": dictionary.is_raw,
        "trained_on": None if dictionary.trained_on is None else asdict(dictionary.trained_on),
    }


def _quantiles(parts: list[Int64]) -> dict[str, float]:
    if not parts:
        return {}
    values = np.concatenate(parts)
    found = dict(zip(QUANTILES, np.quantile(values, QUANTILES, method="inverted_cdf").tolist(), strict=True))
    named = {f"p{100 * share:g}": value for share, value in found.items()}
    return {"min": int(values.min()), **named, "max": int(values.max())}


class SegmentReader:
    """Reader of one segment file, of any magics, damaged or not.

    follows: the segment before it, which is read earlier. If both are segments of one folder, the offsets must rise.

    Raises KfbenchError if there is no such file, or the path is a folder. Raises it too for a broker's index and
    snapshot files.
    """

    def __init__(self, path: str | os.PathLike[str], follows: Inspection | None = None) -> None:
        file = Path(path)
        if file.suffix in NO_RECORDS and not file.is_dir():
            raise KfbenchError(
                f"{file}: files with {file.suffix} are {NO_RECORDS[file.suffix]}, not log segments (.log)"
            )
        self.found = Inspection(path=os.fspath(path), size_bytes=segment_size(file))
        self._segment = replace(segment_at(file), limits=LIMITS, piece_bytes=PIECE_BYTES)
        self._follows = follows if follows is not None and follow_each_other(follows.path, self.found.path) else None

    def parts(self) -> Iterator[SegmentPiece]:
        """Yield the batches in the order of the file, and add them to `found`."""
        found, end = self.found, 0
        try:
            with Path(found.path).open("rb") as file:
                found.first_bytes = file.read(START + 5)
            for chunk in self._segment.chunks(None if self._follows is None else self._follows.last_offset):
                found.add_damage(chunk.damage)
                found.trailing_bytes += chunk.trailing_bytes
                if chunk.log is not None:
                    found.add(chunk.log)
                    end = chunk.end
                    yield SegmentPiece(chunk.log, chunk.start, end, chunk.damage)
                elif chunk.damage:
                    start, end = end, chunk.damage[-1].position + chunk.damage[-1].size_bytes
                    yield SegmentPiece(read_log(b""), start, end, chunk.damage)
        except (KfbenchError, OSError) as error:
            found.unreadable_reason = getattr(error, "strerror", None) or str(error)
        if not found.trailing_bytes and not found.unreadable_reason:
            found.size_bytes = max(found.size_bytes, end)  # a broker may have appended meanwhile
            found.allocated_bytes = found.size_bytes - end

    def read(self, advance: Callable[[int], None] = lambda _: None) -> Inspection:
        """Read the whole segment and return the sums.

        advance: called for each part with the number of bytes that were read since the last call.
        """
        end = 0
        for part in self.parts():
            advance(part.end - end)
            end = part.end
        return self.found
