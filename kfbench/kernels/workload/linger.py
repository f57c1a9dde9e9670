"""Compute how a producer divides the records of one partition into v2 batches, by `linger.ms` and `batch.size`.

Source: Kafka's `RecordAccumulator` and `MemoryRecordsBuilder.hasRoomFor`.
"""

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.wire.lengths import ShapeColumns, count_bytes, header_bytes, length_bytes
from kfbench.kernels.wire.varint import varint_bytes
from kfbench.layouts import MAX_HEADER_OVERHEAD, MAX_RECORD_OVERHEAD, V2_HEADER

HEADER_BYTES = V2_HEADER.itemsize
MOST_DELTA_BYTES = 20  # `DefaultRecord.MAX_RECORD_OVERHEAD` without the attributes
MOST_OVERHEAD_BYTES = MAX_RECORD_OVERHEAD + 2  # plus 1 byte each for key and value, because a null has length -1
MOST_HEADER_BYTES = MAX_HEADER_OVERHEAD + 1
ONE, NO_HEADERS = np.int64(1), np.int64(1)


@leaf
def _payload_bytes(key, value):
    """Return the size in bytes of a record without headers. Its length field and its two delta fields are left out."""
    key, value = np.int64(key), np.int64(value)
    return ONE + length_bytes(key, False) + max(key, 0) + length_bytes(value, False) + max(value, 0) + NO_HEADERS


@leaf
def _fixed_bytes(columns, i):
    """Return the size in bytes of record i with headers. Its length field and its two delta fields are left out."""
    size = _payload_bytes(columns.key_lengths[i], columns.value_lengths[i])
    if columns.header_bounds[i] == columns.header_bounds[i + 1]:
        return size
    return size - NO_HEADERS + header_bytes(columns, i, 0, False)


@leaf
def _record_bytes(fixed, time_delta, offset_delta):
    """Return the whole size of a record in bytes. fixed: its size without length and deltas, from `_fixed_bytes`."""
    size = fixed + varint_bytes(time_delta) + count_bytes(offset_delta, False)
    return size + count_bytes(size, False)


@leaf
def _records_bytes(columns, first, end):
    """Return the size in bytes of the records first to end - 1 in one batch. Its loops vectorize where possible."""
    times, keys = columns.timestamps_ms[first:end], columns.key_lengths[first:end]
    values, bounds, written = columns.value_lengths[first:end], columns.header_bounds, np.int64(0)
    if bounds[first] == bounds[end]:
        for i in range(len(times)):
            written += _record_bytes(_payload_bytes(keys[i], values[i]), times[i] - times[0], i)
        return written
    # Sum records and headers separately. The sum is exact if the length of each record takes as many bytes without
    # headers as with all headers of the batch.
    begins, ends = bounds[first:end], bounds[first + 1 : end + 1]
    names = columns.header_key_lengths[bounds[first] : bounds[end]]
    contents = columns.header_value_lengths[bounds[first] : bounds[end]]
    headers, longer = np.int64(0), np.int64(0)
    for h in range(len(names)):
        name, content = np.int64(names[h]), np.int64(contents[h])
        headers += count_bytes(name, False) + name + length_bytes(content, False) + max(content, 0)
    for i in range(len(times)):
        size = _payload_bytes(keys[i], values[i]) - NO_HEADERS
        size += count_bytes(np.int64(ends[i]) - np.int64(begins[i]), False)
        size += varint_bytes(times[i] - times[0]) + count_bytes(i, False)
        written += size + count_bytes(size, False)
        longer += np.int64(count_bytes(size + headers, False) != count_bytes(size, False))
    if longer == 0:
        return written + headers
    written = np.int64(0)
    for i in range(len(times)):
        written += _record_bytes(_fixed_bytes(columns, first + i), times[i] - times[0], i)
    return written


@leaf
def _most_bytes(columns, i):
    """Return an upper bound for the size of record i in bytes."""
    most = np.int64(columns.key_lengths[i]) + np.int64(columns.value_lengths[i]) + MOST_OVERHEAD_BYTES
    for h in range(columns.header_bounds[i], columns.header_bounds[i + 1]):
        most += np.int64(columns.header_key_lengths[h]) + np.int64(columns.header_value_lengths[h]) + MOST_HEADER_BYTES
    return most


@leaf
def _batch_end(times_us, columns, first, sure, linger_us, batch_size_bytes, compressed_share):
    """Return the end of the batch that begins with record `first`, by the client's estimates.

    Args:
        times_us, columns, linger_us, batch_size_bytes, compressed_share: as in `linger`.
        first, sure: record numbers; the records from `first` up to `sure` are known to fit.
    """
    room = np.int64(batch_size_bytes)
    if HEADER_BYTES + _most_bytes(columns, first) > room:
        room = max(room, HEADER_BYTES + MOST_DELTA_BYTES + _fixed_bytes(columns, first))
    written = _records_bytes(columns, first, sure)
    for i in range(sure, len(times_us)):
        taken = HEADER_BYTES + np.int64(written * compressed_share)
        least = max(np.int64(columns.key_lengths[i]), 0) + max(np.int64(columns.value_lengths[i]), 0)
        if times_us[i] - times_us[first] >= linger_us or taken + least > room:
            return np.int64(i)
        delta_ms = columns.timestamps_ms[i] - columns.timestamps_ms[first]
        size = _record_bytes(_fixed_bytes(columns, i), delta_ms, i - first)
        if taken + size > room:
            return np.int64(i)
        written += size
    return np.int64(len(times_us))


@kernel
def linger(times_us, columns, linger_us, batch_size_bytes, compressed_share, bounds):
    """Find which records a producer puts into one batch. Return the number of batches.

    A batch opens with its first record, of any size. It takes the records that come less than linger_us later, up to
    batch_size_bytes. If the first record is larger, the buffer is as large as the client's upper estimate for it, so
    that a second record may still fit. No batch waits for the sender thread, for memory or for an acknowledgement.

    Args:
        times_us: int64[n], the time in µs at which the producer gets each record, never falling.
        columns: ShapeColumns; the timestamps determine the size of the timestamp deltas.
        linger_us, batch_size_bytes: `linger.ms`, in microseconds, and `batch.size`.
        compressed_share: the client's estimate of compressed / uncompressed bytes of the open batch, with its margin
            of 1.05; 1 without a codec. The next record counts in full.
        bounds: int64[n + 1]; batch b has the records bounds[b] to bounds[b + 1] - 1. Filled for the batches found.
    """
    columns = ShapeColumns(*columns)
    batches, first, most, i, n = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(len(times_us))
    bounds[0] = 0
    if n:
        opened = times_us[0] - linger_us
    while i < n:
        # These are selections instead of branches, because the CPU cannot predict the end of a batch.
        late = times_us[i] - opened >= linger_us
        batches += np.int64(late)
        first = i if late else first
        opened = times_us[i] if late else opened
        most = (np.int64(0) if late else most) + _most_bytes(columns, i)
        i += 1
        if HEADER_BYTES + most > batch_size_bytes:
            sure = i - 1 if compressed_share <= 1 and i - 1 > first else first + 1
            i = _batch_end(times_us, columns, first, sure, linger_us, batch_size_bytes, compressed_share)
            if i < n:
                opened = times_us[i] - linger_us
        bounds[batches] = i
    return batches
