"""Recognise files that are neither segments nor tables by their first bytes, and say what to do with them.

Their names do not matter. A segment begins with its first offset, so with a byte of 0: none has an offset of 2**56.
These files do not.
"""

import os
import re
import struct
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, MIN_LENGTH
from kfbench.sources.text_file import COMPRESSED, Advice, codec_of, open_text

HEAD_BYTES: Final = 512
TEXT_HEAD_BYTES: Final = 64 << 10
UNPACK: Final = "unpack it, and name what is in it"
EXPORT: Final = "export its rows as CSV, JSON lines or Parquet"
CONVERT: Final = "convert it to Parquet"
PARQUET: Final = ("a Parquet file", "give it a name that ends in .parquet")
BINARY: Final[Mapping[bytes, Advice]] = {
    rb"\xfd7zXZ\0": ("xz-compressed", "decompress it (xz -dk), or compress it with gzip or zstd instead"),
    rb"LZIP|\x1f[\x9d\xa0]|\x5d\0\0": ("compressed by lzip, compress or lzma", "decompress it first"),
    rb"\x02!L\x18": ("compressed by lz4's legacy format", "decompress it first (lz4 -dk)"),
    rb"\xff\x06\0\0sNaPpY": ("a snappy stream", "decompress it first"),
    rb"(?s)PK\x03\x04.*(?:xl/|spreadsheet)": ("a spreadsheet (Excel or OpenDocument)", "save its sheet as CSV"),
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel or Office file", "save its sheet as CSV"),
    rb"PK(?:\x03\x04|\x05\x06)": ("a zip archive", UNPACK),
    rb"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    rb"Rar!\x1a\x07": ("a RAR archive", UNPACK),
    rb"[^\0].{256}ustar[\0 ]": ("a tar archive", UNPACK),
    rb"Obj\x01": ("an Avro file", CONVERT),
    rb"ORC": ("an ORC file", CONVERT),
    rb"ARROW1|FEA1|\xff{4}.{4}\x10\0\0\0": ("an Arrow or Feather file", CONVERT),
    rb"PAR1|PARE": PARQUET,
    rb"SQLite format 3\0": ("an SQLite database", EXPORT),
    rb"\x89HDF": ("an HDF5 file", EXPORT),
    rb"\x80[\x02-\x05]": ("a Python pickle", EXPORT),
}
"""By a pattern of the first bytes; the first that matches counts. All of these files have bytes that are no text."""
NOT_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_UTF8: Final = "convert it to UTF-8: iconv -f {} -t UTF-8"
TEXT: Final = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": ("UTF-32 text", _UTF8.format("UTF-32")),
    rb"\xff\xfe|\xfe\xff": ("UTF-16 text", _UTF8.format("UTF-16")),
    rb"(?:[^\0]\0){4}": ("UTF-16 text", _UTF8.format("UTF-16LE")),
    rb"(?:\0[^\0]){4}": ("UTF-16 text", _UTF8.format("UTF-16BE")),
    rb"(?i)\s*(?:<!doctype html|<html)": ("a web page", "was the download refused?"),
    rb"\s*<\?xml": ("XML", EXPORT),
}
REDPANDA: Final = (
    "a segment of Redpanda, whose batches have another header",
    "read the topic (kafka://HOST:PORT/TOPIC)",
)
SUFFIXES: Final = (".gz", ".zst", ".lz4", ".xz", ".bz2", ".sz", ".zip", ".7z")
REDPANDA_HEADER: Final = struct.Struct("<IiqbIhiqqqhii")  # little-endian; its checksum, then the batch's size


def recognise(head: bytes, patterns: Mapping[bytes, Advice] = BINARY) -> Advice | None:
    """Return what a file is by its first bytes; None: none of these."""
    return next((kind for start, kind in patterns.items() if re.match(start, head, re.DOTALL)), None)


def foreign_segment(head: bytes, size_bytes: int) -> str | None:
    """Return what a file is, and what to do with it; None: it may be a segment.

    head: its first HEAD_BYTES bytes.
    """
    packed = recognise(head, dict(COMPRESSED.values()))
    kind = packed or recognise(head) or (REDPANDA if _is_redpanda(head, size_bytes) else None)
    return kind and f"is {kind[0]}: {kind[1]}"


def _is_redpanda(head: bytes, size_bytes: int) -> bool:
    """Return True if the first batch has a plausible size in Redpanda's header, and none in Kafka's."""
    if len(head) < REDPANDA_HEADER.size:
        return False
    checksum, batch_bytes, *_ = REDPANDA_HEADER.unpack_from(head)
    (kafka_length,) = struct.unpack_from(">i", head, LENGTH_AT)
    is_of_kafka = MIN_LENGTH <= kafka_length <= size_bytes
    has_size = REDPANDA_HEADER.size <= batch_bytes <= size_bytes
    return bool(checksum) and has_size and not is_of_kafka and 0 < head[MAGIC_AT] < 64  # the magic is its batch type


def hint(path: str | os.PathLike[str], kind: str | None) -> str:
    """Return what a file is, and what to do with it; "" if its beginning is what its kind wants, or is unknown.

    kind: the kind of table by the file's name, such as "csv"; None: no table. Raises OSError.
    """
    codec, head = codec_of(path), _head(path)
    is_text = NOT_TEXT.search(head) is None
    known = None if is_text else recognise(head)
    what, advice = known or (recognise(head, TEXT) if kind in ("csv", "json") else None) or ("", "")
    if what == PARQUET[0] and codec:
        advice = f"decompress it; it is compressed as a whole ({codec})"
    elif kind == "parquet" and what in ("", PARQUET[0]):
        what, advice = ("", "") if what else ("no Parquet file", "its name ends like that of one")
    elif kind == "json" and not what and (elements := _elements(head)):
        what = "a JSON array" if elements == ".[]" else "pretty-printed JSON"
        advice = f"JSON lines are wanted, one object per line: jq -c '{elements}' FILE > FILE.jsonl"
    return f"is {what}: {advice}" if what else ""


def _elements(head: bytes) -> str:
    """Return jq's filter for the rows of a text that is JSON over several lines, or an array. "": it is neither."""
    first, _, others = head.removeprefix(BOM_UTF8).lstrip().partition(b"\n")
    if first.rstrip() == b"{":
        return "."
    if not first.startswith(b"["):
        return ""
    try:
        msgspec.json.decode(first, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return ".[]"
    return "" if others.lstrip().startswith(b"{") else ".[]"


def _head(path: str | os.PathLike[str]) -> bytes:
    """Return the first bytes of a file, decompressed."""
    try:
        with open_text(os.fspath(path)) as (stream, _):
            return bytes(stream.read(TEXT_HEAD_BYTES))
    except (pa.ArrowException, OSError):
        with Path(path).open("rb") as file:
            return file.read(TEXT_HEAD_BYTES)
