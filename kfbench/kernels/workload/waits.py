"""Times from gaps between records. They are computed in place: fresh memory costs as much as the sums."""

import numpy as np

from kfbench.kernels.jit import kernel

THOUSAND = np.uint64(1_000)


@kernel
def add_up(gaps):
    """Replace each gap, float64[n], by the sum of all up to it. Return the last."""
    waited = 0.0
    for i in range(len(gaps)):
        waited += gaps[i]
        gaps[i] = waited
    return waited


@kernel
def begin(lengths, end, out):
    """Fill out int64[at least n] with the starts of stretches of these lengths that follow one another from 0 on.

    Stops at the first start that is not below `end`. Returns how many are below, and the end of the last.
    """
    at, count = np.int64(0), 0
    while count < len(lengths) and at < end:
        out[count] = at
        at += np.int64(lengths[count])
        count += 1
    return count, at


@kernel
def pause(starts, pauses, length, gaps):
    """Put pauses float64[bursts] into the gaps float64[n] before the records starts int64[bursts], which rise.

    All pauses are stretched alike, so that pauses and gaps add up to `length`. They stay as they are where the gaps
    alone are longer.
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
    """Fill out int64[n] with first + waited * factor, rounded down; out may be the memory of waited float64[n]."""
    for i in range(len(waited)):
        out[i] = first + np.int64(waited[i] * factor)


@kernel
def milliseconds(times_us, first_ms, out):
    """Fill out int64[n] with times_us int64[n], none negative, in whole milliseconds from first_ms on."""
    for i in range(len(out)):
        out[i] = first_ms + np.int64(np.uint64(times_us[i]) // THOUSAND)


@kernel
def follow(gaps, before, out):
    """Fill out int64[n] with times: each is its gap, int32[n], after the one before, the first after `before`."""
    at = np.int64(before)
    for i in range(len(out)):
        at += np.int64(gaps[i])
        out[i] = at
