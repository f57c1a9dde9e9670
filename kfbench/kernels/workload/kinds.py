"""Order and lengths of records of several kinds, for example a tombstone that follows each delete event."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.layouts import NULL_LENGTH

DRAWN = -2  # given instead of the fixed length of a kind: the length is drawn per record


@kernel
def pairs(drawn, followed, follower, plain, kinds, starts):
    """Order records by their drawn kinds, with one record of another kind (the follower) after some kinds.

    Return the number of draws used.

    Args:
        drawn: uint8[n], randomly drawn kinds.
        followed: bool[256], whether a kind has a follower.
        follower: the kind of all followers.
        plain: the kind that the last record gets instead, if its follower would be record n.
        kinds: uint8[n], filled with the kind of each record.
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
    """Find the records of wanted kinds. Fill out, int64[at least n + 1], with their numbers. Return their count.

    kinds: uint8[n]; wanted: bool[256]. The loop writes each record number and overwrites the unwanted ones: a branch
    would be mispredicted.
    """
    count = np.int64(0)
    for i in range(len(kinds)):
        out[count] = i
        count += np.int64(wanted[kinds[i]])
    return count


@kernel
def settle(kinds, same, null_shares, chances, out):
    """Change drawn lengths where a record is null, or where its kind has a fixed length.

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
