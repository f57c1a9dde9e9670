"""Single values of columns, read without the others. Parameters are those of `columns`; i is the value's number."""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.formats.columnar.columns import (
    U0,
    U1,
    U31,
    Patches,
    are_steps,
    check_indexes,
    group_end,
    packed_bytes,
    packed_int64,
    packed_value,
    read_head,
    read_patch,
    read_patches,
)
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import sum1, sum2, sum4, sum8
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, get_varlong


class LengthAround(NamedTuple):
    """A length of a column and the bytes around it, int64 each."""

    state: int
    position: int  # the next one
    length: int
    before: int  # bytes of the items before it
    total: int  # bytes of all items


class PatchedAround(NamedTuple):
    """The bits that patches add around value i, int64 each but `largest`."""

    state: int
    position: int  # the next one
    own: int  # added to value i
    before: int  # added to the values before it
    total: int  # added to all values
    zeros_before: int  # values before it that are 0 but for their patch
    zeros: int  # the same of all values
    largest: int  # the largest patched value, uint64


@leaf
def _sum(data, p, first, n, width):
    """Return the sum and the number of nonzero values of the first `first` of n packed values, and the same of all n.

    Their bytes lie in `data`.
    """
    before = nonzero_before = total = nonzero = np.int64(0)
    if width == 0:
        return before, nonzero_before, total, nonzero
    if width < packed.WORD and group_end(p, n, width) <= len(data):
        bits = np.uint64(width)
        mask = (U1 << bits) - U1
        if width <= 8:
            return sum1(data, p, first, n, bits, mask)
        if width <= 14:
            return sum2(data, p, first, n, bits, mask)
        if width <= 28:
            return sum4(data, p, first, n, bits, mask)
        return sum8(data, p, first, n, bits, mask)
    for i in range(n):
        if i == first:
            before, nonzero_before = total, nonzero
        value = packed_int64(data, p, i, width)
        total, nonzero = total + value, nonzero + (1 if value else 0)
    if first == n:
        before, nonzero_before = total, nonzero
    return before, nonzero_before, total, nonzero


@leaf
def _patched_around(data, p, end, n, i, head):
    """Return the PatchedAround of the patches at p. n: number of packed values."""
    own, before, total = np.int64(0), np.int64(0), np.int64(0)
    zeros_before, zeros, largest = np.int64(0), np.int64(0), U0
    patches = read_patches(data, p, end, n)
    state, p, last = patches.state, patches.position, np.int64(-1)
    for k in range(patches.number):
        state, p, index, high = read_patch(data, patches, k, p, end, n, head.width, last)
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
            own = added
    return PatchedAround(np.int64(state), p, own, before, total, zeros_before, zeros, largest)


@leaf
def _dictionary_value(data, end, n, head, i):
    """Return the state, the next position and value i less the base of a dictionary column."""
    at, none = head.position + packed_bytes(head.packed, head.width), np.int64(0)
    state, index_width, next_position = check_indexes(data, at, end, n, head.packed)
    if state != status.SOUND:
        return state, next_position, none
    index = np.int64(packed_value(data, at, i, index_width))
    if index >= head.packed:
        return status.COLUMN, next_position, none
    return state, next_position, packed_int64(data, head.position, index, head.width) if head.width else none


@part
def read_at(data, p, end, n, sign, i):
    """Return the state, the next position and value i."""
    head = read_head(data, p, end, n)
    state, kind, width, start, value = head.state, head.kind, head.width, head.position, head.first
    if state != status.SOUND:
        return state, start, value
    if kind == packed.DICTIONARY:
        state, p, value = _dictionary_value(data, end, n, head, i)
        return state, p, head.base + value
    own = before = np.int64(0)
    p = start + packed_bytes(head.packed, width)
    if kind == packed.RICE or kind == packed.RICE_DELTA:
        found = quotients.around(data, p, end, head.packed, i)
        state, p, own, before = found.state, found.position, found.own << width, found.before << width
    elif kind >= packed.PATCHED:
        patched = _patched_around(data, p, end, head.packed, i, head)
        state, p, own, before = patched.state, patched.position, patched.own, patched.before
    if are_steps(kind):
        value += sign * (head.base * i + _sum(data, start, i, i, width)[0] + before)
    else:
        value = head.base + i * head.slope + own
        if width:
            value += packed_int64(data, start, i, width)
    return state, p, value


@leaf
def _no_length(state, p):
    none = np.int64(0)
    return LengthAround(np.int64(state), np.int64(p), none, none, none)


@leaf
def _length_state(value, length, most_bytes):
    """Return the state of a length. value: its code, or the length itself."""
    if value < 0 or value > packed.INT32_MAX or length > packed.INT32_MAX:
        return status.COLUMN_LENGTH
    return status.LIMIT_FIELD if length > most_bytes else status.SOUND


@part
def _walk_around(data, p, end, n, has_nulls, shift, i, most_bytes):
    """Return the LengthAround of any column of lengths or codes, value by value.

    shift: the difference of a length and its code; the other parameters as in `read_around`.
    """
    head = read_head(data, p, end, n)
    state, kind, width, value, m, start = head.state, head.kind, head.width, head.first, head.packed, head.position
    if state != status.SOUND:
        return _no_length(state, start)
    is_delta, is_rice = are_steps(kind), kind == packed.RICE or kind == packed.RICE_DELTA
    stream = p = start + packed_bytes(m, width)
    patches, patch_index, patch_high = Patches(state, np.int64(0), start, np.int64(0), p), np.int64(-1), U0
    if kind == packed.DICTIONARY:
        state, _, p = check_indexes(data, p, end, n, m)
    elif is_rice:
        found = quotients.around(data, p, end, m, np.int64(0))
        state, p = found.state, found.position
    elif kind >= packed.PATCHED:
        patches = read_patches(data, p, end, m)
        state, p = patches.state, patches.position
    if state != status.SOUND:
        return _no_length(state, p)
    length, before, total, patch, one = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(-1)
    for k in range(n):
        j = k - 1 if is_delta else k
        residual = np.int64(0)
        if kind == packed.DICTIONARY:
            state, _, residual = _dictionary_value(data, end, n, head, k)
        elif j >= 0:
            if width:
                residual = packed_int64(data, start, j, width)
            if is_rice:
                last, one = one, quotients.next_one(data, stream, end, one + 1)
                residual += (one - last - 1) << width
            if patch < patches.number and patch_index < j:
                state, p, patch_index, patch_high = read_patch(data, patches, patch, p, end, m, width, patch_index)
            if patch < patches.number and patch_index == j:
                residual += np.int64(patch_high << np.uint64(width))
                patch += 1
        if state != status.SOUND:
            break
        if not is_delta:
            value = head.base + residual + k * head.slope
        elif k:
            value += head.base + residual
        here = value
        if has_nulls:
            here = value + shift if value else np.int64(packed.NULL)
        state = _length_state(value, here, most_bytes)
        if state != status.SOUND:  # before the next value has a state of its own
            break
        if k < i:
            before += max(here, 0)
        elif k == i:
            length = here
        total += max(here, 0)
    if state == status.SOUND and patch < patches.number:  # not met, as its index does not rise
        state = np.int64(status.PATCHES)
    return LengthAround(np.int64(state), np.int64(p), length, before, total)


@part
def _read_around(data, p, end, n, has_nulls, i, with_total, most_bytes):
    """Return what `read_around` does, of any column."""
    shift = np.int64(0)
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
        return _walk_around(data, p, end, n, has_nulls, shift, i, most_bytes)
    column, p = p, start + packed_bytes(n, width)
    own = high_before = high_total = zeros_before = zeros = np.int64(0)
    largest = U0
    if kind == packed.PATCHED:
        patched = _patched_around(data, p, end, n, i, head)
        state, p, own, high_before, high_total = patched[:5]
        zeros_before, zeros, largest = patched[5:]
        if largest >> U31:  # may be sound where the base brings the length back
            return _walk_around(data, column, end, n, has_nulls, shift, i, most_bytes)
    elif kind == packed.RICE:
        found = quotients.around(data, p, end, n, i)
        state, p = found.state, found.position
        if (
            found.total >= packed.INT32_MAX or base + ((found.total + 1) << width) > packed.INT32_MAX
        ):  # one may be too much
            return _walk_around(data, column, end, n, has_nulls, shift, i, most_bytes)
        own, high_before, high_total = found.own << width, found.before << width, found.total << width
    length = base + own
    if width:
        length += np.int64(packed_value(data, start, i, width))
    before, nonzero_before, total, nonzero = _sum(data, start, i, n if with_total else i, width)
    before += high_before + base * i + shift * (i if base else nonzero_before + zeros_before)
    total += high_total + base * n + shift * (n if base else nonzero + zeros)
    is_far = base + np.int64(largest) + shift > packed.INT32_MAX
    length = length + shift if length or not has_nulls else np.int64(packed.NULL)
    if state == status.SOUND and not is_far:
        state = np.int64(_length_state(np.int64(0), length, most_bytes))
    elif is_far:
        state = np.int64(status.COLUMN_LENGTH)
    return LengthAround(state, p, length, before, total)


@leaf
def read_around(data, p, end, n, has_nulls, i, with_total, most_bytes):
    """Return the LengthAround of a column of n lengths.

    Args:
        data, p, end, n, i: as in the module
        has_nulls: whether the column has codes
        with_total: whether the bytes of all items are needed; else the total means nothing
        most_bytes: greatest length allowed
    """
    if not has_nulls and p < end and get_u8(data, p) == packed.ALL_ALIKE:  # without a call
        length, p = get_varlong(data, p + 1, end)
        return LengthAround(np.int64(_length_state(length, length, most_bytes)), p, length, length * i, length * n)
    return _read_around(data, p, end, n, has_nulls, i, with_total, most_bytes)
