"""Hex templates read: their values are written in full, from the characters that all share and packed digits."""

import numpy as np

from kfbench.kernels.formats.columnar.columns import U0, packed_bytes
from kfbench.kernels.formats.columnar.header_forms import (
    BYTE,
    ONE,
    ONES,
    SIXES,
    U3,
    U4,
    U8,
    U16,
    ZEROS,
    stretch_of,
)
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, get_u8, get_u32, load_le64, move32, put_i64, put_le64
from kfbench.kernels.wire.varint import get_uvarint

TO_LETTERS = np.uint64(ord("a") - 10 - ord("0"))
NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
PAIRS, FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@leaf
def bits_set(data, p, size):
    """Return the number of bits set in data[p:p + size]."""
    number = np.int64(0)
    for k in range(p, p + size):
        number += bit_count(np.uint64(get_u8(data, k)))
    return number


@leaf
def _digits_of(word):
    """Return the eight nibbles of 32 bits as characters, the first in the highest byte."""
    word = (word | word << U16) & FOURS
    word = (word | word << U8) & PAIRS
    word = (word | word << U4) & NIBBLES
    letters = (word + SIXES) >> U4 & ONES
    return word + np.uint64(ZEROS) + letters * TO_LETTERS


@part
def _spell(source, at, number, digits):
    """Write `number` nibbles that lie at `at` as hex digits, rounded up to a multiple of eight."""
    end = at + packed_bytes(number, 4)
    to = np.int64(0)
    for k in range(at, end - 3, 4):  # compilers make vectors of it
        put_i64(digits, to, np.int64(_digits_of(np.uint64(get_u32(source, k)))))
        to += 8
    left = (end - at) & 3
    if left:
        word = U0
        for k in range(end - left, end):
            word = word << U8 | np.uint64(get_u8(source, k))
        put_i64(digits, to, np.int64(_digits_of(word << np.uint64(8 * (4 - left)))))


@leaf
def _same_characters(source, at, number, mask):
    """Return a word with the `number` characters at `at` where the mask has no bit, and 0 where it has one."""
    word = U0
    if at + 8 <= len(source):
        word = load_le64(source, at)
    else:
        for k in range(number):
            word |= np.uint64(get_u8(source, at + k)) << np.uint64(8 * k)
    if mask == U0:
        return word
    spread = U0
    for k in range(8):
        same = ~(mask >> np.uint64(k)) & ONE
        spread |= (word & (same * BYTE)) << np.uint64(8 * k)
        word >>= same << U3
    return spread


@leaf
def _put_words(out, to, length, n, word, digits, digit, varying, stretch):
    """Write one word of each of n values, with one stretch of digits.

    Args:
        out uint8[], to, length: the words are written at `to` and `length` bytes behind each other
        word uint64: the characters that all values share
        digits uint8[], digit, varying: the first value's digits are at `digit`, those of the next `varying` behind
        stretch: the Stretch of the word that has the digits
    """
    for _ in range(n):
        put_le64(out, to, word | (load_le64(digits, digit) & stretch.mask) << stretch.shift)
        to += length
        digit += varying


@leaf
def _put_words_of_two(out, to, length, n, word, digits, digit, varying, stretch, second):
    """Write one word of each of n values, with two stretches of digits: faster than to load the word again."""
    second_digit = digit + stretch.number
    for _ in range(n):
        characters = word | (load_le64(digits, digit) & stretch.mask) << stretch.shift
        put_le64(out, to, characters | (load_le64(digits, second_digit) & second.mask) << second.shift)
        to += length
        digit += varying
        second_digit += varying


@leaf
def _add_to_words(out, to, length, n, digits, digit, varying, stretch):
    """Add one more stretch of digits to one word of each of n values."""
    for _ in range(n):
        put_le64(out, to, load_le64(out, to) | (load_le64(digits, digit) & stretch.mask) << stretch.shift)
        to += length
        digit += varying


@leaf
def expand(data, p, n, source, at, out, to, digits):
    """Write the n values of a template. Return their length, and whether the last nibble is padded with 0.

    Words are written for all values at a time, so that the shared characters of each are spread once. Up to 7 bytes are
    written behind each value: words go from the last to the first, so that the next value's own come later. Most words
    have one or two stretches of digits.

    Args:
        data uint8[], p: the log, and the position of the template in it
        n: number of values
        source uint8[], at: the payload, and the position of the template's bytes in it
        out uint8[], to: written, with SLACK behind the values
        digits uint8[]: scratch for all digits, and SLACK
    """
    length, p = get_uvarint(data, p, len(data))
    size = packed_bytes(length, 1)
    varying = bits_set(data, p, size)
    same, digit = at + length - varying, varying
    first = same
    _spell(source, first, n * varying, digits)
    k = size
    while k > 0:
        k -= 1
        mask = np.uint64(get_u8(data, p + k))
        characters, vary = min(length - 8 * k, 8), bit_count(mask)
        same -= characters - vary
        digit -= vary
        word = U0
        if vary < characters:
            word = _same_characters(source, same, characters - vary, mask)
        here, next_digit = to + 8 * k, digit
        if mask == U0 and k >= 3 and characters == 8 and get_u32(data, p + k - 3) == 0:  # four words at once
            k -= 3
            same -= 24
            here -= 24
            for _ in range(n):
                move32(out, here, source, same)
                here += length
        elif mask == U0:
            for _ in range(n):
                put_le64(out, here, word)
                here += length
        while mask != U0:
            stretch = stretch_of(mask)
            number, mask = stretch.number, stretch.rest
            if next_digit != digit:
                _add_to_words(out, here, length, n, digits, next_digit, varying, stretch)
            elif mask == U0:
                _put_words(out, here, length, n, word, digits, digit, varying, stretch)
            else:
                second = stretch_of(mask)
                mask = second.rest
                _put_words_of_two(out, here, length, n, word, digits, digit, varying, stretch, second)
                number += second.number
            next_digit += number
    odd = (n * varying) & 1
    return length, odd == 0 or get_u8(source, first + ((n * varying) >> 1)) & 15 == 0
