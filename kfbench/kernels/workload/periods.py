"""Arrival times for a periodic rate. A period is cut into cells with equal numbers of expected arrivals."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros


@kernel
def times(waited, unit, first, starts, lengths, period, since, last, out):
    """Compute the times at which given numbers of arrivals are expected. They never fall.

    All times have one unit, which the caller chooses.

    Args:
        waited: float64[n], rising numbers of arrivals.
        unit: cells per arrival.
        first: float64, the cell at time 0 of the wait, and the elapsed fraction of it.
        starts, lengths: float64[a power of two], start and length of each cell of a period.
        period: the length of a period.
        since: the start of the period that `first` counts from.
        last: the latest time; later ones become `last`.
        out: int64[n], filled.
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
