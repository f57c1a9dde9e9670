"""Records of several kinds: which stand where, such as a tombstone after each delete."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.layouts import NULL_LENGTH

DRAWN = -2  # no length of a kind, for each record has its own


@kernel
def pairs(drawn, followed, follower, plain, kinds, starts):
    """Fills kinds uint8[n] with the kinds drawn, `follower` after each that is followed; gives how many were drawn.

    drawn uint8[n]; followed bool[256]; starts int64[n]: where each stands. The last record has no room for a follower,
    and is `plain` instead.
    """
    n, at, event = len(kinds), np.int64(0), np.int64(0)
    while at < n:
        kind = drawn[event]
        starts[event] = at
        event += 1
        kinds[at] = kind
        at += 1
        if followed[kind]:
            if at < n:
                kinds[at] = follower
                at += 1
            else:
                kinds[at - 1] = plain
    return event


@kernel
def places(kinds, wanted, out):
    """Fills out int64[at least n + 1] with the numbers of the records of these kinds; gives how many there are.

    kinds uint8[n]; wanted bool[256]. Every number is written and mostly overwritten: a branch would be mispredicted.
    """
    count = np.int64(0)
    for i in range(len(kinds)):
        out[count] = i
        count += np.int64(wanted[kinds[i]])
    return count


@kernel
def settle(kinds, same, null_shares, chances, out):
    """Sets lengths out int32[n] of records whose kind has one length for all, and of nulls.

    same int32[256]: that length, or DRAWN; null_shares int32[256], of 65,536; chances int32[n]: a number below 65,536.
    """
    for i in range(len(kinds)):
        kind = kinds[i]
        length = same[kind]
        length = out[i] if length == DRAWN else length
        out[i] = NULL_LENGTH if chances[i] < null_shares[kind] else length


@kernel
def has_null(lengths, bounds, out):
    """Fills out bool[batches]: whether one of the lengths between bounds[b] and bounds[b + 1] is a null's."""
    for b in range(len(out)):
        nulls = np.int64(0)
        for length in lengths[bounds[b] : bounds[b + 1]]:
            nulls += length == NULL_LENGTH
        out[b] = nulls > 0
