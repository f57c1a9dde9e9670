"""Read a segment file in pieces of whole batches, so that only one piece at a time is in memory."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import BY_MAGIC, Entries
from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, START

PIECE_BYTES: Final = 8 << 20
HEADERS_BYTES: Final = 256 << 10  # bytes to read at a time while batches are skipped


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Whole batches of a file. Batch b is data[positions[b]:positions[b + 1]].

    at: the byte of the file at which `data` begins. positions: int64[batches + 1]. magics: int8[batches].
    trailing_bytes: the size of an incomplete last batch, which follows the last piece and is not part of it.
    """

    data: Bytes
    positions: Int64
    magics: NDArray[np.int8]
    at: int
    trailing_bytes: int

    @classmethod
    def of(cls, data: Bytes, entries: Entries, batches: int, at: int, trailing_bytes: int = 0) -> "Piece":
        """Return a piece of the first `batches` batches of `data`. at: the byte of the file at which `data` begins."""
        return cls(
            data=data[: entries.positions[batches]],
            positions=entries.positions[: batches + 1],
            magics=entries.magics[:batches],
            at=at,
            trailing_bytes=trailing_bytes,
        )


def pieces(
    source: str | os.PathLike[str] | int,
    piece_bytes: int = PIECE_BYTES,
    most_bytes: int | None = None,
    start: int = 0,
    end: int | None = None,
) -> Iterator[Piece]:
    """Yield the batches of a file or of an open file descriptor, about `piece_bytes` bytes at a time.

    start: the byte at which the first batch begins (see `first_batch`). end: leave out batches that begin at this byte
    or after it. most_bytes: the largest batch to read; None: any size.

    A batch that is larger than piece_bytes is one piece. The last piece may be empty. If the first batch of a file
    claims more than most_bytes, and more bytes than the file has or an unknown magic, the file counts as a file without
    batches. All its bytes are then trailing bytes.

    A length that cannot be skipped or is above most_bytes raises CorruptLog, after all batches before it. Raises
    InvalidRecords, OSError.
    """
    if piece_bytes < START:
        raise InvalidRecords(f"piece_bytes: {piece_bytes} is below {START}")
    with open(source, "rb", buffering=0, closefd=not isinstance(source, int)) as file:
        size, at = os.fstat(file.fileno()).st_size, start
        file.seek(start)
        start_of_next = np.zeros(0, np.uint8)  # the beginning of a batch that does not end in the previous piece
        while True:
            wanted_bytes = max(min(max(piece_bytes, _claimed_bytes(start_of_next)), size - at), len(start_of_next))
            data = _fill(file, start_of_next, wanted_bytes)
            entries = Entries.of(data)
            whole = int(entries.positions[-1])
            if end is not None and at + whole >= end:
                yield Piece.of(data, entries, int(np.searchsorted(entries.positions, end - at)), at)
                return
            if entries.broken:
                raise CorruptLog(at + entries.broken.position, entries.broken.field, entries.broken.promise)
            claimed_bytes = _claimed_bytes(data[whole:])
            if most_bytes is not None and claimed_bytes > most_bytes:
                may_be_batch = claimed_bytes <= size and len(data) > MAGIC_AT and int(data[MAGIC_AT]) in BY_MAGIC
                if not (at + whole or may_be_batch):
                    yield Piece.of(data, entries, 0, at, trailing_bytes=size)
                    return
                if whole:
                    yield Piece.of(data, entries, len(entries.magics), at)
                promise = f"{claimed_bytes:,} bytes, where a batch may take {most_bytes:,}"
                raise CorruptLog(at + whole, "length", promise)
            is_end = len(data) < wanted_bytes or at + len(data) >= size
            if whole or is_end:
                yield Piece.of(data, entries, len(entries.magics), at, len(data) - whole if is_end else 0)
            if is_end:
                return
            start_of_next, at = data[whole:].copy(), at + whole


def _fill(file: FileIO, start_of_next: Bytes, size_bytes: int) -> Bytes:
    """Read from the file until `start_of_next` and the new bytes together are `size_bytes` bytes. Return all of them.

    The result is shorter if the file ends.
    """
    data = np.empty(size_bytes, np.uint8)
    data[: len(start_of_next)] = start_of_next
    filled = len(start_of_next)
    while filled < len(data) and (read := file.readinto(data.data[filled:])):
        filled += read
    return data[:filled]


def first_batch(descriptor: int, wanted: int, most_bytes: int) -> int | None:
    """Return the position of the first batch that begins at byte `wanted` or after it; the file's end if there is none.

    None: a batch before it is incomplete, or its length cannot be skipped or is above most_bytes.
    """
    at, size = 0, os.fstat(descriptor).st_size
    while at < wanted:
        data = np.frombuffer(os.pread(descriptor, HEADERS_BYTES, at), np.uint8)
        entries = Entries.of(data)
        if at + int(entries.positions[-1]) >= wanted:
            return at + int(entries.positions[np.searchsorted(entries.positions, wanted - at)])
        whole = int(entries.positions[-1])
        claimed_bytes = _claimed_bytes(data[whole:])
        at += whole + claimed_bytes
        if entries.broken or claimed_bytes > most_bytes or at > size or not (whole or claimed_bytes):
            return None
    return at


def _claimed_bytes(start: Bytes) -> int:
    """Return the size in bytes that a batch states in its first bytes; 0: too few bytes to know it."""
    if len(start) < START:
        return 0
    return START + int.from_bytes(start[LENGTH_AT:START].tobytes(), "big", signed=True)
