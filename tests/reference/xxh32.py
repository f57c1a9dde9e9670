"""The 32-bit hash xxHash32, which lz4 frames use as checksum."""

import struct

_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32(data: bytes, seed: int = 0) -> int:
    at = 0
    if len(data) >= 16:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while at + 16 <= len(data):
            for i, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[i] = _rotate(lanes[i] + word * _P2, 13) * _P1 & _MASK
            at += 16
        total = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        total = seed + _P5
    total += len(data)
    while at + 4 <= len(data):
        total = _rotate(total + struct.unpack_from("<I", data, at)[0] * _P3, 17) * _P4
        at += 4
    for byte in data[at:]:
        total = _rotate(total + byte * _P5, 11) * _P1
    total &= _MASK
    total = (total ^ total >> 15) * _P2 & _MASK
    total = (total ^ total >> 13) * _P3 & _MASK
    return total ^ total >> 16
