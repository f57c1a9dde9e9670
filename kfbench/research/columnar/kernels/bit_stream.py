"""Helpers that write a stream of bits, lowest bit of each byte first. Bits are collected in a uint64, the word."""

import numpy as np

from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import put_le64, put_u8

U64 = np.uint64(64)


@leaf
def push(out, at, word, fill, value, width):
    """Append the `width` bits (1 to 63) of `value` to a word that has `fill` bits. Write the word if it is full.

    Return the new position in `out`, the new word and the number of its bits.
    """
    word |= value << fill
    fill += width
    if fill >= U64:
        put_le64(out, at, word)
        at += 8
        fill -= U64
        word = value >> (width - fill)
    return at, word, fill


@leaf
def flush(out, at, word, fill):
    """Write the bytes of the last word, which has `fill` bits. Return the next position."""
    rest = np.int64(fill)
    while rest > 0:
        put_u8(out, at, np.uint8(word & np.uint64(0xFF)))
        word >>= np.uint64(8)
        at += 1
        rest -= 8
    return at
