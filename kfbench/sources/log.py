"""Log segments, one by one or as a broker keeps them: topic-partition folders, log dirs, a broker's data dir.

A folder is walked to its end; links are not followed. Names are those of Kafka's `LogFileUtils` and `LocalLog`.
"""

import os
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import Entries
from kfbench.limits import Limits
from kfbench.log import read_log
from kfbench.log.inspect import Damage, damage_of, segment_size
from kfbench.log.pieces import pieces
from kfbench.sources.part import CHUNK_BYTES, Chunk, Found, Skipped

PIECE_BYTES: Final = 8 << 20  # read at a time
COLUMN_BYTES: Final = 48  # of a record or a header in memory, beside its bytes
FIRST_BYTES: Final = 64 << 10  # decompressed before it is known how much the batches of a file grow
# One batch, decompressed: 64 times what a broker takes by default. A run of batches is split before it reaches more.
LIMITS: Final = Limits(batch_bytes=64 << 20, log_expansion=8)

SEGMENT: Final = ".log"
NO_DATA: Final[Mapping[str, str]] = {
    ".index": "offset indexes",
    ".timeindex": "time indexes",
    ".txnindex": "indexes of aborted transactions",
    ".snapshot": "snapshots of producers",
    ".checkpoint": "snapshots of metadata",
}
ON_THE_WAY: Final[Mapping[str, str]] = {
    ".deleted": "deleted segments",
    ".cleaned": "unfinished compactions",
    ".swap": "compactions that were not swapped in",
}
FOLDERS: Final[Mapping[str, str]] = {
    "-delete": "deleted partitions",
    "-future": "replicas that move to another log dir, and are there twice",
    "-stray": "stray partitions",
}
OTHER_FILES: Final = "other files"
PARTITION: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]+)")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One segment file, a `Part`. topic "" and partition None where its folder is no partition's."""

    name: str
    size_bytes: int
    topic: str = ""
    partition: int | None = None
    unit: str = "byte"

    @property
    def key(self) -> str:
        return f"{self.topic}-{self.partition}/{Path(self.name).name}"

    def chunks(self) -> Iterator[Chunk]:
        """Raises OSError."""
        end, budget = 0, FIRST_BYTES
        try:
            for piece in pieces(self.name, PIECE_BYTES):
                end = piece.at + len(piece.data)
                budget = yield from _chunks(piece.data, piece.positions, piece.at, budget)
                if piece.trailing_bytes:
                    yield _nothing(end, trailing_bytes=piece.trailing_bytes)
        except CorruptLog as error:
            yield from self._before(error, end, budget)

    def _before(self, error: CorruptLog, start: int, budget: int) -> Iterator[Chunk]:
        """The batches from byte `start` to the length that cannot be skipped; what follows is lost."""
        with Path(self.name).open("rb", buffering=0) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            file.seek(start)
            data = np.frombuffer(file.read(error.position - start), np.uint8)
        yield from _chunks(data, Entries.of(data).positions, start, budget)
        lost = Damage(
            position=error.position,
            size_bytes=size_bytes - error.position,
            field=error.field,
            promise=error.promise,
        )
        yield _nothing(error.position, damage=(lost,))


def _nothing(position: int, damage: tuple[Damage, ...] = (), trailing_bytes: int = 0) -> Chunk:
    log = read_log(b"")
    return Chunk(
        records=log.records,
        bounds=log.bounds,
        position=position,
        size_bytes=0,
        damage=damage,
        trailing_bytes=trailing_bytes,
    )


def _chunks(data: Bytes, positions: Int64, at: int, budget: int) -> Generator[Chunk, None, int]:
    """The batches that data, from byte `at` of the file on, has at `positions`, `budget` bytes of them at a time at
    first; gives the budget for those that follow."""
    first, batches = 0, len(positions) - 1
    while first < batches:
        end = max(int(np.searchsorted(positions, positions[first] + budget, "right")) - 1, first + 1)
        for chunk in _chunk(data, positions[first : end + 1], at):
            budget = _budget(chunk, budget)
            yield chunk
        first = end
    return budget


def _chunk(data: Bytes, positions: Int64, at: int) -> Iterator[Chunk]:
    run = data[positions[0] : positions[-1]]
    log = read_log(run, on_error="skip", limits=LIMITS)
    if len(positions) > 2 and any("past the limit" in error.promise for error in log.errors):
        middle = len(positions) // 2  # more than a run may take: no batch of it need be too large
        del log
        yield from _chunk(data, positions[: middle + 1], at)
        yield from _chunk(data, positions[middle:], at)
        return
    start, rows = at + int(positions[0]), log.batch_rows
    frame = log.batches
    yield Chunk(
        records=log.source_records,
        bounds=log.bounds,
        fields=log.batch_fields,
        position=start,
        size_bytes=int(rows["size_bytes"].sum()),
        kinds=Counter(f"v{magic} {codec}" for magic, codec in zip(frame["magic"], frame["codec"], strict=True)),
        damage=tuple(
            Damage(position=start + each.position, size_bytes=each.size_bytes, field=each.field, promise=each.promise)
            for each in damage_of(log, len(run))
        ),
    )


def _budget(chunk: Chunk, budget: int) -> int:
    """How many bytes of the batches that follow grow to CHUNK_BYTES, if they are like these."""
    shapes = chunk.records.shapes
    plain_bytes = shapes.payload_bytes + COLUMN_BYTES * (len(shapes) + shapes.header_count)
    if not plain_bytes:
        return budget
    return int(min(max(CHUNK_BYTES * chunk.size_bytes // plain_bytes, FIRST_BYTES // 8), PIECE_BYTES))


def find(path: str | os.PathLike[str]) -> Found:
    """The segments of a file or a folder. Raises KfbenchError for a path that is not there, cannot be read, or is a
    folder without a segment."""
    root = Path(path)
    if not root.is_dir():
        return Found(parts=(_segment(root),))
    segments: list[Segment] = []
    skipped: list[Skipped] = []
    _walk(root, segments, skipped)
    if not segments:
        what = "; ".join(_counted(skipped)) or "nothing"
        raise KfbenchError(f"{root}: no segment in this folder or below it ({SEGMENT}); there is: {what}")
    return Found(parts=tuple(segments), skipped=tuple(skipped))


def _segment(path: Path) -> Segment:
    found = PARTITION.fullmatch(path.absolute().parent.name)
    topic, partition = (found["topic"], int(found["partition"])) if found else ("", None)
    return Segment(name=os.fspath(path), size_bytes=segment_size(path), topic=topic, partition=partition)


def _walk(folder: Path, segments: list[Segment], skipped: list[Skipped]) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        skipped.append(_unreadable(folder, error))
        return
    for entry in entries:
        path = Path(entry.path)
        try:
            if entry.is_dir(follow_symlinks=False):
                reason = next((why for end, why in FOLDERS.items() if entry.name.endswith(end)), None)
                if reason is None:
                    _walk(path, segments, skipped)
                else:
                    skipped.append(Skipped(path=entry.path, size_bytes=_bytes_below(path), reason=reason))
            elif path.suffix == SEGMENT and entry.is_file():
                segments.append(_segment(path))
            else:
                reason = ON_THE_WAY.get(path.suffix) or NO_DATA.get(path.suffix, OTHER_FILES)
                size_bytes = entry.stat(follow_symlinks=False).st_size
                skipped.append(Skipped(path=entry.path, size_bytes=size_bytes, reason=reason))
        except (KfbenchError, OSError) as error:  # a broker deletes and renames while we look
            skipped.append(_unreadable(path, error))


def _unreadable(path: Path, error: Exception) -> Skipped:
    reason = getattr(error, "strerror", None) or str(error)
    return Skipped(path=os.fspath(path), size_bytes=0, reason=reason, is_data=True)


def _bytes_below(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _counted(skipped: list[Skipped]) -> list[str]:
    return [f"{number:,} × {reason}" for reason, number in Counter(each.reason for each in skipped).items()]
