"""Encode and decode the tagged fields that a caller adds to a batch header (v3).

Layout per field: `{tag uvarint, size uvarint, bytes}`. Fields are in ascending order of their tags.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.errors import InvalidRecords
from kfbench.uvarint import get_uvarint, put_uvarint

FIRST_FREE_TAG: Final = 2  # the format uses 0 and 1 (`layouts`)
NONE: Final[Mapping[int, bytes]] = MappingProxyType({})


class EncodedFields(NamedTuple):
    """The tagged fields of n batches as bytes. Batch b has counts[b] fields in data[bounds[b]:bounds[b + 1]].

    data: uint8. bounds: int64[n + 1]. counts: int64[n].
    """

    data: Bytes
    bounds: Int64
    counts: Int64


def encoded(batches: Sequence[Mapping[int, Any]]) -> EncodedFields:
    """Encode the tagged fields of each batch. batches: one mapping from tag to bytes per batch.

    Raises InvalidRecords.
    """
    parts = [b"".join(_field(tag, fields[tag]) for tag in _tags(fields)) for fields in batches]
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return EncodedFields(np.frombuffer(b"".join(parts), np.uint8), bounds, np.array(list(map(len, batches)), np.int64))


def decoded(data: bytes) -> Mapping[int, bytes]:
    """Decode the tagged fields of one batch into a mapping from tag to bytes. A kernel has checked `data` before."""
    fields, at = dict[int, bytes](), 0
    while at < len(data):
        tag, at = get_uvarint(data, at)
        size, at = get_uvarint(data, at)
        fields[tag] = data[at : at + size]
        at += size
    return MappingProxyType(fields)


def _tags(fields: Mapping[int, Any]) -> list[int]:
    if not isinstance(fields, Mapping):
        raise InvalidRecords(f"tagged_fields: a mapping of tag to bytes is wanted, not {type(fields).__name__}")
    for tag in fields:
        if not isinstance(tag, int | np.integer) or not FIRST_FREE_TAG <= tag < 2**32:
            raise InvalidRecords(f"tagged_fields: tag {tag!r} is not a number from {FIRST_FREE_TAG} to 2**32 - 1")
    return sorted(fields)


def _field(tag: int, content: Any) -> bytes:
    if not isinstance(content, bytes | bytearray | memoryview):
        raise InvalidRecords(f"tagged_fields: tag {tag}: bytes are wanted, not {type(content).__name__}")
    data = bytes(content)
    return put_uvarint(int(tag)) + put_uvarint(len(data)) + data
