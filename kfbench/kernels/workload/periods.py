"""When arrivals come whose rate repeats: a period is cut into cells of equally many, each with its time and length."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros


@kernel
def times(waited, unit, first, starts, lengths, period, since, last, out):
    """Fills out int64[n], not falling and at most `last`: when each of waited float64[n] arrivals (rising) is expected.

    A cell has 1 / unit arrivals. starts, lengths: float64[a power of two] of the cells of a period. first: the cell,
    and the share of it, in which the wait begins; since: the time at which the period of that cell began.
    """
    mask, begun = np.uint64(len(starts) - 1), np.int64(since)
    bits, before = np.int64(63 - leading_zeros(np.uint64(len(starts)))), begun
    for i in range(len(out)):
        cells = first + waited[i] * unit
        whole = np.int64(cells)
        cell = np.uint64(whole) & mask
        passed = (whole >> bits) * period + starts[cell] + (cells - whole) * lengths[cell]
        before = min(max(np.int64(since - begun + passed) + begun, before), last)
        out[i] = before
