"""Arrival times for a rate that repeats. A period is cut into cells of equally many arrivals."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros


@kernel
def times(waited, unit, first, starts, lengths, period, since, last, out):
    """Fill out int64[n] with the times at which so many arrivals are expected; they never fall.

    Args:
        waited: float64[n], rising: numbers of arrivals.
        unit: cells per arrival.
        first: float64, the cell in which the wait begins, with the share of it that is over.
        starts, lengths: float64[a power of two], of the cells of a period, in units of time.
        period: the length of a period.
        since: the time at which the period of `first` began.
        last: no time is later.
        out: int64[n], to be filled.
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
