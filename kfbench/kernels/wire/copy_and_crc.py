"""The least work of any encoder, as a lower bound for times: copy each finished batch and compute its checksum."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import move
from kfbench.kernels.wire.crc import crc32, crc32c


@kernel
def copy_and_crc32c(positions, data, crc_at, out):
    """Copy each batch data[positions[b]:positions[b + 1]] to `out`. Return the xor of the batches' CRC-32C checksums.

    The checksum of a batch covers its bytes from position `crc_at` within the batch on.
    """
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32c(out, start + crc_at, end)
    return mixed


@kernel
def copy_and_crc32(positions, data, crc_at, out):
    """Copy each v0 or v1 message data[positions[b]:positions[b + 1]] to `out`. Return the xor of their CRC-32s.

    The checksum of a message covers its bytes from position `crc_at` within the message on.
    """
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32(out, start + crc_at, end)
    return mixed
