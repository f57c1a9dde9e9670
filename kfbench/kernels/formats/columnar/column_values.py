"""Kernels that read value i of a column without unpacking the others.

Parameters are those of the module `columns`, and i, the index of the value.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.formats.columnar.columns import U0, U1, U31, ZERO, Patches, packed_bytes, packed_value, read_head
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import sum1, sum2, sum4, sum8
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, get_varlong


class LengthAround(NamedTuple):
    """One length of a column, and sums of the lengths before and around it. All fields are int64."""

    state: int
    position: int  # the position after the column
    length: int
    before: int  # sum of the lengths before it
    total: int  # sum of all lengths


class PatchedAround(NamedTuple):
    """Sums over the patches of a column: how much they add to value i and to other values.

    A patch has the bits of a value above the packed width. All fields but `largest` are int64.
    """

    state: int
    position: int  # the position after the patches
    current: int  # added to value i
    before: int  # added to the values before i
    total: int  # added to all values
    zeros_before: int  # patched values before i whose packed bits are 0
    zeros: int  # patched values whose packed bits are 0
    largest: int  # the largest patched value, uint64


class Sums(NamedTuple):
    """Sums and counts over the packed values of a column, int64 each."""

    before: int  # sum of the values before value i
    nonzero_before: int  # how many of these are not 0
    total: int  # sum of all values
    nonzero: int


@leaf
def _sum(data, p, first, n, width):
    """Compute the Sums of the first `first` packed values and of all n values. All their bytes must lie in `data`."""
    before = nonzero_before = total = nonzero = ZERO
    if width == 0:
        return Sums(before, nonzero_before, total, nonzero)
    if width < packed.WORD and packed.group_end(p, n, width) <= len(data):
        bits = np.uint64(width)
        mask = (U1 << bits) - U1
        if width <= 8:
            return Sums(*sum1(data, p, first, n, bits, mask))
        if width <= 14:
            return Sums(*sum2(data, p, first, n, bits, mask))
        if width <= 28:
            return Sums(*sum4(data, p, first, n, bits, mask))
        return Sums(*sum8(data, p, first, n, bits, mask))
    for i in range(n):
        if i == first:
            before, nonzero_before = total, nonzero
        value = packed.packed_int64(data, p, i, width)
        total, nonzero = total + value, nonzero + (1 if value else 0)
    if first == n:
        before, nonzero_before = total, nonzero
    return Sums(before, nonzero_before, total, nonzero)


@leaf
def _patched_around(data, p, end, n, i, head):
    """Add up the patches at position p, which belong to n packed values. Return the PatchedAround for value i."""
    current, before, total = ZERO, ZERO, ZERO
    zeros_before, zeros, largest = ZERO, ZERO, U0
    patches = packed.read_patches(data, p, end, n)
    state, p, last = patches.state, patches.position, np.int64(-1)
    for k in range(patches.number):
        state, p, index, high = packed.read_patch(data, patches, k, p, end, n, head.width, last)
        if state != status.SOUND:
            break
        last = index
        bits = packed_value(data, head.position, index, head.width)
        added, was_zero = np.int64(high << np.uint64(head.width)), np.int64(1 if bits == U0 else 0)
        largest = max(largest, bits | high << np.uint64(head.width))
        total, zeros = total + added, zeros + was_zero
        if index < i:
            before, zeros_before = before + added, zeros_before + was_zero
        elif index == i:
            current = added
    return PatchedAround(np.int64(state), p, current, before, total, zeros_before, zeros, largest)


@leaf
def _dictionary_value(data, end, n, head, i):
    """Read value i of a dictionary column. Return the state, the next position and the value without the base."""
    at = head.position + packed_bytes(head.packed, head.width)
    state, index_width, next_position = packed.check_indexes(data, at, end, n, head.packed)
    if state != status.SOUND:
        return state, next_position, ZERO
    index = np.int64(packed_value(data, at, i, index_width))
    if index >= head.packed:
        return status.COLUMN, next_position, ZERO
    return state, next_position, packed.packed_int64(data, head.position, index, head.width) if head.width else ZERO


@part
def read_at(data, p, end, n, sign, i):
    """Read value i of the column at p. Return the state, the next position and the value."""
    head = read_head(data, p, end, n)
    state, kind, width, start, value = head.state, head.kind, head.width, head.position, head.first
    if state != status.SOUND:
        return state, start, value
    if kind == packed.DICTIONARY:
        state, p, value = _dictionary_value(data, end, n, head, i)
        return state, p, head.base + value
    current = before = ZERO
    p = start + packed_bytes(head.packed, width)
    if kind == packed.RICE or kind == packed.RICE_DELTA:
        found = quotients.around(data, p, end, head.packed, i)
        state, p, current, before = found.state, found.position, found.current << width, found.before << width
    elif kind >= packed.PATCHED:
        patched = _patched_around(data, p, end, head.packed, i, head)
        state, p, current, before = patched.state, patched.position, patched.current, patched.before
    if packed.are_steps(kind):
        value += sign * (head.base * i + _sum(data, start, i, i, width).before + before)
    else:
        value = head.base + i * head.slope + current
        if width:
            value += packed.packed_int64(data, start, i, width)
    return state, p, value


@leaf
def _no_length(state, p):
    return LengthAround(np.int64(state), np.int64(p), ZERO, ZERO, ZERO)


@leaf
def _length_state(value, length, max_bytes):
    """Check a length against int32 and `max_bytes`. Return its state. value: the stored code, or the length itself."""
    if value < 0 or value > packed.INT32_MAX or length > packed.INT32_MAX:
        return status.COLUMN_LENGTH
    return status.LIMIT_FIELD if length > max_bytes else status.SOUND


@part
def _walk_around(data, p, end, n, has_nulls, shift, i, max_bytes):
    """Read each value of a column of lengths or codes. Return the LengthAround of length i.

    Args:
        data, p, end, n, i: see the module docstring
        has_nulls: whether the column stores codes
        shift: a length minus its code
        max_bytes: largest length allowed
    """
    head = read_head(data, p, end, n)
    state, kind, width, value, m, start = head.state, head.kind, head.width, head.first, head.packed, head.position
    if state != status.SOUND:
        return _no_length(state, start)
    is_delta, is_rice = packed.are_steps(kind), kind == packed.RICE or kind == packed.RICE_DELTA
    stream = p = start + packed_bytes(m, width)
    patches, patch_index, patch_high = Patches(state, ZERO, start, ZERO, p), np.int64(-1), U0
    if kind == packed.DICTIONARY:
        state, _, p = packed.check_indexes(data, p, end, n, m)
    elif is_rice:
        found = quotients.around(data, p, end, m, ZERO)
        state, p = found.state, found.position
    elif kind >= packed.PATCHED:
        patches = packed.read_patches(data, p, end, m)
        state, p = patches.state, patches.position
    if state != status.SOUND:
        return _no_length(state, p)
    length, before, total, patch, one = ZERO, ZERO, ZERO, ZERO, np.int64(-1)
    for k in range(n):
        j = k - 1 if is_delta else k
        residual = ZERO
        if kind == packed.DICTIONARY:
            state, _, residual = _dictionary_value(data, end, n, head, k)
        elif j >= 0:
            if width:
                residual = packed.packed_int64(data, start, j, width)
            if is_rice:
                last, one = one, quotients.next_one(data, stream, end, one + 1)
                residual += (one - last - 1) << width
            if patch < patches.number and patch_index < j:
                state, p, patch_index, patch_high = packed.read_patch(
                    data, patches, patch, p, end, m, width, patch_index
                )
            if patch < patches.number and patch_index == j:
                residual += np.int64(patch_high << np.uint64(width))
                patch += 1
        if state != status.SOUND:
            break
        if not is_delta:
            value = head.base + residual + k * head.slope
        elif k:
            value += head.base + residual
        current = value
        if has_nulls:
            current = value + shift if value else np.int64(packed.NULL)
        state = _length_state(value, current, max_bytes)
        if state != status.SOUND:  # stop, because the next value would overwrite `state`
            break
        if k < i:
            before += max(current, 0)
        elif k == i:
            length = current
        total += max(current, 0)
    if state == status.SOUND and patch < patches.number:  # its index did not rise, so it was skipped
        state = np.int64(status.PATCHES)
    return LengthAround(np.int64(state), np.int64(p), length, before, total)


@part
def _read_around(data, p, end, n, has_nulls, i, with_total, max_bytes):
    """Read length i of a column of any kind, and the sums around it. Args: as in `read_around`."""
    shift = ZERO
    if has_nulls:
        shift, p = get_uvarint(data, p, end)
        if shift > packed.INT32_MAX:
            return _no_length(status.COLUMN_LENGTH, p)
        shift -= 1
    head = read_head(data, p, end, n)
    state, kind, width, base, start = head.state, head.kind, head.width, head.base, head.position
    if state != status.SOUND:
        return _no_length(state, start)
    is_short = base >= 0 and base <= packed.INT32_MAX and width <= 31
    if not is_short or (kind > packed.BASED and kind != packed.PATCHED and (kind != packed.RICE or has_nulls)):
        return _walk_around(data, p, end, n, has_nulls, shift, i, max_bytes)
    column, p = p, start + packed_bytes(n, width)
    current = high_before = high_total = zeros_before = zeros = ZERO
    largest = U0
    if kind == packed.PATCHED:
        patched = _patched_around(data, p, end, n, i, head)
        state, p, current = patched.state, patched.position, patched.current
        high_before, high_total, largest = patched.before, patched.total, patched.largest
        zeros_before, zeros = patched.zeros_before, patched.zeros
        if largest >> U31:  # maybe no damage: adding the base modulo 2**64 may bring the length into range
            return _walk_around(data, column, end, n, has_nulls, shift, i, max_bytes)
    elif kind == packed.RICE:
        found = quotients.around(data, p, end, n, i)
        state, p = found.state, found.position
        # One length may be too large.
        if found.total >= packed.INT32_MAX or base + ((found.total + 1) << width) > packed.INT32_MAX:
            return _walk_around(data, column, end, n, has_nulls, shift, i, max_bytes)
        current, high_before, high_total = found.current << width, found.before << width, found.total << width
    length = base + current
    if width:
        length += np.int64(packed_value(data, start, i, width))
    sums = _sum(data, start, i, n if with_total else i, width)
    before = sums.before + high_before + base * i + shift * (i if base else sums.nonzero_before + zeros_before)
    total = sums.total + high_total + base * n + shift * (n if base else sums.nonzero + zeros)
    is_far = base + np.int64(largest) + shift > packed.INT32_MAX
    length = length + shift if length or not has_nulls else np.int64(packed.NULL)
    if state == status.SOUND and not is_far:
        state = np.int64(_length_state(ZERO, length, max_bytes))
    elif is_far:
        state = np.int64(status.COLUMN_LENGTH)
    return LengthAround(state, p, length, before, total)


@leaf
def read_around(data, p, end, n, has_nulls, i, with_total, max_bytes):
    """Read length i of a column of n lengths, and the sum of the lengths before it. Return the LengthAround.

    Args:
        data, p, end, n, i: see the module docstring
        has_nulls: whether the column stores codes
        with_total: whether the sum of all lengths is needed; without it `total` is undefined
        max_bytes: largest length allowed
    """
    if not has_nulls and p < end and get_u8(data, p) == packed.ALL_ALIKE:  # the common case, without a call
        length, p = get_varlong(data, p + 1, end)
        return LengthAround(np.int64(_length_state(length, length, max_bytes)), p, length, length * i, length * n)
    return _read_around(data, p, end, n, has_nulls, i, with_total, max_bytes)
