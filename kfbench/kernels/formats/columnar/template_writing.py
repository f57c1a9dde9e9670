"""Kernels that find and write hex templates: values of one length that differ only in hex digits."""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar.columns import U0, U1, U3, U7
from kfbench.kernels.formats.columnar.header_forms import BYTE, ONES, SIXES, ZEROS, stretch_of
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.characters import differ8, differ16, differ32, pack_digits
from kfbench.kernels.simd.intrinsics import bit_count, get_u8, load_le64, put_le64
from kfbench.kernels.wire.varint import put_bytes

U2, U4, U6, U56 = (np.uint64(value) for value in (2, 4, 6, 56))
HIGH_NIBBLES, LOW_SEVEN = (np.uint64(0x0101010101010101 * byte) for byte in (0xF0, 0x7F))
GATHER = np.uint64(0x0102040810204080)  # multiplying by it collects one bit of each byte in the highest byte


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
