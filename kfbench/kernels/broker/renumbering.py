"""Renumbering: write other dictionary numbers into batches that zstd compressed with a dictionary."""

import numpy as np

from kfbench.kernels.formats.batch_header import ATTRIBUTES, CRC, crc_holds
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import move
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.sealing import seal
from kfbench.kernels.wire.varint import get_uvarint, is_shortest_uvarint, put_uvarint


@kernel
def read_numbers(data, positions, starts, numbers, sizes):
    """Read the dictionary number at the beginning of compressed bytes.

    Args:
        data, positions: uint8 log, and its batches, int64[batches + 1].
        starts: the position of the compressed bytes of each batch, int64[batches]; -1: the batch names no dictionary.
        numbers: int64[batches], filled; -1: none; 0: the number is cut short, over-long or above 2**31 - 1.
        sizes: int64[batches], filled with the number of bytes that the number takes; 0: none.
    """
    for b in range(len(starts)):
        numbers[b], sizes[b] = -1, 0
        if starts[b] >= 0:
            value, after = get_uvarint(data, starts[b], positions[b + 1])
            is_sound = (
                after <= positions[b + 1] and value < 1 << 31 and is_shortest_uvarint(data, starts[b], after, value)
            )
            numbers[b] = value if is_sound else 0
            sizes[b] = after - starts[b]


@kernel
def renumber(data, positions, starts, sizes, numbers, out, out_positions):
    """Copy batches, and write other dictionary numbers, lengths and checksums (CRC-32C of attributes to end).

    Stop at the first batch with a number whose stored checksum is wrong, and return its index; -1: none. A new checksum
    would hide its damage.

    Args:
        data, positions, starts, sizes: see `read_numbers`.
        numbers: the new number of each batch, int64[batches]. Batches without a number are copied.
        out, out_positions: uint8 buffer with room for all batches, and int64[batches + 1], filled.
    """
    at = 0
    for b in range(len(starts)):
        out_positions[b] = begin = at
        size = positions[b + 1] - positions[b]
        if starts[b] < 0:
            move(out, at, data, positions[b], size)
            at += size
            continue
        if not crc_holds(data, positions[b], positions[b + 1]):
            return b
        head = starts[b] - positions[b]
        move(out, at, data, positions[b], head)
        at = put_uvarint(out, at + head, np.uint64(numbers[b]))
        rest = size - head - sizes[b]
        move(out, at, data, starts[b] + sizes[b], rest)
        at += rest
        seal(out, begin, at, CRC, crc32c(out, begin + ATTRIBUTES, at))
    out_positions[len(starts)] = at
    return -1
