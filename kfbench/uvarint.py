"""Read and write unsigned varints (base 128, lowest 7 bits first) in plain Python, outside the kernels."""

MOST_BYTES = 5  # the longest encoding of a uint32


def put_uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_uvarint(data: bytes | memoryview, at: int = 0) -> tuple[int, int]:
    """Read a uint32 at byte `at`. Return (value, position after it). Raise ValueError past the end of data.

    Bits beyond 32 are dropped. The pair has no names, because creating a NamedTuple would slow down the codecs that
    call this per block.
    """
    value = 0
    for i, byte in enumerate(data[at : at + MOST_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFF, at + i + 1
    raise ValueError("a uvarint runs past the end")
