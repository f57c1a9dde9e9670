"""Encode and decode unsigned varints in plain Python, and the tagged fields that a caller adds to a batch header (v3).

Layout per tagged field: `{tag uvarint, size uvarint, bytes}`. Fields are in ascending order of their tags.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from kfbench.errors import InvalidRecords

UVARINT_BYTES: Final = 5  # the longest encoding of a uint32
FIRST_FREE_TAG: Final = 2  # the format uses 0 and 1 (`layouts`)
NO_TAGGED_FIELDS: Final[Mapping[int, bytes]] = MappingProxyType({})


def put_uvarint(value: int) -> bytes:
    """Encode an unsigned varint (base 128, lowest 7 bits first)."""
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
    for i, byte in enumerate(data[at : at + UVARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value & 0xFFFFFFFF, at + i + 1
    raise ValueError("a uvarint runs past the end")


def encode_tagged_fields(batches: Sequence[Mapping[int, Any]]) -> list[bytes]:
    """Encode the tagged fields of each batch. batches: one mapping from tag to bytes per batch.

    Raises InvalidRecords.
    """
    encoded: list[bytes] = []
    for fields in batches:
        if not isinstance(fields, Mapping):
            raise InvalidRecords(f"tagged_fields: a mapping of tag to bytes is wanted, not {type(fields).__name__}")
        for tag, content in fields.items():
            if not isinstance(tag, int | np.integer) or not FIRST_FREE_TAG <= tag < 2**32:
                raise InvalidRecords(f"tagged_fields: tag {tag!r} is not a number from {FIRST_FREE_TAG} to 2**32 - 1")
            if not isinstance(content, bytes | bytearray | memoryview):
                raise InvalidRecords(f"tagged_fields: tag {tag}: bytes are wanted, not {type(content).__name__}")
        parts = ((int(tag), bytes(fields[tag])) for tag in sorted(fields))
        encoded.append(b"".join(put_uvarint(tag) + put_uvarint(len(data)) + data for tag, data in parts))
    return encoded


def decode_tagged_fields(data: bytes) -> Mapping[int, bytes]:
    """Decode the tagged fields of one batch into a mapping from tag to bytes. A kernel has checked `data` before."""
    fields, at = dict[int, bytes](), 0
    while at < len(data):
        tag, at = get_uvarint(data, at)
        size, at = get_uvarint(data, at)
        fields[tag] = data[at : at + size]
        at += size
    return MappingProxyType(fields)
