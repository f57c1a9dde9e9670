"""A broker's append of columnar batches: read what it checks in headers, and set offset and epoch in place."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import get_i32, get_i64, put_i32, put_i64
from kfbench.kernels.wire import status
from kfbench.research.columnar.kernels import batch_header as header


@kernel
def rule_fields(data, positions, found):
    """Fill found, int64[5 * batches], with the `request_checks.RuleFields` of each batch.

    A header that is cut short or damaged breaks no rule: the reader refuses it.
    """
    for b in range(len(positions) - 1):
        at, end, i = positions[b], positions[b + 1], 5 * b
        found[i + 3], found[i + 4] = layouts.NO_PRODUCER_ID, layouts.NO_SEQUENCE
        read = header.read_header(data, at, end)
        if read.state != status.SOUND:
            found[i], found[i + 1], found[i + 2] = 0, 0, 1
            continue
        found[i], found[i + 1], found[i + 2] = read.attributes, read.last_delta, read.count
        if read.attributes & header.PRODUCER:
            p = at + header.HEADER
            found[i + 3], found[i + 4] = get_i64(data, p), np.int64(get_i32(data, p + header.SEQUENCE_AT))


@kernel
def keeps_times(data, positions, latest_ms, found):
    """Fill found, bool[batches]: whether a batch has create times, and the latest one as its maximum timestamp."""
    for b in range(len(found)):
        read = header.read_header(data, positions[b], positions[b + 1])
        found[b] = read.attributes & header.APPEND == 0 and max(read.max_time, np.int64(-1)) == latest_ms[b]


@kernel
def assign(data, positions, ends, epoch, chosen):
    """Set base offset and leader epoch of the chosen batches. Return the number of bytes written.

    ends: int64[batches], the next offset after the last record of each batch.
    """
    written = np.int64(0)
    for b in range(len(ends)):
        if chosen[b]:
            at = positions[b]
            put_i64(data, at, ends[b] - 1 - header.read_header(data, at, positions[b + 1]).last_delta)
            put_i32(data, at + header.EPOCH, np.int32(epoch))
            written += 12
    return written


@kernel
def add_record_counts(data, positions, most, found):
    """Set the record counts of columnar batches in found, int64[batches], limited to the range from 1 to `most`."""
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        if data[at + header.MAGIC] == header.THIS_MAGIC and end - at > header.HEADER:
            found[b] = min(max(header.read_header(data, at, end).count, np.int64(1)), most)
