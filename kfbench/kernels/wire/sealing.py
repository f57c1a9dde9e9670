"""Length and checksum of finished batches. The formats, such as v2, v3 and kip98, have one header, then a body."""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import move, put_i32
from kfbench.kernels.wire.crc import BLOCK, crc32c, crc32c_ahead

LENGTH, AFTER_LENGTH = layouts.position(layouts.ENTRY, "length"), layouts.ENTRY.itemsize
INT32_MAX = 2**31 - 1
NO_CHECKSUM = -1
NEVER = 2**62  # a position that no encoder reaches
FULL = -1  # returned instead of a position if `out` has no room
OK, OFFSET_TOO_FAR, BATCH_TOO_LARGE, OUT_TOO_SMALL, MESSAGE_TOO_LARGE = range(5)  # results of an encoder


class RunningCrc(NamedTuple):
    """A checksum that an encoder updates while writing. `value` (uint64) covers the bytes before position `summed`."""

    value: int
    summed: int


class Body(NamedTuple):
    """The result of writing a batch's records. Fields are int64 except crc.

    at: the next position in the output.
    far: the bitwise or of (offset delta + 2**31) over all records. If any bit from 32 up is set, some delta does not
        fit an int32.
    """

    at: int
    far: int
    crc: RunningCrc


@leaf
def extend_crc(crc, out, at):
    """Return the RunningCrc. Update it first if it lacks at least BLOCK bytes of those before `at`."""
    if at - crc.summed >= BLOCK:
        value, summed = crc32c_ahead(crc.value, out, crc.summed, at)
        return RunningCrc(value, summed)
    return crc


@leaf
def problem_of(start, end, far):
    """Return the problem of the batch out[start:end]: OK, OFFSET_TOO_FAR or BATCH_TOO_LARGE. far: see `Body`."""
    if far >> 32:
        return OFFSET_TOO_FAR
    if end - start - AFTER_LENGTH > INT32_MAX:
        return BATCH_TOO_LARGE
    return OK


@leaf
def seal(out, start, end, crc_at, crc):
    """Write the length and the checksum into the header of the batch out[start:end]."""
    put_i32(out, start + LENGTH, np.int32(end - start - AFTER_LENGTH))
    put_i32(out, start + crc_at, np.int32(crc))


@kernel
def assemble(plain, plain_positions, bodies, payload, payload_bounds, crc_at, covered_at, out, positions):
    """Write compressed batches: copy the header of each batch from `plain`, then its slice of `payload`.

    Args:
        plain, plain_positions: the uncompressed batches, uint8, and their positions, int64[batches + 1].
        bodies: int64[batches], the position in `plain` of the records of each batch.
        payload, payload_bounds: the compressed records, uint8, and int64[batches + 1].
        crc_at: the position of the checksum within a batch, or NO_CHECKSUM.
        covered_at: the first position within a batch that the checksum covers.
        out, positions: uint8 buffer, and int64[batches + 1], filled.

    Returns:
        OK or the problem that stopped the kernel, and the number of the batch with the problem.
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
