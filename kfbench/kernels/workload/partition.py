"""Kafka's default partitioner: murmur2 of the key, made positive, modulo the partitions.

Source: `Utils.murmur2`, `BuiltInPartitioner.partitionForKey`.
"""

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8

ALL32, POSITIVE = np.uint64(0xFFFFFFFF), np.uint64(0x7FFFFFFF)
SEED, M = np.uint64(0x9747B28C), np.uint64(0x5BD1E995)
BITS_8, BITS_13, BITS_15, BITS_16, BITS_24 = (np.uint64(bits) for bits in (8, 13, 15, 16, 24))
NO_PARTITION = -1


@leaf
def _byte(data, at):
    return np.uint64(get_u8(data, at))


@leaf
def murmur2(data, start, length):
    """Return Kafka's murmur2 hash of data[start : start + length], as a uint64 below 2**32."""
    h = SEED ^ np.uint64(length)
    at, end = start, start + length
    while end - at >= 4:
        k = _byte(data, at) | _byte(data, at + 1) << BITS_8 | _byte(data, at + 2) << BITS_16
        k = (k | _byte(data, at + 3) << BITS_24) * M & ALL32
        k = (k ^ k >> BITS_24) * M & ALL32
        h = (h * M & ALL32) ^ k
        at += 4
    if at < end:
        if end - at == 3:
            h ^= _byte(data, at + 2) << BITS_16
        if end - at >= 2:
            h ^= _byte(data, at + 1) << BITS_8
        h = (h ^ _byte(data, at)) * M & ALL32
    h = (h ^ h >> BITS_13) * M & ALL32
    return h ^ h >> BITS_15


@kernel
def partitions_of(keys, starts, lengths, partitions, out):
    """Fill out, int64[n], with the partition of each key, or NO_PARTITION for a null."""
    for i in range(len(lengths)):
        length = np.int64(lengths[i])
        if length < 0:
            out[i] = NO_PARTITION
        else:
            out[i] = np.int64(murmur2(keys, starts[i], length) & POSITIVE) % partitions
