"""The lower bound of any encoder: a copy of each finished batch, and the checksum that its format asks for."""

import numpy as np

from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import move
from kfbench.kernels.wire.crc import crc32, crc32c


@kernel
def copy_and_crc32c(positions, data, crc_at, out):
    """Copy each batch data[positions[b]:positions[b + 1]]. Return the xor of their checksums from byte crc_at on."""
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32c(out, start + crc_at, end)
    return mixed


@kernel
def copy_and_crc32(positions, data, crc_at, out):
    """Do the same with the checksum of v0 and v1; positions are those of the messages."""
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc32(out, start + crc_at, end)
    return mixed
