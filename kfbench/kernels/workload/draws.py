"""Random numbers by index: draw number n depends only on a seed, a purpose (an integer) and n.

A stream is the sequence of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
2014). Its first state is a hash of seed and purpose. A word is a uint64 of the stream. To compute word n takes one
multiplication and one finaliser (splitmix64's last step). So a slice of records costs only its own draws.
"""

import numpy as np

from kfbench.kernels.jit import kernel, leaf

ONE, THREE, LOW_16, LOW_32 = np.uint64(1), np.uint64(3), np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)
BITS_2, BITS_4, BITS_11, BITS_16, BITS_32 = (np.uint64(bits) for bits in (2, 4, 11, 16, 32))
BITS_27, BITS_30, BITS_31 = np.uint64(27), np.uint64(30), np.uint64(31)
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@leaf
def mix(bits):
    """Mix the bits of a uint64 by splitmix64's last step (the finaliser). It is a bijection."""
    bits = (bits ^ bits >> BITS_30) * FIRST
    bits = (bits ^ bits >> BITS_27) * SECOND
    return bits ^ bits >> BITS_31


@leaf
def word(stream, number):
    """Return word `number`, counted from 0, of the splitmix64 sequence that starts at `stream`, uint64."""
    return mix(stream + (np.uint64(number) + ONE) * STEP)


@leaf
def stream_of(seed, purpose):
    """Return the first state (uint64) of the stream for a seed and a purpose, both from 0 to 2**63 - 1."""
    return word(mix(np.uint64(seed)), purpose)


@leaf
def sixteen(stream, number):
    """Return draw `number` of the stream: 16 random bits, as uint64. Each word of the stream gives four draws."""
    number = np.uint64(number)
    return word(stream, number >> BITS_2) >> ((number & THREE) << BITS_4) & LOW_16


@kernel
def pick(seed, purpose, start, table, out):
    """Fill out[n] with random entries of table[65_536], all equally likely, by draws of 16 bits.

    start: the number of the draw for out[0]; the next items take the next draws.
    """
    stream = stream_of(seed, purpose)
    i, number = 0, np.int64(start)
    while i < len(out):
        used = number & 3
        drawn = word(stream, number >> 2) >> np.uint64(used << 4)
        stop = min(i + 4 - used, len(out))
        number += stop - i
        while i < stop:
            out[i] = table[drawn & LOW_16]
            drawn >>= BITS_16
            i += 1


@kernel
def pick_at(seed, purpose, numbers, table, out):
    """Fill out[n] with random entries of table[65_536], as `pick` does. Item i takes draw numbers[i] >= 0, int64."""
    stream = stream_of(seed, purpose)
    for i in range(len(out)):
        out[i] = table[sixteen(stream, numbers[i])]


@kernel
def grouped(seed, purpose, start, bits, table, firsts, widths, out):
    """Draw random numbers in two steps: a group by Walker's alias method, then one of the group's numbers.

    Groups have different probabilities. The numbers within a group are equally likely.

    Args:
        seed, purpose: they choose the random stream; a draw takes two words of it.
        start: the number of the draw for out[0].
        bits: 1 to 32, the base-2 logarithm of the size of `table`.
        table: uint64[2**bits], the entries of the alias method. A draw stays at an entry with a probability of its
            upper half / 2**32. Otherwise it goes to the group in the lower half.
        firsts: int64[groups], the first number of each group.
        widths: float64[groups], 2**-53 times the count of numbers in each group.
        out: int64[n], filled.
    """
    stream = stream_of(seed, purpose)
    if len(firsts) == 1:  # only the second word is needed
        low, width = firsts[0], widths[0]
        for i in range(len(out)):
            number = np.uint64(start + i) << ONE | ONE
            out[i] = low + np.int64(np.int64(word(stream, number) >> BITS_11) * width)
        return
    up = np.uint64(bits)
    down = np.uint64(64) - up
    for i in range(len(out)):
        number = np.uint64(start + i) << ONE
        drawn = word(stream, number)
        cell = drawn >> down
        entry = table[cell]
        group = cell if drawn << up >> BITS_32 < entry >> BITS_32 else entry & LOW_32
        out[i] = firsts[group] + np.int64(np.int64(word(stream, number + ONE) >> BITS_11) * widths[group])
