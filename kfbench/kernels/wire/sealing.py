"""Batches of one header, one checksum and a body that a codec may cover (v2, v3, kip98): their length and checksum."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import move, put_i32
from kfbench.kernels.wire.crc import crc32c

LENGTH, AFTER_LENGTH = layouts.position(layouts.ENTRY, "length"), layouts.ENTRY.itemsize
INT32_MAX = 2**31 - 1
NO_CHECKSUM = -1
NEVER = 2**62  # a position that no writer reaches
OK, OFFSET_TOO_FAR, BATCH_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2, 3  # why an encoder stopped


@leaf
def seal(out, start, end, crc_at, crc):
    put_i32(out, start + LENGTH, np.int32(end - start - AFTER_LENGTH))
    put_i32(out, start + crc_at, np.int32(crc))


@kernel
def assemble(plain, plain_positions, bodies, payload, payload_bounds, crc_at, covered_at, out, positions):
    """Compressed batches from plain ones: each header of `plain`, then its slice of `payload`, sealed.

    crc_at: where a batch has its checksum, or NO_CHECKSUM; covered_at: from where on that covers it.
    """
    at = 0
    for b in range(len(bodies)):
        positions[b] = start = at
        header = bodies[b] - plain_positions[b]
        size = payload_bounds[b + 1] - payload_bounds[b]
        move(out, at, plain, plain_positions[b], header)
        move(out, at + header, payload, payload_bounds[b], size)
        at += header + size
        if at - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        if crc_at == NO_CHECKSUM:
            put_i32(out, start + LENGTH, np.int32(at - start - AFTER_LENGTH))
        else:
            seal(out, start, at, crc_at, crc32c(out, start + covered_at, at))
    positions[len(bodies)] = at
    return OK, 0
