"""Helpers that write a stream of bits, from the lowest bit of each byte on. Bits are collected in a word."""

import numpy as np

from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import put_le64, put_u8

U64 = np.uint64(64)


@leaf
def push(out, at, word, fill, value, width):
    """Add `width` bits, 1 to 63, to a word with `fill` bits. Store a full word. Return position, word and fill."""
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
    """Write the bytes of a word with `fill` bits. Return the next position."""
    rest = np.int64(fill)
    while rest > 0:
        put_u8(out, at, np.uint8(word & np.uint64(0xFF)))
        word >>= np.uint64(8)
        at += 1
        rest -= 8
    return at
