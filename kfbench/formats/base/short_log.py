"""Read a short log of v2 or v3 with few calls."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, freeze
from kfbench.batches import BATCH
from kfbench.formats.base.reading import NO_HEADERS
from kfbench.kernels.formats import batch_description, short_log
from kfbench.records import Records, Shapes

MOST_BYTES: Final = 32 << 10
MOST_BATCHES: Final = 8
_BITS_AT: Final = layouts.position(layouts.V2_HEADER, "attributes")
_HEADER_BYTES: Final = _BITS_AT + 2
_NO_BOUNDS: Final = np.zeros(MOST_BYTES // layouts.MIN_RECORD_BYTES + 1, np.int64)
freeze(_NO_BOUNDS)


class ShortLog(NamedTuple):
    """A log that was read.

    Args:
        records: its records.
        bounds: int64[batches + 1], the boundaries of batches among the records.
        places: int64[3, batches + 1]: the bounds, the positions of batches in the log, and of their records.
    """

    records: Records
    bounds: Int64
    places: Int64

    def rows(self, data: Bytes, magic: int) -> NDArray[np.void]:
        """Return the fields of each batch as one row (dtype `BATCH`). data: the log."""
        bounds, positions, bodies = self.places
        rows, none = np.zeros(len(bounds) - 1, BATCH), np.empty(0, np.int64)
        batch_description.describe(
            data, positions, magic, np.diff(bounds), data, bodies[:-1].copy(), positions[1:], none, none,
            np.arange(len(rows)), rows,
        )  # fmt: skip
        rows["dictionary"] = -1
        return rows


def read_short(data: Bytes, magic: int) -> ShortLog | None:
    """Read a log whose batches are all plain (`kernels.formats.short_log`).

    None: it has more than MOST_BYTES or MOST_BATCHES, or a batch is not plain. Nothing is known of it then.
    """
    size = len(data)
    if size > MOST_BYTES:
        return None
    if size >= _HEADER_BYTES and (data.item(_BITS_AT) << 8 | data.item(_BITS_AT + 1)) & short_log.SPECIAL[magic]:
        return None  # before anything is allocated
    room = size // layouts.MIN_RECORD_BYTES + 1
    columns, places = np.empty((short_log.COLUMNS, room), np.int64), np.empty((3, MOST_BATCHES + 1), np.int64)
    batches = short_log.read(data, magic, columns, places)
    if batches == short_log.NOT_PLAIN:
        return None
    n = places.item(0, batches)
    places = places[:, : batches + 1]
    columns = columns[: short_log.KEPT, :n].copy()  # so that no more memory is kept than the records need
    freeze(columns, places)
    timestamps_ms, offsets, key_starts, value_starts, key_lengths, value_lengths = columns
    shapes = Shapes.trusted(
        timestamps_ms=timestamps_ms,
        offsets=offsets,
        key_lengths=key_lengths.view(np.int32)[:n],
        value_lengths=value_lengths.view(np.int32)[:n],
        header_bounds=_NO_BOUNDS[: n + 1],
        header_key_lengths=NO_HEADERS.key_lengths,
        header_value_lengths=NO_HEADERS.value_lengths,
    )
    records = Records.trusted(
        shapes=shapes,
        key_data=data,
        key_starts=key_starts,
        value_data=data,
        value_starts=value_starts,
        header_key_data=data,
        header_key_starts=NO_HEADERS.key_starts,
        header_value_data=data,
        header_value_starts=NO_HEADERS.value_starts,
    )
    return ShortLog(records, places[0], places)
