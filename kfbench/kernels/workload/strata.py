"""Stratified random draws: one from each of n equal parts of a table, in random order."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.workload.draws import BITS_32, ONE, stream_of, word

LOW_32 = np.uint64(0xFFFFFFFF)


@kernel
def evenly(seed, purpose, block, table, out):
    """Fill out[n] with one random entry from each of n equal parts of `table`, in random order.

    The order comes from the inside-out shuffle (Durstenfeld, CACM 1964). One half of a random uint64 chooses the entry,
    the other half its place in `out`. Calls with different `block` numbers use different random numbers.
    """
    stream, scale = stream_of(seed, purpose), len(table) / len(out)
    first = np.uint64(block) << BITS_32
    for i in range(len(out)):
        drawn = word(stream, first + np.uint64(i))
        entry = table[np.int64((i + np.float64(np.int64(drawn >> BITS_32)) * 2.0**-32) * scale)]
        j = (drawn & LOW_32) * (np.uint64(i) + ONE) >> BITS_32
        out[i] = out[j]
        out[j] = entry
