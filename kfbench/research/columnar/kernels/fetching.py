"""A kernel that reads single records of columnar batches without the others."""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.varint import get_varlong
from kfbench.research.columnar.kernels import batch_header as layout
from kfbench.research.columnar.kernels.batch_header import read_header
from kfbench.research.columnar.kernels.columns import ZERO, LengthAround, read_around, read_at, read_length


class Fetched(NamedTuple):
    """One record, read from the columns of its batch. All fields are int64."""

    state: int
    age: int
    offset_delta: int
    key_length: int
    value_length: int
    payload_at: int  # position of the batch's payload
    key_at: int
    value_at: int


@leaf
def _refused(state):
    return Fetched(np.int64(state), ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)


@leaf
def _place(p, age, delta, key, value):
    """Return the Fetched record. p: position of the payload; key, value: the LengthAround of its lengths."""
    return Fetched(value.state, age, delta, key.length, value.length, p, p + key.before, p + key.total + value.before)


@leaf
def _read_only_record(data, p, end, bits, max_bytes):
    """Read the record of a batch with only one record. p: the position of the columns."""
    age, delta = ZERO, ZERO
    if bits & layout.AGES:
        age, p = get_varlong(data, p, end)
    if bits & layout.OFFSETS:
        delta, p = get_varlong(data, p, end)
    state, p, key_length = read_length(data, p, end, bits & layout.KEYS != 0, max_bytes)
    if state != status.SOUND:
        return _refused(state)
    state, p, value_length = read_length(data, p, end, bits & layout.VALUES != 0, max_bytes)
    key = LengthAround(np.int64(state), p, key_length, ZERO, max(key_length, 0))
    return _place(p, age, delta, key, LengthAround(np.int64(state), p, value_length, ZERO, ZERO))


@leaf
def _read_record(data, p, end, n, bits, i, max_bytes):
    """Read record i of a batch with at least two records.

    Args:
        data uint8[], p, end: the log, the position of the columns, the end of the batch
        n: number of records, at least 2
        bits: attributes of the batch
        i: index of the record in the batch
        max_bytes: largest length of a key or value allowed
    """
    age, delta = ZERO, i
    key = value = LengthAround(np.int64(status.SOUND), p, np.int64(layout.NULL), ZERO, ZERO)
    if bits & layout.AGES:
        state, p, age = read_at(data, p, end, n, i)
        if state != status.SOUND:
            return _refused(state)
    if bits & layout.OFFSETS:
        state, p, delta = read_at(data, p, end, n, i)
        if state != status.SOUND:
            return _refused(state)
    if bits & layout.KEYS:
        key = read_around(data, p, end, n, i, True, max_bytes)
        p = key.position
        if key.state != status.SOUND:
            return _refused(key.state)
    if bits & layout.VALUES:
        value = read_around(data, p, end, n, i, False, max_bytes)
        p = value.position
    return _place(p, age, delta, key, value)


@leaf
def _check(header, i, max_records, max_in_log):
    """Check that record i of a batch exists and can be fetched. Return SOUND or the `status` of the problem."""
    if header.state != status.SOUND:
        return header.state
    if i < 0 or i >= header.count:
        return np.int64(status.NO_SUCH_RECORD)
    if header.attributes & (layout.CODEC_MASK | layout.HEADERS):
        return np.int64(status.NOT_FETCHED)
    if header.count > max_records:
        return np.int64(status.LIMIT_RECORDS)
    return np.int64(status.LIMIT_LOG_RECORDS if header.count > max_in_log else status.SOUND)


@kernel
def fetch(data, positions, indices, max_records, max_in_log, max_bytes, state, columns):
    """Read one record of each batch. Check no checksum.

    A batch that is damaged, has a codec or has headers gets its state and no record.

    Args:
        data uint8[], positions int64[batches + 1]: the log, and the positions of its batches
        indices int64[batches]: index of the record in its batch
        max_records: records allowed per batch
        max_in_log: records allowed in all batches; some columns are read value by value, and values may take no byte
        max_bytes: largest length of a key or value allowed
        state int8[batches]: filled, see `status`
        columns: the arrays of `reading.RecordColumns`; row b is filled with the record of batch b, but no create time
    """
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        ask_ahead(data, positions, b)
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + layout.MAGIC) != layout.THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at <= layout.HEADER:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end)
        problem, bits, p = _check(header, i, max_records, max_in_log), header.attributes, header.body
        if problem != status.SOUND:
            state[b] = problem
            continue
        max_in_log -= header.count
        if header.count == 1:
            found = _read_only_record(data, p, end, bits, max_bytes)
        else:
            found = _read_record(data, p, end, header.count, bits, i, max_bytes)
        problem, key_at, value_at = found.state, found.key_at, found.value_at
        if problem == status.SOUND and (found.offset_delta + 2**31) >> 32:
            problem = np.int64(status.COLUMN_OFFSET)
        if problem == status.SOUND and (
            min(key_at, value_at) < found.payload_at
            or max(found.key_length, 0) > end - key_at
            or max(found.value_length, 0) > end - value_at
        ):
            problem = np.int64(status.PAYLOAD)
        state[b] = problem
        if problem == status.SOUND:
            timestamps[b] = header.max_time if bits & layout.APPEND else header.anchor - found.age
            offsets[b] = get_i64(data, at) + found.offset_delta
            key_lengths[b], key_starts[b] = found.key_length, key_at
            value_lengths[b], value_starts[b] = found.value_length, value_at
