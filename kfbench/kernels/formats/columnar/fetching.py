"""One record of a columnar batch, without the others."""

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.batch_header import (
    AGES,
    APPEND,
    BY_ROWS,
    CODEC_MASK,
    HEADER,
    HEADERS,
    KEYS,
    MAGIC,
    NULL,
    NULL_KEYS,
    NULL_VALUES,
    OFFSETS,
    THIS_MAGIC,
    VALUES,
    read_header,
)
from kfbench.kernels.formats.columnar.columns import ALL_ALIKE, read_length
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64, get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.sealing import INT32_MAX
from kfbench.kernels.wire.varint import get_varlong


@leaf
def _read_around(data, p, end, n, nulls, i, with_total, most_bytes):
    """As `columns.read_around`."""
    if not nulls and p < end and get_u8(data, p) == ALL_ALIKE:  # without a call
        length, p = get_varlong(data, p + 1, end)
        state = status.SOUND if length >= 0 and length <= INT32_MAX else status.COLUMN_LENGTH
        if length > most_bytes and state == status.SOUND:
            state = status.LIMIT_FIELD
        return state, p, length, length * i, length * n
    return packed.read_around(data, p, end, n, nulls, i, with_total, most_bytes)


@kernel
def fetch(data, positions, indices, most_records, most_in_all, most_bytes, state, columns):
    """Record indices[b] of each batch, as one row b of the columns, which have no created times; no checksum is
    checked. most_records, most_bytes: in a batch, in a field; most_in_all: records of all batches, for some columns are
    read value by value, and values may take no byte. A batch that breaks a promise, has a codec or headers gets its
    state.
    """
    records = np.int64(0)
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        ask_ahead(data, positions, b)
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= HEADER:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end)
        problem, bits, n, p = header.state, header.attributes, header.count, header.body
        by_rows = header.extensions & BY_ROWS != 0
        if problem == status.SOUND and (i < 0 or i >= n):
            problem = status.NO_SUCH_RECORD
        if problem == status.SOUND and bits & (CODEC_MASK | HEADERS):
            problem = status.NOT_FETCHED
        if problem == status.SOUND and n > most_records:
            problem = status.LIMIT_RECORDS
        if problem == status.SOUND and n > most_in_all - records:
            problem = status.LIMIT_LOG_RECORDS
        if problem != status.SOUND:
            state[b] = problem
            continue
        records += n
        age, delta, key_length, value_length = np.int64(0), i, np.int64(NULL), np.int64(NULL)
        key_before = key_total = value_before = np.int64(0)
        if n == 1:
            if bits & AGES:
                age, p = get_varlong(data, p, end)
            if bits & OFFSETS:
                delta, p = get_varlong(data, p, end)
            problem, p, key_length = read_length(data, p, end, bits & KEYS != 0, most_bytes)
            if problem == status.SOUND:
                problem, p, value_length = read_length(data, p, end, bits & VALUES != 0, most_bytes)
            key_total = max(key_length, 0)
        else:
            if bits & AGES:
                problem, p, age = packed.read_at(data, p, end, n, np.int64(-1), i)
            if bits & OFFSETS and problem == status.SOUND:
                problem, p, delta = packed.read_at(data, p, end, n, np.int64(1), i)
            if bits & KEYS and problem == status.SOUND:
                problem, p, key_length, key_before, key_total = _read_around(
                    data, p, end, n, bits & NULL_KEYS != 0, i, not by_rows, most_bytes
                )
            if bits & VALUES and problem == status.SOUND:
                problem, p, value_length, value_before, _ = _read_around(
                    data, p, end, n, bits & NULL_VALUES != 0, i, False, most_bytes
                )
        if by_rows:
            key_at = p + key_before + value_before
            value_at = key_at + max(key_length, 0)
        else:
            key_at, value_at = p + key_before, p + key_total + value_before
        if problem == status.SOUND and (delta + 2**31) >> 32:
            problem = status.COLUMN_OFFSET
        if problem == status.SOUND and (
            min(key_at, value_at) < p or max(key_length, 0) > end - key_at or max(value_length, 0) > end - value_at
        ):
            problem = status.PAYLOAD
        if problem != status.SOUND:
            state[b] = problem
            continue
        timestamps[b] = header.max_time if bits & APPEND else header.anchor - age
        offsets[b] = get_i64(data, at) + delta
        key_lengths[b], key_starts[b] = key_length, key_at
        value_lengths[b], value_starts[b] = value_length, value_at
