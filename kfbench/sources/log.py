"""Find and read log segments: single files, topic-partition folders, log dirs, a broker's data dir.

All subfolders of a folder are searched; links are not followed. Kafka's `LogFileUtils` and `LocalLog` define the names
of files and folders.
"""

import errno
import os
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.codecs import Allowance, Dictionary, codec_names
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import BY_MAGIC, Entries
from kfbench.kernels.formats import scan
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import START
from kfbench.limits import Limits
from kfbench.log import read_log
from kfbench.log.damage import Damage, check_offsets, damage_from, damage_of, segment_size
from kfbench.log.dictionaries import add_stored
from kfbench.log.pieces import PIECE_BYTES, first_batch, pieces
from kfbench.log.segment import LOG_SUFFIX
from kfbench.log.tail import CUT_OFF, is_last, is_zero, names_in, read_bytes, tail_kind
from kfbench.sources import foreign_files
from kfbench.sources.folder import GONE, OTHER_FILES, NothingToRead, find_parts
from kfbench.sources.part import CHUNK_BYTES, Chunk, FoundSources, Skipped, spans

COLUMN_BYTES: Final = 48  # bytes that a record or a header takes in memory, in addition to its payload
HEAD_BYTES: Final = 256 << 10  # bytes at the beginning of a segment in which later shares look for dictionaries
FIRST_BYTES: Final = 64 << 10  # bytes that are read first, to learn how much the batches of a file grow
# A batch may decompress to 64 times a broker's default limit. A larger run of batches is split. While a record is read,
# it takes about 300 bytes of memory, even if it is empty.
LIMITS: Final = Limits(batch_bytes=64 << 20, log_expansion=8, batch_records=1 << 20)
LIMIT_NAME: Final = re.compile(r"limits\.(\w+)")
RUN_BYTES: Final = 32 << 20  # the most decompressed bytes of batches that are read together
RUN_RECORDS: Final = 1 << 19  # the most records of batches that are read together, as their headers count them
OVER_A_RUN: Final = tuple(
    status.PROMISES[state][1]
    for state in (status.LIMIT_LOG_RECORDS, status.LIMIT_LOG_HEADERS, status.LIMIT_LOG_HEADER_BYTES)
)

# Files that a broker keeps next to segments, by suffix. None of them has records.
NO_RECORDS: Final[Mapping[str, str]] = {
    ".index": "offset indexes",
    ".timeindex": "time indexes",
    ".txnindex": "indexes of aborted transactions",
    ".snapshot": "snapshots of producers",
}
# Other files that a broker keeps, by name.
BROKER_FILES: Final = frozenset(
    ("leader-epoch-checkpoint", "partition.metadata", "meta.properties", "recovery-point-offset-checkpoint",
     "replication-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "quorum-state")
)  # fmt: skip
# A search of folders skips these too. A path that names a checkpoint is read: it has the cluster's metadata as records.
LEFT_OUT_OF_FOLDERS: Final[Mapping[str, str]] = {
    **NO_RECORDS,
    ".checkpoint": "snapshots of metadata",
    ".deleted": "deleted segments",
    ".cleaned": "unfinished compactions",
    ".swap": "compactions that were not swapped in",
}
PACKED: Final = "packed segments: unpack them to read them"
FOLDERS: Final[Mapping[str, str]] = {
    "delete": "deleted partitions",
    "future": "replicas that move to another log dir, and are there twice",
    "stray": "stray partitions",
}
# `LocalLog` shortens the name before the dot, so that file systems accept it.
FOLDER: Final = re.compile(r"\S+\.[0-9a-f]{32}-(?P<why>delete|future|stray)")
PARTITION: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]+)")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One segment file or a share of it, a `Part`. A share has the batches that begin in bytes `start` to `end` - 1.

    Attributes:
        written_bytes: the file's size without the zeros that a broker allocated ahead.
        topic, partition: "" and None if the folder's name is not that of a partition.
        is_last: True if it is the last segment of its folder, which a broker may be writing.
        end: None is the file's end, which may move until it is read.
        limits: limits of the memory that the reader allocates; None: LIMITS.
        piece_bytes: the number of bytes to read at a time; None: PIECE_BYTES.
    """

    name: str
    written_bytes: int
    topic: str = ""
    partition: int | None = None
    is_last: bool = True
    start: int = 0
    end: int | None = None
    unit: str = "byte"
    limits: Limits | None = None
    piece_bytes: int | None = None

    @property
    def size_bytes(self) -> int:
        return (self.written_bytes if self.end is None else self.end) - self.start

    @cached_property
    def key(self) -> str:
        path = Path(self.name).absolute()
        folder = path.parent.name if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{folder}/{path.name}" + (f"@{self.start}" if self.start else "")

    def shares(self) -> list["Segment"]:
        """Split the segment into shares of about SHARE_BYTES each."""
        return [replace(self, start=span.start, end=span.end) for span in spans(self.written_bytes)]

    @property
    def _limits(self) -> Limits:
        return self.limits or LIMITS

    def chunks(self, last_offset: int | None = None) -> Iterator[Chunk]:
        """Yield the batches in chunks. last_offset: the one before this segment or share; None: unknown.

        Raises OSError, and KfbenchError for a file that is known to be no segment, or that a broker has deleted or
        renamed (GONE).
        """
        for chunk in self._read():
            if chunk.log is None:
                yield chunk
                continue
            damage, first, last_offset = check_offsets(chunk.log, last_offset)
            moved = (replace(each, position=chunk.start + each.position) for each in damage)
            ordered = sorted((*chunk.damage, *moved), key=lambda each: each.position)
            yield replace(chunk, damage=tuple(ordered), first_offset=first, last_offset=last_offset)

    def _read(self) -> Iterator[Chunk]:
        try:
            descriptor = os.open(self.name, os.O_RDONLY)
        except FileNotFoundError:
            raise KfbenchError(GONE) from None
        budget = FIRST_BYTES
        with FileIO(descriptor) as file:
            head = os.pread(descriptor, foreign_files.HEAD_BYTES, 0)
            if words := foreign_files.foreign_segment(head, self.written_bytes):
                raise KfbenchError(words)
            context = _Context(self._limits, _head_dictionaries(file, self._limits) if self.start else {})
            end = first_batch(file.fileno(), self.start, self._limits.batch_bytes)
            if end is None:  # the previous share reports this damage
                return
            try:
                for piece in pieces(
                    file.fileno(), self.piece_bytes or PIECE_BYTES, self._limits.batch_bytes, end, self.end
                ):
                    end = piece.at + len(piece.data)
                    budget = yield from _chunks(piece.data, piece.positions, piece.at, budget, context)
                    if piece.trailing_bytes:
                        yield from self._tail_chunks(file, end, piece.trailing_bytes)
            except CorruptLog as error:
                yield from self._chunks_before(file, error, end, budget, context)

    def _tail_chunks(self, file: FileIO, end: int, trailing_bytes: int) -> Iterator[Chunk]:
        """Yield a chunk about the bytes after the last whole batch: an incomplete batch, or damage.

        Zeros yield nothing.

        end: the byte at which the last whole batch ends.
        """
        kind = tail_kind(file, end, trailing_bytes, self.is_last, self._limits)
        if kind == "zeros":
            return
        if kind == "open" or not end:
            yield _empty_chunk(trailing_bytes=min(trailing_bytes, self.written_bytes))
            return
        lost = Damage(position=end, size_bytes=trailing_bytes, field="length", promise=CUT_OFF)
        yield _empty_chunk(damage=(lost,))

    def _chunks_before(
        self, file: FileIO, error: CorruptLog, start: int, budget: int, context: "_Context"
    ) -> Iterator[Chunk]:
        """Yield the batches from byte `start` to a length that cannot be skipped, then the rest of the file as damage.

        A rest of zeros is no damage. error: the error about that length.
        """
        lost_bytes = os.fstat(file.fileno()).st_size - error.position
        data = read_bytes(file, start, error.position - start)
        yield from _chunks(data, Entries.of(data).positions, start, budget, context)
        if not is_zero(file, error.position, lost_bytes):
            yield _empty_chunk(damage=(damage_from(error, lost_bytes),))


class _Context(NamedTuple):
    """The limits of a reader, and the dictionaries of the batches that it has read. Each chunk adds to them."""

    limits: Limits
    dictionaries: dict[int, Dictionary]


def _head_dictionaries(file: FileIO, limits: Limits) -> dict[int, Dictionary]:
    """Return the dictionaries at the head of a segment, for a share that begins later."""
    data = read_bytes(file, 0, HEAD_BYTES)
    entries = Entries.of(data)
    allowance = Allowance.of(len(data), limits)
    add_stored(data, entries.positions, entries.magics, allowance)  # the first share reports the damage
    return dict(allowance.dictionary_codec.dictionaries)


def _empty_chunk(damage: tuple[Damage, ...] = (), trailing_bytes: int = 0) -> Chunk:
    log = read_log(b"")
    return Chunk(records=log.records, bounds=log.bounds, size_bytes=0, damage=damage, trailing_bytes=trailing_bytes)


def _chunks(data: Bytes, positions: Int64, at: int, budget: int, context: _Context) -> Generator[Chunk, None, int]:
    """Yield the batches of `data`, about `budget` bytes at a time. Return the budget for the next batches.

    at: the byte of the file at which `data` begins. Each chunk adjusts the budget to the growth of its batches.
    """
    first, batches = 0, len(positions) - 1
    records = np.append(0, np.cumsum(_record_counts(data, positions, context.limits)))
    while first < batches:
        end = int(np.searchsorted(positions, positions[first] + budget, "right")) - 1
        end = min(end, int(np.searchsorted(records, records[first] + RUN_RECORDS, "right")) - 1)
        end = max(end, first + 1)
        for chunk in _chunk(data, positions[first : end + 1], at, context):
            budget = _budget(chunk, budget)
            yield chunk
        first = end
    return budget


def _record_counts(data: Bytes, positions: Int64, limits: Limits) -> Int64:
    """Return the number of records that each batch's header states, int64[batches]; 1 if the header has no count."""
    counts = np.empty(len(positions) - 1, np.int64)
    scan.counts(data, positions, limits.batch_records, counts)
    for fmt in BY_MAGIC.values():
        fmt.add_record_counts(data, positions, limits.batch_records, counts)
    return counts


def _chunk(data: Bytes, positions: Int64, at: int, context: _Context) -> Iterator[Chunk]:
    limits, dictionaries = context
    run = data[positions[0] : positions[-1]]
    most_bytes = limits.batch_bytes if len(positions) == 2 else min(RUN_BYTES, limits.batch_bytes)
    log = read_log(run, "skip", replace(limits, batch_bytes=most_bytes), dictionaries.values())
    dictionaries.update(log.dictionaries)
    promises = [error.promise for error in log.errors]
    if len(positions) > 2 and any(each in OVER_A_RUN or "past the limit" in each for each in promises):
        middle = len(positions) // 2  # the run is over a limit, but fewer batches may be below it
        del log
        yield from _chunk(data, positions[: middle + 1], at, context)
        yield from _chunk(data, positions[middle:], at, context)
        return
    start, rows = at + int(positions[0]), log.batch_rows
    kinds = Counter(zip(rows["magic"].tolist(), rows["codec"].tolist(), strict=True))
    yield Chunk(
        records=log.source_records,
        bounds=log.bounds,
        fields=log.batch_fields,
        size_bytes=int(rows["size_bytes"].sum()),
        kinds=Counter({f"{BY_MAGIC[magic].name} {codec_names()[codec]}": n for (magic, codec), n in kinds.items()}),
        damage=tuple(
            replace(
                each,
                position=start + each.position,
                promise=LIMIT_NAME.sub(lambda name: f"{name[0]} ({getattr(limits, name[1]):,})", each.promise),
            )
            for each in damage_of(log, len(run))
        ),
        log=log,
        start=start,
        end=start + len(run),
    )


def _budget(chunk: Chunk, budget: int) -> int:
    """Return the number of bytes of batches that decompress to CHUNK_BYTES, if they grow like those of `chunk`."""
    shapes = chunk.records.shapes
    plain_bytes = shapes.payload_bytes + COLUMN_BYTES * (len(shapes) + shapes.header_count)
    if not plain_bytes:
        return budget
    return int(min(max(CHUNK_BYTES * chunk.size_bytes // plain_bytes, FIRST_BYTES // 8), PIECE_BYTES))


def find(path: str | os.PathLike[str]) -> FoundSources:
    """Return the segment at a path, or all segments in a folder and its subfolders.

    Raises KfbenchError for a path that does not exist or cannot be read, and for a folder without a segment.
    """
    root = Path(path)
    if not root.is_dir():
        size_bytes = segment_size(root)
        if reason := "a broker's other files" if root.name in BROKER_FILES else NO_RECORDS.get(root.suffix):
            skipped_file = Skipped(path=os.fspath(root), size_bytes=size_bytes, reason=reason)
            return FoundSources(parts=(), skipped=(skipped_file,))
        return FoundSources(parts=(segment_at(root),))
    names_of = cache(names_in)
    found = find_parts(
        root,
        is_segment,
        lambda path: [_segment(path, is_last(path.name, names_of(path.parent)))],
        _why_no_segment,
        lambda folder: FOLDERS[name["why"]] if (name := FOLDER.fullmatch(folder)) else None,
    )
    if not found.parts:
        reasons = Counter(each.reason for each in found.skipped)
        there = "; ".join(f"{number:,} × {reason}" for reason, number in reasons.items()) or "nothing"
        raise NothingToRead(f"{root}: no segment in this folder or below it ({LOG_SUFFIX}); there is: {there}")
    return found


def segment_at(path: Path) -> Segment:
    """Return the segment file at a path. Raises KfbenchError if there is no file, or the path is a folder."""
    return _segment(path, is_last(path.name, names_in(path.parent)))


def stream_of(topic: str, path: str) -> str:
    """Return the topic. Where it is unknown: the folder of a log segment, else the file."""
    file = Path(path)
    is_numbered = file.suffix == LOG_SUFFIX and len(file.stem) == 20 and file.stem.isdecimal()
    return topic or (str(file.parent) if is_numbered else path)


def is_segment(path: Path) -> bool:
    return path.suffix == LOG_SUFFIX


def _why_no_segment(path: Path) -> str:
    is_packed = path.suffix in foreign_files.SUFFIXES and is_segment(path.with_suffix(""))
    return PACKED if is_packed else LEFT_OUT_OF_FOLDERS.get(path.suffix, OTHER_FILES)


def _segment(path: Path, may_be_written: bool) -> Segment:
    found = PARTITION.fullmatch(path.absolute().parent.name)
    topic, partition = (found["topic"], int(found["partition"])) if found else ("", None)
    size_bytes = segment_size(path)
    return Segment(
        name=os.fspath(path),
        written_bytes=_written_bytes(path, size_bytes),
        topic=topic,
        partition=partition,
        is_last=may_be_written,
    )


def _written_bytes(path: Path, size_bytes: int) -> int:
    """Return the file's size without zeros at the end. Up to 11 zeros count as part of the last batch."""
    try:
        with path.open("rb", buffering=0) as file:
            end = size_bytes
            if not read_bytes(file, max(end - START, 0), min(end, START)).any():
                end = _first_hole(file, end)
            while end:
                start = max(end - (1 << 20), 0)
                written = np.flatnonzero(read_bytes(file, start, end - start))
                if len(written):
                    end = start + int(written[-1]) + 1
                    break
                end = start
    except OSError:  # reported when the file is read
        return size_bytes
    return end if size_bytes - end >= START else size_bytes


def _first_hole(file: FileIO, size_bytes: int) -> int:
    """Return the position at which the unallocated end of a sparse file begins; the file's size if it has none."""
    try:
        hole = os.lseek(file.fileno(), 0, os.SEEK_HOLE)
    except (AttributeError, OSError):  # no holes on this system
        return size_bytes
    try:
        os.lseek(file.fileno(), hole, os.SEEK_DATA)
    except OSError as error:
        return min(hole, size_bytes) if error.errno == errno.ENXIO else size_bytes
    return size_bytes
