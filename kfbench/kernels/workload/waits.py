"""Draw the gaps between records, and compute timestamps from them.

Sums are computed in place, because new memory costs as much as the sums. Rates may repeat with a period, for example
daily: it is divided into cells, intervals with the same expected number of arrivals.
"""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import leading_zeros
from kfbench.kernels.workload.draws import BITS_32, ONE, stream_of, word

THOUSAND, LOW_32 = np.uint64(1_000), np.uint64(0xFFFFFFFF)


@kernel
def add_up(gaps):
    """Replace each gap, float64[n], by the sum of all gaps up to and including it. Return the last sum."""
    waited = 0.0
    for i in range(len(gaps)):
        waited += gaps[i]
        gaps[i] = waited
    return waited


@kernel
def begin(lengths, end, out):
    """Lay intervals of the given lengths one after another from 0 on. Fill out, int64[at least n], with their starts.

    Stop at the first start that is not below `end`. Return the number of starts, and the end of the last interval.
    """
    at, count = np.int64(0), 0
    while count < len(lengths) and at < end:
        out[count] = at
        at += np.int64(lengths[count])
        count += 1
    return count, at


@kernel
def pause(starts, pauses, length, gaps):
    """Replace the gap before the first record of each burst by a pause.

    All pauses are stretched by one factor, so that pauses and gaps add up to `length`. If the other gaps are longer
    than that, pauses are not stretched.

    starts: int64[bursts], rising; pauses: float64[bursts]; gaps: float64[n], changed.
    """
    within, paused = 0.0, 0.0
    for i in range(len(gaps)):
        within += gaps[i]
    for b in range(len(starts)):
        within -= gaps[starts[b]]
        paused += pauses[b]
    stretch = (length - within) / paused if length > within and paused > 0 else 1.0
    for b in range(len(starts)):
        gaps[starts[b]] = pauses[b] * stretch


@kernel
def scale(waited, factor, first, out):
    """Fill out, int64[n], with first + waited * factor, rounded down. It may share memory with waited, float64[n]."""
    for i in range(len(waited)):
        out[i] = first + np.int64(waited[i] * factor)


@kernel
def milliseconds(times_us, first_ms, out):
    """Fill out, int64[n], with timestamps in ms: first_ms + times_us / 1000, rounded down. times_us: int64[n], >= 0."""
    for i in range(len(out)):
        out[i] = first_ms + np.int64(np.uint64(times_us[i]) // THOUSAND)


@kernel
def follow(gaps, before, out):
    """Fill out, int64[n], with running sums of the gaps, int32[n]: `before` plus all gaps up to and including each."""
    at = np.int64(before)
    for i in range(len(out)):
        at += np.int64(gaps[i])
        out[i] = at


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
