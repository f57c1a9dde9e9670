"""Parts of a source of records. One worker reads a part from beginning to end, in chunks.

1. A part is small enough to be pickled for a worker: it has a path or offsets, never records. A large file is split
   into several parts with the same name, if its kind can be split.
2. `chunks` yields the same chunks every time and on every host, in the source's order. So a sample of them does not
   depend on the reader.
3. A chunk's keys, values and headers take at most about CHUNK_BYTES, whatever the source's size.
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
SHARE_BYTES: Final = 64 << 20  # of a large file; a worker reads a share in a few seconds


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records of a part, in its order, with the timestamps that producers wrote.

    bounds int64[batches + 1] and fields: the batches; bounds None: the source has no batches, so the caller has to
    assume some. size_bytes: the bytes of these records in the source. partitions: int32[records]; None: all records are
    of the part's partition. kinds: the number of batches by format and codec, such as "v2 lz4". damage: the damage
    since the previous chunk, with positions in the part's unit. trailing_bytes: the size of an incomplete batch at the
    end of a log, which is no damage. log, start, end: what was read of a log segment, and its first byte and its end in
    the file; None in other sources and where only damage is reported.
    """

    records: Records
    size_bytes: int
    bounds: Int64 | None = None
    fields: BatchFields = NO_FIELDS
    partitions: NDArray[np.int32] | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
    trailing_bytes: int = 0
    log: DecodedLog | None = None
    start: int = 0
    end: int = 0


class Part(Protocol):
    """One file, a share of a file, or one partition of a topic.

    name: the path or topic partition, as the user knows it; shares of a file have the same name. topic and partition:
    the origin of the records, "" and None if unknown. size_bytes: the bytes in the source. unit: the unit of positions
    ("byte", "row", "line", "offset"), which count from the beginning of the whole file. key: identifies the part
    independently of the source's place, so that a copy gets the same sample.
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
    """A file or folder that is not read. is_data: it has records, which are missing in the result."""

    path: str
    size_bytes: int
    reason: str
    is_data: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """The parts to read, in a fixed order, and the files and folders that are skipped."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...] = ()


class Span(NamedTuple):
    """A share of a file: bytes `start` to `end` - 1. end None: the file's end."""

    start: int
    end: int | None


def spans(size_bytes: int) -> list[Span]:
    """Return the shares of a file, of about SHARE_BYTES each."""
    starts = range(0, max(size_bytes - SHARE_BYTES // 2, 1), SHARE_BYTES)
    return list(map(Span, starts, [*starts[1:], None]))
