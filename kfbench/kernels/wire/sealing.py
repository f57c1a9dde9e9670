"""Batches of one header, one checksum and a body that a codec may cover (v2, v3, kip98): their length and checksum."""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import move, put_i32
from kfbench.kernels.wire.crc import BLOCK, crc32c, crc32c_ahead

LENGTH, AFTER_LENGTH = layouts.position(layouts.ENTRY, "length"), layouts.ENTRY.itemsize
INT32_MAX = 2**31 - 1
NO_CHECKSUM = -1
NEVER = 2**62  # a position that no writer reaches
FULL = -1  # instead of a position: `out` has no room
OK, OFFSET_TOO_FAR, BATCH_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2, 3  # why an encoder stopped


class RunningCrc(NamedTuple):
    """A checksum that follows behind a writer. value: uint64 so far; summed: the position that it has come to."""

    value: int
    summed: int


class Body(NamedTuple):
    """The records of a batch that were written, int64 each but crc.

    at: the next position. far: the offset deltas plus 2**31, or'ed; bits above 32 mean that one does not fit an int32.
    """

    at: int
    far: int
    crc: RunningCrc


@leaf
def followed(crc, out, at):
    """Return the RunningCrc taken further if BLOCK bytes are waiting before `at`."""
    if at - crc.summed >= BLOCK:
        value, summed = crc32c_ahead(crc.value, out, crc.summed, at)
        return RunningCrc(value, summed)
    return crc


@leaf
def problem_of(start, end, far):
    """Return OK, or why the batch out[start:end] cannot be; far: as in `Body`."""
    if far >> 32:
        return OFFSET_TOO_FAR
    if end - start - AFTER_LENGTH > INT32_MAX:
        return BATCH_TOO_LARGE
    return OK


@leaf
def seal(out, start, end, crc_at, crc):
    """Set the length and the checksum of the batch out[start:end]."""
    put_i32(out, start + LENGTH, np.int32(end - start - AFTER_LENGTH))
    put_i32(out, start + crc_at, np.int32(crc))


@kernel
def assemble(plain, plain_positions, bodies, payload, payload_bounds, crc_at, covered_at, out, positions):
    """Write compressed batches: each header of `plain`, then its slice of `payload`, sealed.

    Args:
        plain, plain_positions: uint8, and int64[batches + 1]: batches that are not compressed.
        bodies: int64[batches], where their records begin.
        payload, payload_bounds: uint8, and int64[batches + 1]: the compressed records of each.
        crc_at: the position of the checksum in a batch, or NO_CHECKSUM.
        covered_at: the position from which on the checksum covers a batch.
        out, positions: uint8 buffer, and int64[batches + 1], to be filled.

    Returns (problem, batch): OK, or why that batch cannot be written.
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
