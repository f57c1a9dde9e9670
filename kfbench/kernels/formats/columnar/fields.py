"""Read or overwrite single header fields of a columnar batch in place, for brokers. The header was checked before."""

import numpy as np

from kfbench.kernels.formats.columnar import batch_header as layout
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_i32, get_i64, get_u8, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire.varint import get_uvarint
from kfbench.layouts import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

ABSENT = 0  # returned as the position of an extension that the batch does not have


@leaf
def producer(data, at, bits):
    """Return the producer ID and the base sequence of a batch. Both are -1 if the batch stores no producer."""
    if bits & layout.PRODUCER == 0:
        return np.int64(NO_PRODUCER_ID), np.int64(NO_SEQUENCE)
    return get_i64(data, at + layout.HEADER), np.int64(get_i32(data, at + layout.HEADER + layout.SEQUENCE_AT))


@leaf
def forget_producer(out, at, bits):
    if bits & layout.PRODUCER:
        put_i64(out, at + layout.HEADER, np.int64(NO_PRODUCER_ID))
        put_i16(out, at + layout.HEADER + layout.PRODUCER_EPOCH_AT, np.int16(NO_PRODUCER_EPOCH))
        put_i32(out, at + layout.HEADER + layout.SEQUENCE_AT, np.int32(NO_SEQUENCE))


@leaf
def _extension_at(data, at, end, bits, wanted):
    """Return the position of the extension with the tag `wanted`, or ABSENT."""
    if bits & layout.EXTENSIONS == 0:
        return np.int64(ABSENT)
    p = at + layout.HEADER + (layout.PRODUCER_BYTES if bits & layout.PRODUCER else 0)
    _, p = get_uvarint(data, p, end)
    if bits & layout.OFFSETS:
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
    """Return whether an extension stores the maximum timestamp instead of the header field."""
    return _extension_at(data, at, end, bits, layout.WIDE_TAG) != ABSENT


@leaf
def horizon_to_base_time(out, at, end, bits):
    """Turn the extension that stores the delete horizon into one that stores the same time as base timestamp.

    v2 stores both in one field. This field keeps its value when the delete horizon bit is cleared.
    """
    here = _extension_at(out, at, end, bits, layout.HORIZON_TAG)
    if here != ABSENT:
        put_u8(out, here, np.uint8(get_u8(out, here) & 0x80))  # tag 1 becomes 0; its varint keeps its length
