"""What a source of records gives: parts, each read by one worker from beginning to end, in chunks.

1. A part is a recipe, small enough to travel to a worker by pickle: a path or offsets, never records. A large file is
   several, of one name, wherever it can be cut.
2. `chunks` gives the same chunks every time and on every host, in the source's order: what is drawn of them for a
   sample must not depend on who reads.
3. A chunk's keys, values and headers take about CHUNK_BYTES at most, so that memory stays bounded whatever the source's
   size.
4. What is damaged is left out and stated in a chunk's `damage`. Only what leaves a part unreadable from there on is
   raised: KfbenchError or OSError. The chunks before it count.
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
SHARE_BYTES: Final = 64 << 20  # of a file that is cut: a few seconds of a worker, and its start is not far to find


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records of a part, in its order, with the timestamps that their producer gave.

    bounds int64[batches + 1], fields: their batches; None: the source has none, and a batching has to be assumed.
    size_bytes: what these records take in the source now. kinds: how they lie there, "v2 lz4" -> batches. damage: what
    was left out since the chunk before, in the part's unit. trailing_bytes: an incomplete batch at the end of a log,
    which is no damage.
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
    """One file, a share of it, or one partition of a topic.

    name: as the user knows it, such as a path, which the shares of a file have in common; topic and partition: whose
    records these are, where that is known; size_bytes: all of it as it lies there; unit: what positions count ("byte",
    "row", "line", "offset"), from the beginning of the file also in a share; key: tells it from others wherever the
    source lies, so that the same stretches are drawn of a copy.
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
    """A file, or a folder with all that is in it, that is not read. is_data: it holds records that nothing else does,
    so that its bytes are missing in the result."""

    path: str
    size_bytes: int
    reason: str
    is_data: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """What there is to read, in a fixed order, and what is left out."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...] = ()


def spans(size_bytes: int) -> list[tuple[int, int | None]]:
    """Where the shares of a file begin and end; None: with the file. They do not depend on who reads them."""
    starts = range(0, max(size_bytes - SHARE_BYTES // 2, 1), SHARE_BYTES)
    return list(zip(starts, [*starts[1:], None], strict=True))
