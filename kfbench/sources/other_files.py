"""Name files that are neither logs nor tables of a kind that kfbench reads, and say what to do with them.

The first bytes of a file decide, not its name.
"""

import os
import re
from codecs import BOM_UTF8
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from kfbench.sources.text_file import codec_of, opened

HEAD_BYTES: Final = 64 << 10
NOT_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_UNPACK: Final = "unpack it, and name what is in it"
_EXPORT: Final = "export its rows as CSV, JSON lines or Parquet"
_CONVERT: Final = "convert it to Parquet"
PARQUET: Final = ("a Parquet file", "give it a name that ends in .parquet")
# By the beginning of the file; the first that matches counts. All of these files have bytes that are no text.
BINARY: Final = {
    rb"\xfd7zXZ\0": ("xz-compressed", "decompress it (xz -dk), or compress it with gzip or zstd instead"),
    rb"LZIP|\x1f[\x9d\xa0]|\x5d\0\0": ("compressed by lzip, compress or lzma", "decompress it first"),
    rb"\x02!L\x18": ("compressed by lz4's legacy format", "decompress it first (lz4 -dk)"),
    rb"\xff\x06\0\0sNaPpY": ("a snappy stream", "decompress it first"),
    rb"(?s)PK\x03\x04.*(?:xl/|spreadsheet)": ("a spreadsheet (Excel or OpenDocument)", "save its sheet as CSV"),
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old Excel or Office file", "save its sheet as CSV"),
    rb"PK(?:\x03\x04|\x05\x06)": ("a zip archive", _UNPACK),
    rb"7z\xbc\xaf\x27\x1c": ("a 7z archive", _UNPACK),
    rb"Rar!\x1a\x07": ("a RAR archive", _UNPACK),
    rb"(?s).{257}ustar": ("a tar archive", _UNPACK),
    rb"Obj\x01": ("an Avro file", _CONVERT),
    rb"ORC": ("an ORC file", _CONVERT),
    rb"ARROW1|FEA1|\xff{4}.{4}\x10\0\0\0": ("an Arrow or Feather file", _CONVERT),
    rb"PAR1|PARE": PARQUET,
    rb"SQLite format 3\0": ("an SQLite database", _EXPORT),
    rb"\x89HDF": ("an HDF5 file", _EXPORT),
    rb"\x80[\x02-\x05]": ("a Python pickle", _EXPORT),
}
_UTF8: Final = "convert it to UTF-8: iconv -f {} -t UTF-8"
TEXT: Final = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": ("UTF-32 text", _UTF8.format("UTF-32")),
    rb"\xff\xfe|\xfe\xff": ("UTF-16 text", _UTF8.format("UTF-16")),
    rb"(?:[^\0]\0){4}": ("UTF-16 text", _UTF8.format("UTF-16LE")),
    rb"(?:\0[^\0]){4}": ("UTF-16 text", _UTF8.format("UTF-16BE")),
    rb"(?i)\s*(?:<!doctype html|<html)": ("a web page", "was the download refused?"),
    rb"\s*<\?xml": ("XML", _EXPORT),
}


def hint(path: str | os.PathLike[str], kind: str | None) -> str:
    """Return what a file is, and what to do with it; "" if its beginning is what its kind wants, or is unknown.

    kind: the kind of table by the file's name, such as "csv"; None: no table. Raises OSError.
    """
    codec, head = codec_of(path), _head(path)
    is_text = NOT_TEXT.search(head) is None
    known = ({} if is_text else BINARY) | (TEXT if kind in ("csv", "json") else {})
    what, advice = next((words for start, words in known.items() if re.match(start, head, re.DOTALL)), ("", ""))
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
        with opened(os.fspath(path)) as (stream, _):
            return bytes(stream.read(HEAD_BYTES))
    except (pa.ArrowException, OSError):
        with Path(path).open("rb") as file:
            return file.read(HEAD_BYTES)
