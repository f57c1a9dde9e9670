"""Unsigned base-128 integers, low group first, for use outside the kernels."""

MOST_BYTES = 5  # the longest encoding of a uint32


def put_uvarint(value: int) -> bytes:
    """Return the encoding of a number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_uvarint(data: bytes | memoryview, at: int = 0) -> tuple[int, int]:
    """Return a uint32 and the position after it; bits beyond 32 are dropped. Raise ValueError past the end of data."""
    value = 0
    for i, byte in enumerate(data[at : at + MOST_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFF, at + i + 1
    raise ValueError("a uvarint runs past the end")
