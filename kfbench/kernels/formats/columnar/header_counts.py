"""The numbers of headers of the records of a batch, read from the front of its header columns."""

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.batch_header import HEADERS, ONE
from kfbench.kernels.formats.columnar.header_forms import BY_POSITION, BY_RECORD
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.simd.simd_int64 import put_line
from kfbench.kernels.wire import status
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_uvarint


@leaf
def _read_counts(data, p, end, n, most_headers, x, header_bounds, r):
    """Fill header_bounds[r + 1:r + n + 1]. Return the state and the next position.

    Args:
        data uint8[], p, end: the log, the position of the header columns in it, the end of the batch
        n: number of records
        most_headers: the batch may have
        x int64[n + GROUP]: scratch
        header_bounds int64[records + 1]: filled up to r
    """
    to, before = np.uint64(r), header_bounds[r]
    mode = np.int64(0)
    if n > 1:
        if p >= end:
            return status.HEADER_COLUMNS, p
        mode = np.int64(get_u8(data, p))
        p += 1
    if n == 1 or mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        if p > end or number == 0:
            return status.HEADER_COLUMNS, p
        if number > most_headers or number * n > most_headers:
            return status.LIMIT_HEADERS, p
        put_line(header_bounds, to + ONE, n, before + number, number)
        return status.SOUND, p
    if mode != BY_RECORD:
        return status.HEADER_COLUMNS, p
    state, p = packed.read(data, p, end, n, np.int64(0), np.int64(1), x, 0)
    if state != status.SOUND:
        return state, p
    total = np.int64(0)
    for i in range(np.uint64(n)):
        if x[i] < 0 or x[i] > INT32_MAX:
            return status.COLUMN_LENGTH, p
        total += x[i]
        header_bounds[to + i + ONE] = before + total
    if total == 0:
        return status.HEADER_COLUMNS, p
    return status.LIMIT_HEADERS if total > most_headers else status.SOUND, p


@leaf
def read_header_counts(data, p, end, n, bits, limits, x, header_bounds, r):
    """Fill header_bounds[r + 1:r + n + 1] of any batch, as `_read_counts` does. limits: those of `reading.index`."""
    any_headers = len(header_bounds) > 0
    if not bits & HEADERS:
        if any_headers:
            put_line(header_bounds, np.uint64(r) + ONE, n, header_bounds[r], np.int64(0))
        return status.SOUND, p
    if not any_headers:  # the log has changed since `survey` read it
        return status.HEADER_COLUMNS, p
    _, most_in_batch, most_in_all = limits
    most = min(most_in_batch, most_in_all - header_bounds[r])
    state, p = _read_counts(data, p, end, n, most, x, header_bounds, r)
    if state == status.LIMIT_HEADERS and most < most_in_batch:
        state = status.LIMIT_LOG_HEADERS
    return state, p
