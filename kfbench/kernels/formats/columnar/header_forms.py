"""The forms of header columns, and the hex digits of templates. docs/columnar.md has the layout.

Where all records have the same header keys, there is a column per position of a header in its record. Elsewhere the
headers of all records follow one another.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar.columns import bits_of
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.characters import CHARACTERS

BY_RECORD, BY_POSITION = 0, 1  # modes
CONSTANT, PLAIN, PLAIN_WITH_NULLS, DICTIONARY, HEX_TEMPLATE = range(5)  # forms of the values at a position
MOST_VALUES = 256  # of a dictionary that is read
# Bytes per header at worst, where it is one of two: a key length, a form and a column of two
MAX_OVERHEAD = 5 + 1 + 5 + 1 + 10 + 8
SLACK = CHARACTERS  # bytes behind buffers of digits, which are read and written a vector at a time
ONE = np.uint64(1)
U2, U3, U4, U6, U7, U8, U16 = (np.uint64(value) for value in (2, 3, 4, 6, 7, 8, 16))
# Masks of eight bytes
ZEROS = 0x3030303030303030  # eight characters "0"
ONES, SIXES = (np.uint64(0x0101010101010101 * byte) for byte in (0x01, 0x06))
BYTE = np.uint64(0xFF)
FULL_WORD = np.uint64(2**64 - 1)


class Stretch(NamedTuple):
    """The lowest stretch of set bits in a byte whose bits stand for the bytes of a word."""

    number: int  # of bits
    mask: int  # as many bytes of a word, from the lowest on, uint64
    shift: int  # bits of the word below the first byte of the stretch, uint64
    rest: int  # the byte without the stretch, uint64


@leaf
def stretch_of(byte):
    """Return the first Stretch of a byte that is not 0."""
    low = byte & (~byte + ONE)
    stretch = byte & ~(byte + low)
    begin = bits_of(low) - 1
    number = bits_of(stretch) - begin
    return Stretch(number, FULL_WORD >> np.uint64(8 * (8 - number)), np.uint64(8 * begin), byte ^ stretch)
