"""Streams of quotients in unary code: a quotient q is q zeros and a one, from the lowest bit of each byte on.

Columns of the kinds rice and rice delta store the bits above the packed ones in a stream of quotients
(docs/columnar.md; Golomb 1966, Rice 1979).
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import FAST_DEPOSIT, leaf
from kfbench.kernels.simd.bit_stream import flush, push
from kfbench.kernels.simd.intrinsics import bit_count, deposit, get_u8, load_le64, put_le64, trailing_zeros
from kfbench.kernels.simd.simd_int64 import ones_of
from kfbench.kernels.wire import status

U0, U1, U64 = (np.uint64(value) for value in (0, 1, 64))
LANES = np.uint64(8)
HALVES = (32, 16, 8, 4, 2, 1)


@leaf
def quotient_bytes(n, total):
    """Return the size in bytes of n quotients whose sum is `total`."""
    return (n + total + 7) >> 3


@leaf
def put(out, at, x, n, shift):
    """Write the quotients x[i] >> shift of n values in unary code. Return the next position."""
    word, fill = U0, U0
    for i in range(U0, np.uint64(n), LANES):
        number = min(np.int64(LANES), n - np.int64(i))
        bits, used = ones_of(x, i, number, shift)
        if used < U64:
            at, word, fill = push(out, at, word, fill, bits, used)
        else:
            for k in range(i, i + np.uint64(number)):
                at, word, fill = _put_one(out, at, word, fill, np.uint64(x[k]) >> shift)
    return flush(out, at, word, fill)


@leaf
def _put_one(out, at, word, fill, quotient):
    fill += quotient
    while fill >= U64:
        put_le64(out, at, word)
        at, word, fill = at + 8, U0, fill - U64
    return push(out, at, word, fill, U1, U1)


@leaf
def _word(data, at, end):
    """Return the 8 bytes at position `at` < end as a uint64. Bytes after the end of `data` are 0."""
    if at + 8 <= len(data):
        return load_le64(data, at)
    word = U0
    for k in range(end - at):
        word |= np.uint64(get_u8(data, at + k)) << np.uint64(8 * k)
    return word


@leaf
def _check_end(data, p, bit, end):
    """Check that the stream at p ends before `end`, with unused bits 0. Return the state and the next position.

    bit: the number of the last set bit of the stream.
    """
    at = p + (bit >> 3)
    if at >= end:
        return status.COLUMN, at
    return status.PADDING if get_u8(data, at) >> (bit & 7) > 1 else status.SOUND, at + 1


@leaf
def add(data, p, end, n, shift, sign, x, first):
    """Read n quotients and add sign * (quotient << shift) to each of n values. Return the state and the next position.

    Args:
        data uint8[], p, end: the log, the position of the stream, the end of its batch
        n: number of values
        shift uint64, sign: bits below the quotients, and 1 or -1
        x int64[], first uint64: the values are x[first:first + n]
    """
    i, stop, at, last = first, first + np.uint64(n), p, np.int64(-1)
    while at < end:
        word = _word(data, at, end)
        here = (p - at) << 3  # the begin of the stream, in bits relative to this word
        for _ in range(min(bit_count(word), np.int64(stop - i))):
            bit = trailing_zeros(word) - here
            x[i] += sign * ((bit - last - 1) << np.int64(shift))
            i, last, word = i + U1, bit, word & (word - U1)
        if i == stop:
            return _check_end(data, p, last, end)
        at += 8
    return status.COLUMN, at


def _fast_place_of(word, k):
    """Return the bit number of the k-th set bit of a word, counted from 0, with PDEP."""
    return trailing_zeros(deposit(U1 << np.uint64(k), word))


def _portable_place_of(word, k):
    """Return the bit number of the k-th set bit of a word, counted from 0, without PDEP."""
    place = U0
    for half in HALVES:
        step = np.uint64(half)
        number = bit_count(word & ((U1 << step) - U1))
        if k >= number:
            k, word, place = k - number, word >> step, place + step
    return np.int64(place)


_place_of = leaf(_fast_place_of if FAST_DEPOSIT else _portable_place_of)


class QuotientAround(NamedTuple):
    """Quotient i of a stream, the sum of the quotients before it and the sum of all. All fields are int64."""

    state: int
    position: int  # the position after the stream
    current: int  # quotient i, if i < n
    before: int  # sum of the quotients before it
    total: int  # sum of all quotients


@leaf
def around(data, p, end, n, i):
    """Read quotient i in the stream of n quotients at p, and the sums around it. Return the QuotientAround."""
    before = current = np.int64(-1)  # bit numbers of the ones of quotients i - 1 and i
    at, seen = p, np.int64(0)
    while at < end:
        word = _word(data, at, end)
        number, here = bit_count(word), (at - p) << 3
        if seen < i <= seen + number:
            before = here + _place_of(word, i - 1 - seen)
        if seen <= i < seen + number:
            current = here + _place_of(word, i - seen)
        if seen + number >= n:
            last = here + _place_of(word, n - 1 - seen)
            state, at = _check_end(data, p, last, end)
            return QuotientAround(np.int64(state), np.int64(at), current - before - 1, before + 1 - i, last + 1 - n)
        at, seen = at + 8, seen + number
    zero = np.int64(0)
    return QuotientAround(np.int64(status.COLUMN), np.int64(at), zero, zero, zero)


@leaf
def next_one(data, p, end, bit):
    """Return the number of the first set bit at or after bit number `bit` of the stream at p. There must be one."""
    at = p + (bit >> 3)
    word = _word(data, at, end) >> np.uint64(bit & 7)
    while word == U0:
        bit = (bit & ~7) + 64
        at = p + (bit >> 3)
        word = _word(data, at, end)
    return bit + trailing_zeros(word)
