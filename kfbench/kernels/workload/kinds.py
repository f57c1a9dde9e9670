"""Places and lengths of records of several kinds, such as a tombstone after each delete."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.layouts import NULL_LENGTH

DRAWN = -2  # instead of a kind's length: each record has its own


@kernel
def pairs(drawn, followed, follower, plain, kinds, starts):
    """Place drawn kinds, each followed one with a follower after it. Return how many were drawn.

    Args:
        drawn: uint8[n], kinds in order.
        followed: bool[256], whether a kind has a follower.
        follower: the kind of a follower.
        plain: the kind of the last record in place of one whose follower has no room.
        kinds: uint8[n], to be filled.
        starts: int64[n], to be filled: the place of each kind drawn.
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
    """Fill out int64[at least n + 1] with the numbers of the records of wanted kinds. Return how many there are.

    kinds: uint8[n]; wanted: bool[256]. Every number is written and most are overwritten: a branch would be
    mispredicted.
    """
    count = np.int64(0)
    for i in range(len(kinds)):
        out[count] = i
        count += np.int64(wanted[kinds[i]])
    return count


@kernel
def settle(kinds, same, null_shares, chances, out):
    """Set the lengths out int32[n] of nulls, and of records whose kind has one length for all.

    same: int32[256], that length or DRAWN; null_shares: int32[256], parts of 65,536; chances: int32[n], below 65,536.
    """
    for i in range(len(kinds)):
        kind = kinds[i]
        length = same[kind]
        length = out[i] if length == DRAWN else length
        out[i] = NULL_LENGTH if chances[i] < null_shares[kind] else length


@kernel
def has_null(lengths, bounds, out):
    """Fill out bool[batches] with whether any length from bounds[b] to bounds[b + 1] - 1 is a null's."""
    for b in range(len(out)):
        nulls = np.int64(0)
        for length in lengths[bounds[b] : bounds[b + 1]]:
            nulls += length == NULL_LENGTH
        out[b] = nulls > 0
