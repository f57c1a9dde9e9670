"""Control records: checks of the key, and of the value of a transaction marker.

Source: `ControlRecordType.parse`, `EndTransactionMarker.deserialize`.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16
from kfbench.kernels.wire.lengths import RecordColumns

KEY_BYTES, TYPE_AT = layouts.CONTROL_KEY.itemsize, layouts.position(layouts.CONTROL_KEY, "type")
MARKER_BYTES = layouts.END_TRANSACTION_MARKER.itemsize
COMMIT = layouts.CONTROL_COMMIT  # abort is 0: both are markers


@leaf
def is_sound(keys, key_start, key_length, values, value_start, value_length):
    """Return whether Kafka's reader accepts a record as a control record. Any type is allowed, with versions from 0 up.

    The key is keys[key_start : key_start + key_length]. The value is the slice of `values` given by value_start and
    value_length. Both must lie inside their buffers.
    """
    if key_length < KEY_BYTES or get_i16(keys, key_start) < 0:
        return False
    kind = get_i16(keys, key_start + TYPE_AT)
    if kind < 0 or kind > COMMIT:
        return True
    return value_length >= MARKER_BYTES and get_i16(values, value_start) >= 0


@kernel
def first_broken(columns, bounds, fields):
    """Find the first record in a control batch that is not a control record. Return its number, or -1 without one."""
    given = RecordColumns(*columns)
    for b in range(len(bounds) - 1):
        if fields[b if len(fields) > 1 else 0].is_control:
            for i in range(bounds[b], bounds[b + 1]):
                key_length, value_length = np.int64(given.key_lengths[i]), np.int64(given.value_lengths[i])
                if not is_sound(
                    given.key_data, given.key_starts[i], key_length,
                    given.value_data, given.value_starts[i], value_length,
                ):  # fmt: skip
                    return i
    return -1
