"""Checksums over a slice of a buffer: CRC-32C (v2 and later) and CRC-32 (v0, v1), with CPU instructions or portable.

With AVX-512, CRC-32C takes 256 bytes per step by carry-less multiplication. With SSE4.2 alone, it computes three parts
of the buffer in turns: the CRC instruction has a latency of 3 cycles, but the CPU can start one per cycle. That is
half as fast. CRC-32 takes 64 bytes per step. The portable code is the table method "slicing by 16". All constants are
computed here.
"""

from functools import partial

import numpy as np

from kfbench.kernels.jit import FAST_CRC, WIDE_CRC, leaf, part, variant
from kfbench.kernels.simd.carry_less import VECTOR_BYTES, carryless_low, crc32c_byte, crc32c_word, fold_lanes, fold_wide
from kfbench.kernels.simd.intrinsics import load_le64, move
from kfbench.kernels.wire.varint import put_bytes

CASTAGNOLI, IEEE = 0x82F63B78, 0xEDB88320  # reflected polynomials
U0, THREE, U8, W32, W64 = (np.uint64(value) for value in (0, 3, 8, 32, 64))
LOW8, ALL32 = np.uint64(0xFF), np.uint64(0xFFFFFFFF)


def _power(exponent: int, polynomial: int) -> int:
    """Return x**exponent modulo the polynomial, with reflected bit order."""
    remainder = 0x80000000
    for _ in range(exponent):
        remainder = (remainder >> 1) ^ (polynomial if remainder & 1 else 0)
    return remainder


def _tables(polynomial: int) -> np.ndarray:
    """Return the tables of slicing by 16, uint32[16, 256]. Item [k, v] is the CRC of byte v and then k zero bytes."""
    tables = np.zeros((16, 256), np.uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = (tables[0] >> 1) ^ np.where(tables[0] & 1, np.uint32(polynomial), np.uint32(0))
    for k in range(1, 16):
        tables[k] = (tables[k - 1] >> 8) ^ tables[0][tables[k - 1] & 0xFF]
    return tables


CASTAGNOLI_TABLES, IEEE_TABLES = _tables(CASTAGNOLI), _tables(IEEE)


@leaf
def _slice8(tables, word, row):
    """Return the CRC of the eight bytes of the uint64 `word`, followed by `row` zero bytes."""
    return np.uint64(
        tables[row + 7, word & LOW8]
        ^ tables[row + 6, (word >> np.uint64(8)) & LOW8]
        ^ tables[row + 5, (word >> np.uint64(16)) & LOW8]
        ^ tables[row + 4, (word >> np.uint64(24)) & LOW8]
        ^ tables[row + 3, (word >> np.uint64(32)) & LOW8]
        ^ tables[row + 2, (word >> np.uint64(40)) & LOW8]
        ^ tables[row + 1, (word >> np.uint64(48)) & LOW8]
        ^ tables[row, word >> np.uint64(56)]
    )


@leaf
def _tail(tables, crc, buffer, start, end):
    while start + 16 <= end:
        low, high = load_le64(buffer, start) ^ crc, load_le64(buffer, start + 8)
        crc = _slice8(tables, low, 8) ^ _slice8(tables, high, 0)
        start += 16
    if start + 8 <= end:
        crc = _slice8(tables, load_le64(buffer, start) ^ crc, 0)
        start += 8
    while start < end:
        crc = np.uint64(tables[0, (crc ^ np.uint64(buffer[start])) & LOW8]) ^ (crc >> U8)
        start += 1
    return crc


LONG, SHORT = 1024, 128  # bytes per chain
LONG_2, LONG_1 = (np.uint64(_power(8 * k * LONG - 33, CASTAGNOLI)) for k in (2, 1))
SHORT_2, SHORT_1 = (np.uint64(_power(8 * k * SHORT - 33, CASTAGNOLI)) for k in (2, 1))


@leaf
def _three_chains(crc, buffer, start, lane, by_2, by_1):
    middle, last = U0, U0
    for at in range(start, start + lane, 8):
        crc = crc32c_word(crc, load_le64(buffer, at))
        middle = crc32c_word(middle, load_le64(buffer, at + lane))
        last = crc32c_word(last, load_le64(buffer, at + 2 * lane))
    return crc32c_word(U0, carryless_low(crc, by_2) ^ carryless_low(middle, by_1)) ^ last


def _chained_ahead(crc, buffer, start, end):
    while start + BLOCK <= end:
        crc = _three_chains(crc, buffer, start, LONG, LONG_2, LONG_1)
        start += BLOCK
    return crc, start


def _chained_copy(crc, buffer, summed, at, data, start, size):
    """Copy bytes into `buffer` and update its checksum on the way: `crc32c_copy` for hosts with SSE4.2.

    Args:
        crc, buffer, summed: the checksum so far covers the bytes of `buffer` before the position `summed`.
        at: the position in `buffer` to copy to.
        data, start, size: the bytes to copy are data[start : start + size].
    """
    end, step = at + size, 3 * SHORT
    gap = min((summed - at) % step, size)  # after `gap` more bytes, the bytes not yet in the checksum are whole steps
    move(buffer, at, data, start, gap)
    at += gap
    start += gap
    while summed + step <= at:
        crc = _three_chains(crc, buffer, summed, SHORT, SHORT_2, SHORT_1)
        summed += step
    while at + step <= end:  # the CPU overlaps the chains of one step with the moves of the next
        move(buffer, at, data, start, step)
        crc = _three_chains(crc, data, start, SHORT, SHORT_2, SHORT_1)
        at += step
        start += step
        summed += step
    move(buffer, at, data, start, end - at)
    return crc, summed


def _chained_rest(crc, buffer, start, end):
    while start + 3 * SHORT <= end:
        crc = _three_chains(crc, buffer, start, SHORT, SHORT_2, SHORT_1)
        start += 3 * SHORT
    return crc, start


def _lane_constants(bits: int, polynomial: int) -> tuple[int, int]:
    """Return the multipliers that move 16 bytes forward by `bits`: one for the low 8 bytes, one for the high 8."""
    # A reflected product is one bit short, and the 32-bit constant sits in the high half of its word.
    return _power(bits + 63, polynomial) << 32, _power(bits - 1, polynomial) << 32


_wide_constants = partial(_lane_constants, polynomial=CASTAGNOLI)
_fold_wide, _fold_copy = (fold_wide(_wide_constants, copies) for copies in (False, True))


def _wide_ahead(crc, buffer, start, end):
    if start + VECTOR_BYTES <= end:
        low, high, done = _fold_wide(buffer, start, end - start, crc)
        crc = crc32c_word(crc32c_word(U0, low), high)
        start += done
    return crc, start


_wide_ahead_leaf = leaf(_wide_ahead)


def _wide_copy(crc, buffer, summed, at, data, start, size):
    """Copy bytes and update the checksum: `crc32c_copy` for hosts with AVX-512. Args: as in `_chained_copy`."""
    end = at + size
    gap = (summed - at) & (VECTOR_BYTES - 1)  # after `gap` more bytes, the bytes not yet in the checksum are vectors
    if size < gap + VECTOR_BYTES:
        return _wide_ahead_leaf(crc, buffer, summed, put_bytes(buffer, at, data, start, size))
    crc, summed = _wide_ahead_leaf(crc, buffer, summed, put_bytes(buffer, at, data, start, gap))
    start += gap
    low, high, done = _fold_copy(data, start, end - summed, crc, buffer, summed)
    put_bytes(buffer, summed + done, data, start + done, end - summed - done)
    return crc32c_word(crc32c_word(U0, low), high), summed + done


def _no_ahead(crc, buffer, start, end):
    return crc, start


def _portable_copy(crc, buffer, summed, at, data, start, size):
    """Copy bytes, leave the checksum unchanged: `crc32c_copy` for other hosts. Args: as in `_chained_copy`."""
    move(buffer, at, data, start, size)
    return crc, summed


def _fast_tail(crc, buffer, start, end):
    while start + 8 <= end:
        crc = crc32c_word(crc, load_le64(buffer, start))
        start += 8
    while start < end:
        crc = crc32c_byte(crc, buffer[start])
        start += 1
    return crc


def _portable_tail(crc, buffer, start, end):
    return _tail(CASTAGNOLI_TABLES, crc, buffer, start, end)


# An encoder may update the checksum while it writes, when the bytes are still in the L1 cache. It starts with
# CRC32C_START. `crc32c_ahead` adds whole blocks to the checksum, and returns the position that it has reached. Call it
# for at least BLOCK bytes. `crc32c_finish` adds the rest. `crc32c_copy` copies data[start : start + size] to
# buffer[at:] and may update the checksum on the way, because a copy costs almost nothing compared with a checksum.
CRC32C_START, BLOCK = ALL32, 3 * LONG
_portable = _no_ahead, _no_ahead, _portable_tail, _portable_copy
if WIDE_CRC:
    _tier = _wide_ahead, _no_ahead, _fast_tail, _wide_copy
elif FAST_CRC:
    _tier = _chained_ahead, _chained_rest, _fast_tail, _chained_copy
else:
    _tier = _portable
crc32c_ahead, _rest_leaf, _tail_leaf = map(leaf, _tier[:3], _portable[:3])
crc32c_copy = part(_tier[3], _portable[3])


@leaf
def crc32c_finish(crc, buffer, start, end):
    """Add buffer[start:end] to the running checksum `crc` of the bytes before `start`. Return the final CRC-32C."""
    crc, start = crc32c_ahead(crc, buffer, start, end)
    crc, start = _rest_leaf(crc, buffer, start, end)
    return _tail_leaf(crc, buffer, start, end) ^ ALL32


@leaf
def crc32c(buffer, start, end):
    """Return the CRC-32C of buffer[start:end]."""
    return crc32c_finish(CRC32C_START, buffer, start, end)


_fold = fold_lanes({bits: _lane_constants(bits, IEEE) for bits in (128, 256, 384, 512)})


@leaf
def _first_lane(buffer, start, size):
    """Return the first `size` bytes (1 to 16) of the checksummed bytes, with zeros before them, as 16 bytes.

    The result has the low 8 bytes, the high 8 bytes and the spill. Leading zeros do not change a checksum that starts
    from 0. So the first step takes the bytes that are not whole 16-byte blocks, and none remain at the end. The CRC's
    start value is added to the first four bytes. If `size` is less than 4, its rest is the spill: it belongs to the
    next 16 bytes. The function reads the 16 bytes before start + size.
    """
    low, high = load_le64(buffer, start + size - 16), load_le64(buffer, start + size - 8)
    gap = np.uint64(16 - size) << THREE  # the number of zero bits
    if size > 8:
        low = ((low >> gap) << gap) ^ (ALL32 << gap)
        if gap > W32:
            high ^= ALL32 >> (W64 - gap)
        return low, high, U0
    gap -= W64
    high = ((high >> gap) << gap) ^ (ALL32 << gap)
    return U0, high, ALL32 >> (W64 - gap) if gap > W32 else U0


def _fast_crc32(buffer, start, end):
    size = end - start
    if size < 16 or start < 16:
        return _tail(IEEE_TABLES, ALL32, buffer, start, end) ^ ALL32
    odd = ((size - 1) & 15) + 1
    low, high, spill = _first_lane(buffer, start, odd)
    low, high = _fold(buffer, start + odd, end, low, high, spill)
    return _slice8(IEEE_TABLES, low, 8) ^ _slice8(IEEE_TABLES, high, 0) ^ ALL32


def _portable_crc32(buffer, start, end):
    return _tail(IEEE_TABLES, ALL32, buffer, start, end) ^ ALL32


crc32 = leaf(_fast_crc32 if FAST_CRC else _portable_crc32, _portable_crc32)


crc = crc32c  # replaced by each variant


def _copy_and_crc(positions, data, crc_at, out):
    """Copy each batch data[positions[b]:positions[b + 1]] to `out`. Return the xor of the batches' checksums.

    It is the least work of any encoder, as a lower bound for times. The checksum of a batch covers its bytes from
    position `crc_at` within the batch on. In v0 and v1 a batch is a message.
    """
    mixed = np.uint64(0)
    for b in range(len(positions) - 1):
        start, end = positions[b], positions[b + 1]
        move(out, start, data, start, end - start)
        mixed ^= crc(out, start + crc_at, end)
    return mixed


copy_and_crc32c = variant(_copy_and_crc, "copy_and_crc32c", crc=crc32c)
copy_and_crc32 = variant(_copy_and_crc, "copy_and_crc32", crc=crc32)
