"""Variable-length integers in base-128 groups, lowest first: zig-zag (varint, varlong) and unsigned."""

from tests.reference.model import RefusedError, signed


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return unsigned(value * 2 if value >= 0 else -value * 2 - 1)


def read_unsigned(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a value and the position after it. Refuse more groups than `bits` need, and a missing one."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise RefusedError("varint runs past the end")
        if shift >= bits:
            raise RefusedError(f"varint of more than {-(-bits // 7)} bytes")
        group = data[at]
        at += 1
        value |= (group & 0x7F) << shift
        shift += 7
        if group < 0x80:
            return value & ((1 << bits) - 1), at


def read_zigzag(data: bytes, at: int, bits: int) -> tuple[int, int]:
    value, at = read_unsigned(data, at, bits)
    return signed((value >> 1) ^ -(value & 1), bits), at
