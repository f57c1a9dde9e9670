"""Text files, plain or compressed as a whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
TEXT_BYTES: Final = 4 << 20  # of text, read and parsed at a time

BytesTaken = Callable[[int], int]


@contextmanager
def opened(path: str) -> Iterator[tuple[pa.NativeFile, BytesTaken]]:
    """Open a file as plain text.

    Yield the text, and a function: bytes_taken(held_bytes) is the position in the file, without the last held_bytes
    that were read but are not parsed yet. In a compressed file held bytes cannot be told apart, and count as taken.
    """
    with pa.OSFile(path) as file:
        codec = next((codec for end, codec in COMPRESSED.items() if path.lower().endswith(end)), None)
        if codec is None:
            yield file, lambda held_bytes: file.tell() - held_bytes
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream, lambda _: file.tell()
