"""The entries of a log: what lies between one length and the next, whatever the format."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.errors import CorruptLog
from kfbench.formats.base.damage import OnError, check_choice
from kfbench.kernels.wire import frames


class Entries(NamedTuple):
    """positions int64[entries + 1], magics int8[entries], and how the walk ended.

    An entry is a batch in v2 and later. In v0 and v1 it is a message: a plain one holds one record, and one with a
    codec the compressed set of a whole batch.

    broken: a length that cannot be skipped, after which nothing is found. trailing_bytes: an incomplete last entry,
    which is no error (`LogInputStream`).
    """

    positions: Int64
    magics: NDArray[np.int8]
    broken: CorruptLog | None
    trailing_bytes: int

    @classmethod
    def of(cls, data: Bytes) -> Self:
        room = _likely(data)
        while True:  # twice at most: a walk waits for each length to arrive from memory, so it does not count first
            positions, magics = np.empty(room + 1, np.int64), np.empty(room, np.int8)
            entries, stop, stopped = frames.walk(data, positions, magics)
            if entries <= room:
                break
            room = entries
        positions, magics = read_only(positions[: entries + 1]), magics[:entries]
        broken = (
            CorruptLog(stop, "length", "too small to be skipped: nothing after it can be found") if stopped else None
        )
        trailing_bytes = 0 if broken else len(data) - stop
        return cls(positions=positions, magics=magics, broken=broken, trailing_bytes=trailing_bytes)

    def errors(self, on_error: OnError) -> list[CorruptLog]:
        """The end of the walk as an error, if it is one; raised with on_error="raise"."""
        check_choice(on_error)
        if self.broken and on_error == "raise":
            raise self.broken
        return [self.broken] if self.broken else []


def _likely(data: Bytes) -> int:
    """How many entries there are if the others are not much smaller than the first."""
    first = frames.START + max(int.from_bytes(data[frames.LENGTH_AT : frames.START], "big"), frames.MIN_LENGTH)
    return len(data) * 9 // (8 * first)
