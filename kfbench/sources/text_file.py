"""Read text files in blocks of whole rows: lines of JSON, or rows of CSV. The same rules hold for both.

A byte order mark is skipped, and rows of spaces are blank. The last row needs no line break. A row of more than
LONGEST_ROW bytes is left out, and the rest is read. The first bytes of a file say if it is compressed as a whole.
"""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kfbench.codecs.gzip_members import GzipReader

Advice = tuple[str, str]  # what a file is, and what to do with it
COMPRESSED: Final[Mapping[str, tuple[bytes, Advice]]] = {
    "gzip": (rb"\x1f\x8b\x08", ("a gzip file", "unpack it first (gzip -d)")),
    "bz2": (rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", ("a bzip2 file", "unpack it first (bzip2 -d)")),
    "lz4": (rb"\x04\x22\x4d\x18", ("an lz4 file", "unpack it first (lz4 -d)")),
    "zstd": (rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", ("a zstd file", "unpack it first (zstd -d)")),
}
"""By Arrow's name of the codec: first bytes. Tables are read from within these, segments are not."""
COMPRESSED_SUFFIXES: Final = (".gz", ".bz2", ".lz4", ".zst")
TEXT_BYTES: Final = 4 << 20  # bytes to read and parse at a time
LONGEST_ROW: Final = 64 << 20


class OpenText(NamedTuple):
    """An open file as uncompressed text.

    bytes_taken(held_bytes): a function that returns the number of bytes of the file that were parsed. held_bytes: the
    number of bytes at the end that were read but not parsed yet. In a compressed file they count as parsed, because
    their compressed size is unknown.
    """

    stream: Any
    bytes_taken: Callable[[int], int]


def codec_of(path: str | os.PathLike[str]) -> str | None:
    """Return the codec of a file that is compressed as a whole. None: it is not compressed."""
    with Path(path).open("rb") as file:
        start = file.read(16)
    return next((codec for codec, (pattern, _) in COMPRESSED.items() if re.match(pattern, start)), None)


@contextmanager
def open_text(path: str) -> Iterator[OpenText]:
    codec = codec_of(path)
    with pa.OSFile(os.fsencode(path)) as file:
        if codec is None:
            yield OpenText(file, lambda held_bytes: file.tell() - held_bytes)
        elif codec == "gzip":
            yield OpenText(GzipReader(file), lambda _: file.tell())
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield OpenText(stream, lambda _: file.tell())


class TextBlock(NamedTuple):
    """Whole rows of text, or a single row that is left out.

    size_bytes: the number of bytes that the rows take in the file, which may be compressed. fault: the reason why the
    row is left out.
    """

    text: bytes
    size_bytes: int
    fault: str = ""


def blocks(path: str, rows_end: Callable[[bytes], int], start: int = 0, end: int | None = None) -> Iterator[TextBlock]:
    """Yield the rows that begin in the bytes `start` to `end` - 1 of a file. Raises OSError, ArrowException.

    rows_end: a function that returns the number of bytes that the whole rows of a text take. start, end: only for lines
    of a file that is not compressed.
    """
    with open_text(path) as (stream, bytes_taken):
        if start:
            stream.seek(start)
        at = taken = start  # positions of the next row: in the text, in the file
        rest = b"" if start else stream.read(len(BOM_UTF8))
        if rest == BOM_UTF8:
            at, rest = len(BOM_UTF8), b""
        while end is None or at < end:
            fresh = stream.read(min(max(TEXT_BYTES, len(rest)), LONGEST_ROW + 1 - len(rest)))
            text = rest + fresh
            if end is not None and (feed := text.find(b"\n", end - 1 - at)) >= 0:
                whole = feed + 1
            else:
                whole = rows_end(text) if fresh else min(rows_end(text + b"\n"), len(text))
            rest, here = text[whole:], bytes_taken(len(text) - whole)
            if whole:
                yield TextBlock(text[:whole], here - taken)
                at, taken = at + whole, here
            if not fresh:
                if rest and (end is None or at < end):
                    yield TextBlock(b"", bytes_taken(0) - taken, "a quote is left open to the end of the file")
                return
            if len(rest) > LONGEST_ROW:
                hint = ": is a quote left open?" if b"\n" in rest else ""
                while fresh := stream.read(TEXT_BYTES):
                    at, rest = at + len(rest), fresh
                    if (feed := fresh.find(b"\n")) >= 0:
                        break
                else:
                    feed = len(rest) - 1
                at, rest = at + feed + 1, rest[feed + 1 :]
                here = bytes_taken(len(rest))
                yield TextBlock(b"", here - taken, f"more than {LONGEST_ROW >> 20} MiB{hint}")
                taken = here
