"""The base class of all readers. A reader turns the entries of one format into columns of records."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.formats.base.damage import Damage, PlainBodies
from kfbench.formats.base.index import NO_HEADERS, Index
from kfbench.kernels.wire import status
from kfbench.records import Records

# "all": read everything. "columns": read and check everything except the payload of records.
# "metadata": read only offsets, times and lengths.
Part = Literal["all", "columns", "metadata"]


class Reading(ABC):
    """A reader of entries (batches or messages) of one format, and the columns that it has read.

    Entry b is data[positions[b]:positions[b + 1]]. Its body without the codec is source[starts[b]:ends[b]]. `index` has
    the columns of the records of undamaged entries. Entry b has the records bounds[b] to bounds[b + 1] - 1. bounds:
    int64[entries + 1].
    """

    data: Bytes
    positions: Int64
    damage: Damage
    source: Bytes
    starts: Int64
    ends: Int64
    index: Index
    bounds: Int64
    header_bounds: Int64  # int64[records + 1]

    def records(self) -> Records:
        """Return the records of undamaged entries, with the timestamps that a consumer sees."""
        return self.index.records(self.source, self.header_bounds, NO_HEADERS)

    @abstractmethod
    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        """Return the fields of each undamaged entry as one row (dtype `BATCH`).

        bounds: int64[n + 1], the record boundaries of the n undamaged entries.
        """

    @property
    def has_tags(self) -> bool:
        """True if an entry may have tagged fields."""
        return False

    @property
    def is_metadata(self) -> bool:
        """True if the payload of at least one batch was not decompressed, so that `records` cannot be called."""
        return False

    def tags(self) -> Sequence[Mapping[int, bytes]]:
        """Return the caller's tagged fields: one mapping from tag to bytes per undamaged entry."""
        raise NotImplementedError

    @property
    def sound(self) -> Int64:
        """The indices of the entries without damage, int64."""
        return np.flatnonzero(self.damage.state == status.SOUND)

    @property
    def sound_bounds(self) -> Int64:
        """The boundaries of the entries without damage among the records: int64[n + 1] for n entries."""
        return np.append(self.bounds[:-1][self.damage.state == status.SOUND], self.bounds[-1])

    @property
    def plain_bytes(self) -> int:
        """The number of bytes of all bodies that were read, after decompression."""
        return int((self.ends - self.starts)[self.sound].sum())

    @property
    def plain_sets(self) -> PlainBodies | None:
        """The uncompressed message sets, where a single message counts as a set; None if entries are batches."""
        return None
