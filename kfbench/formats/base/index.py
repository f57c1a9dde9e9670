"""Columns of records that a kernel fills while it reads a log. `Index.records` makes `Records` of them."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, freeze
from kfbench.records import Records, Shapes


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
