"""Where the batches of a producer end: Kafka's `RecordAccumulator` and `MemoryRecordsBuilder.hasRoomFor`, for one
partition, in v2."""

import numpy as np

from kfbench.kernels._jit import kernel, leaf
from kfbench.kernels.lengths import header_bytes, length_bytes
from kfbench.kernels.varint import varint_bytes
from kfbench.layouts import MAX_HEADER_OVERHEAD, MAX_RECORD_OVERHEAD, V2_HEADER

HEADER_BYTES = V2_HEADER.itemsize
MOST_DELTA_BYTES = 20  # `DefaultRecord.MAX_RECORD_OVERHEAD` without the attributes
MOST_OVERHEAD_BYTES = MAX_RECORD_OVERHEAD + 2  # lengths of a null key and a null value are -1
MOST_HEADER_BYTES = MAX_HEADER_OVERHEAD + 1
ONE, NO_HEADERS = np.int64(1), np.int64(1)


@leaf
def _fixed_bytes(columns, i):
    """What record i takes wherever it stands: all but its length and its two deltas."""
    key, value, bounds = np.int64(columns[2][i]), np.int64(columns[3][i]), columns[4]
    size = ONE + length_bytes(key, False) + max(key, 0) + length_bytes(value, False) + max(value, 0)
    if bounds[i] == bounds[i + 1]:
        return size + NO_HEADERS
    return size + header_bytes(bounds, columns[5], columns[6], i, 0, False)


@leaf
def _most_bytes(columns, i):
    """No record of these lengths takes more."""
    bounds = columns[4]
    most = np.int64(columns[2][i]) + np.int64(columns[3][i]) + MOST_OVERHEAD_BYTES
    for h in range(bounds[i], bounds[i + 1]):
        most += np.int64(columns[5][h]) + np.int64(columns[6][h]) + MOST_HEADER_BYTES
    return most


@leaf
def _in_time(times_us, columns, first, linger_us, room, most):
    """(where the records end that come in time, whether they are sure to fit): a look at lengths only."""
    opened, i = times_us[first], first + 1
    while i < len(times_us) and times_us[i] - opened < linger_us:
        most += _most_bytes(columns, i)
        if most > room:
            return i, False
        i += 1
    return i, True


@leaf
def _that_fit(times_us, columns, first, linger_us, room, compressed_share):
    """Where the records end that come in time and fit, as the client counts."""
    timestamps, opened, written = columns[0], times_us[first], np.int64(0)
    for i in range(first, len(times_us)):
        size = _fixed_bytes(columns, i) + varint_bytes(timestamps[i] - timestamps[first])
        size += varint_bytes(np.int64(i - first))
        size += varint_bytes(size)
        late = times_us[i] - opened >= linger_us
        if i > first and (late or HEADER_BYTES + np.int64(written * compressed_share) + size > room):
            return np.int64(i)
        written += size
    return np.int64(len(times_us))


@kernel
def linger(times_us, columns, linger_us, batch_size_bytes, compressed_share, bounds):
    """Fills bounds int64[n + 1] up to the number of batches, which it gives.

    times_us int64[n]: when the producer is given each record, never falling; columns: the shapes', whose timestamps go
    into the deltas. A batch opens with its first record and takes those that come less than linger_us after it, up to
    batch_size_bytes (`batch.size`). It takes its first record whatever the size, and its buffer is then as large as
    the client estimates that record at most, so that a second one may still fit. compressed_share: what the client
    believes to be left of the bytes written so far, its margin of 1.05 included; 1 without a codec. The next record
    counts in full. No batch waits for the sender, for memory or for an acknowledgement.
    """
    batches, first = np.int64(0), np.int64(0)
    bounds[0] = 0
    while first < len(times_us):
        most, room = _most_bytes(columns, first), np.int64(batch_size_bytes)
        if HEADER_BYTES + most > room:
            room = max(room, HEADER_BYTES + MOST_DELTA_BYTES + _fixed_bytes(columns, first))
        end, fits = _in_time(times_us, columns, first, linger_us, room - HEADER_BYTES, most)
        if not fits:
            end = _that_fit(times_us, columns, first, linger_us, room, compressed_share)
        batches += 1
        bounds[batches] = first = end
    return batches
