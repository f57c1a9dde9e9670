"""Kernels that write the headers of a columnar batch: their columns, then keys and values.

Common parameters:

    out uint8[], at: output, and the position in it to write at
    headers: the Headers
    first uint64, n: index of the first record, number of records
    start, end uint64: bounds of the headers
    scratch: a Scratch
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar.choosing import LENGTHS
from kfbench.kernels.formats.columnar.column_writing import FULL, fill_lengths, write_lengths, write_values
from kfbench.kernels.formats.columnar.columns import U1, ZERO
from kfbench.kernels.formats.columnar.header_forms import BY_POSITION, BY_RECORD
from kfbench.kernels.formats.columnar.header_values import Scratch, length_differences, put_values
from kfbench.kernels.formats.columnar.template_writing import Items, differing_bits
from kfbench.kernels.jit import kernel, leaf, part
from kfbench.kernels.simd.intrinsics import put_u8
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, uvarint_bytes


class Headers(NamedTuple):
    """The headers of all records. Record i has the headers bounds[i] up to bounds[i + 1]."""

    bounds: np.ndarray  # int64[records + 1]
    key_lengths: np.ndarray  # int32[headers]
    value_lengths: np.ndarray  # int32[headers], -1 for a null
    keys: np.ndarray  # uint8[]
    key_starts: np.ndarray  # int64[headers]
    values: np.ndarray  # uint8[]
    value_starts: np.ndarray  # int64[headers]


class HeaderSizes(NamedTuple):
    """The sizes of the headers of one batch, after their columns were written. All fields but `is_staged` are int64."""

    position: int  # the position after the columns, or FULL
    key_bytes: int  # size of the keys in the payload
    value_bytes: int  # size of the values in the payload
    is_staged: bool  # whether the payload was already collected in `Scratch.staged`


@leaf
def headers_of(columns):
    """Select the Headers from the columns of the records."""
    _, _, _, _, bounds, key_lengths, value_lengths, _, _, _, _, keys, key_starts, values, value_starts = columns
    return Headers(bounds, key_lengths, value_lengths, keys, key_starts, values, value_starts)


@leaf
def _have_same_keys(headers, first, n):
    """Return whether n >= 2 records have the same number of headers, with the same keys in the same order."""
    bounds, lengths, starts = headers.bounds, headers.key_lengths, headers.key_starts
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    stride = np.uint64(bounds[first + U1]) - start
    differences = moves = ZERO
    for i in range(first, first + np.uint64(n)):
        differences |= bounds[i + U1] - bounds[i] - np.int64(stride)
    if differences:
        return False
    for h in range(start + stride, end):
        differences |= np.int64(lengths[h]) ^ np.int64(lengths[h - stride])
        moves |= starts[h] ^ starts[h - stride]
    if differences:
        return False
    if moves:
        for h in range(start, start + stride):
            items = Items(headers.keys, starts, lengths, h, stride, n)
            for k in range(np.int64(lengths[h]), 0, -8):
                if differing_bits(items, k, min(k, 8)):
                    return False
    return True


@leaf
def _put_pairs(out, at, headers, start, end):
    """Write the key length and the value length of each header. Return the next position, or FULL."""
    for h in range(start, end):
        key, value = np.uint64(headers.key_lengths[h]), np.uint64(np.int64(headers.value_lengths[h]) + 1)
        if 10 > len(out) - at and uvarint_bytes(key) + uvarint_bytes(value) > len(out) - at:
            return np.int64(FULL)
        at = put_uvarint(out, put_uvarint(out, at, key), value)
    return at


@leaf
def _put_by_record(out, at, headers, first, n, scratch):
    """Write the header columns of n >= 2 records whose header keys differ. Return the next position, or FULL."""
    bounds, x = headers.bounds, scratch.x
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    m = np.int64(end - start)
    if at == len(out):
        return np.int64(FULL)
    put_u8(out, at, np.uint8(BY_RECORD))
    for i in range(np.uint64(n)):
        x[i] = bounds[first + i + U1] - bounds[first + i]
    at = write_values(out, at + 1, x, n, LENGTHS, scratch.plans)
    if at == FULL:
        return at
    if m == 1:
        return _put_pairs(out, at, headers, start, end)
    at = write_lengths(out, at, x, m, fill_lengths(x, headers.key_lengths, start, U1, m), scratch.plans)
    if at == FULL or at == len(out):
        return np.int64(FULL)
    values = fill_lengths(x, headers.value_lengths, start, U1, m)
    put_u8(out, at, np.uint8(1 if values.nulls else 0))
    return write_lengths(out, at + 1, x, m, values, scratch.plans)


@leaf
def _payload_bytes(headers, start, end):
    """Return the total size in bytes of the keys, and of the values, of the headers start to end - 1."""
    key_bytes = value_bytes = ZERO
    for h in range(start, end):
        key_bytes += np.int64(headers.key_lengths[h])
        value_bytes += max(np.int64(headers.value_lengths[h]), 0)
    return key_bytes, value_bytes


@part
def _put_columns(out, at, headers, first, n, scratch):
    """Write the header columns of a batch of n >= 2 records. Return the HeaderSizes."""
    bounds = headers.bounds
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    if not _have_same_keys(headers, first, n):
        key_bytes, value_bytes = _payload_bytes(headers, start, end)
        at = _put_by_record(out, at, headers, first, n, scratch)
        return HeaderSizes(at, key_bytes, value_bytes, False)
    stride = np.uint64(bounds[first + U1]) - start
    has_one_length = length_differences(headers.value_lengths, start + stride, end, U1, stride) == 0
    key_bytes = staged_end = ZERO
    if 1 + uvarint_bytes(stride) > len(out) - at:
        return HeaderSizes(np.int64(FULL), key_bytes, staged_end, True)
    put_u8(out, at, np.uint8(BY_POSITION))
    at = put_uvarint(out, at + 1, stride)
    for h in range(start, start + stride):
        length = np.int64(headers.key_lengths[h])
        if uvarint_bytes(np.uint64(length)) > len(out) - at:
            return HeaderSizes(np.int64(FULL), key_bytes, staged_end, True)
        at = put_uvarint(out, at, np.uint64(length))
        staged_end = put_bytes(scratch.staged, staged_end, headers.keys, headers.key_starts[h], length)
        key_bytes += length
        items = Items(headers.values, headers.value_starts, headers.value_lengths, h, stride, n)
        at, staged_end = put_values(out, at, items, has_one_length, scratch, staged_end)
        if at == FULL:
            break
    return HeaderSizes(at, key_bytes, staged_end - key_bytes, True)


@leaf
def put_columns(out, at, headers, first, n, scratch):
    """Write the header columns of a batch of n >= 1 records. At least one has headers. Return the HeaderSizes."""
    if n > 1:
        return _put_columns(out, at, headers, first, n, scratch)
    start, end = np.uint64(headers.bounds[first]), np.uint64(headers.bounds[first + U1])
    key_bytes, value_bytes = _payload_bytes(headers, start, end)
    if uvarint_bytes(end - start) > len(out) - at:
        return HeaderSizes(np.int64(FULL), key_bytes, value_bytes, False)
    at = _put_pairs(out, put_uvarint(out, at, end - start), headers, start, end)
    return HeaderSizes(at, key_bytes, value_bytes, False)


@leaf
def put_payload(out, at, headers, first, n):
    """Write the header keys, then the header values, of n records. `out` must have room. Return the next position."""
    for h in range(np.uint64(headers.bounds[first]), np.uint64(headers.bounds[first + np.uint64(n)])):
        at = put_bytes(out, at, headers.keys, headers.key_starts[h], np.int64(headers.key_lengths[h]))
        at = put_bytes(out, at, headers.values, headers.value_starts[h], np.int64(headers.value_lengths[h]))
    return at


@kernel
def sizes(columns, bounds, scratch, room, out):
    """Compute the size of the headers of each batch: columns, keys and values.

    Args:
        columns: the columns of the records
        bounds int64[batches + 1]: bounds of the records of each batch
        scratch: the arrays of a Scratch
        room uint8[]: scratch for the columns of one batch
        out int64[3 * batches]: filled with three sizes in bytes per batch
    """
    headers, arrays = headers_of(columns), Scratch(*scratch)
    for b in range(len(bounds) - 1):
        first, n = np.uint64(bounds[b]), bounds[b + 1] - bounds[b]
        out[3 * b] = out[3 * b + 1] = out[3 * b + 2] = 0
        if headers.bounds[bounds[b]] != headers.bounds[bounds[b + 1]]:
            found = put_columns(room, ZERO, headers, first, n, arrays)
            out[3 * b], out[3 * b + 1], out[3 * b + 2] = found.position, found.key_bytes, found.value_bytes
