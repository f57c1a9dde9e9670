"""Control records: checks of the key, and of the value of a transaction marker.

Source: `ControlRecordType.parse`, `EndTransactionMarker.deserialize`.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16

KEY_BYTES, TYPE_AT = layouts.CONTROL_KEY.itemsize, layouts.position(layouts.CONTROL_KEY, "type")
MARKER_BYTES = layouts.END_TRANSACTION_MARKER.itemsize
COMMIT = layouts.CONTROL_COMMIT  # abort is 0: both are markers


@leaf
def is_sound(keys, key_start, key_length, values, value_start, value_length):
    """Return whether Kafka's reader accepts a control record: any type, with versions from 0 up.

    The key is keys[key_start : key_start + key_length], and the value likewise. Both must lie inside their buffers.
    """
    if key_length < KEY_BYTES or get_i16(keys, key_start) < 0:
        return False
    kind = get_i16(keys, key_start + TYPE_AT)
    if kind < 0 or kind > COMMIT:
        return True
    return value_length >= MARKER_BYTES and get_i16(values, value_start) >= 0


@kernel
def first_broken(columns, bounds, fields):
    """Return the number of the first record that lies in a control batch and is no control record, or -1."""
    key_lengths, value_lengths = columns[2], columns[3]
    keys, key_starts, values, value_starts = columns[7:11]
    for b in range(len(bounds) - 1):
        if fields[b if len(fields) > 1 else 0].is_control:
            for i in range(bounds[b], bounds[b + 1]):
                if not is_sound(
                    keys, key_starts[i], np.int64(key_lengths[i]), values, value_starts[i], np.int64(value_lengths[i])
                ):
                    return i
    return -1
