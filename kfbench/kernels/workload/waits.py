"""From gaps between records to times: in place, for fresh memory costs as much as the sums."""

import numpy as np

from kfbench.kernels.jit import kernel

THOUSAND = np.uint64(1_000)


@kernel
def add_up(gaps):
    """Makes of each gap float64[n] the sum of all up to it, and gives the last."""
    waited = 0.0
    for i in range(len(gaps)):
        waited += gaps[i]
        gaps[i] = waited
    return waited


@kernel
def begin(lengths, end, out):
    """Fills out int64[at least n] with where stretches of these lengths begin that follow one another from 0 on, as far
    as they lie below `end`; gives how many do, and where the last one ends."""
    at, count = np.int64(0), 0
    while count < len(lengths) and at < end:
        out[count] = at
        at += np.int64(lengths[count])
        count += 1
    return count, at


@kernel
def pause(starts, pauses, length, gaps):
    """Puts pauses float64[bursts] before the records starts int64[bursts], rising, into their gaps float64[n]: all
    stretched alike, so that pauses and gaps make `length`. They stay as they are where the gaps alone are longer."""
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
    """Fills out int64[n], which may be the memory of waited float64[n], with whole times from `first` on."""
    for i in range(len(waited)):
        out[i] = first + np.int64(waited[i] * factor)


@kernel
def milliseconds(times_us, first_ms, out):
    """Fills out int64[n] with times_us int64[n], none negative, in whole milliseconds from first_ms on."""
    for i in range(len(out)):
        out[i] = first_ms + np.int64(np.uint64(times_us[i]) // THOUSAND)


@kernel
def follow(gaps, before, out):
    """Fills out int64[n]: each one is its gap int32[n] after the one before it, the first after `before`."""
    at = np.int64(before)
    for i in range(len(out)):
        at += np.int64(gaps[i])
        out[i] = at
