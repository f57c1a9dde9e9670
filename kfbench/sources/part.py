"""Parts of a source of records. One worker reads a part from beginning to end, in chunks.

1. A part is small enough to be pickled for a worker: a path or offsets, never records. A large file is split into
   several parts of one name, if its kind can be split.
2. `chunks` yields the same chunks every time and on every host, in the source's order. So a sample drawn from them does
   not depend on the reader.
3. A chunk's keys, values and headers take about CHUNK_BYTES at most, whatever the source's size.
4. Damage is left out and stated in a chunk's `damage`. Damage that makes the rest of a part unreadable is raised:
   KfbenchError or OSError. The chunks before it count.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.log.inspect import Damage
from kfbench.records import Records

CHUNK_BYTES: Final = 16 << 20
SHARE_BYTES: Final = 64 << 20  # a part of a file that is split: a few seconds of one worker


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records of a part, in its order, with their producers' timestamps.

    bounds int64[batches + 1] and fields: the batches; bounds None: the source has no batches, and the caller assumes
    some. size_bytes: the bytes of these records in the source. kinds: the number of batches by format and codec, such
    as "v2 lz4". damage: left out since the previous chunk; positions in the part's unit. trailing_bytes: the size of an
    incomplete batch at the end of a log, which is no damage.
    """

    records: Records
    size_bytes: int
    bounds: Int64 | None = None
    fields: BatchFields = NO_FIELDS
    partitions: NDArray[np.int32] | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
    trailing_bytes: int = 0


class Part(Protocol):
    """One file, a share of a file, or one partition of a topic.

    name: the path or topic partition, as the user knows it; shares of a file have the same. topic and partition: the
    origin of the records, "" and None if unknown. size_bytes: the bytes in the source. unit: the unit of positions
    ("byte", "row", "line", "offset"), which count from the beginning of the whole file. key: identifies the part
    wherever the source lies, so that a copy of it is sampled alike.
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
    """A file or folder that is not read. is_data: it holds records that are missing in the result."""

    path: str
    size_bytes: int
    reason: str
    is_data: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """The parts to read, in a fixed order, and the files and folders that are skipped."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...] = ()


def spans(size_bytes: int) -> list[tuple[int, int | None]]:
    """Return the first byte and the end of each share of a file; None: the file's end."""
    starts = range(0, max(size_bytes - SHARE_BYTES // 2, 1), SHARE_BYTES)
    return list(zip(starts, [*starts[1:], None], strict=True))
