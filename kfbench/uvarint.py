"""Unsigned base-128 integers, low group first, for the few places outside the kernels that meet one."""

MOST_BYTES = 5  # of a uint32


def put_uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_uvarint(data: bytes | memoryview, at: int = 0) -> tuple[int, int]:
    """A uint32 and the position after it; bits beyond 32 are dropped. Raises ValueError where it runs past the end."""
    value = 0
    for i, byte in enumerate(data[at : at + MOST_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFF, at + i + 1
    raise ValueError("a uvarint runs past the end")
