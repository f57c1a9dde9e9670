"""Producer sequence numbers: int32. The largest is followed by 0 (`DefaultRecordBatch.incrementSequence`)."""

from kfbench.kernels.jit import leaf

LARGEST = 2**31 - 1


@leaf
def last_sequence(first, last_delta):
    """Return the sequence of a batch's last record: `first` + `last_delta`, or -1 if `first` (of the batch) is -1.

    A negative delta wraps as in Java.
    """
    if first == -1:
        return first
    room = LARGEST - last_delta - (1 << 32 if last_delta < 0 else 0)
    last = first + last_delta - (1 << 31 if first > room else 0)
    return ((last + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
