"""Compute a hash with a secret seed of each key or header, to compare and to count them."""

import numpy as np

from kfbench.kernels.broker.last_keys import siphash
from kfbench.kernels.jit import kernel


@kernel
def hash_items(data, starts, lengths, seed, out):
    """Compute SipHash-1-3 of each item. A null, of length -1, gets the hash of an empty item.

    Args:
        data, starts, lengths: n items, as in `Records`.
        seed: uint64[2].
        out: uint64[n], filled.
    """
    for i in range(len(starts)):
        out[i] = siphash(data, starts[i], max(np.int64(lengths[i]), 0), seed[0], seed[1])
