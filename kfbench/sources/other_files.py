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

from kfbench.log.foreign_files import EXPORT, PARQUET, kind_of
from kfbench.sources.text_file import codec_of, opened

HEAD_BYTES: Final = 64 << 10
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


def hint(path: str | os.PathLike[str], kind: str | None) -> str:
    """Return what a file is, and what to do with it; "" if its beginning is what its kind wants, or is unknown.

    kind: the kind of table by the file's name, such as "csv"; None: no table. Raises OSError.
    """
    codec, head = codec_of(path), _head(path)
    is_text = NOT_TEXT.search(head) is None
    known = None if is_text else kind_of(head)
    what, advice = known or (kind_of(head, TEXT) if kind in ("csv", "json") else None) or ("", "")
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
