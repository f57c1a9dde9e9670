"""Records that another one follows: a tombstone after its delete."""

import numpy as np

from kfbench.kernels._jit import kernel


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
