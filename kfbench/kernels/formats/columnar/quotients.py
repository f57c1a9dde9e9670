"""Streams of quotients: each is as many zeros as its value and a one, from the lowest bit of each byte on.

Columns of kinds rice and rice delta have the bits above the packed ones in such a stream (docs/columnar.md): Golomb
1966, Rice 1979.
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
    """Return the bytes of n quotients that add up to `total`."""
    return (n + total + 7) >> 3


@leaf
def put(out, at, x, n, shift):
    """Write the quotients x[:n] >> shift. Return the next position."""
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
    """Return the 8 bytes at `at` < end, with zeros for those behind the end of `data`."""
    if at + 8 <= len(data):
        return load_le64(data, at)
    word = U0
    for k in range(end - at):
        word |= np.uint64(get_u8(data, at + k)) << np.uint64(8 * k)
    return word


@leaf
def _check_end(data, p, bit, end):
    """Return the state and the end of a stream at p whose last one is bit number `bit`."""
    at = p + (bit >> 3)
    if at >= end:
        return status.COLUMN, at
    return status.PADDING if get_u8(data, at) >> (bit & 7) > 1 else status.SOUND, at + 1


@leaf
def add(data, p, end, n, shift, sign, x, first):
    """Add to x[first:first + n] the quotients of the stream at p, `shift` bits higher and times `sign`.

    Return the state and the next position.
    """
    i, stop, at, last = first, first + np.uint64(n), p, np.int64(-1)
    while at < end:
        word = _word(data, at, end)
        here = (p - at) << 3  # where the stream began, as seen from this word
        for _ in range(min(bit_count(word), np.int64(stop - i))):
            bit = trailing_zeros(word) - here
            x[i] += sign * ((bit - last - 1) << np.int64(shift))
            i, last, word = i + U1, bit, word & (word - U1)
        if i == stop:
            return _check_end(data, p, last, end)
        at += 8
    return status.COLUMN, at


def _fast_place_of(word, k):
    """Return the bit number of one number k, from 0 on, in a word."""
    return trailing_zeros(deposit(U1 << np.uint64(k), word))


def _portable_place_of(word, k):
    """Return the same without PDEP."""
    place = U0
    for half in HALVES:
        step = np.uint64(half)
        number = bit_count(word & ((U1 << step) - U1))
        if k >= number:
            k, word, place = k - number, word >> step, place + step
    return np.int64(place)


_place_of = leaf(_fast_place_of if FAST_DEPOSIT else _portable_place_of)


class QuotientAround(NamedTuple):
    """A quotient of a stream and the sums around it, int64 each."""

    state: int
    position: int  # the next one
    own: int  # quotient i, if i < n
    before: int  # sum of the quotients before it
    total: int  # sum of all


@leaf
def around(data, p, end, n, i):
    """Return the QuotientAround of quotient i in the stream of n quotients at p."""
    before = own = np.int64(-1)  # the ones of value i - 1, and of value i
    at, seen = p, np.int64(0)
    while at < end:
        word = _word(data, at, end)
        number, here = bit_count(word), (at - p) << 3
        if seen < i <= seen + number:
            before = here + _place_of(word, i - 1 - seen)
        if seen <= i < seen + number:
            own = here + _place_of(word, i - seen)
        if seen + number >= n:
            last = here + _place_of(word, n - 1 - seen)
            state, at = _check_end(data, p, last, end)
            return QuotientAround(np.int64(state), np.int64(at), own - before - 1, before + 1 - i, last + 1 - n)
        at, seen = at + 8, seen + number
    none = np.int64(0)
    return QuotientAround(np.int64(status.COLUMN), np.int64(at), none, none, none)


@leaf
def next_one(data, p, end, bit):
    """Return the bit number of the first one at `bit` or behind it. The stream at p has one."""
    at = p + (bit >> 3)
    word = _word(data, at, end) >> np.uint64(bit & 7)
    while word == U0:
        bit = (bit & ~7) + 64
        at = p + (bit >> 3)
        word = _word(data, at, end)
    return bit + trailing_zeros(word)
