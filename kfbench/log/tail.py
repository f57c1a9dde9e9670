"""The tail of a segment file: the bytes after its last whole batch. All readers use this rule (docs/what-if.md).

Zeros up to the file's end are space that a broker allocated ahead (log.preallocate). The file counts as if it ended
before these zeros. A broker may be writing the last batch, so an incomplete batch is no damage if three conditions are
true. It is in the last segment of its folder. It has at most OPEN_BYTES bytes. No undamaged batch begins inside it.
Everything else is damage.
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
from kfbench.log.pieces import PIECE_BYTES
from kfbench.log.segment import IS_LOG, read_log
from kfbench.text import count_words

Tail = Literal["zeros", "open", "damaged"]

OPEN_BYTES: Final = 1 << 20  # the largest batch that a broker takes by default
TRIES: Final = 1000  # at most this many positions in the tail are read as if a batch began there
SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log")  # the name is the segment's base offset
CUT_OFF: Final = "the batch would end after the file does: it is cut off here, or its length is damaged"
EMPTY: Final = "the file is empty"


def tail_kind(file: FileIO, end: int, size_bytes: int, is_last: bool, limits: Limits = LIMITS) -> Tail:
    """Classify the last `size_bytes` bytes of a file, from byte `end` on: zeros, a batch being written, or damage.

    is_last: True if it is the last segment of its folder (see the function `is_last`).
    """
    if is_zero(file, end, size_bytes):
        return "zeros"
    if is_last and size_bytes <= OPEN_BYTES and not _has_batch(read_bytes(file, end, size_bytes), limits):
        return "open"
    return "damaged"


def is_last(name: str, names: Iterable[str]) -> bool:
    """Return True if a broker may still be writing this segment: no other segment in `names` has a higher base offset.

    name, names: file names in one folder. True for a name that is not a base offset.
    """
    if not SEGMENT_NAME.fullmatch(name):
        return True
    return not any(SEGMENT_NAME.fullmatch(other) and other > name for other in names)


def follow_each_other(path: str, next_path: str) -> bool:
    """Return True if both are segments of one folder, and the second one has the higher base offset."""
    (folder, name), (next_folder, next_name) = os.path.split(path), os.path.split(next_path)
    are_segments = SEGMENT_NAME.fullmatch(name) and SEGMENT_NAME.fullmatch(next_name)
    return bool(are_segments) and folder == next_folder and name < next_name


def names_in(folder: Path) -> list[str]:
    """Return the names of all files in a folder, or no names if it cannot be read."""
    try:
        return [each.name for each in folder.iterdir()]
    except OSError:
        return []


def nothing_in(size_bytes: int) -> str:
    """Return the message about a file without a whole batch.

    size_bytes: the file's size without the zeros that a broker allocated ahead.
    """
    return f"no whole batch in {count_words(size_bytes, 'byte')}: {IS_LOG}" if size_bytes else EMPTY


def read_bytes(file: FileIO, start: int, size_bytes: int) -> Bytes:
    """Return `size_bytes` bytes of a file from byte `start` on, or fewer if the file ends before."""
    file.seek(start)
    parts = []
    while size_bytes > 0 and (part := file.read(size_bytes)):
        parts.append(part)
        size_bytes -= len(part)
    return np.frombuffer(b"".join(parts), np.uint8)


def is_zero(file: FileIO, start: int, size_bytes: int) -> bool:
    """Return True if the `size_bytes` bytes of the file from byte `start` on are all zero."""
    end = start + size_bytes
    return all(not read_bytes(file, at, min(PIECE_BYTES, end - at)).any() for at in range(start, end, PIECE_BYTES))


def _has_batch(tail: Bytes, limits: Limits) -> bool:
    """Return True if an undamaged batch begins inside these bytes, which look like one incomplete batch."""
    n = len(tail) - MAGIC_AT
    if n < 1:
        return False
    at = np.arange(1, n)
    lengths = tail[at[:, None] + LENGTH_AT + np.arange(4)].view(">i4").ravel().astype(np.int64)
    fits = (lengths >= MIN_LENGTH) & (at + START + lengths <= len(tail)) & (tail[at + MAGIC_AT] <= max(BY_MAGIC))
    for i in range(3):  # neighbouring offsets begin with the same bytes
        fits &= tail[at + i] == tail[i]
    starts = at[fits][:TRIES]
    ends = starts + START + lengths[fits][:TRIES]
    return any(
        len(read_log(tail[start:end], on_error="skip", limits=limits))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    )
