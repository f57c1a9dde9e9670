"""Read JSON lines: one object per line. Only the fields that the user named are parsed."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.damage import Damage
from kfbench.sources.columns import Columns, Parts
from kfbench.sources.header_columns import unquoted
from kfbench.sources.part import Span
from kfbench.sources.row_runs import UNREADABLE, RowRun, first_line, share
from kfbench.sources.text_file import TEXT_BYTES, opened

LONGEST_ROW: Final = 64 << 20


def read(path: str, columns: Columns, span: Span | None = None) -> Iterator[RowRun]:
    """Yield the rows of a file. span: read only lines that begin in these bytes. Compressed files cannot have a span.

    Raises InvalidRecords for a column that no line has, OSError.
    """
    names = columns.names
    decoder = _decoder(names)
    start, end = span or (0, None)
    first = _first_line(path, start)
    if first is None or (end is not None and first.at >= end):
        return
    number, unseen = first.number, names
    for data, size_bytes in _blocks(path, first.at, end):
        lines, numbers, number = _split(data, number)
        rows, good, bad = _decode(decoder, lines)
        cells = {name: list(map(attrgetter(f"c{i}"), rows)) for i, name in enumerate(names)}
        if unseen and rows:
            if any(not any(map(bytes, cells[name])) for name in unseen):
                _check_seen(path, decoder, names)
            unseen = []
        damage = []
        for i, reason in bad:
            line_bytes = min(int(lines.lengths[i]) + 1, len(data) - int(lines.starts[i]))
            lost_bytes = share(size_bytes, line_bytes, len(data))
            damage.append(Damage(position=int(numbers[i]), size_bytes=lost_bytes, field="JSON", promise=reason))
        values = ByteStrings(lines.data, lines.starts[good], lines.lengths[good])
        parts = _parts_of_items({name: unquoted(raws) for name, raws in cells.items()}, values, columns)
        left_bytes = size_bytes - sum(each.size_bytes for each in damage)
        yield RowRun(numbers[good], parts, left_bytes, tuple(damage))


def _check_seen(path: str, decoder: msgspec.json.Decoder[Any], names: Sequence[str]) -> None:
    """Read the file until each column has occurred once. Raise InvalidRecords for a column that no line has."""
    absent, last = dict(enumerate(names)), 0
    try:
        for data, _ in _blocks(path):
            lines, _, next_number = _split(data, last + 1)
            last = next_number - 1
            rows, _, _ = _decode(decoder, lines)
            absent = {i: name for i, name in absent.items() if not any(bytes(getattr(row, f"c{i}")) for row in rows)}
            if not absent:
                return
    except UNREADABLE:  # raised again when these rows are read
        pass
    raise InvalidRecords(f"no column `{next(iter(absent.values()))}` in lines 1 to {last:,}")


class _Lines(NamedTuple):
    """The lines of a text that are not blank.

    numbers: int64[lines], their line numbers. next_number: the number of the line after the text.
    """

    lines: ByteStrings
    numbers: Int64
    next_number: int


def _split(data: NDArray[np.uint8], number: int) -> _Lines:
    """Split text into lines. number: the number of the first line."""
    breaks = np.flatnonzero(data == ord("\n"))
    if data[-1] != ord("\n"):
        breaks = np.append(breaks, len(data))
    starts = np.append(0, breaks[:-1] + 1)
    lengths = breaks - starts
    lengths -= (lengths > 0) & (data[breaks - 1] == ord("\r"))
    filled = np.flatnonzero(lengths)
    lines = ByteStrings(data, starts[filled], lengths[filled].astype(np.int32))
    return _Lines(lines, number + filled, number + len(breaks))


def _decoder(names: Sequence[str]) -> msgspec.json.Decoder[Any]:
    """Return a decoder that reads the named fields of an object as raw JSON.

    A missing field is empty. Other fields are skipped.
    """
    fields = [(f"c{i}", msgspec.Raw, msgspec.Raw(b"")) for i in range(len(names))]
    return msgspec.json.Decoder(
        msgspec.defstruct("Row", fields, rename={f"c{i}": name for i, name in enumerate(names)}, gc=False)
    )


class _Decoded(NamedTuple):
    """The result of decoding lines.

    rows: the decoded objects. good: int64[rows], the indices of their lines. bad: the index of each line that is no
    row, and the reason.
    """

    rows: list[Any]
    good: Int64
    bad: list[tuple[int, str]]


def _decode(decoder: msgspec.json.Decoder[Any], lines: ByteStrings) -> _Decoded:
    text, n = lines.data.data, len(lines.lengths)
    try:
        rows = decoder.decode_lines(text)
        if len(rows) == n:
            return _Decoded(rows, np.arange(n), [])
    except msgspec.DecodeError:
        pass
    rows, good, bad = [], [], []
    for i, (start, length) in enumerate(zip(lines.starts.tolist(), lines.lengths.tolist(), strict=True)):
        try:
            rows.append(decoder.decode(text[start : start + length]))
            good.append(i)
        except msgspec.DecodeError as error:
            bad.append((i, first_line(error)))
    return _Decoded(rows, np.array(good, np.int64), bad)


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


class _LineStart(NamedTuple):
    """The beginning of a line.

    at: the position of its first byte in the file. number: the line's number, counted from 1.
    """

    at: int
    number: int


def _first_line(path: str, start: int) -> _LineStart | None:
    """Return the first line that begins at byte `start` or after it.

    None: there is no such line, or the line before it is longer than LONGEST_ROW. The reader of that longer line
    reports it.
    """
    if not start:
        return _LineStart(0, 1)
    feeds, at = 0, start - 1
    with Path(path).open("rb", buffering=0) as file:
        while (left := at - file.tell()) and (data := file.read(min(left, TEXT_BYTES))):
            feeds += data.count(b"\n")
        while at < start + LONGEST_ROW and (data := file.read(TEXT_BYTES)):
            if (feed := data.find(b"\n")) >= 0:
                return _LineStart(at + feed + 1, feeds + 2)
            at += len(data)
    return None


class _Block(NamedTuple):
    """Whole lines of text. size_bytes: the number of bytes that they take in the file, which may be compressed."""

    data: NDArray[np.uint8]
    size_bytes: int


def _blocks(path: str, start: int = 0, end: int | None = None) -> Iterator[_Block]:
    """Yield the lines that begin in the bytes `start` to `end` - 1 of a file. Raises InvalidRecords, OSError."""
    with opened(path) as (stream, bytes_taken):
        rest, at = b"", start
        if start:
            stream.seek(start)
        while True:
            fresh = stream.read(TEXT_BYTES)
            data = rest + fresh
            if end is not None and (feed := data.find(b"\n", end - 1 - at)) >= 0:
                yield _Block(np.frombuffer(data, np.uint8, feed + 1), feed + 1)
                return
            whole = data.rfind(b"\n") + 1 if fresh else len(data)
            rest = data[whole:]
            if len(rest) > LONGEST_ROW:
                raise InvalidRecords(f"a line of more than {LONGEST_ROW >> 20} MiB: are these JSON lines?")
            if whole:
                here = bytes_taken(len(rest))
                yield _Block(np.frombuffer(data, np.uint8, whole), here - at)
                at = here
            if not fresh:
                return
