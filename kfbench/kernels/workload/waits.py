"""Compute timestamps from the gaps between records. It works in place, because new memory costs as much as the sums."""

import numpy as np

from kfbench.kernels.jit import kernel

THOUSAND = np.uint64(1_000)


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
