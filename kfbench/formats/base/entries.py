"""Find the entries of a log: batches in v2 and later formats, messages in v0 and v1."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.errors import CorruptLog
from kfbench.formats.base.damage import OnError, check_on_error
from kfbench.kernels.wire import frames


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
