"""Kernels that find, write and expand hex templates: values of one length that differ only in hex digits.

A template stores the characters that all values share once, and the digits of each value as nibbles (half bytes).
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import (
    bit_count,
    get_u8,
    get_u32,
    load_le64,
    move32,
    put_i64,
    put_le64,
)
from kfbench.kernels.wire.varint import get_uvarint, put_bytes
from kfbench.research.columnar.kernels.bit_packing import CHARACTERS, differ8, differ16, differ32, pack_digits
from kfbench.research.columnar.kernels.columns import U0, U1, U3, U7, bits_of, packed_bytes

SLACK = CHARACTERS  # bytes of room after buffers of digits, because whole vectors are read and written
U2, U4, U6, U8, U16, U56 = (np.uint64(value) for value in (2, 4, 6, 8, 16, 56))
TO_LETTERS = np.uint64(ord("a") - 10 - ord("0"))
BYTE, FULL_WORD = np.uint64(0xFF), np.uint64(2**64 - 1)
# Masks of eight bytes.
ZEROS = 0x3030303030303030  # eight characters "0"
ONES, SIXES, NIBBLES, LOW_SEVEN, HIGH_NIBBLES = (
    np.uint64(0x0101010101010101 * byte) for byte in (0x01, 0x06, 0x0F, 0x7F, 0xF0)
)
PAIRS, FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
GATHER = np.uint64(0x0102040810204080)  # multiplying by it collects one bit of each byte in the highest byte


class Stretch(NamedTuple):
    """A stretch: the lowest run of adjacent set bits in a byte. Each bit stands for one byte of an 8-byte word."""

    number: int  # number of bits in the run
    mask: int  # uint64 with all bits set in its lowest `number` bytes
    shift: int  # uint64: number of bits of the word below the first byte of the run
    rest: int  # uint64: the byte, with the bits of the run cleared


@leaf
def stretch_of(byte):
    """Return the lowest Stretch of set bits in `byte`, which must not be 0."""
    low = byte & (~byte + U1)
    stretch = byte & ~(byte + low)
    begin = bits_of(low) - 1
    number = bits_of(stretch) - begin
    return Stretch(number, FULL_WORD >> np.uint64(8 * (8 - number)), np.uint64(8 * begin), byte ^ stretch)


class Items(NamedTuple):
    """The keys or values at one header position: `number` items, every `stride`-th from `first` on."""

    data: np.ndarray  # uint8[]
    starts: np.ndarray  # int64[headers]
    lengths: np.ndarray  # int32[headers], -1 for a null
    first: int  # uint64
    stride: int  # uint64
    number: int


class Variation(NamedTuple):
    """The characters (byte positions) in which values of one length differ."""

    number: int  # number of these characters
    runs: int  # number of runs of these characters, at most 8 characters each
    end: int  # end of the last run
    are_digits: bool  # whether they are hex digits in the first value


@leaf
def word_before(data, end):
    """Return the 8 bytes before position `end` as a uint64. Bytes before the begin of `data` are 0."""
    if end >= 8:
        return load_le64(data, end - 8)
    word = U0
    for k in range(end):
        word |= np.uint64(get_u8(data, k)) << np.uint64(64 - 8 * (end - k))
    return word


@leaf
def differing_bits(items, end, size):
    """Compare `size` bytes (1 to 8) before byte `end` of all items. Return a uint64 with the bits that differ."""
    first = word_before(items.data, items.starts[items.first] + end)
    bits, h = U0, items.first
    for _ in range(items.number - 1):
        h += items.stride
        bits |= word_before(items.data, items.starts[h] + end) ^ first
    return bits >> np.uint64(64 - 8 * size)


@leaf
def put_differences(items, length, bits):
    """Compare items of `length` bytes. Write one byte per character with the bits that differ, then 8 zero bytes.

    The last vector ends with the item and overlaps the vector before it, so that no byte after the item is read.
    """
    data, starts, h, stride, n = items.data, items.starts, items.first, items.stride, items.number
    if length < 8:
        put_le64(bits, 0, differing_bits(items, length, length))
    elif length < 16:
        differ8(data, starts, h, stride, n, np.int64(0), length - 8, bits)
    elif length < 32:
        differ16(data, starts, h, stride, n, np.int64(0), length - 16, bits)
    else:
        last = length - 32
        for k in range(0, length, 64):
            differ32(data, starts, h, stride, n, min(k, last), min(k + 32, last), bits)
    put_le64(bits, length, U0)


@leaf
def _non_digits(word):
    """Check eight characters, given as characters ^ ZEROS. All are hex digits if the result & HIGH_NIBBLES is 0."""
    letters = (word >> U6) & ONES
    word -= (letters << U6) + (letters << U3) - letters  # 71 for each letter: "a" ^ "0" becomes 10
    return ((word + SIXES) ^ (letters << U4)) | word  # a letter must be 10 to 15, another digit below 10


@leaf
def find_variation(items, length, bits, mask, runs):
    """Find the runs of characters in which items of one length differ. Return the Variation.

    Args:
        items: the items
        length: length of each item in bytes
        bits uint8[]: the output of `put_differences`
        mask uint8[length]: filled with one bit per character, set if it differs
        runs int64[length + 1]: filled with the begin and the length of each run
    """
    varying, number, end, strays = np.int64(0), np.int64(0), np.int64(0), U0
    start = items.starts[items.first]
    for k in range(0, length, 8):
        differing = load_le64(bits, k)
        mask[k >> 3] = 0
        if differing == U0:
            continue
        first = word_before(items.data, start + min(k + 8, length))
        if length - k < 8:
            first >>= np.uint64(8 * (8 - (length - k)))
        ones = ((((differing & LOW_SEVEN) + LOW_SEVEN) | differing) >> U7) & ONES
        varying += bit_count(ones)
        strays |= _non_digits((first ^ np.uint64(ZEROS)) & (ones * BYTE))
        byte = (ones * GATHER) >> U56
        mask[k >> 3] = np.uint8(byte)
        while byte != U0:
            stretch = stretch_of(byte)
            byte = stretch.rest
            begin = k + np.int64(stretch.shift >> U3)
            if number and begin == end and runs[2 * number - 1] + stretch.number <= 8:
                runs[2 * number - 1] += stretch.number
            else:
                runs[2 * number], runs[2 * number + 1] = begin, stretch.number
                number += 1
            end = begin + stretch.number
    return Variation(varying, number, end, strays & HIGH_NIBBLES == U0)


@part
def stage_template(items, length, runs, number, digits, staged, at):
    """Write the payload of a hex template to `staged`. Return its end, and whether all varying characters are digits.

    Args:
        items: values of one length
        length: length of each value in bytes
        runs int64[2 * number]: begin and length of each run of varying characters
        number: number of runs
        digits uint8[]: scratch for the digits of all values, and SLACK
        staged uint8[], at: output, and the position in it to write at
    """
    values, starts, h = items.data, items.starts, items.first
    last = np.int64(0)
    for k in range(np.uint64(number)):
        at = put_bytes(staged, at, values, starts[h] + last, runs[2 * k] - last)
        last = runs[2 * k] + runs[2 * k + U1]
    at = put_bytes(staged, at, values, starts[h] + last, length - last)
    end, safe, stop = np.int64(0), len(values) - length - 8, np.uint64(2 * number)
    for _ in range(items.number):
        start, k = starts[h], U0
        if start <= safe:
            while k < stop:  # each run is moved as a whole word; the next run overwrites the excess
                put_le64(digits, end, load_le64(values, start + runs[k]))
                end += runs[k + U1]
                k += U2
        while k < stop:
            end = put_bytes(digits, end, values, start + runs[k], runs[k + U1])
            k += U2
        h += items.stride
    return at + ((end + 1) >> 1), pack_digits(digits, end, staged, at)


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
            if next_digit == digit:
                _put_words(out, here, length, n, word, digits, digit, varying, stretch)
            else:
                _add_to_words(out, here, length, n, digits, next_digit, varying, stretch)
            mask = stretch.rest
            next_digit += stretch.number
    odd = (n * varying) & 1
    return length, odd == 0 or get_u8(source, first + ((n * varying) >> 1)) & 15 == 0
