"""Parts of a source of records. One worker reads a part from beginning to end, in chunks. Four rules hold:

1. A part is small enough to be pickled for a worker: it has a path or offsets, never records. A large file is split
   into several parts with the same name, if its kind of file can be split.
2. `chunks` yields the same chunks every time and on every host, in the source's order. So a sample of chunks does not
   depend on the reader.
3. The keys, values and headers of a chunk take at most about CHUNK_BYTES, whatever the source's size.
4. A chunk's `damage` lists the damage that was left out. Damage that makes the rest of a part unreadable is raised as
   KfbenchError or OSError, after the chunks before it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields, DecodedLog
from kfbench.log.damage import Damage
from kfbench.records import Records

CHUNK_BYTES: Final = 16 << 20
SHARE_BYTES: Final = 64 << 20  # large files are split into shares of this size; a worker reads one in a few seconds


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some neighbouring records of a part, with the timestamps that producers wrote.

    Attributes:
        size_bytes: the bytes of these records in the source.
        bounds: int64[batches + 1], the boundaries of batches; None: the source has no batches, the caller assumes some.
        fields: the header fields of the batches.
        is_ms: bool[records], True for a timestamp in ms, False for a number of a table whose unit is unknown; None: the
            timestamps are those of a log, whose unit is unknown.
        partitions: int32[records]; None: all records are of the part's partition.
        kinds: the number of batches by format and codec, such as "v2 lz4".
        damage: the damage since the previous chunk, with positions in the part's unit.
        trailing_bytes: the size of an incomplete batch at the end of a log, which is no damage.
        log: the decoded batches of a log segment; None in other sources, and if there is only damage to report.
        start, end: `log` was read from the bytes start to end - 1 of the file.
        first_offset, last_offset: those of the batches in `log`; None: there is none.
    """

    records: Records
    size_bytes: int
    bounds: Int64 | None = None
    fields: BatchFields = NO_FIELDS
    is_ms: NDArray[np.bool_] | None = None
    partitions: NDArray[np.int32] | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
    trailing_bytes: int = 0
    log: DecodedLog | None = None
    start: int = 0
    end: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


class Part(Protocol):
    """One file, one share of a large file, or one partition of a topic.

    Attributes:
        name: the path or topic partition, as the user knows it; shares of a file have the same name.
        topic, partition: the origin of the records; "" and None if unknown.
        size_bytes: the number of bytes in the source.
        unit: the unit of positions ("byte", "row", "line", "offset"), which count from the beginning of the whole file.
        key: identifies the part independently of where the source is stored, so that a copy gets the same sample.
    """

    @property
    def name(self) -> str: ...

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int | None: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def unit(self) -> str: ...

    @property
    def key(self) -> str: ...

    def chunks(self) -> Iterator[Chunk]: ...


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A file or folder that is not read. is_data: True if it has records, which are then missing in the result."""

    path: str
    size_bytes: int
    reason: str
    is_data: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundSources:
    """The result of a search for sources: the parts to read, in a fixed order, and the skipped files and folders."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...] = ()


class FileSpan(NamedTuple):
    """A share of a file: the items `start` to `end` - 1, in bytes or in row groups. end None: up to the file's end."""

    start: int
    end: int | None


def spans(size_bytes: int) -> list[FileSpan]:
    """Split a file of `size_bytes` bytes into shares of about SHARE_BYTES each."""
    starts = range(0, max(size_bytes - SHARE_BYTES // 2, 1), SHARE_BYTES)
    return list(map(FileSpan, starts, [*starts[1:], None]))
