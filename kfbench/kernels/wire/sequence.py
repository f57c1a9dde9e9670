"""Producer sequences: int32; after the largest comes 0 (`DefaultRecordBatch.incrementSequence`)."""

from kfbench.kernels.jit import leaf

LARGEST = 2**31 - 1


@leaf
def last_sequence(first, last_delta):
    """Return the sequence `last_delta` after `first`, or -1 if `first` is -1. A negative delta wraps as in Java."""
    if first == -1:
        return first
    room = LARGEST - last_delta - (1 << 32 if last_delta < 0 else 0)
    last = first + last_delta - (1 << 31 if first > room else 0)
    return ((last + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
