"""Columns of int64, packed to as many bits a value as they need: what a columnar batch is made of.

A column is a kind, a width and the values as far as the kind does not foretell them (formats/columnar.py has the
table). Values are worked on in int64 arrays that callers lend; all arithmetic is modulo 2**64.
"""

import numpy as np

from kfbench.kernels import status
from kfbench.kernels._jit import leaf, part
from kfbench.kernels.bit_packing import (
    join4,
    join8,
    spread1,
    spread2,
    spread4,
    spread8,
    sum1,
    sum2,
    sum4,
    sum8,
)
from kfbench.kernels.bits import flush, push
from kfbench.kernels.columnar import quotients
from kfbench.kernels.intrinsics import (
    bit_count,
    get_u8,
    leading_zeros,
    load_le64,
    put_le64,
    put_u8,
    trailing_zeros,
)
from kfbench.kernels.octets import (
    count_wide,
    count_wide_steps,
    gaps_of,
    hashes_of,
    lower,
    lower_steps,
    marks_of,
    put_lengths,
    put_line,
    run_on,
    sum_high,
    sum_high_steps,
    take_lengths,
    trend_of,
)
from kfbench.kernels.varint import (
    get_uvarint,
    get_uvarlong,
    get_varlong,
    put_uvarint,
    put_varint,
    uvarint_bytes,
    varint_bytes,
)
from kfbench.layouts import NULL_LENGTH as NULL

BITS, BASED, SLOPED, DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, DICTIONARY = range(9)
CODES, LENGTHS, OFFSETS, AGES = range(4)  # what a column is of: it says which kinds are tried
INT32_MAX = 2**31 - 1
EXTENDED = 3  # the kind on the wire from which on the low bits tell
MOST_BITS, WORD, WORD_CODE = 56, 64, 63  # wider than MOST_BITS is a whole word, whose code is WORD_CODE
FULL = -1  # no position
ALL_ALIKE = BASED << 6  # the descriptor of a column of one value, which is not 0
BUCKETS = 65 + 7  # for each width the bytes of all that is above it, and none behind: 7 bits are a byte of a uvarint
GROUP = 8  # packed at a time
MOST_TRIED, FEWEST_BITS = (
    16,
    4,
)  # values of a dictionary, and bits of what they are above the least, that it is tried with
LOOKED_AT = 32  # values that tell whether more differ than a dictionary pays for
U0, U1, U2, U3, U4, U7, U8, U31, U63, U64 = (np.uint64(value) for value in (0, 1, 2, 3, 4, 7, 8, 31, 63, 64))


@leaf
def bits_of(value):
    """The bit length of a uint64."""
    return np.int64(64) - leading_zeros(value) if value != U0 else np.int64(0)


@leaf
def _width_of(value):
    """The width that a uint64 is packed with."""
    bits = bits_of(value)
    return bits if bits <= MOST_BITS else np.int64(WORD)


@leaf
def packed_bytes(n, width):
    return (n * width + 7) >> 3


@leaf
def _is_uneven(bits, total, n):
    """Whether patches are tried: the largest residual is far above the mean. bits: the largest's; total: their sum."""
    return bits >= 3 and (bits + bits_of(np.uint64(n)) > 63 or total >> (bits - 3) < n)


@leaf
def _patched(x, n, low, sign, top, most, highs):
    """(bytes, width, number of patches) of n residuals packed with patches, `top` bits at most; (most, 0, 0) where that
    is not less than `most` bytes. They are what x[:n], or `sign` (if not 0) times each step behind one of it, is above
    `low`.

    Counted anew at each width: a few are tried, and a histogram would take the bits of each residual one by one."""
    best, best_width, best_number = most, np.int64(0), np.int64(0)
    position_bits = bits_of(np.uint64(n - 1))
    for k in range(U1, U8):
        highs[np.uint64(top) + k] = 0
    for below in range(np.uint64(top)):
        bits = np.uint64(top) - below
        number = count_wide_steps(x, n, low, bits - U1, sign) if sign else count_wide(x, n, low, bits - U1, sign)
        # One bit less in the width, and a high part of 0, 7, 14 ... bits takes a byte more.
        highs[bits] = number + highs[bits + U7]
        patches = uvarint_bytes(np.uint64(number)) + packed_bytes(number, position_bits) + highs[bits]
        if patches >= best:  # and more of them below
            break
        width = np.int64(bits) - 1
        size = packed_bytes(n, width) + patches
        if size < best and width <= MOST_BITS:
            best, best_width, best_number = size, width, number
    return best, best_width, best_number


@part
def _rice(x, n, low, sign, bits, total, most):
    """(bytes, width) of n residuals as `_patched` has them, of `bits` at most, with quotients; (most + 1, 0) where that
    is more than `most` bytes, or not tried. total: what they add up to, where that is sure to fit an int64."""
    none = most + 1, np.int64(0)
    if bits < 2 or bits + bits_of(np.uint64(n)) > 63 or total >> (bits - 2) >= n:
        return none
    width = max(bits_of(np.uint64(total)) - bits_of(np.uint64(n)), 0)  # one less than the mean has bits, or as many
    if width and total < n << width:
        width -= 1
    width = min(width, np.int64(MOST_BITS))
    low_bytes = packed_bytes(n, width)
    if low_bytes + quotients.quotient_bytes(n, np.int64(0)) > most:
        return none
    shift = np.uint64(width)
    high = sum_high_steps(x, n, low, shift, sign) if sign else sum_high(x, n, low, shift, sign)
    size = low_bytes + quotients.quotient_bytes(n, high)
    return (size, width) if size <= most else none


@leaf
def _find_distinct(x, n, known):
    """How many values x[:n] has, in known[:MOST_TRIED] by first appearance; 0 where they are more."""
    number = np.int64(0)
    for i in range(np.uint64(n)):
        k = np.int64(0)
        while k < number and known[np.uint64(k)] != x[i]:
            k += 1
        if k == number:
            if number == MOST_TRIED:
                return np.int64(0)
            known[np.uint64(number)] = x[i]
            number += 1
    return number


@leaf
def _dictionary_bytes(n, base, width, number):
    return 3 + varint_bytes(base) + packed_bytes(number, width) + packed_bytes(n, bits_of(np.uint64(number - 1)))


@leaf
def _dictionary(x, n, low, high, most, known):
    """(bytes, number of values) of a dictionary of x[:n]; (most, 0) where that is not less than `most` bytes, or not
    tried. Leaves the values in known."""
    width = _width_of(np.uint64(high - low))
    none = most, np.int64(0)
    if width < FEWEST_BITS:
        return none
    fewest = max(bit_count(hashes_of(x, min(n, np.int64(LOOKED_AT)))), 2)
    if fewest > MOST_TRIED or _dictionary_bytes(n, low, width, fewest) >= most:
        return none
    number = _find_distinct(x, n, known)
    size = _dictionary_bytes(n, low, width, number)
    return (size, number) if number and size < most else none


@leaf
def bounds_of(x, n):
    """(least, greatest, sum) of x[:n]."""
    low = high = x[0]
    total = np.int64(0)
    for i in range(np.uint64(n)):
        value = x[i]
        low, high, total = min(low, value), max(high, value), total + value
    return low, high, total


@leaf
def _choose_even(low, high, n):
    """As `choose`, of the first two kinds."""
    width = _width_of(np.uint64(high - low))
    size = 1 + varint_bytes(low) + packed_bytes(n, width)
    if low >= 0:
        other = _width_of(np.uint64(high))
        other_size = 1 + packed_bytes(n, other)
        if other_size <= size:
            return other_size, np.int64(BITS), other, np.int64(0)
    return size, np.int64(BASED), width, low


@part
def choose(x, n, low, high, total, nature, highs):
    """How x[:n], n >= 2, is written: (bytes, kind, width, base, slope or first value, number of patches or of the
    dictionary's values).

    low, high, total: `bounds_of` x; nature: CODES, LENGTHS, OFFSETS or AGES. highs int64[BUCKETS] is scratch.
    """
    size, kind, width, base = _choose_even(low, high, n)
    more = number = step_bits = least = np.int64(0)
    is_wide, sign = nature >= OFFSETS, np.int64(-1 if nature == AGES else 1)
    if is_wide:
        first = x[0]
        slope = (x[n - 1] - first) // np.int64(n - 1) if n >= 3 else np.int64(0)
        lowest, highest, least, most = trend_of(x, n, slope, sign)
        if slope != 0:
            last = x[n - 1] - np.int64(n - 1) * slope
            lowest, highest = min(lowest, last), max(highest, last)
            other = _width_of(np.uint64(highest - lowest))
            other_size = 1 + varint_bytes(lowest) + varint_bytes(slope) + packed_bytes(n, other)
            if other_size < size:
                size, kind, width, base, more = other_size, np.int64(SLOPED), other, lowest, slope
        step_bits = bits_of(np.uint64(most - least))
        other = _width_of(np.uint64(most - least))
        other_size = 2 + varint_bytes(first) + varint_bytes(least) + packed_bytes(n - 1, other)
        if other_size < size:
            size, kind, width, base, more = other_size, np.int64(DELTA), other, least, first
    bits, none = bits_of(np.uint64(high - low)), np.int64(0)
    above, steps_above = total - low * n, sign * (x[n - 1] - x[0]) - least * (n - 1)
    head, step_head = 2 + varint_bytes(low), 2 + varint_bytes(x[0]) + varint_bytes(least)
    if _is_uneven(bits, above, n):
        other_size, other, found = _patched(x, n, low, none, bits, size - head, highs)
        if found:
            size, kind, width, base, more, number = other_size + head, np.int64(PATCHED), other, low, none, found
    if is_wide and _is_uneven(step_bits, steps_above, n - 1):
        other_size, other, found = _patched(x, n - 1, least, sign, step_bits, size - step_head, highs)
        if found:
            size, kind, width, base, more, number = (
                other_size + step_head, np.int64(PATCHED_DELTA), other, least, x[0], found
            )  # fmt: skip
    if not is_wide:
        other_size, found = _dictionary(x, n, low, high, size, highs)
        if found:
            size, kind, width, base, number = (
                other_size,
                np.int64(DICTIONARY),
                _width_of(np.uint64(high - low)),
                low,
                found,
            )
    limit = size - ((size + 7) >> 3)  # 7/8 of it
    if nature != CODES:
        other_size, other = _rice(x, n, low, none, bits, above, limit - head)
        if other_size + head <= limit:
            size, kind, width, base, more, number = other_size + head, np.int64(RICE), other, low, none, none
            limit = size - 1
    if is_wide:
        other_size, other = _rice(x, n - 1, least, sign, step_bits, steps_above, limit - step_head)
        if other_size + step_head <= limit:
            size, kind, width, base, more, number = (
                other_size + step_head, np.int64(RICE_DELTA), other, least, x[0], none
            )  # fmt: skip
    return size, kind, width, base, more, number


@leaf
def size_of(x, n, nature, highs):
    """The bytes of a column of x[:n], n >= 2."""
    low, high, total = bounds_of(x, n)
    return choose(x, n, low, high, total, nature, highs)[0]


@leaf
def pack(out, at, x, n, width):
    """Writes the low `width` bits of x[:n]; gives the next position. x has room for GROUP more, which are used up.

    Up to 16 bytes behind the last are written over, where `out` has as many.
    """
    bits = np.uint64(width)
    mask = (U1 << bits) - U1
    end = at + packed_bytes(n, width)
    word, fill = U0, U0
    if width == WORD:
        for i in range(np.uint64(n)):
            put_le64(out, at, np.uint64(x[i]))
            at += 8
    elif width and end + 16 > len(out):
        for i in range(np.uint64(n)):
            at, word, fill = push(out, at, word, fill, np.uint64(x[i]) & mask, bits)
        flush(out, at, word, fill)
    elif width:
        for i in range(np.uint64(n), np.uint64(n) + U8):
            x[i] = 0
        if width <= 8:  # eight values are `width` bytes
            for i in range(U0, np.uint64(n), U8):
                put_le64(out, at, join8(x, i, bits, mask))
                at += width
            return end
        if width <= 14:  # and of these two words
            half = bits << U2
            for i in range(U0, np.uint64(n), U8):
                low, high = join4(x, i, bits, mask), join4(x, i + U4, bits, mask)
                put_le64(out, at, low | high << half)
                put_le64(out, at + 8, high >> (U64 - half))
                at += width
            return end
        elif width <= 28:
            for i in range(U0, np.uint64(n), U2):
                pair = np.uint64(x[i]) & mask | (np.uint64(x[i + U1]) & mask) << bits
                at, word, fill = push(out, at, word, fill, pair, bits << U1)
        else:
            for i in range(np.uint64(n)):
                at, word, fill = push(out, at, word, fill, np.uint64(x[i]) & mask, bits)
        put_le64(out, at, word)
    return end


@leaf
def _put_dictionary(out, at, x, n, width, base, number, known):
    """Writes a dictionary of `number` values and x[:n] as indexes; gives the next position. x is used up."""
    _find_distinct(x, n, known)
    for i in range(np.uint64(n)):
        k = np.int64(0)
        while known[np.uint64(k)] != x[i]:
            k += 1
        x[i] = k
    lower(known, number, base, np.int64(0))
    put_u8(out, at, np.uint8(number))
    at = pack(out, at + 1, known, number, width)
    return pack(out, at, x, n, bits_of(np.uint64(number - 1)))


@leaf
def _put_patches(out, at, x, m, width, number):
    shift, position_bits = np.uint64(width), np.uint64(bits_of(np.uint64(m - 1)))
    at = put_uvarint(out, at, np.uint64(number))
    word, fill = U0, U0
    for i in range(U0, np.uint64(m), U64):
        marks = marks_of(x, i, min(np.int64(U64), m - np.int64(i)), shift)
        while marks:
            at, word, fill = push(out, at, word, fill, i + np.uint64(trailing_zeros(marks)), position_bits)
            marks &= marks - U1
    at = flush(out, at, word, fill)
    for i in range(U0, np.uint64(m), U64):
        marks = marks_of(x, i, min(np.int64(U64), m - np.int64(i)), shift)
        while marks:
            at = put_uvarint(out, at, np.uint64(x[i + np.uint64(trailing_zeros(marks))]) >> shift)
            marks &= marks - U1
    return at


@part
def put(out, at, x, n, kind, width, base, more, number, nature, highs):
    """Writes x[:n] as `choose` has it, which says how much room it takes; x is used up. Gives the next position."""
    code = np.uint8(width if width <= MOST_BITS else WORD_CODE)
    if kind < EXTENDED:
        put_u8(out, at, np.uint8(np.int64(code) | kind << 6))
        at += 1
    else:
        put_u8(out, at, np.uint8(EXTENDED << 6 | (kind - EXTENDED)))
        put_u8(out, at + 1, code)
        at += 2
    m, is_delta = n, are_steps(kind)
    if is_delta:
        at = put_varint(out, at, more)
        m = n - 1
    if kind != BITS:
        at = put_varint(out, at, base)
    if kind == SLOPED:
        at = put_varint(out, at, more)
    if kind == DICTIONARY:
        return _put_dictionary(out, at, x, n, width, base, number, highs)
    if width == 0 and kind < PATCHED:  # nothing is packed
        return at
    if is_delta:
        lower_steps(x, m, base, np.int64(-1 if nature == AGES else 1))
    elif kind != BITS:
        lower(x, n, base, more if kind == SLOPED else np.int64(0))
    at = pack(out, at, x, m, width)
    if kind == RICE or kind == RICE_DELTA:
        return quotients.put(out, at, x, m, np.uint64(width))
    return _put_patches(out, at, x, m, width, number) if kind >= PATCHED else at


@part
def _write(out, at, x, n, low, high, total, nature, highs):
    size, kind, width, base, more, number = choose(x, n, low, high, total, nature, highs)
    if size > len(out) - at:
        return np.int64(FULL)
    return put(out, at, x, n, kind, width, base, more, number, nature, highs)


@leaf
def write(out, at, x, n, low, high, total, nature, highs):
    """Writes x[:n] as `choose` has it; gives the next position, FULL where there is no room. x is used up."""
    if nature >= OFFSETS or low != high:
        return _write(out, at, x, n, low, high, total, nature, highs)
    size, kind, width, base = _choose_even(low, high, n)  # all alike, as lengths often are: without a call
    if size > len(out) - at:
        return np.int64(FULL)
    put_u8(out, at, np.uint8(kind << 6 | width))
    if kind == BASED:
        return put_varint(out, at + 1, base)
    return pack(out, at + 1, x, n, width)


@leaf
def write_all(out, at, x, n, nature, highs):
    """As `write`."""
    low, high, total = bounds_of(x, n)
    return write(out, at, x, n, low, high, total, nature, highs)


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
def _take_codes(x, n, least):
    """Makes codes of the lengths x[:n], some of them null; gives what was added to the others."""
    shift = 1 - least
    for i in range(np.uint64(n)):
        x[i] = x[i] + shift if x[i] != NULL else np.int64(0)
    return shift


@leaf
def fill_lengths(x, lengths, first, stride, n):
    """Fills x[:n] with every `stride`th length, or with codes where any is null.

    (nulls, least length, sum of the lengths, `bounds_of` x)."""
    length = np.int64(lengths[first])
    least_any = most = length
    total = np.int64(0)
    for i in range(np.uint64(n)):
        length = np.int64(lengths[first + i * stride])
        x[i] = length
        least_any, most, total = min(least_any, length), max(most, length), total + length
    nulls = np.int64(0)
    if least_any != NULL:
        return nulls, least_any, total, least_any, most, total
    if most == NULL:
        for i in range(np.uint64(n)):
            x[i] = 0
        return n, nulls, nulls, nulls, nulls, nulls
    least = np.int64(INT32_MAX)
    for i in range(np.uint64(n)):
        nulls += x[i] == NULL
        least = min(least, x[i] if x[i] != NULL else np.int64(INT32_MAX))
    shift = _take_codes(x, n, least)
    total += nulls
    return nulls, least, total, np.int64(0), most + shift, total + shift * (n - nulls)


@leaf
def fill_placed_lengths(x, lengths, starts, first, n):
    """As `fill_lengths`, of lengths one behind the other and before it whether all that they are of, but nulls, does
    lie so. Where all are null nothing is filled."""
    nulls, least, most, total = take_lengths(x, lengths, first, n)
    if nulls == n:
        none = np.int64(0)
        return True, n, none, none, none, none, none
    is_run = gaps_of(lengths, starts, first, n - 1) == 0
    if nulls == 0:
        return is_run, nulls, least, total, least, most, total
    shift = _take_codes(x, n, least)
    total += nulls
    return is_run, nulls, least, total, np.int64(0), most + shift, total + shift * (n - nulls)


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
        if k < i:
            before += max(here, 0)
        elif k == i:
            length = here
        total += max(here, 0)
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
    if largest >> U31 or base + max(np.int64(largest), 0) + shift > INT32_MAX:
        state = status.COLUMN_LENGTH
    length = length + shift if length or not nulls else np.int64(NULL)
    if state == status.SOUND and length > INT32_MAX:
        state = status.COLUMN_LENGTH
    if state == status.SOUND and length > most_bytes:
        state = status.LIMIT_FIELD
    return state, p, length, before, total
