"""The tail of a segment file: the bytes behind its last whole batch. One rule for all readers (docs/what-if.md).

Zeros up to the end are space that a broker allocated ahead (log.preallocate), as if the file ended before them. An
incomplete batch is one that a broker is about to write, and no damage, if it is in the last segment of its folder, has
up to OPEN_BYTES, and no sound batch lies behind its beginning. All else is damage.
"""

import os
import re
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from typing import Final, Literal

import numpy as np

from kfbench.arrays import Bytes
from kfbench.formats import BY_MAGIC
from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, MIN_LENGTH, START
from kfbench.limits import LIMITS, Limits
from kfbench.log.segment import IS_LOG, read_log

Tail = Literal["zeros", "open", "damaged"]

PIECE_BYTES: Final = 8 << 20
OPEN_BYTES: Final = 1 << 20  # the largest batch that a broker takes by default
TRIES: Final = 1000
BASE_OFFSET: Final = re.compile(r"[0-9]{20}\.log")
CUT_OFF: Final = "the batch would end after the file does: it is cut off here, or its length is damaged"
EMPTY: Final = "the file is empty"


def tail(file: FileIO, end: int, size_bytes: int, is_last: bool, limits: Limits = LIMITS) -> Tail:
    """Return what the size_bytes from byte `end` on are, where no whole batch begins. is_last: see `is_last`."""
    if is_zero(file, end, size_bytes):
        return "zeros"
    if is_last and size_bytes <= OPEN_BYTES and not _has_batch(read(file, end, size_bytes), limits):
        return "open"
    return "damaged"


def is_last(name: str, names: Iterable[str]) -> bool:
    """Return True unless a segment with a higher base offset is among the folder's names: a broker may be writing it.

    True for a name that is no base offset.
    """
    if not BASE_OFFSET.fullmatch(name):
        return True
    return not any(BASE_OFFSET.fullmatch(other) and other > name for other in names)


def names_beside(path: str | os.PathLike[str]) -> list[str]:
    """Return the names in a file's folder; none if the folder cannot be read."""
    try:
        return [each.name for each in Path(path).absolute().parent.iterdir()]
    except OSError:
        return []


def nothing_in(size_bytes: int) -> str:
    """Return why a file without a whole batch has no answer. size_bytes: without zeros allocated ahead."""
    if not size_bytes:
        return EMPTY
    return f"no whole batch in {size_bytes:,} byte{'s' * (size_bytes != 1)}: {IS_LOG}"


def read(file: FileIO, start: int, size_bytes: int) -> Bytes:
    """Return up to size_bytes bytes, as many as there are."""
    file.seek(start)
    parts = []
    while size_bytes > 0 and (part := file.read(size_bytes)):
        parts.append(part)
        size_bytes -= len(part)
    return np.frombuffer(b"".join(parts), np.uint8)


def is_zero(file: FileIO, start: int, size_bytes: int) -> bool:
    """Return True if these bytes of the file are all zero."""
    end = start + size_bytes
    return all(not read(file, at, min(PIECE_BYTES, end - at)).any() for at in range(start, end, PIECE_BYTES))


def _has_batch(tail: Bytes, limits: Limits) -> bool:
    """Return True if a sound batch lies behind the beginning of these bytes, which claim to be one incomplete batch."""
    n = len(tail) - MAGIC_AT
    if n < 1:
        return False
    at = np.arange(1, n)
    lengths = tail[at[:, None] + LENGTH_AT + np.arange(4)].view(">i4").ravel().astype(np.int64)
    fits = (lengths >= MIN_LENGTH) & (at + START + lengths <= len(tail)) & (tail[at + MAGIC_AT] <= max(BY_MAGIC))
    for i in range(3):  # the offsets of neighbours have the same first bytes
        fits &= tail[at + i] == tail[i]
    starts = at[fits][:TRIES]
    ends = starts + START + lengths[fits][:TRIES]
    return any(
        len(read_log(tail[start:end], on_error="skip", limits=limits))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
