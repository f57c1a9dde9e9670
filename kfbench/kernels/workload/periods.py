"""Arrival times of records if the rate repeats with a period, for example daily.

A period is divided into cells: intervals with the same expected number of arrivals.
"""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros


@kernel
def times(waited, unit, first, starts, lengths, period, since, last, out):
    """Compute the time at which each given number of arrivals is expected. The times never fall.

    The caller chooses the unit, which is the same for all times.

    Args:
        waited: float64[n], rising numbers of expected arrivals since the start.
        unit: number of cells per arrival.
        first: float64, the position at the start: number of the cell plus the elapsed fraction of this cell.
        starts, lengths: float64[a power of two], start (relative to the period) and duration of each cell of a period.
        period: the duration of a period.
        since: the time at which cell 0, and so its period, begins.
        last: the latest time allowed; later ones become `last`.
        out: int64[n], filled with times.
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
