"""Fields of a columnar batch that a broker reads, or overwrites in place. A reader has found the header sound."""

import numpy as np

from kfbench.kernels.formats.columnar.batch_header import (
    EXTENSIONS,
    HEADER,
    HORIZON_TAG,
    OFFSETS,
    PRODUCER,
    PRODUCER_BYTES,
    PRODUCER_EPOCH_AT,
    SEQUENCE_AT,
    WIDE_TAG,
)
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_i32, get_i64, get_u8, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire.varint import get_uvarint
from kfbench.layouts import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

ABSENT = 0  # no extension begins there


@leaf
def producer(data, at, bits):
    """Return the producer ID and the base sequence; -1 and -1 of a batch without producer state."""
    if bits & PRODUCER == 0:
        return np.int64(NO_PRODUCER_ID), np.int64(NO_SEQUENCE)
    return get_i64(data, at + HEADER), np.int64(get_i32(data, at + HEADER + SEQUENCE_AT))


@leaf
def forget_producer(out, at, bits):
    if bits & PRODUCER:
        put_i64(out, at + HEADER, np.int64(NO_PRODUCER_ID))
        put_i16(out, at + HEADER + PRODUCER_EPOCH_AT, np.int16(NO_PRODUCER_EPOCH))
        put_i32(out, at + HEADER + SEQUENCE_AT, np.int32(NO_SEQUENCE))


@leaf
def _extension_at(data, at, end, bits, wanted):
    """Return where an extension begins with its tag, or ABSENT."""
    if bits & EXTENSIONS == 0:
        return np.int64(ABSENT)
    p = at + HEADER + (PRODUCER_BYTES if bits & PRODUCER else 0)
    _, p = get_uvarint(data, p, end)
    if bits & OFFSETS:
        _, p = get_uvarint(data, p, end)
    number, p = get_uvarint(data, p, end)
    for _ in range(number):
        here = np.int64(p)
        tag, p = get_uvarint(data, p, end)
        size, p = get_uvarint(data, p, end)
        if tag == wanted:
            return here
        p += size
    return np.int64(ABSENT)


@leaf
def has_wide_maximum(data, at, end, bits):
    """Return whether an extension has the maximum timestamp, so that the header's own field is not read."""
    return _extension_at(data, at, end, bits, WIDE_TAG) != ABSENT


@leaf
def horizon_to_base_time(out, at, end, bits):
    """Turn the delete horizon into a base timestamp. In v2 they are one field, which stays when the bit is cleared."""
    here = _extension_at(out, at, end, bits, HORIZON_TAG)
    if here != ABSENT:
        put_u8(out, here, np.uint8(get_u8(out, here) & 0x80))  # tag 1 becomes 0; its varint keeps its length
