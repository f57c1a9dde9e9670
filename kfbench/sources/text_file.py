"""Text files, plain or compressed as a whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import pyarrow as pa

COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
TEXT_BYTES: Final = 4 << 20  # read and parsed at a time


class OpenText(NamedTuple):
    """An open file as plain text.

    bytes_taken(held_bytes): the position in the file, without the last held_bytes, which were read but are not parsed
    yet. In a compressed file held bytes cannot be told apart, so they count as taken.
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
