"""The forms of header columns, and bit masks for hex templates. docs/columnar.md has the layout.

A header position is the index of a header in its record. If all records have the same header keys, each position has
its own columns (BY_POSITION). Otherwise the headers follow one another, record by record (BY_RECORD).

A hex template stores values of one length that differ only in hex digits: the shared characters once, and the digits
of each value as nibbles.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar.columns import U1, bits_of
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.characters import CHARACTERS

BY_RECORD, BY_POSITION = 0, 1  # modes
CONSTANT, PLAIN, PLAIN_WITH_NULLS, DICTIONARY, HEX_TEMPLATE = range(5)  # forms of the values at a position
MOST_VALUES = 256  # in a dictionary that is read
# Most bytes of columns per header, in a batch of two headers: a key length, a form and a column of two lengths.
MAX_OVERHEAD = 5 + 1 + 5 + 1 + 10 + 8
SLACK = CHARACTERS  # bytes of room after buffers of digits, because whole vectors are read and written
# Masks of eight bytes.
ZEROS = 0x3030303030303030  # eight characters "0"
ONES, SIXES = (np.uint64(0x0101010101010101 * byte) for byte in (0x01, 0x06))
BYTE = np.uint64(0xFF)
FULL_WORD = np.uint64(2**64 - 1)


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
