"""Positions and lengths of records of several kinds, such as a tombstone after each delete."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.layouts import NULL_LENGTH

DRAWN = -2  # instead of the length of a kind: the length is drawn per record


@kernel
def pairs(drawn, followed, follower, plain, kinds, starts):
    """Place drawn kinds in order, and a follower after each kind that has one. Return the number of draws used.

    Args:
        drawn: uint8[n], drawn kinds.
        followed: bool[256], whether a kind has a follower.
        follower: the kind of all followers.
        plain: the kind of the last record, if its own kind has a follower that does not fit.
        kinds: uint8[n], filled.
        starts: int64[n], filled with the record number of each used draw.
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
    """Fill out, int64[at least n + 1], with the numbers of the records of wanted kinds. Return the count.

    kinds: uint8[n]; wanted: bool[256]. Every number is written and most are overwritten, because a branch would be
    mispredicted.
    """
    count = np.int64(0)
    for i in range(len(kinds)):
        out[count] = i
        count += np.int64(wanted[kinds[i]])
    return count


@kernel
def settle(kinds, same, null_shares, chances, out):
    """Set the lengths of nulls, and of records whose kind has a fixed length.

    kinds: uint8[n]; same: int32[256], the fixed length per kind, or DRAWN; null_shares: int32[256], in parts of 65,536;
    chances: int32[n], drawn, below 65,536; out: int32[n], the drawn lengths, changed.
    """
    for i in range(len(kinds)):
        kind = kinds[i]
        length = same[kind]
        length = out[i] if length == DRAWN else length
        out[i] = NULL_LENGTH if chances[i] < null_shares[kind] else length


@kernel
def has_null(lengths, bounds, out):
    """Fill out, bool[batches], with whether any length from bounds[b] to bounds[b + 1] - 1 is null."""
    for b in range(len(out)):
        nulls = np.int64(0)
        for length in lengths[bounds[b] : bounds[b + 1]]:
            nulls += length == NULL_LENGTH
        out[b] = nulls > 0
