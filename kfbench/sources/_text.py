"""Text in a file, compressed as a whole or not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
TEXT_BYTES: Final = 4 << 20  # of text, read and parsed at a time

Told = Callable[[int], int]


@contextmanager
def opened(path: str) -> Iterator[tuple[pa.NativeFile, Told]]:
    """The text of a file; and how much of the file it took, but for so many bytes at its end."""
    with pa.OSFile(path) as file:
        codec = next((codec for end, codec in COMPRESSED.items() if path.lower().endswith(end)), None)
        if codec is None:
            yield file, lambda kept: file.tell() - kept
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream, lambda _: file.tell()
