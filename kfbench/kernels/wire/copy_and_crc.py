"""The lower bound of any encoder: a copy of each finished batch, and the checksum of its format."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import move
from kfbench.kernels.wire.crc import crc32, crc32c


@kernel
def copy_and_crc32c(positions, data, crc_at, out):
    """Copy each batch data[positions[b]:positions[b + 1]]. Return the xor of their CRC-32Cs from byte crc_at on."""
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32c(out, start + crc_at, end)
    return mixed


@kernel
def copy_and_crc32(positions, data, crc_at, out):
    """Copy each message of v0 or v1. Return the xor of their CRC-32s from byte crc_at on."""
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32(out, start + crc_at, end)
    return mixed
