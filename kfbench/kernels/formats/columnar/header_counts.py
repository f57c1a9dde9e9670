"""Kernels that read the number of headers of each record of a batch. It is stored before the header columns.

Common parameters:

    data uint8[], p, end: the log, the position of the header columns, the end of the batch
    n: number of records
    x int64[n + GROUP]: scratch
    header_bounds int64[records + 1]: record i has the headers header_bounds[i] up to header_bounds[i + 1]
    r: row of the first record; header_bounds is filled up to r
"""

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.batch_header import HEADERS
from kfbench.kernels.formats.columnar.columns import U1, ZERO
from kfbench.kernels.formats.columnar.header_forms import BY_POSITION, BY_RECORD
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.simd.simd_int64 import put_line
from kfbench.kernels.wire import status
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_uvarint


@leaf
def _read_counts(data, p, end, n, max_headers, x, header_bounds, r):
    """Read the header counts of a batch with headers into header_bounds[r + 1:r + n + 1], as running sums.

    Return the state and the next position.

    Args: see the module docstring; max_headers: headers allowed in the batch.
    """
    to, before = np.uint64(r), header_bounds[r]
    mode = ZERO
    if n > 1:
        if p >= end:
            return status.HEADER_COLUMNS, p
        mode = np.int64(get_u8(data, p))
        p += 1
    if n == 1 or mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        if p > end or number == 0:
            return status.HEADER_COLUMNS, p
        if number > max_headers or number * n > max_headers:
            return status.LIMIT_HEADERS, p
        put_line(header_bounds, to + U1, n, before + number, number)
        return status.SOUND, p
    if mode != BY_RECORD:
        return status.HEADER_COLUMNS, p
    state, p = packed.read(data, p, end, n, ZERO, np.int64(1), x, 0)
    if state != status.SOUND:
        return state, p
    total = ZERO
    for i in range(np.uint64(n)):
        if x[i] < 0 or x[i] > INT32_MAX:
            return status.COLUMN_LENGTH, p
        total += x[i]
        header_bounds[to + i + U1] = before + total
    if total == 0:
        return status.HEADER_COLUMNS, p
    return status.LIMIT_HEADERS if total > max_headers else status.SOUND, p


@leaf
def read_header_counts(data, p, end, n, bits, limits, x, header_bounds, r):
    """Read the header counts of a batch with or without headers into header_bounds[r + 1:r + n + 1], as running sums.

    Return the state and the next position.

    Args:
        data, p, end, n, x, header_bounds, r: see the module docstring; header_bounds is empty if no batch has headers
        bits: attributes of the batch
        limits: the largest bytes per field, headers per batch, and headers in the log
    """
    has_headers = len(header_bounds) > 0
    if not bits & HEADERS:
        if has_headers:
            put_line(header_bounds, np.uint64(r) + U1, n, header_bounds[r], ZERO)
        return status.SOUND, p
    if not has_headers:  # the log was changed after `survey` read it
        return status.HEADER_COLUMNS, p
    _, max_in_batch, max_in_log = limits
    most = min(max_in_batch, max_in_log - header_bounds[r])
    state, p = _read_counts(data, p, end, n, most, x, header_bounds, r)
    if state == status.LIMIT_HEADERS and most < max_in_batch:
        state = status.LIMIT_LOG_HEADERS
    return state, p
