"""Stratified draws in random order."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.workload.draws import BITS_32, ONE, stream_of, word

LOW_32 = np.uint64(0xFFFFFFFF)


@kernel
def evenly(seed, purpose, block, table, out):
    """Fill out[n] with one entry from each of n equal parts of table, shuffled (Durstenfeld, CACM 1964, inside out).

    One half of a word chooses the entry, the other half its position. Different blocks use different words.
    """
    stream, scale = stream_of(seed, purpose), len(table) / len(out)
    first = np.uint64(block) << BITS_32
    for i in range(len(out)):
        drawn = word(stream, first + np.uint64(i))
        entry = table[np.int64((i + np.float64(np.int64(drawn >> BITS_32)) * 2.0**-32) * scale)]
        j = (drawn & LOW_32) * (np.uint64(i) + ONE) >> BITS_32
        out[i] = out[j]
        out[j] = entry
