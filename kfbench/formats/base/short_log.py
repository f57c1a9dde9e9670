"""Read a short log of v2 or v3 with few calls."""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, freeze
from kfbench.batches import BATCH, DecodedLog
from kfbench.formats.base.reading import NO_HEADERS
from kfbench.kernels.formats import batch_description, batch_reading
from kfbench.records import Records, Shapes, unchecked

MOST_BYTES: Final = 32 << 10
MOST_BATCHES: Final = 8
_BITS_AT: Final = layouts.position(layouts.V2_HEADER, "attributes")
_HEADER_BYTES: Final = _BITS_AT + 2
_NO_BOUNDS: Final = np.zeros(MOST_BYTES // layouts.MIN_RECORD_BYTES + 1, np.int64)
freeze(_NO_BOUNDS)


def read_short(data: Bytes, magic: int) -> DecodedLog | None:
    """Decode a log whose batches are all plain (`batch_reading.read_plain`).

    None: it has more than MOST_BYTES or MOST_BATCHES, or a batch is not plain. Nothing is known of it then.
    """
    size = len(data)
    if size > MOST_BYTES:
        return None
    if size >= _HEADER_BYTES and (data.item(_BITS_AT) << 8 | data.item(_BITS_AT + 1)) & batch_reading.SPECIAL[magic]:
        return None  # before anything is allocated
    room = size // layouts.MIN_RECORD_BYTES + 1
    columns, places = np.empty((batch_reading.COLUMNS, room), np.int64), np.empty((3, MOST_BATCHES + 1), np.int64)
    batches = batch_reading.read_plain(data, magic, columns, places)
    if batches == batch_reading.NOT_PLAIN:
        return None
    n = places.item(0, batches)
    places = places[:, : batches + 1]
    columns = columns[: batch_reading.KEPT, :n].copy()  # so that no more memory is kept than the records need
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
    attributes = {
        "records": records,
        "bounds": places[0],
        "create_timestamps_ms": timestamps_ms,
        "rows": partial(_describe, data, magic, places),
        "tags": None,
        "format_name": None,
        "dictionaries": {},
        "errors": [],
        "trailing_bytes": 0,
    }
    log: DecodedLog = unchecked(DecodedLog, attributes)
    return log


def _describe(data: Bytes, magic: int, places: Int64) -> NDArray[np.void]:
    """Return the fields of each batch as one row (dtype `BATCH`). places: as `read_plain` fills its `batches`."""
    bounds, positions, bodies = places
    rows, none = np.zeros(len(bounds) - 1, BATCH), np.empty(0, np.int64)
    batch_description.describe(
        data, positions, magic, np.diff(bounds), data, bodies[:-1].copy(), positions[1:], none, none,
        np.arange(len(rows)), rows,
    )  # fmt: skip
    rows["dictionary"] = -1
    return rows
