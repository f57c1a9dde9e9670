"""Kernels that expand hex templates: values of one length that differ only in hex digits, stored compactly."""

import numpy as np

from kfbench.kernels.formats.columnar.columns import U0, U1, U3, packed_bytes
from kfbench.kernels.formats.columnar.header_forms import BYTE, ONES, SIXES, ZEROS, stretch_of
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, get_u8, get_u32, load_le64, move32, put_i64, put_le64
from kfbench.kernels.wire.varint import get_uvarint

U4, U8, U16 = (np.uint64(value) for value in (4, 8, 16))
TO_LETTERS = np.uint64(ord("a") - 10 - ord("0"))
NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
PAIRS, FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@leaf
def bits_set(data, p, size):
    """Return the number of set bits in data[p:p + size]."""
    number = np.int64(0)
    for k in range(p, p + size):
        number += bit_count(np.uint64(get_u8(data, k)))
    return number


@leaf
def _digits_of(word):
    """Return eight half bytes as eight hex digit characters in a uint64. The first digit is in the highest byte."""
    word = (word | word << U16) & FOURS
    word = (word | word << U8) & PAIRS
    word = (word | word << U4) & NIBBLES
    letters = (word + SIXES) >> U4 & ONES
    return word + np.uint64(ZEROS) + letters * TO_LETTERS


@part
def _spell(source, at, number, digits):
    """Write `number` half bytes, from source[at] on, as hex digit characters. A multiple of eight is written."""
    end = at + packed_bytes(number, 4)
    to = np.int64(0)
    for k in range(at, end - 3, 4):  # compilers vectorise it
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
    """Return a uint64 with `number` characters from source[at] on, in the bytes whose mask bit is 0. The rest is 0."""
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
        same = ~(mask >> np.uint64(k)) & U1
        spread |= (word & (same * BYTE)) << np.uint64(8 * k)
        word >>= same << U3
    return spread


@leaf
def _put_words(out, to, length, n, word, digits, digit, varying, stretch):
    """Write the same 8-byte word of each value: its shared characters and one run of adjacent digits (a stretch).

    Args:
        out uint8[], to, length: the first word is written at `to`, each next one `length` bytes later
        n: number of values
        word uint64: the characters that all values share
        digits uint8[], digit, varying: the first value has its digits at `digit`, each next one `varying` bytes later
        stretch: the Stretch of the word for the digits
    """
    for _ in range(n):
        put_le64(out, to, word | (load_le64(digits, digit) & stretch.mask) << stretch.shift)
        to += length
        digit += varying


@leaf
def _put_words_of_two(out, to, length, n, word, digits, digit, varying, stretch, second):
    """Write the same 8-byte word of each value, with two runs of adjacent digits (stretches).

    This is faster than to write one run first and to load the word again for the second.

    Args: as in `_put_words`; second: the second Stretch.
    """
    second_digit = digit + stretch.number
    for _ in range(n):
        characters = word | (load_le64(digits, digit) & stretch.mask) << stretch.shift
        put_le64(out, to, characters | (load_le64(digits, second_digit) & second.mask) << second.shift)
        to += length
        digit += varying
        second_digit += varying


@leaf
def _add_to_words(out, to, length, n, digits, digit, varying, stretch):
    """Add one more run of adjacent digits (a stretch) to the same word of each value. Args: as in `_put_words`."""
    for _ in range(n):
        put_le64(out, to, load_le64(out, to) | (load_le64(digits, digit) & stretch.mask) << stretch.shift)
        to += length
        digit += varying


@leaf
def expand(data, p, n, source, at, out, to, digits):
    """Write the n values of a hex template. Return the length of a value, and whether the padding half byte is 0.

    The values are written in words of 8 bytes. Each word is written for all values before the next one, so that its
    shared characters are loaded once. Up to 7 bytes are written after each value. Words are therefore written from the
    last to the first: the begin of the next value is written later. Most words have one or two runs of digits.

    Args:
        data uint8[], p: the log, and the position of the template in it
        n: number of values
        source uint8[], at: the payload, and the position of the template bytes in it
        out uint8[], to: output from `to` on, with room for SLACK more bytes after the values
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
