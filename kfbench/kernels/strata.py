"""Draws that are as even as can be, in random order."""

import numpy as np

from kfbench.kernels._jit import kernel
from kfbench.kernels.draws import BITS_32, ONE, stream_of, word


@kernel
def evenly(seed, purpose, block, table, out):
    """Fills out[n] with one entry from each of n equal parts of table, shuffled (Durstenfeld, CACM 1964)."""
    stream, n, scale = stream_of(seed, purpose), len(out), len(table) / len(out)
    first = np.uint64(block) << BITS_32
    for i in range(n):
        # Of 32 bits: with 53 a sum could be rounded up to n, and the entry be one behind the table.
        within = np.float64(np.int64(word(stream, first + np.uint64(i)) >> BITS_32)) * 2.0**-32
        out[i] = table[np.int64((i + within) * scale)]
    for i in range(n - 1, 0, -1):
        j = (word(stream, first + np.uint64(n + i)) >> BITS_32) * (np.uint64(i) + ONE) >> BITS_32
        other = out[j]
        out[j] = out[i]
        out[i] = other
