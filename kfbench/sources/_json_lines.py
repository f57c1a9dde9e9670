"""JSON lines: an object a line, of which the named fields alone are parsed."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.inspect import Damage
from kfbench.sources._columns import Columns, Parts, unquoted
from kfbench.sources._read import UNREADABLE, Read, first_line, share
from kfbench.sources._text import TEXT_BYTES, opened

LONGEST_ROW: Final = 64 << 20


def read(path: str, columns: Columns, span: tuple[int, int | None] | None = None) -> Iterator[Read]:
    """span: the lines that begin from that byte on and before the other, None: up to the end; of text that is not
    compressed. Raises InvalidRecords for a column that no line has, OSError."""
    names = columns.names
    decoder = _decoder(names)
    start, end = span or (0, None)
    at, line = _first_line(path, start) or (None, 1)
    if at is None or (end is not None and at >= end):
        return
    unseen = names
    for data, size_bytes in _lines(path, at, end):
        lines, numbers, line = _split(data, line)
        rows, good, bad = _decoded(decoder, lines)
        found = {name: list(map(attrgetter(f"c{i}"), rows)) for i, name in enumerate(names)}
        if unseen and rows:
            if any(not any(map(bytes, found[name])) for name in unseen):
                _check_seen(path, decoder, names)
            unseen = []
        damage = [
            Damage(
                position=int(numbers[i]),
                size_bytes=share(
                    size_bytes, min(int(lines.lengths[i]) + 1, len(data) - int(lines.starts[i])), len(data)
                ),
                field="JSON",
                promise=why,
            )
            for i, why in bad
        ]
        values = ByteStrings(lines.data, lines.starts[good], lines.lengths[good])
        parts = _parts_of_items({name: unquoted(raws) for name, raws in found.items()}, values, columns)
        left_bytes = size_bytes - sum(each.size_bytes for each in damage)
        yield Read(numbers[good], parts, left_bytes, tuple(damage))


def _check_seen(path: str, decoder: msgspec.json.Decoder[Any], names: Sequence[str]) -> None:
    """Reads as far as it takes to see each column once. Raises InvalidRecords for one that is nowhere."""
    absent, last = dict(enumerate(names)), 0
    try:
        for data, _ in _lines(path):
            lines, _, line = _split(data, last + 1)
            last = line - 1
            rows, _, _ = _decoded(decoder, lines)
            absent = {i: name for i, name in absent.items() if not any(bytes(getattr(row, f"c{i}")) for row in rows)}
            if not absent:
                return
    except UNREADABLE:  # said again where its rows are read
        pass
    raise InvalidRecords(f"no column `{next(iter(absent.values()))}` in lines 1 to {last:,}")


def _split(data: NDArray[np.uint8], line: int) -> tuple[ByteStrings, Int64, int]:
    """Lines that are not blank, their numbers from `line` on, and the number of the line that follows."""
    breaks = np.flatnonzero(data == ord("\n"))
    if data[-1] != ord("\n"):
        breaks = np.append(breaks, len(data))
    starts = np.append(0, breaks[:-1] + 1)
    lengths = breaks - starts
    lengths -= (lengths > 0) & (data[breaks - 1] == ord("\r"))
    held = np.flatnonzero(lengths)
    return ByteStrings(data, starts[held], lengths[held].astype(np.int32)), line + held, line + len(breaks)


def _decoder(names: Sequence[str]) -> msgspec.json.Decoder[Any]:
    """Of the named fields, as they stand, absent ones empty; all others are read over."""
    fields = [(f"c{i}", msgspec.Raw, msgspec.Raw(b"")) for i in range(len(names))]
    return msgspec.json.Decoder(
        msgspec.defstruct("Row", fields, rename={f"c{i}": name for i, name in enumerate(names)}, gc=False)
    )


def _decoded(decoder: msgspec.json.Decoder[Any], lines: ByteStrings) -> tuple[list[Any], Int64, list[tuple[int, str]]]:
    """The rows, which lines they are, and which lines are none, with the reason."""
    text, n = lines.data.data, len(lines.lengths)
    try:
        rows = decoder.decode_lines(text)
        if len(rows) == n:
            return rows, np.arange(n), []
    except msgspec.DecodeError:
        pass
    rows, good, bad = [], [], []
    for i, (start, length) in enumerate(zip(lines.starts.tolist(), lines.lengths.tolist(), strict=True)):
        try:
            rows.append(decoder.decode(text[start : start + length]))
            good.append(i)
        except msgspec.DecodeError as error:
            bad.append((i, first_line(error)))
    return rows, np.array(good, np.int64), bad


def _parts_of_items(items: dict[str, ByteStrings], lines: ByteStrings, columns: Columns) -> Parts:
    def array(name: str | None) -> pa.Array | None:
        return None if name is None else items[name].to_arrow()

    return Parts(
        value=lines if columns.value is None else items[columns.value],
        key=None if columns.key is None else items[columns.key],
        timestamp=array(columns.timestamp),
        headers=array(columns.headers),
        partition=array(columns.partition),
    )


def _first_line(path: str, start: int) -> tuple[int, int] | None:
    """Where the first line that begins at byte `start` or behind it does, and its number. None: there is none, or it
    follows one that is too long, which whoever reads that says."""
    if not start:
        return 0, 1
    feeds, at = 0, start - 1
    with Path(path).open("rb", buffering=0) as file:
        while (left := at - file.tell()) and (data := file.read(min(left, TEXT_BYTES))):
            feeds += data.count(b"\n")
        while at < start + LONGEST_ROW and (data := file.read(TEXT_BYTES)):
            if (feed := data.find(b"\n")) >= 0:
                return at + feed + 1, feeds + 2
            at += len(data)
    return None


def _lines(path: str, start: int = 0, end: int | None = None) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Whole lines, uint8[n], and what they take in the file: from the one that begins at byte `start` to the last that
    begins before byte `end`. Raises InvalidRecords, OSError."""
    with opened(path) as (stream, told):
        kept, at = b"", start
        if start:
            stream.seek(start)
        while True:
            fresh = stream.read(TEXT_BYTES)
            data = kept + fresh
            if end is not None and (feed := data.find(b"\n", end - 1 - at)) >= 0:
                yield np.frombuffer(data, np.uint8, feed + 1), feed + 1
                return
            whole = data.rfind(b"\n") + 1 if fresh else len(data)
            kept = data[whole:]
            if len(kept) > LONGEST_ROW:
                raise InvalidRecords(f"a line of more than {LONGEST_ROW >> 20} MiB: are these JSON lines?")
            if whole:
                here = told(len(kept))
                yield np.frombuffer(data, np.uint8, whole), here - at
                at = here
            if not fresh:
                return
