"""Find the last record of each key, for compaction, with an open-addressing hash table of record numbers.

The hash of a key gives the first slot to try, and the bytes of the keys are compared. The hash is SipHash-1-3 with a
random seed, so that no choice of keys makes the table slow. The table has at least twice as many slots as records. A
search then reads 1.5 slots on average.
"""

import numpy as np

from kfbench.kernels.formats.batch_tags import same_bytes
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, load_le64

ZERO, ONE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
STATE = tuple(np.frombuffer(b"somepseudorandomlygeneratedbytes", ">u8").astype(np.uint64).tolist())
STATE_0, STATE_1, STATE_2, STATE_3 = (np.uint64(word) for word in STATE)


@leaf
def _rotated(word, bits):
    return word << np.uint64(bits) | word >> np.uint64(64 - bits)


@leaf
def _round(v0, v1, v2, v3):
    v0 += v1
    v2 += v3
    v1 = _rotated(v1, 13) ^ v0
    v3 = _rotated(v3, 16) ^ v2
    v0 = _rotated(v0, 32) + v3
    v2 += v1
    v1 = _rotated(v1, 17) ^ v2
    v3 = _rotated(v3, 21) ^ v0
    return v0, v1, _rotated(v2, 32), v3


@leaf
def siphash(data, start, length, seed_0, seed_1):
    """Return the SipHash-1-3 (Aumasson and Bernstein) of data[start : start + length] as a uint64."""
    v0, v1, v2, v3 = seed_0 ^ STATE_0, seed_1 ^ STATE_1, seed_0 ^ STATE_2, seed_1 ^ STATE_3
    at, end = start, start + length
    while end - at >= 8:
        word = load_le64(data, at)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
        v0 ^= word
        at += 8
    word, shift = np.uint64(length) << np.uint64(56), ZERO
    while at < end:
        word |= np.uint64(get_u8(data, at)) << shift
        shift += EIGHT
        at += 1
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0 ^ word, v1, v2 ^ np.uint64(0xFF), v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@leaf
def _same_key(data, starts, lengths, one, other):
    length = np.int64(lengths[one])
    return lengths[other] == length and same_bytes(data, starts[one], data, starts[other], length)


@kernel
def latest(data, starts, lengths, wanted, seed, table, room, out):
    """Mark the last record of each key among the wanted records. Return how often a slot with another key was read.

    Args:
        data, starts, lengths: the keys of n records, as in `Records`; length -1 is null.
        wanted: bool[n].
        seed: uint64[2].
        table: uint64[a power of two, at least 2n], all 0. A used slot has half of a hash and a record number above 0.
        room: two scratch arrays, uint64[k] each. k records are looked up together, so that their cache misses overlap.
        out: bool[n], filled; True for the last record of each key.
    """
    mask, searched = np.uint64(len(table) - 1), 0
    hashes, entries = room
    end = len(starts)
    while end > 0:  # backwards, so that the first record found is the last of its key
        first = max(end - len(hashes), 0)
        for k in range(end - first):
            i, length = first + k, np.int64(lengths[first + k])
            out[i] = wanted[i] and length >= 0
            hashes[k] = siphash(data, starts[i], length, seed[0], seed[1]) if out[i] else ZERO
        for k in range(end - first):
            entries[k] = table[hashes[k] & mask]
        for k in range(end - first):
            if entries[k] >> HALF == hashes[k] >> HALF and entries[k] != ZERO and out[first + k]:
                out[first + k] = not _same_key(data, starts, lengths, np.int64(entries[k] & LOW) - 1, first + k)
        for i in range(end - 1, first - 1, -1):
            if not out[i]:
                continue
            slot, half = hashes[i - first] & mask, hashes[i - first] >> HALF
            while True:
                entry = table[slot]
                if entry == ZERO:
                    table[slot] = half << HALF | np.uint64(i + 1)
                    break
                if entry >> HALF == half and _same_key(data, starts, lengths, np.int64(entry & LOW) - 1, i):
                    out[i] = False
                    break
                slot = slot + ONE & mask
                searched += 1
        end = first
    return searched
