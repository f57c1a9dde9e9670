"""Open text files, uncompressed or compressed as a whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import pyarrow as pa

COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
TEXT_BYTES: Final = 4 << 20  # bytes to read and parse at a time


class OpenText(NamedTuple):
    """An open file as uncompressed text.

    bytes_taken(held_bytes): a function that returns the number of bytes of the file that were parsed. held_bytes: the
    number of bytes at the end that were read but not parsed yet. In a compressed file they count as parsed, because
    their compressed size is unknown.
    """

    stream: pa.NativeFile
    bytes_taken: Callable[[int], int]


@contextmanager
def opened(path: str) -> Iterator[OpenText]:
    with pa.OSFile(path) as file:
        codec = next((codec for end, codec in COMPRESSED.items() if path.lower().endswith(end)), None)
        if codec is None:
            yield OpenText(file, lambda held_bytes: file.tell() - held_bytes)
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield OpenText(stream, lambda _: file.tell())
