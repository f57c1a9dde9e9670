"""Single records of columnar batches, read without the others."""

from typing import NamedTuple

import numpy as np

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
from kfbench.kernels.formats.columnar.column_values import LengthAround, read_around, read_at
from kfbench.kernels.formats.columnar.columns import read_length
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i64
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.varint import get_varlong


class Fetched(NamedTuple):
    """A record as it was read from the columns of its batch, int64 each."""

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
    none = np.int64(0)
    return Fetched(np.int64(state), none, none, none, none, none, none, none)


@leaf
def _place(state, p, age, delta, key, value, by_rows):
    """Return the Fetched record. key, value: LengthAround; p: where the payload begins; by_rows: its order."""
    if by_rows:
        key_at = p + key.before + value.before
        value_at = key_at + max(key.length, 0)
    else:
        key_at, value_at = p + key.before, p + key.total + value.before
    return Fetched(np.int64(state), age, delta, key.length, value.length, p, key_at, value_at)


@leaf
def _read_only_record(data, p, end, bits, by_rows, most_bytes):
    """Return the only record of a batch, whose columns begin at p."""
    age, delta, none = np.int64(0), np.int64(0), np.int64(0)
    if bits & AGES:
        age, p = get_varlong(data, p, end)
    if bits & OFFSETS:
        delta, p = get_varlong(data, p, end)
    state, p, key_length = read_length(data, p, end, bits & KEYS != 0, most_bytes)
    if state != status.SOUND:
        return _refused(state)
    state, p, value_length = read_length(data, p, end, bits & VALUES != 0, most_bytes)
    sound = np.int64(status.SOUND)
    key = LengthAround(sound, p, key_length, none, max(key_length, 0))
    return _place(state, p, age, delta, key, LengthAround(sound, p, value_length, none, none), by_rows)


@leaf
def _read_record(data, p, end, n, bits, i, by_rows, most_bytes):
    """Return record i of n >= 2.

    Args:
        data uint8[], p, end: the log, the position of the columns in it, the end of the batch
        bits: attributes of the batch
        by_rows: whether the payload is in the order of rows
        most_bytes: greatest length allowed
    """
    age, delta, none = np.int64(0), i, np.int64(0)
    key = value = LengthAround(np.int64(status.SOUND), p, np.int64(NULL), none, none)
    if bits & AGES:
        state, p, age = read_at(data, p, end, n, np.int64(-1), i)
        if state != status.SOUND:
            return _refused(state)
    if bits & OFFSETS:
        state, p, delta = read_at(data, p, end, n, np.int64(1), i)
        if state != status.SOUND:
            return _refused(state)
    if bits & KEYS:
        key = read_around(data, p, end, n, bits & NULL_KEYS != 0, i, not by_rows, most_bytes)
        p = key.position
        if key.state != status.SOUND:
            return _refused(key.state)
    if bits & VALUES:
        value = read_around(data, p, end, n, bits & NULL_VALUES != 0, i, False, most_bytes)
        p = value.position
    return _place(value.state, p, age, delta, key, value, by_rows)


@leaf
def _check(header, i, most_records, most_in_all):
    """Return the state of the request for record i of a batch."""
    if header.state != status.SOUND:
        return header.state
    if i < 0 or i >= header.count:
        return np.int64(status.NO_SUCH_RECORD)
    if header.attributes & (CODEC_MASK | HEADERS):
        return np.int64(status.NOT_FETCHED)
    if header.count > most_records:
        return np.int64(status.LIMIT_RECORDS)
    return np.int64(status.LIMIT_LOG_RECORDS if header.count > most_in_all else status.SOUND)


@kernel
def fetch(data, positions, indices, most_records, most_in_all, most_bytes, state, columns):
    """Read one record of each batch. Check no checksum.

    A batch that breaks a promise, has a codec or has headers gets its state.

    Args:
        data uint8[], positions int64[batches + 1]: the log, and its batches
        indices int64[batches]: number of the record in each batch
        most_records: records allowed per batch
        most_in_all: records of all batches: some columns are read value by value, and values may take no byte
        most_bytes: greatest length allowed
        state int8[batches]: filled
        columns: the arrays of `reading.RecordColumns`, filled but for the create times: row b is the record of batch b
    """
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
        problem, bits, p = _check(header, i, most_records, most_in_all), header.attributes, header.body
        if problem != status.SOUND:
            state[b] = problem
            continue
        most_in_all -= header.count
        by_rows = header.extensions & BY_ROWS != 0
        if header.count == 1:
            found = _read_only_record(data, p, end, bits, by_rows, most_bytes)
        else:
            found = _read_record(data, p, end, header.count, bits, i, by_rows, most_bytes)
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
            timestamps[b] = header.max_time if bits & APPEND else header.anchor - found.age
            offsets[b] = get_i64(data, at) + found.offset_delta
            key_lengths[b], key_starts[b] = found.key_length, key_at
            value_lengths[b], value_starts[b] = found.value_length, value_at
