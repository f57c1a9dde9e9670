"""Read JSON lines: one object per line. Only the fields that the user named are parsed."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.damage import Damage
from kfbench.sources.columns import UNDECODED, UNREADABLE, Columns, RowBatch, damage_only, share, unquote_json, words_of
from kfbench.sources.part import FileSpan
from kfbench.sources.text_file import TEXT_BYTES, TextBlock, blocks
from kfbench.text import printable


def read(path: str, columns: Columns, span: FileSpan | None = None) -> Iterator[RowBatch]:
    """Yield the rows of a file. span: read only lines that begin in these bytes. Compressed files cannot have a span.

    Raises InvalidRecords for a column that no line has, OSError.
    """
    names = columns.names
    decoder = _Decoder(names)
    start, end = span or (0, None)
    first = _first_line(path, start, end)
    if first is None:
        return
    number, unseen = first.number, bool(names)
    for block in blocks(path, _lines_end, first.at, end):
        if block.fault:
            yield damage_only(Damage(position=number, size_bytes=block.size_bytes, field="line", promise=block.fault))
            number += 1
            continue
        found = decoder.decode(block, number)
        number = found.next_number
        cells = {name: list(map(get, found.rows)) for name, get in decoder.getters.items()}
        if unseen and found.rows:
            if not all(any(map(bytes, raws)) for raws in cells.values()):
                _check_seen(path, decoder)
            unseen = False
        left_bytes = block.size_bytes - sum(each.size_bytes for each in found.damage)
        texts = list(map(unquote_json, cells.values()))
        yield RowBatch(names, texts, found.numbers, left_bytes, found.damage, found.lines)


def _check_seen(path: str, decoder: "_Decoder") -> None:
    """Read the file until each column has occurred once. Raise InvalidRecords for a column that no line has."""
    absent, next_number = [*decoder.getters], 1
    try:
        for block in blocks(path, _lines_end):
            if block.fault:
                next_number += 1
                continue
            found = decoder.decode(block, next_number)
            next_number = found.next_number
            absent = [name for name in absent if not any(map(bytes, map(decoder.getters[name], found.rows)))]
            if not absent:
                return
    except UNREADABLE:  # raised again when these rows are read
        pass
    raise InvalidRecords(f"no column `{printable(absent[0])}` in lines 1 to {next_number - 1:,}")


def _lines_end(text: bytes) -> int:
    return text.rfind(b"\n") + 1


class _DecodedLines(NamedTuple):
    """The rows of a text: decoded objects, their lines, and the numbers of these lines, int64[rows].

    damage: the lines that are no row. next_number: the number of the line after the text.
    """

    rows: list[Any]
    lines: ByteStrings
    numbers: Int64
    damage: tuple[Damage, ...]
    next_number: int


class _Decoder:
    """Reads the named fields of an object as raw JSON. A missing field is empty. Other fields are skipped.

    getters: a function per name that returns the field of a decoded row.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.getters: dict[str, Callable[[Any], msgspec.Raw]] = {}
        row_type: Any = dict[str, msgspec.Raw]
        try:
            fields = {f"c{i}": name for i, name in enumerate(names)}
            of_type = [(field, msgspec.Raw, msgspec.Raw(b"")) for field in fields]
            row_type = msgspec.defstruct("Row", of_type, rename=fields, gc=False)
            self.getters = {name: attrgetter(field) for field, name in fields.items()}
        except ValueError:  # quotes, controls, bytes that are not UTF-8
            self.getters = {name: methodcaller("get", name, msgspec.Raw(b"")) for name in names}
        self._decoder = msgspec.json.Decoder(row_type)

    def decode(self, block: TextBlock, number: int) -> _DecodedLines:
        """Decode the lines of a block that are not blank. number: the number of the first line."""
        data = np.frombuffer(block.text, np.uint8)
        breaks = np.flatnonzero(data == ord("\n"))
        if not block.text.endswith(b"\n"):
            breaks = np.append(breaks, len(data))
        starts = np.append(0, breaks[:-1] + 1)
        lengths = breaks - starts
        lengths -= (lengths > 0) & (data[breaks - 1] == ord("\r"))
        filled = np.flatnonzero(lengths)
        firsts = data[starts[filled]]
        for i in filled[(firsts == ord(" ")) | (firsts == ord("\t"))].tolist():
            lengths[i] *= not block.text[starts[i] : breaks[i]].isspace()
        filled = np.flatnonzero(lengths)
        starts, lengths = starts[filled], lengths[filled].astype(np.int32)
        numbers, next_number = number + filled, number + len(breaks)
        try:
            rows = self._decoder.decode_lines(data.data)
            if len(rows) == len(numbers):
                return _DecodedLines(rows, ByteStrings(data, starts, lengths), numbers, (), next_number)
        except UNDECODED:
            pass
        rows, good, damage = [], [], []
        for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            try:
                rows.append(self._decoder.decode(data.data[start : start + length]))
                good.append(i)
            except UNDECODED as error:
                lost_bytes = share(block.size_bytes, min(length + 1, len(data) - start), len(data))
                place = int(numbers[i])
                damage.append(Damage(position=place, size_bytes=lost_bytes, field="JSON", promise=words_of(error)))
        chosen = np.array(good, np.int64)
        lines = ByteStrings(data, starts[chosen], lengths[chosen])
        return _DecodedLines(rows, lines, numbers[chosen], tuple(damage), next_number)


class _LineStart(NamedTuple):
    """The beginning of a line.

    at: the position of its first byte in the file. number: the line's number, counted from 1.
    """

    at: int
    number: int


def _first_line(path: str, start: int, end: int | None) -> _LineStart | None:
    """Return the first line that begins in the bytes `start` to `end` - 1 of a file. None: there is no such line."""
    if not start:
        return _LineStart(0, 1)
    feeds, at = 0, start - 1
    with Path(path).open("rb", buffering=0) as file:
        while (left := at - file.tell()) and (data := file.read(min(left, TEXT_BYTES))):
            feeds += data.count(b"\n")
        while (end is None or at + 1 < end) and (data := file.read(TEXT_BYTES)):
            if (feed := data.find(b"\n")) >= 0:
                at += feed + 1
                return _LineStart(at, feeds + 2) if end is None or at < end else None
            at += len(data)
    return None
