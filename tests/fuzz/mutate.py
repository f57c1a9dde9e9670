"""Compiled functions that damage a batch, aware of its structure.

Equal seed and number give equal bytes on every machine.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from kfbench.kernels.simd.intrinsics import move, put_i32, put_i64
from kfbench.kernels.wire.crc import crc32, crc32c
from kfbench.kernels.wire.varint import put_uvarint, put_varint

UNSEALED, MESSAGE, KIP98, BATCH, UNCHECKED = -1, 0, 1, 2, 3  # they differ in where the checksum is and what it covers
LAYOUTS = {16: MESSAGE, 17: KIP98, 21: BATCH}  # by the first byte that the checksum covers
CAPACITY = 1 << 15  # largest damaged log in bytes; seeds are far smaller
BYTES = np.array([0, 1, 2, 3, 4, 6, 7, 8, 0x0A, 0x14, 0x16, 0x3F, 0x40, 0x7E, 0x7F, 0x80, 0x81, 0xC0, 0xFE, 0xFF])
NUMBERS = np.array(
    [0, 1, -1, 2, -2, 13, 14, 63, 64, -64, -65, 127, 128, 8191, 8192, 2**15, 2**20, 2**27, 2**31 - 1, -(2**31), 2**31,
     2**32 - 1, 2**33, 2**62, 2**63 - 1, -(2**63)]
)  # fmt: skip


@njit
def _draw(state):
    """Return the next 31-bit random number of the generator xorshift64*, whose state is `state`."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return np.int64((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33))


@njit
def _start(state, seed, number):
    """Set the generator's state from `seed` and `number` by splitmix64.

    Neighbouring numbers give unrelated sequences.
    """
    x = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state[0] = (x ^ (x >> np.uint64(31))) | np.uint64(1)


@njit
def _shift(out, at, end, by):
    """Move the bytes out[at:end] by `by` positions. Return the new end."""
    if by > 0:
        for k in range(end - 1, at - 1, -1):
            out[k + by] = out[k]
    else:
        for k in range(at, end):
            out[k + by] = out[k]
    return end + by


@njit
def _number(state, left):
    """Return an int64: a limit of some integer type, or a value close to `left`.

    left: the number of bytes up to the end of the batch.
    """
    if _draw(state) % 3 == 0:
        return np.int64(left - 2 + _draw(state) % 5)
    return NUMBERS[_draw(state) % len(NUMBERS)]


@njit
def _varint(state, out, at, end):
    """Replace the varint that starts at out[at] by another varint. Return the new end of the bytes."""
    old = at
    while old < end - 1 and old < at + 9 and out[old] & 0x80:
        old += 1
    old += 1
    new = np.empty(32, np.uint8)
    value, kind, size = _number(state, end - old), _draw(state) % 4, 0
    if kind == 0:
        size = put_uvarint(new, 0, np.uint64(value))
    elif kind == 1:  # longer than necessary
        size = put_varint(new, 0, value)
        for _ in range(_draw(state) % 3):
            new[size - 1] |= 0x80
            new[size] = 0
            size += 1
    else:
        size = put_varint(new, 0, value)
    end = _shift(out, old, end, size - (old - at))
    for k in range(size):
        out[at + k] = new[k]
    return end


@njit
def _edit(state, seeds, bounds, out, start, end):
    """Change out[start:end] once at random: change, insert, remove, repeat or copy bytes. Return the new end."""
    size = end - start
    if size < 2:
        return end
    at = start + _draw(state) % size
    if _draw(state) % 3 == 0:
        at = start + _draw(state) % min(size, 80)
    kind = _draw(state) % 14
    if kind == 0:
        out[at] ^= np.uint8(1 << _draw(state) % 8)
    elif kind == 1 or kind == 2:
        out[at] = np.uint8(BYTES[_draw(state) % len(BYTES)])
    elif kind == 3:
        out[at] = np.uint8(_draw(state))
    elif kind == 4:
        out[at] = np.uint8(np.int64(out[at]) + _draw(state) % 9 - 4)
    elif kind == 5 or kind == 6:
        end = _varint(state, out, at, end)
    elif kind == 7:
        count = 1 + _draw(state) % 4
        end = _shift(out, at, end, count)
        for k in range(count):
            out[at + k] = np.uint8(BYTES[_draw(state) % len(BYTES)])
    elif kind == 8:
        count = min(1 + _draw(state) % 8, end - at)
        end = _shift(out, at + count, end, -count)
    elif kind == 9:
        end = at if _draw(state) % 2 else end - 1 - _draw(state) % min(size - 1, 8)
    elif kind == 10 and at + 4 <= end:
        put_i32(out, at, np.int32(_number(state, end - at - 4)))
    elif kind == 11 and at + 8 <= end:
        put_i64(out, at, _number(state, end - at - 8))
    elif kind == 12:  # repeat up to 64 bytes, such as a record
        count = min(1 + _draw(state) % 64, end - at)
        end = _shift(out, at, end, count)
    elif kind == 13:  # append the last bytes of another batch
        other = _draw(state) % (len(bounds) - 1)
        count = _draw(state) % (1 + min(bounds[other + 1] - bounds[other], 512))
        if at + count < start + CAPACITY // 4:
            move(out, at, seeds, bounds[other + 1] - count, count)
            end = at + count
    return end


@njit
def seal(out, start, end, layout):
    if layout == UNSEALED or end - start < 21:
        return
    put_i32(out, start + 8, np.int32(end - start - 12))
    if layout == MESSAGE:
        put_i32(out, start + 12, np.int32(crc32(out, start + 16, end)))
    elif layout == KIP98:
        put_i32(out, start + 12, np.int32(crc32c(out, start + 17, end)))
    elif layout == BATCH:
        put_i32(out, start + 17, np.int32(crc32c(out, start + 21, end)))


@njit
def _copied(seeds, bounds, which, out, at):
    size = bounds[which + 1] - bounds[which]
    move(out, at, seeds, bounds[which], size)
    return at + size


@njit
def mutated(seeds, bounds, layout, seed, number, out):
    """Write a damaged batch to `out` and return the number of bytes written.

    One log in eight starts with an undamaged batch, one in eight ends with one. One in sixteen has a wrong length or
    checksum.

    Args:
        seeds, bounds: the batches, uint8; batch b is seeds[bounds[b]:bounds[b + 1]].
        layout: UNSEALED, MESSAGE, KIP98 or BATCH.
        seed, number: they select the damage.
        out: CAPACITY bytes.
    """
    state = np.empty(1, np.uint64)
    _start(state, seed, number)
    batches = len(bounds) - 1
    around, start = _draw(state) % 8, 0
    if around == 0:
        start = _copied(seeds, bounds, _draw(state) % batches, out, 0)
    end = _copied(seeds, bounds, _draw(state) % batches, out, start)
    for _ in range(1 + _draw(state) % 2 + _draw(state) % 3):
        if end - start < CAPACITY // 4:
            end = _edit(state, seeds, bounds, out, start, end)
    seal_draw = _draw(state) % 16
    if seal_draw != 0:
        seal(out, start, end, layout)
    if seal_draw == 1 and end - start > 24:
        put_i32(out, start + 8, np.int32(_number(state, end - start - 12)))
    elif seal_draw == 2 and end > start:
        out[start + _draw(state) % (end - start)] ^= np.uint8(1)
    if around == 1:
        end = _copied(seeds, bounds, _draw(state) % batches, out, end)
    return end


@njit
def outside(starts, lengths, size):
    """Return True if any non-empty field lies partly outside a buffer of `size` bytes. starts, lengths: in bytes."""
    for i in range(len(starts)):  # noqa: SIM110
        if lengths[i] > 0 and (starts[i] < 0 or starts[i] > size - lengths[i]):
            return True
    return False
