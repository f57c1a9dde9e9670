"""Compressed message sets of three small messages, read field by field, to check KIP-31 and the enriched format."""

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.records import Records

FIRST_OFFSET = 1000
LIMIT_BYTES = 1 << 20  # the largest size of a decompressed set


def numbered(first_offset: int, count: int) -> Records:
    """Return `count` small records whose offsets begin at `first_offset` and rise by one."""
    values = [b"value %d" % i for i in range(count)]
    return Records.from_lists(values, offsets=list(range(first_offset, first_offset + count)))


def compressed_set(name: str, first_offset: int = FIRST_OFFSET) -> bytes:
    """Return three messages as one wrapper message, compressed with gzip."""
    return bytes(FORMATS[name].encode(numbered(first_offset, 3), codec="gzip").data)


def stored_offset(entry: bytes) -> int:
    """Return the integer in the first 8 bytes of an entry, where its offset is stored."""
    return int.from_bytes(entry[:8], "big")


def inner_offsets(compressed: bytes) -> dict[str, int]:
    """Return the offset field of each entry of a compressed message set (entry: offset i64, size i32, message)."""
    entries: bytes = CODECS["gzip"].decompress(compressed, LIMIT_BYTES)
    offsets, at = [], 0
    while at < len(entries):
        offsets.append(stored_offset(entries[at:]))
        at += 12 + int.from_bytes(entries[at + 8 : at + 12], "big")
    return {f"inner_{i}": offset for i, offset in enumerate(offsets)}


def changed_bytes(*names: str) -> dict[str, int]:
    """Count per format the bytes that depend on the first offset, besides the offset field itself.

    A set at offset 1,000 is compared with one at offset 0.
    """
    pairs = {name: [compressed_set(name, first)[8:] for first in (0, FIRST_OFFSET)] for name in names}
    return {
        name: sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b)) for name, (a, b) in pairs.items()
    }
