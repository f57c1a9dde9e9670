"""Tagged fields of v3's feature in attribute bit 11, always in unsigned varints: n, {tag, size, bytes}.

Tag 0: append timestamp, i64, -1 until the broker sets it. Tag 1: the headers that all records of the batch begin with.
"""

import struct
from collections.abc import Mapping

from tests.reference.model import NO_TIMESTAMP, RefusedError
from tests.reference.varint import read_unsigned, unsigned

APPEND_TIME, BATCH_HEADERS = 0, 1


def write(tags: Mapping[int, bytes]) -> bytes:
    """Return the bytes of the tags, in ascending order."""
    parts = [unsigned(tag) + unsigned(len(tags[tag])) + tags[tag] for tag in sorted(tags)]
    return unsigned(len(parts)) + b"".join(parts)


def read(data: bytes, at: int) -> tuple[dict[int, bytes], int]:
    """Return the tags at `at`, by number, and the position after them."""
    count, at = read_unsigned(data, at, 32)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        tag, at = read_unsigned(data, at, 32)
        size, at = read_unsigned(data, at, 32)
        if tags and tag <= max(tags):
            raise RefusedError(f"tag {tag} after tag {max(tags)}")
        if size > len(data) - at:
            raise RefusedError(f"tag {tag} of {size} bytes")
        tags[tag] = data[at : at + size]
        at += size
    return tags, at


def append_time(time_ms: int | None) -> bytes:
    return struct.pack(">q", NO_TIMESTAMP if time_ms is None else time_ms)


def read_append_time(content: bytes) -> int:
    if len(content) != 8:
        raise RefusedError(f"append time of {len(content)} bytes")
    return int(struct.unpack(">q", content)[0])
