"""Tagged fields of v3 (attribute bit 11).

A section has the number of tags, then tag, size and bytes of each. All numbers are unsigned varints.

Tag 0: append timestamp, i64, -1 until the broker sets it. Tag 1: the headers with which all records of the batch start.
"""

import struct
from collections.abc import Mapping

from tests.reference.model import NO_TIMESTAMP, RefusedError
from tests.reference.varint import Reader, unsigned

APPEND_TIME, BATCH_HEADERS = 0, 1


def write(tags: Mapping[int, bytes]) -> bytes:
    """Return the bytes of a tags section, with tags in ascending order."""
    parts = [unsigned(tag) + unsigned(len(tags[tag])) + tags[tag] for tag in sorted(tags)]
    return unsigned(len(parts)) + b"".join(parts)


def read(reader: Reader) -> dict[int, bytes]:
    """Read a tags section. Return the bytes of each tag by its number."""
    tags: dict[int, bytes] = {}
    for _ in range(reader.number()):
        tag, size = reader.number(), reader.number()
        if tags and tag <= max(tags):
            raise RefusedError(f"tag {tag} after tag {max(tags)}")
        tags[tag] = reader.take(size)
    return tags


def append_time(time_ms: int | None) -> bytes:
    return struct.pack(">q", NO_TIMESTAMP if time_ms is None else time_ms)


def read_append_time(content: bytes) -> int:
    if len(content) != 8:
        raise RefusedError(f"append time of {len(content)} bytes")
    return int(struct.unpack(">q", content)[0])
