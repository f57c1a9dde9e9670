"""Hex templates written: values of one length that differ in hex digits only, with the digits packed into nibbles."""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar.columns import U0
from kfbench.kernels.formats.columnar.header_forms import BYTE, ONE, ONES, SIXES, U2, U3, U4, U6, U7, ZEROS, stretch_of
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.characters import differ8, differ16, differ32, pack_digits
from kfbench.kernels.simd.intrinsics import bit_count, get_u8, load_le64, put_le64
from kfbench.kernels.wire.varint import put_bytes

U56 = np.uint64(56)
HIGH_NIBBLES, LOW_SEVEN = (np.uint64(0x0101010101010101 * byte) for byte in (0xF0, 0x7F))
GATHER = np.uint64(0x0102040810204080)  # a factor that moves one bit of each of eight bytes into the highest byte


class Items(NamedTuple):
    """The keys or values at one header position: `number` items, every `stride`th from `first` on."""

    data: np.ndarray  # uint8[]
    starts: np.ndarray  # int64[headers]
    lengths: np.ndarray  # int32[headers], -1 of a null
    first: int  # uint64
    stride: int  # uint64
    number: int


class Variation(NamedTuple):
    """The characters in which values of one length differ."""

    number: int  # of these characters
    runs: int  # of such characters, 8 at most each
    end: int  # of the last run
    are_digits: bool  # those of the first value are hex digits


@leaf
def word_before(data, end):
    """Return the 8 bytes before `end`, with zeros for those before the beginning of `data`."""
    if end >= 8:
        return load_le64(data, end - 8)
    word = U0
    for k in range(end):
        word |= np.uint64(get_u8(data, k)) << np.uint64(64 - 8 * (end - k))
    return word


@leaf
def differing_bits(items, end, size):
    """Return which bits of the `size` bytes, 1 to 8, before byte `end` of each item differ between items."""
    first = word_before(items.data, items.starts[items.first] + end)
    bits, h = U0, items.first
    for _ in range(items.number - 1):
        h += items.stride
        bits |= word_before(items.data, items.starts[h] + end) ^ first
    return bits >> np.uint64(64 - 8 * size)


@leaf
def put_differences(items, length, bits):
    """Write which bits of each of `length` characters differ between items, then a word of zeros.

    The last vector ends with the value and overlaps the one before it, so that no byte behind the value is read.
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
    """Return bits among HIGH_NIBBLES if one of eight characters ^ ZEROS is not a hex digit."""
    letters = (word >> U6) & ONES
    word -= (letters << U6) + (letters << U3) - letters  # 71 for each letter: "a" ^ "0" becomes 10
    return ((word + SIXES) ^ (letters << U4)) | word  # letters are digits of 10 and up, none is above 15


@leaf
def find_variation(items, length, bits, mask, runs):
    """Return the Variation of items of one length.

    Args:
        bits: what `put_differences` wrote
        mask uint8[length]: filled with a bit per character, set where it differs, packed
        runs int64[length + 1]: filled with the begin and the length of each run, 8 characters at most
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
    """Stage the payload of a template. Return its end, and whether all characters that vary are hex digits.

    Args:
        items: values of one length
        length: of each value, in bytes
        runs int64[2 * number]: begin and length of each run of characters that vary
        number: of runs
        digits uint8[]: scratch for the digits of all values, and SLACK
        staged uint8[], at: written from `at` on
    """
    values, starts, h = items.data, items.starts, items.first
    last = np.int64(0)
    for k in range(np.uint64(number)):
        at = put_bytes(staged, at, values, starts[h] + last, runs[2 * k] - last)
        last = runs[2 * k] + runs[2 * k + ONE]
    at = put_bytes(staged, at, values, starts[h] + last, length - last)
    end, safe, behind = np.int64(0), len(values) - length - 8, np.uint64(2 * number)
    for _ in range(items.number):
        start, k = starts[h], U0
        if start <= safe:
            while k < behind:  # a run is moved as a word, whose end the next one overwrites
                put_le64(digits, end, load_le64(values, start + runs[k]))
                end += runs[k + ONE]
                k += U2
        while k < behind:
            end = put_bytes(digits, end, values, start + runs[k], runs[k + ONE])
            k += U2
        h += items.stride
    return at + ((end + 1) >> 1), pack_digits(digits, end, staged, at)
