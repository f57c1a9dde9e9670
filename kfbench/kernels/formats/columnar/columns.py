"""Columns of int64, packed to as many bits a value as they need: what a columnar batch is made of.

A column is a kind, a width and the values as far as the kind does not foretell them (formats/columnar.py has the
table). Here they are read, whole or one value by itself; `choosing` writes them. Values are worked on in int64 arrays
that callers lend; all arithmetic is modulo 2**64.
"""

import numpy as np

from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import spread1, spread2, spread4, spread8, sum1, sum2, sum4, sum8
from kfbench.kernels.simd.intrinsics import get_u8, leading_zeros, load_le64
from kfbench.kernels.simd.simd_int64 import put_lengths, put_line, run_on
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, get_uvarlong, get_varlong
from kfbench.layouts import NULL_LENGTH as NULL

BITS, BASED, SLOPED, DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, DICTIONARY = range(9)
INT32_MAX = 2**31 - 1
EXTENDED = 3  # the kind on the wire from which on the low bits tell
MOST_BITS, WORD, WORD_CODE = 56, 64, 63  # wider than MOST_BITS is a whole word, whose code is WORD_CODE
ALL_ALIKE = BASED << 6  # the descriptor of a column of one value, which is not 0
GROUP = 8  # packed at a time
U0, U1, U3, U7, U31 = (np.uint64(value) for value in (0, 1, 3, 7, 31))


@leaf
def bits_of(value):
    """The bit length of a uint64."""
    return np.int64(64) - leading_zeros(value) if value != U0 else np.int64(0)


@leaf
def packed_bytes(n, width):
    return (n * width + 7) >> 3


@leaf
def _one(data, p, i, width):
    """Value i of those packed at p, whose bytes are known to lie in `data`; byte by byte where a word would not."""
    bit = np.uint64(i) * np.uint64(width)
    at = p + np.int64(bit >> U3)
    shift = bit & U7
    word = U0
    if at + 8 <= len(data):
        word = load_le64(data, at)
    else:
        for k in range((np.int64(shift) + width + 7) >> 3):
            word |= np.uint64(get_u8(data, at + k)) << np.uint64(8 * k)
    return (word >> shift) & ((U1 << np.uint64(width)) - U1)


@leaf
def _any_one(data, p, i, width):
    """As `_one`, of any width but 0."""
    return np.int64(load_le64(data, p + 8 * i) if width == WORD else _one(data, p, i, width))


@leaf
def _group_end(p, n, width):
    """Where what is read of n values packed at p ends, a word from each of the last group's on."""
    return p + ((((n - 1) | 7) * width) >> 3) + 8


@leaf
def unpack(data, p, n, width, start, step, sign, x, r):
    """Reads the n values packed at p, all of which lie in `data`: x[r + k] = start + k * step + sign * value k.

    Here and below, what is read into has room for GROUP more, where anything may be left."""
    first = np.uint64(r)
    if width == 0:
        put_line(x, first, n, start, step)
        return
    whole = np.int64(0 if width == WORD else n)
    while whole > 0 and _group_end(p, whole, width) > len(data):  # eight groups at most
        whole = (whole - 1) & -GROUP
    bits = np.uint64(width)
    mask = (U1 << bits) - U1
    if width <= 8:
        spread1(data, p, whole, bits, mask, start, step, sign, x, first)
    elif width <= 14:
        spread2(data, p, whole, bits, mask, start, step, sign, x, first)
    elif width <= 28:
        spread4(data, p, whole, bits, mask, start, step, sign, x, first)
    else:
        spread8(data, p, whole, bits, mask, start, step, sign, x, first)
    for i in range(whole, n):
        x[first + np.uint64(i)] = start + i * step + sign * _any_one(data, p, i, width)


@leaf
def is_padded(data, p, n, width):
    """Whether the bits behind the n values packed at p are 0; their bytes lie in `data`."""
    used = (n * width) & 7
    return used == 0 or get_u8(data, p + packed_bytes(n, width) - 1) >> used == 0


@leaf
def are_steps(kind):
    """Whether values of this kind are told from those before them."""
    return kind == DELTA or kind == PATCHED_DELTA or kind == RICE_DELTA


@leaf
def _head(data, p, end, n):
    """(state, kind, width, first value, base, slope or a dictionary's values, packed values, where they begin, or the
    dictionary) of a column of n >= 2 at p."""
    none = np.int64(0)
    if p >= end:
        return status.COLUMN, none, none, none, none, none, none, p
    head = np.int64(get_u8(data, p))
    kind, code = head >> 6, head & 63
    p += 1
    if kind == EXTENDED:
        if code > DICTIONARY - EXTENDED or p >= end:
            return status.COLUMN, none, none, none, none, none, none, p
        kind, code = kind + code, np.int64(get_u8(data, p))
        p += 1
    width = np.int64(WORD) if code == WORD_CODE else code
    if (code > MOST_BITS and code != WORD_CODE) or (width == WORD and PATCHED <= kind < DICTIONARY):
        return status.COLUMN, none, none, none, none, none, none, p
    first, base, slope, m = none, none, none, n
    if are_steps(kind):
        first, p = get_varlong(data, p, end)
        m -= 1
    if kind != BITS:
        base, p = get_varlong(data, p, end)
    if kind == SLOPED:
        slope, p = get_varlong(data, p, end)
    if kind == DICTIONARY:
        if p >= end or get_u8(data, p) < 2:
            return status.COLUMN, none, none, none, none, none, none, p
        slope, p = np.int64(get_u8(data, p)), p + 1
        m = slope
    if p > end or packed_bytes(m, width) > end - p:
        return status.COLUMN, none, none, none, none, none, none, p
    return status.SOUND if is_padded(data, p, m, width) else status.PADDING, kind, width, first, base, slope, m, p


@leaf
def _indexes(data, p, end, n, number):
    """(state, width, next position) of n indexes below `number` that are packed at p."""
    width = bits_of(np.uint64(number - 1))
    size = packed_bytes(n, width)
    if size > end - p:
        return status.COLUMN, width, p
    return status.SOUND if is_padded(data, p, n, width) else status.PADDING, width, p + size


@leaf
def _read_dictionary(data, p, end, n, width, number, start, sign, x, r):
    """As `read`, of a dictionary of `number` values at p, times `sign` above `start`."""
    at = p + packed_bytes(number, width)
    state, index_width, end_at = _indexes(data, at, end, n, number)
    if state != status.SOUND:
        return state, end_at
    unpack(data, at, n, index_width, np.int64(0), np.int64(0), np.int64(1), x, r)
    for i in range(np.uint64(r), np.uint64(r + n)):
        if x[i] >= number:
            return status.COLUMN, end_at
        x[i] = start + sign * _any_one(data, p, x[i], width) if width else start
    return status.SOUND, end_at


@part
def read(data, p, end, n, start, sign, x, r):
    """Reads a column of n >= 2 values at p: x[r + k] = start + sign * value k. (state, next position).

    sign: -1 of ages, whose steps fall, so that the times they lead to rise as other columns do."""
    state, kind, width, first, base, slope, m, p = _head(data, p, end, n)
    if state != status.SOUND:
        return state, p
    if kind == DICTIONARY:
        return _read_dictionary(data, p, end, n, width, m, start + sign * base, sign, x, r)
    to = np.uint64(r)
    is_delta = are_steps(kind)
    if is_delta:
        start, sign = start + sign * first, np.int64(1)
        x[to] = start
        to += U1
    unpack(data, p, m, width, base if is_delta else start + sign * base, sign * slope, sign, x, to)
    p += packed_bytes(m, width)
    if kind == RICE or kind == RICE_DELTA:
        state, p = quotients.add(data, p, end, m, np.uint64(width), sign, x, to)
    elif kind >= PATCHED:
        state, p = _read_patches(data, p, end, m, width, sign, x, to)
    if is_delta:
        run_on(x, to, m, start)
    return state, p


@leaf
def _patch_positions(data, p, end, n):
    """(state, number of patches, where their positions begin, bits of each, where what they add begins)."""
    number, p = get_uvarint(data, p, end)
    position_bits = bits_of(np.uint64(n - 1))
    size = packed_bytes(number, position_bits)
    if p > end or number < 1 or number > n or size > end - p:
        return status.PATCHES, np.int64(0), p, position_bits, p
    if not is_padded(data, p, number, position_bits):
        return status.PADDING, np.int64(0), p, position_bits, p
    return status.SOUND, number, p, position_bits, p + size


@leaf
def _patch(data, positions, k, position_bits, p, end, n, width, last):
    """(state, next position, which of n values, the bits above its `width`) of patch k, which adds what is at p."""
    position = np.int64(_one(data, positions, k, position_bits))
    high, p = get_uvarlong(data, p, end)
    if p > end or position <= last or position >= n or high == U0 or bits_of(high) + width > 64:
        return status.PATCHES, p, position, high
    return status.SOUND, p, position, high


@leaf
def _read_patches(data, p, end, n, width, sign, x, first):
    """Adds the patches at p, times `sign`, to the n values from x[first] on; (state, next position)."""
    state, number, positions, position_bits, p = _patch_positions(data, p, end, n)
    last = np.int64(-1)
    for k in range(number):
        state, p, last, high = _patch(data, positions, k, position_bits, p, end, n, width, last)
        if state != status.SOUND:
            break
        x[first + np.uint64(last)] += sign * np.int64(high << np.uint64(width))
    return state, p


# Columns of lengths, null where they are -1: behind their minimum, as codes of which 0 is null


@leaf
def read_length(data, p, end, is_there, most_bytes):
    """(state, next position, length) of the only record."""
    if not is_there:
        return status.SOUND, p, np.int64(NULL)
    length, p = get_uvarint(data, p, end)
    if p > end:
        return status.COLUMN, p, length
    if length > INT32_MAX:
        return status.COLUMN_LENGTH, p, length
    return status.LIMIT_FIELD if length > most_bytes else status.SOUND, p, length


@part
def read_lengths(data, p, end, n, nulls, most_bytes, x, lengths, to):
    """Reads a column of n >= 2 lengths into lengths[to:to + n]; (state, next position, their sum). x is scratch, which
    the lengths may be."""
    shift = none = np.int64(0)
    if nulls:
        shift, p = get_uvarint(data, p, end)
        if shift > INT32_MAX:
            return status.COLUMN_LENGTH, p, none
        shift -= 1
    state, p = read(data, p, end, n, none, np.int64(1), x, 0)
    if state != status.SOUND:
        return state, p, none
    greatest, total = put_lengths(lengths, to, x, n, shift, np.int64(NULL if nulls else 0))
    high = np.int64(greatest)
    if greatest >> U31 or (high and high + shift > INT32_MAX):  # a negative one is beyond all others
        return status.COLUMN_LENGTH, p, none
    return status.LIMIT_FIELD if high and high + shift > most_bytes else status.SOUND, p, total


# One value without the others


@leaf
def _sum(data, p, first, n, width):
    """(sum, how many are not 0, of the first `first`; the same of all) of the n values packed at p, whose bytes are
    known to lie in `data`."""
    before = held = total = held_in_all = np.int64(0)
    if width == 0:
        return before, held, total, held_in_all
    if width < WORD and _group_end(p, n, width) <= len(data):
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
            before, held = total, held_in_all
        value = _any_one(data, p, i, width)
        total, held_in_all = total + value, held_in_all + (1 if value else 0)
    if first == n:
        before, held = total, held_in_all
    return before, held, total, held_in_all


@leaf
def _patches_around(data, p, end, n, i, width, packed_at):
    """What the patches at p add to the n values of `width` bits packed at `packed_at`: (state, next position, to value
    i, to those before it, to all, how many before it were 0, how many of all, the largest value that they make)."""
    own, before, total, born_before, born, largest = (
        np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), U0
    )  # fmt: skip
    state, number, positions, position_bits, p = _patch_positions(data, p, end, n)
    last = np.int64(-1)
    for k in range(number):
        state, p, position, high = _patch(data, positions, k, position_bits, p, end, n, width, last)
        if state != status.SOUND:
            break
        last = position
        bits = _one(data, packed_at, position, width)
        added, was_zero = np.int64(high << np.uint64(width)), np.int64(1 if bits == U0 else 0)
        largest = max(largest, bits | high << np.uint64(width))
        total, born = total + added, born + was_zero
        if position < i:
            before, born_before = before + added, born_before + was_zero
        elif position == i:
            own = added
    return state, p, own, before, total, born_before, born, largest


@leaf
def _one_of_dictionary(data, p, end, n, width, number, i):
    """(state, next position, value i above the base) of n values, of a dictionary of `number` at p."""
    at, none = p + packed_bytes(number, width), np.int64(0)
    state, index_width, end_at = _indexes(data, at, end, n, number)
    if state != status.SOUND:
        return state, end_at, none
    index = np.int64(_one(data, at, i, index_width))
    if index >= number:
        return status.COLUMN, end_at, none
    return state, end_at, _any_one(data, p, index, width) if width else none


@part
def read_at(data, p, end, n, sign, i):
    """(state, next position, value i) of a column of n >= 2. sign: -1 of ages, whose steps fall."""
    state, kind, width, value, base, slope, m, start = _head(data, p, end, n)
    if state != status.SOUND:
        return state, start, value
    if kind == DICTIONARY:
        state, p, value = _one_of_dictionary(data, start, end, n, width, m, i)
        return state, p, base + value
    is_delta = are_steps(kind)
    own = before = np.int64(0)
    p = start + packed_bytes(m, width)
    if kind == RICE or kind == RICE_DELTA:
        state, p, own, before, _ = quotients.around(data, p, end, m, i)
        own, before = own << width, before << width
    elif kind >= PATCHED:
        state, p, own, before, _, _, _, _ = _patches_around(data, p, end, m, i, width, start)
    if is_delta:
        value += sign * (base * i + _sum(data, start, i, i, width)[0] + before)
    else:
        value = base + i * slope + own
        if width:
            value += _any_one(data, start, i, width)
    return state, p, value


@part
def _walk_around(data, p, end, n, nulls, shift, i, most_bytes):
    """As `read_around`, of any column of lengths or codes: value by value."""
    length = before = total = np.int64(0)
    state, kind, width, value, base, slope, m, start = _head(data, p, end, n)
    if state != status.SOUND:
        return state, start, length, before, total
    is_delta, is_rice = are_steps(kind), kind == RICE or kind == RICE_DELTA
    p, number, positions, position_bits = start + packed_bytes(m, width), np.int64(0), start, np.int64(0)
    stream, one = p, np.int64(-1)
    if kind == DICTIONARY:
        state, _, p = _indexes(data, p, end, n, m)
    elif is_rice:
        state, p, _, _, _ = quotients.around(data, p, end, m, np.int64(0))
    elif kind >= PATCHED:
        state, number, positions, position_bits, p = _patch_positions(data, p, end, m)
    if state != status.SOUND:
        return state, p, length, before, total
    patch, position, high = np.int64(0), np.int64(-1), U0
    for k in range(n):
        j = k - 1 if is_delta else k
        residual = np.int64(0)
        if kind == DICTIONARY:
            state, _, residual = _one_of_dictionary(data, start, end, n, width, m, k)
        elif j >= 0:
            if width:
                residual = _any_one(data, start, j, width)
            if is_rice:
                last, one = one, quotients.next_one(data, stream, end, one + 1)
                residual += (one - last - 1) << width
            if patch < number and position < j:
                state, p, position, high = _patch(data, positions, patch, position_bits, p, end, m, width, position)
            if patch < number and position == j:
                residual += np.int64(high << np.uint64(width))
                patch += 1
        if state != status.SOUND:
            break
        if not is_delta:
            value = base + residual + (k * slope if kind == SLOPED else 0)
        elif k:
            value += base + residual
        here = value
        if nulls:
            here = value + shift if value else np.int64(NULL)
        if value < 0 or value > INT32_MAX or here > INT32_MAX:
            state = status.COLUMN_LENGTH
        elif here > most_bytes:
            state = status.LIMIT_FIELD
        if state != status.SOUND:  # before the next value has a state of its own
            break
        if k < i:
            before += max(here, 0)
        elif k == i:
            length = here
        total += max(here, 0)
    if state == status.SOUND and patch < number:  # not met, as it does not rise
        state = status.PATCHES
    return state, p, length, before, total


@part
def read_around(data, p, end, n, nulls, i, with_total, most_bytes):
    """(state, next position, length i, bytes before it, if with_total bytes in all) of a column of n >= 2 lengths."""
    shift = none = np.int64(0)
    if nulls:
        shift, p = get_uvarint(data, p, end)
        if shift > INT32_MAX:
            return status.COLUMN_LENGTH, p, none, none, none
        shift -= 1
    state, kind, width, _, base, _, _, start = _head(data, p, end, n)
    if state != status.SOUND:
        return state, start, none, none, none
    is_short = base >= 0 and base <= INT32_MAX and width <= 31
    if not is_short or (kind > BASED and kind != PATCHED and (kind != RICE or nulls)):
        return _walk_around(data, p, end, n, nulls, shift, i, most_bytes)
    head, p = p, start + packed_bytes(n, width)
    own = more = more_in_all = born_before = born = none
    largest = U0
    if kind == PATCHED:
        state, p, own, more, more_in_all, born_before, born, largest = _patches_around(data, p, end, n, i, width, start)
        if largest >> U31:  # some length, where the base brings it back
            return _walk_around(data, head, end, n, nulls, shift, i, most_bytes)
    elif kind == RICE:
        state, p, own, more, more_in_all = quotients.around(data, p, end, n, i)
        if more_in_all >= INT32_MAX or base + ((more_in_all + 1) << width) > INT32_MAX:  # one may be too much
            return _walk_around(data, head, end, n, nulls, shift, i, most_bytes)
        own, more, more_in_all = own << width, more << width, more_in_all << width
    length = base + own
    if width:
        length += np.int64(_one(data, start, i, width))
    before, held, total, held_in_all = _sum(data, start, i, n if with_total else i, width)
    before += more + base * i + shift * (i if base else held + born_before)
    total += more_in_all + base * n + shift * (n if base else held_in_all + born)
    if base + np.int64(largest) + shift > INT32_MAX:
        state = status.COLUMN_LENGTH
    length = length + shift if length or not nulls else np.int64(NULL)
    if state == status.SOUND and length > INT32_MAX:
        state = status.COLUMN_LENGTH
    if state == status.SOUND and length > most_bytes:
        state = status.LIMIT_FIELD
    return state, p, length, before, total
