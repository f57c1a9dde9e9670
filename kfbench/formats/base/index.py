"""The columns that an index kernel fills, and the records that they become."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.records import Records, Shapes

Headers = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]


class Index:
    """Room for n records: what a consumer's and the producer's clock say, offsets, and where keys and values lie.

    One array serves for both clocks unless `two_clocks`.
    """

    def __init__(self, n: int, two_clocks: bool) -> None:
        self.timestamps, self.offsets = np.empty(n, np.int64), np.empty(n, np.int64)
        self.created = np.empty(n, np.int64) if two_clocks else self.timestamps
        self.key_lengths, self.value_lengths = np.empty(n, np.int32), np.empty(n, np.int32)
        self.key_starts, self.value_starts = np.empty(n, np.int64), np.empty(n, np.int64)

    def cut(self, n: int) -> None:
        """Leaves the first n records: there was room for those of damaged batches too."""
        if n == len(self.offsets):
            return
        one_clock = self.created is self.timestamps
        for name, column in vars(self).items():
            setattr(self, name, column[:n])
        if one_clock:
            self.created = self.timestamps

    @property
    def columns(self) -> tuple[NDArray[np.int64] | NDArray[np.int32], ...]:
        """In the order that the kernels take them."""
        return (
            self.timestamps,
            self.created,
            self.offsets,
            self.key_lengths,
            self.key_starts,
            self.value_lengths,
            self.value_starts,
        )

    def records(
        self,
        source: Bytes,
        header_bounds: NDArray[np.int64],
        headers: Headers,
        header_values: Bytes | None = None,
    ) -> Records:
        """The records, all their bytes in `source`.

        header_bounds int64[n + 1]; headers: lengths and starts of the keys, lengths and starts of the values;
        header_values: what these lie in, if it is not the source.
        """
        names, name_starts, contents, content_starts = headers
        return Records.trusted(
            Shapes.trusted(
                timestamps_ms=self.timestamps,
                offsets=self.offsets,
                key_lengths=self.key_lengths,
                value_lengths=self.value_lengths,
                header_bounds=header_bounds,
                header_key_lengths=names,
                header_value_lengths=contents,
            ),
            key_data=source,
            key_starts=self.key_starts,
            value_data=source,
            value_starts=self.value_starts,
            header_key_data=source,
            header_key_starts=name_starts,
            header_value_data=source if header_values is None else header_values,
            header_value_starts=content_starts,
        )


def header_counts(header_bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many each record has, int64[n]. Bounds int64[n + 1] are given away: of no header they are the counts."""
    return header_bounds[1:] - header_bounds[:-1] if header_bounds[-1] else header_bounds[1:]


def header_room(m: int) -> Headers:
    """Room for m headers, as `Index.records` takes it."""
    return np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int64)


NO_HEADERS: Final = header_room(0)
