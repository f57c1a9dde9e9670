"""How a column is written: the kind that takes least, as docs/columnar.md has it, and its bytes.

Values are worked on in int64 arrays that callers lend, and are used up; all arithmetic is modulo 2**64.
"""

import numpy as np

from kfbench.kernels.formats.columnar import quotients
from kfbench.kernels.formats.columnar.columns import (
    BASED,
    BITS,
    DELTA,
    DICTIONARY,
    EXTENDED,
    INT32_MAX,
    MOST_BITS,
    PATCHED,
    PATCHED_DELTA,
    RICE,
    RICE_DELTA,
    SLOPED,
    WORD,
    WORD_CODE,
    are_steps,
    bits_of,
    packed_bytes,
)
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.bit_packing import join4, join8
from kfbench.kernels.simd.bit_stream import flush, push
from kfbench.kernels.simd.intrinsics import bit_count, put_le64, put_u8, trailing_zeros
from kfbench.kernels.simd.simd_int64 import (
    count_wide,
    count_wide_steps,
    gaps_of,
    hashes_of,
    lower,
    lower_steps,
    marks_of,
    sum_high,
    sum_high_steps,
    take_lengths,
    trend_of,
)
from kfbench.kernels.wire.varint import put_uvarint, put_varint, uvarint_bytes, varint_bytes
from kfbench.layouts import NULL_LENGTH as NULL

CODES, LENGTHS, OFFSETS, AGES = range(4)  # what a column is of: it says which kinds are tried
FULL = -1  # no position
BUCKETS = 65 + 7  # for each width the bytes of all that is above it, and none behind: 7 bits are a byte of a uvarint
MOST_TRIED, FEWEST_BITS = 16, 4  # a dictionary's values, and the bits of the range that it is tried from
QUOTIENTS_BY = 2  # bits that the largest residual has more than the mean, where they are tried
LOOKED_AT = 32  # values that tell whether more differ than a dictionary pays for
U0, U1, U2, U4, U7, U8, U64 = (np.uint64(value) for value in (0, 1, 2, 4, 7, 8, 64))


@leaf
def _width_of(value):
    """The width that a uint64 is packed with."""
    bits = bits_of(value)
    return bits if bits <= MOST_BITS else np.int64(WORD)


@leaf
def _is_summed(bits, n):
    """Whether the sum of n residuals is sure to fit an int64. bits: the largest's."""
    return bits + bits_of(np.uint64(n)) <= 63


@leaf
def _is_uneven(bits, total, n, by):
    """Whether the largest residual has `by` bits more than the mean. bits: the largest's; total: their sum."""
    return bits >= by and total >> (bits - by) < n


@leaf
def _is_patched(bits, total, n):
    """Whether patches are tried. One value far above few is not as far above their mean."""
    return not _is_summed(bits, n) or _is_uneven(bits, total, n, np.int64(3 if n < 16 else 4))


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
def _rice(x, n, low, sign, total, most):
    """(bytes, width) of n residuals as `_patched` has them, with quotients; (most + 1, 0) where that
    is more than `most` bytes. total: what they add up to."""
    none = most + 1, np.int64(0)
    width = max(bits_of(np.uint64(total)) - bits_of(np.uint64(n)), 0)  # one less than the mean has bits, or as many
    if width and total < n << width:
        width -= 1
    width = min(width, np.int64(MOST_BITS))  # what is that wide never takes 7/8 of words, but has to have a size
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
    if _is_patched(bits, above, n):
        other_size, other, found = _patched(x, n, low, none, bits, size - head, highs)
        if found:
            size, kind, width, base, more, number = other_size + head, np.int64(PATCHED), other, low, none, found
    if is_wide and _is_patched(step_bits, steps_above, n - 1):
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
    if nature != CODES and _is_summed(bits, n) and _is_uneven(bits, above, n, QUOTIENTS_BY):
        other_size, other = _rice(x, n, low, none, above, limit - head)
        if other_size + head <= limit:
            size, kind, width, base, more, number = other_size + head, np.int64(RICE), other, low, none, none
            limit = size - 1
    if is_wide and _is_summed(step_bits, n - 1) and _is_uneven(step_bits, steps_above, n - 1, QUOTIENTS_BY):
        other_size, other = _rice(x, n - 1, least, sign, steps_above, limit - step_head)
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
def put(out, at, x, n, kind, width, base, more, number, sign, highs):
    """Writes x[:n] as `choose` has it, which says how much room it takes; x is used up. sign: -1 of ages.

    Gives the next position."""
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
        lower_steps(x, m, base, sign)
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
    return put(out, at, x, n, kind, width, base, more, number, np.int64(-1 if nature == AGES else 1), highs)


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


# Lengths, null where they are -1, and the codes that they are written as


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
