"""The base class of all readers. A reader turns the entries of one format into columns of records, an `Index`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.formats.base.damage import Damage, PlainBodies
from kfbench.kernels.wire import status
from kfbench.records import Records, Shapes

# "all": read everything. "columns": read and check everything except the payload of records.
# "metadata": read only offsets, times and lengths.
Part = Literal["all", "columns", "metadata"]


class Headers(NamedTuple):
    """Lengths and start positions (bytes) of the keys and values of m headers. Each array has m items."""

    key_lengths: NDArray[np.int32]
    key_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int32]
    value_starts: NDArray[np.int64]


class Index:
    """Empty columns for n records: timestamps, offsets, and lengths and positions of keys and values.

    `timestamps` are those that a consumer sees, `created` those that the producer wrote. Both are the same array unless
    `two_clocks` is True.
    """

    def __init__(self, n: int, two_clocks: bool) -> None:
        self.timestamps, self.offsets = np.empty(n, np.int64), np.empty(n, np.int64)
        self.created = np.empty(n, np.int64) if two_clocks else self.timestamps
        self.key_lengths, self.value_lengths = np.empty(n, np.int32), np.empty(n, np.int32)
        self.key_starts, self.value_starts = np.empty(n, np.int64), np.empty(n, np.int64)

    def cut(self, n: int) -> None:
        """Shorten all columns to the first n records. The columns had room for records of damaged batches too."""
        if n == len(self.offsets):
            return
        one_clock = self.created is self.timestamps
        for name, column in vars(self).items():
            setattr(self, name, column[:n])
        if one_clock:
            self.created = self.timestamps

    @property
    def columns(self) -> tuple[NDArray[np.int64] | NDArray[np.int32], ...]:
        """All columns, in the order in which kernels take them."""
        keys, values = (self.key_lengths, self.key_starts), (self.value_lengths, self.value_starts)
        return self.timestamps, self.created, self.offsets, *keys, *values

    def records(
        self, source: Bytes, header_bounds: NDArray[np.int64], headers: Headers, header_values: Bytes | None = None
    ) -> Records:
        """Return the records. The bytes of keys, values and headers lie in `source`.

        source, header_values: read-only buffers; the latter holds the header values, if it is not `source`.
        header_bounds: int64[n + 1].
        """
        freeze(*self.columns, header_bounds)
        if headers is not NO_HEADERS:
            freeze(*headers)
        return Records.trusted(
            shapes=Shapes.trusted(
                timestamps_ms=self.timestamps,
                offsets=self.offsets,
                key_lengths=self.key_lengths,
                value_lengths=self.value_lengths,
                header_bounds=header_bounds,
                header_key_lengths=headers.key_lengths,
                header_value_lengths=headers.value_lengths,
            ),
            key_data=source,
            key_starts=self.key_starts,
            value_data=source,
            value_starts=self.value_starts,
            header_key_data=source,
            header_key_starts=headers.key_starts,
            header_value_data=source if header_values is None else header_values,
            header_value_starts=headers.value_starts,
        )


def header_counts(header_bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of headers of each record, int64[n].

    header_bounds: int64[n + 1]. If there are no headers, the result is a view of it, because all bounds are 0 then.
    """
    return header_bounds[1:] - header_bounds[:-1] if header_bounds[-1] else header_bounds[1:]


def header_room(m: int) -> Headers:
    """Return uninitialized columns for m headers."""
    return Headers(np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int64))


NO_HEADERS: Final = header_room(0)
freeze(*NO_HEADERS)


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
