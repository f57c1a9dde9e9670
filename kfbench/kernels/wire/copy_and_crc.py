"""The least work of any encoder, as a lower bound for times: copy each finished batch and compute its checksum."""

import numpy as np

from kfbench.kernels.jit import variant
from kfbench.kernels.simd.intrinsics import move
from kfbench.kernels.wire.crc import crc32, crc32c

crc = crc32c  # each variant has its own


def _copy_and_crc(positions, data, crc_at, out):
    """Copy each batch data[positions[b]:positions[b + 1]] to `out`. Return the xor of the batches' checksums.

    The checksum of a batch covers its bytes from position `crc_at` within the batch on. In v0 and v1 a batch is a
    message.
    """
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc(out, start + crc_at, end)
    return mixed


copy_and_crc32c = variant(_copy_and_crc, "copy_and_crc32c", crc=crc32c)
copy_and_crc32 = variant(_copy_and_crc, "copy_and_crc32", crc=crc32)
