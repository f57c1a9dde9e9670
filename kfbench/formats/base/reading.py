"""The base class of all readers. A reader turns `Entries` of one format into columns of records, an `Index`.

Entries are batches in v2 and later formats, messages in v0 and v1.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.errors import CorruptLog
from kfbench.formats.base.damage import BatchDamage, OnError, PlainBodies, check_on_error
from kfbench.kernels.wire import frames, status
from kfbench.records import Records, Shapes

# "all": read everything. "columns": read and check everything except the payload of records.
# "metadata": read only offsets, times and lengths.
ReadScope = Literal["all", "columns", "metadata"]


class Entries(NamedTuple):
    """The entries of a log. Entry i is data[positions[i]:positions[i + 1]].

    They are found by reading each entry's length and skipping to the next. In v2 and later an entry is a batch. In v0
    and v1 it is a message. A message without a codec is one record. A message with a codec contains the compressed set
    of a whole batch.

    positions: int64[entries + 1]. magics: int8[entries], the magic byte of each entry. broken: the error for a length
    that cannot be skipped, if there is one; later entries cannot be found then. trailing_bytes: the size of an
    incomplete last entry, which is no error (`LogInputStream`).
    """

    positions: Int64
    magics: NDArray[np.int8]
    broken: CorruptLog | None
    trailing_bytes: int

    @classmethod
    def of(cls, data: Bytes) -> Self:
        # If all entries are as long as the first one, there is room for them and an eighth more.
        first = frames.START + max(int.from_bytes(data[frames.LENGTH_AT : frames.START], "big"), frames.MIN_LENGTH)
        room = len(data) * 9 // (8 * first)
        while True:  # at most twice; counting first would be slower, because each length is read from memory
            positions, magics = np.empty(room + 1, np.int64), np.empty(room, np.int8)
            entries, stop, stopped = frames.walk(data, positions, magics)
            if entries <= room:
                break
            room = entries
        positions, magics = positions[: entries + 1], magics[:entries]
        freeze(positions)
        promise = "too small to be skipped: nothing after it can be found"
        broken = CorruptLog(stop, "length", promise) if stopped else None
        trailing_bytes = 0 if broken else len(data) - stop
        return cls(positions=positions, magics=magics, broken=broken, trailing_bytes=trailing_bytes)

    def errors(self, on_error: OnError) -> list[CorruptLog]:
        """Return a list with the error `broken`, if there is one. With on_error="raise" raise it instead."""
        check_on_error(on_error)
        if self.broken and on_error == "raise":
            raise self.broken
        return [self.broken] if self.broken else []


class HeaderSpans(NamedTuple):
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
        self,
        source: Bytes,
        header_bounds: NDArray[np.int64],
        headers: HeaderSpans,
        header_values: Bytes | None = None,
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


def header_room(m: int) -> HeaderSpans:
    """Return uninitialized columns for m headers."""
    return HeaderSpans(np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int64))


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
    damage: BatchDamage
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
