"""Arrival times of records if the rate repeats with a period, for example daily, and the draws of their gaps.

A period is divided into cells: intervals with the same expected number of arrivals. Draws are stratified: one from each
of n equal parts of a table, in random order.
"""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros
from kfbench.kernels.workload.draws import BITS_32, ONE, stream_of, word

LOW_32 = np.uint64(0xFFFFFFFF)


@kernel
def periodic_times(waited, unit, first, starts, lengths, period, since, last, out):
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


@kernel
def stratified(seed, purpose, block, table, out):
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
