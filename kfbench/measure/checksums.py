"""Check checksums with code from other projects.

Readers and writers of kfbench share one checksum kernel, so they would agree on a wrong checksum. Here the crc32c
package computes CRC-32C, and Python's binascii computes CRC-32.
"""

from binascii import crc32
from collections.abc import Callable
from typing import Any, Final

import crc32c

from kfbench.arrays import as_bytes
from kfbench.formats import BY_MAGIC, Entries, Format

WITNESSES: Final[dict[str, tuple[str, Callable[[memoryview], int]]]] = {
    "CRC-32C": ("the crc32c package", crc32c.crc32c),
    "CRC-32": ("binascii", crc32),
}


def wrong_checksum(data: Any, fmt: Format | None = None) -> str | None:
    """Return a description of the first entry with a wrong checksum; None if all checksums are right.

    An entry is a batch. In v0, v1 and enriched, an entry is a message, which may be a wrapper around other messages. An
    incomplete entry at the end of the log is not checked. Unknown magics and formats without a checksum are not
    checked, either.

    Args:
        data: the log: any object with a buffer.
        fmt: the format of all entries; None: the magic byte of each entry selects its format (`BY_MAGIC`).
    """
    data = as_bytes("data", data)
    entries = Entries.of(data)
    starts, ends = entries.positions[:-1].tolist(), entries.positions[1:].tolist()
    view = memoryview(data)
    for number, (start, end, magic) in enumerate(zip(starts, ends, entries.magics.tolist(), strict=True)):
        found = fmt or BY_MAGIC.get(magic)
        if found is None or found.checksum is None:
            continue
        algorithm, position, covers_from = found.checksum
        at = start + position
        stored = int.from_bytes(view[at : at + 4], "big")
        name, compute = WITNESSES[algorithm]
        if (computed := compute(view[start + covers_from : end])) != stored:
            return (
                f"entry {number} at byte {start}: {algorithm} is {stored:#010x}, and {computed:#010x} by a second "
                f"witness, {name}"
            )
    return None
