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
        self.timestamps, self.offsets, self.key_starts, self.value_starts = (np.empty(n, np.int64) for _ in range(4))
        self.created = np.empty(n, np.int64) if two_clocks else self.timestamps
        self.key_lengths, self.value_lengths = np.empty(n, np.int32), np.empty(n, np.int32)

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
        """The first len(header_bounds) - 1 records, all their bytes in `source`.

        headers: lengths and starts of the keys, lengths and starts of the values; header_values: what these lie in,
        if it is not the source.
        """
        n = len(header_bounds) - 1
        names, name_starts, contents, content_starts = headers
        return Records.trusted(
            Shapes.trusted(
                timestamps_ms=self.timestamps[:n],
                offsets=self.offsets[:n],
                key_lengths=self.key_lengths[:n],
                value_lengths=self.value_lengths[:n],
                header_bounds=header_bounds,
                header_key_lengths=names,
                header_value_lengths=contents,
            ),
            key_data=source,
            key_starts=self.key_starts[:n],
            value_data=source,
            value_starts=self.value_starts[:n],
            header_key_data=source,
            header_key_starts=name_starts,
            header_value_data=source if header_values is None else header_values,
            header_value_starts=content_starts,
        )


def header_room(m: int) -> Headers:
    """Room for m headers, as `Index.records` takes it."""
    return np.empty(m, np.int32), np.empty(m, np.int64), np.empty(m, np.int32), np.empty(m, np.int64)


NO_HEADERS: Final = header_room(0)
