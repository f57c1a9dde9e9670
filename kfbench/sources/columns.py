"""Convert the rows of any kind of table to records: keys, values, timestamps, headers, partitions.

The readers of CSV, JSON lines and Parquet yield `RowBatch`. Rows that cannot become records are left out and listed.

A column of binary or text becomes keys, values or header values without a change or a copy. Numbers, booleans and dates
become their text; lists, structs and maps become JSON. Timestamps and partitions: see `time_columns`. Headers come
from a column of type list<struct<key, value>>, a map, or JSON text: an object, or a list of {"key": …, "value": …}.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Final, NamedTuple, Self

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.arrays import Int64, group_bounds
from kfbench.byte_strings import ByteStrings, HeaderColumns, header_columns
from kfbench.errors import InvalidRecords, KfbenchError
from kfbench.layouts import NO_TIMESTAMP, NULL_LENGTH
from kfbench.log.damage import Damage
from kfbench.records import Records
from kfbench.sources.arrow_text import Array, entries_of, is_text, json_of, objects, plain, text_of
from kfbench.sources.part import CHUNK_BYTES, Chunk
from kfbench.sources.time_columns import integers_of, times_of
from kfbench.text import cut, printable

SHOWN_CHARACTERS: Final = 60
ONE_PARTITION: Final = 0
# Errors of decoders. LookupError, RecursionError and ValueError (UnicodeError is one) come from damaged names, numbers
# and nested values.
UNDECODED: Final = (pa.ArrowException, msgspec.MsgspecError, ArithmeticError, LookupError, RecursionError, ValueError)
UNREADABLE: Final = (*UNDECODED, OSError)  # Arrow raises OSError for damaged content too
# Decoders name their own source code. This is what a user can understand, by words in the decoder's message.
IN_OUR_WORDS: Final = {
    re.compile("utf.?8", re.IGNORECASE): "text that is not UTF-8",
    re.compile("truncated compressed", re.IGNORECASE): "the compressed text is truncated",
    re.compile("compress|lz4|zlib|zstd|snappy|brotli|bz2", re.IGNORECASE): "compressed bytes are damaged",
    re.compile("recursion", re.IGNORECASE): "nested too deeply",
    re.compile("encrypt|decrypt", re.IGNORECASE): "encrypted: kfbench has no keys",
    re.compile("memory|malloc", re.IGNORECASE): "larger than the memory",
}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the table columns that become the parts of a record.

    Without `value`, the whole row becomes the value, as JSON. Without `timestamp`, records have no timestamp (-1).
    Without `partition`, all rows of a file are one partition.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    partition: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the table columns to read, each once."""
        return list(dict.fromkeys(name for field in fields(self) if (name := getattr(self, field.name)) is not None))

    @property
    def words(self) -> str:
        """A text that says where each part of a record comes from: a column, or the default."""
        absent = {
            "key": "none",
            "value": "the whole row as JSON",
            "timestamp": "none: all records at once, so that batches fill up",
            "headers": "none",
            "partition": "one for each file",
        }
        named = {part: _column(name) for part in absent if (name := getattr(self, part)) is not None}
        return "; ".join(f"{part}: {named.get(part, without)}" for part, without in absent.items())


class RowBatch(NamedTuple):
    """Neighbouring rows of a table, as the reader of its kind yields them.

    names, cells: the name and the items of each column that was read. numbers: int64[rows], the rows' numbers in
    ascending order, counted from 1. size_bytes: the bytes of these rows in the file. damage: rows that were left out,
    and the reasons. lines: whole rows as JSON, if the table stores them so. cells_as_json: a function that converts
    cells to JSON, else; null for a cell that is not UTF-8.
    """

    names: Sequence[str]
    cells: Sequence["Array | ByteStrings"]
    numbers: Int64
    size_bytes: int
    damage: tuple[Damage, ...] = ()
    lines: ByteStrings | None = None
    cells_as_json: Callable[[Array, str], Array] = json_of

    def part(self, first: int, end: int, size_bytes: int) -> Self:
        """Return the rows `first` to `end` - 1, which take `size_bytes` bytes, without the damage."""

        def some(cells: "Array | ByteStrings") -> "Array | ByteStrings":
            if not isinstance(cells, ByteStrings):
                return cells[first:end]
            return cells._replace(starts=cells.starts[first:end], lengths=cells.lengths[first:end])

        return self._replace(
            cells=list(map(some, self.cells)),
            numbers=self.numbers[first:end],
            size_bytes=size_bytes,
            damage=(),
            lines=None if self.lines is None else some(self.lines),
        )

    def rows_as_json(self) -> ByteStrings:
        """Return each row as a JSON object; null for a row that is not UTF-8. Raises InvalidRecords for bytes."""
        if self.lines is not None:
            return self.lines
        place = "the whole row as a value"
        texts = [
            self.cells_as_json(cells, f"{place}: {printable(name)}")
            for name, cells in zip(self.names, self.cells, strict=True)
        ]
        return ByteStrings.from_arrow(place, objects(self.names, texts, len(self.numbers)))


class RowRecords(NamedTuple):
    """The result of converting rows: their records, and the damage of the rows that cannot become records.

    partitions: int32[records]. is_ms: bool[records], False for a timestamp that is a number of unknown unit.
    size_bytes: the bytes of the records' rows in the file.
    """

    records: Records
    partitions: NDArray[np.int32]
    is_ms: NDArray[np.bool_]
    size_bytes: int
    damage: tuple[Damage, ...]

    @classmethod
    def none(cls, size_bytes: int, *damage: Damage) -> Self:
        return cls(Records.from_lists([]), np.zeros(0, np.int32), np.zeros(0, np.bool_), size_bytes, damage)


def check_columns(columns: Columns, table_names: Sequence[str]) -> None:
    """Raise InvalidRecords if a named column is missing in the table, or occurs twice."""
    for name in columns.names:
        if table_names.count(name) != 1:
            problem = "several columns" if name in table_names else "no column"
            raise InvalidRecords(f"{problem} `{printable(name)}` (columns: {', '.join(map(printable, table_names))})")


def rows_of(batch: RowBatch, columns: Columns) -> RowRecords:
    """Convert rows to records. A row whose timestamp, headers or partition cannot be read is damage.

    Raises InvalidRecords for a column of an unusable type.
    """
    n = len(batch.numbers)
    is_sound, damage = np.ones(n, np.bool_), list[Damage]()
    times, is_ms = np.full(n, NO_TIMESTAMP, np.int64), np.ones(n, np.bool_)
    partitions = np.full(n, ONE_PARTITION, np.int64)

    def cells_of(name: str) -> "Array | ByteStrings":
        return batch.cells[batch.names.index(name)]

    def array_of(name: str) -> Array:
        cells = cells_of(name)
        return cells.to_arrow() if isinstance(cells, ByteStrings) else plain(cells)

    def texts_of(name: str) -> ByteStrings:
        cells = cells_of(name)
        return cells if isinstance(cells, ByteStrings) else ByteStrings.from_arrow(name, text_of(cells, _column(name)))

    def leave_out(is_bad: NDArray[np.bool_], field: str, promise: Callable[[int], str]) -> None:
        is_fresh = is_bad & is_sound
        if is_fresh.any():
            first, count = int(np.argmax(is_fresh)), int(is_fresh.sum())
            more = f" (and {count - 1:,} more by row {batch.numbers[-1]:,})" if count > 1 else ""
            number, lost_bytes = int(batch.numbers[first]), share(batch.size_bytes, count, n)
            damage.append(Damage(position=number, size_bytes=lost_bytes, field=field, promise=promise(first) + more))
            is_sound[is_fresh] = False

    def leave_out_cells(name: str, array: Array, is_bad: NDArray[np.bool_], wanted: str) -> None:
        leave_out(is_bad, _column(name), lambda row: f"{_preview(array, row)} is no {wanted}")

    if columns.value is None:
        value = batch.rows_as_json()
        leave_out(value.lengths == NULL_LENGTH, "row", lambda _: "text that is not UTF-8")
    else:
        value = texts_of(columns.value)
    key = None if columns.key is None else texts_of(columns.key)
    if columns.timestamp is not None:
        array = array_of(columns.timestamp)
        times, is_bad, is_ms = times_of(array, _column(columns.timestamp))
        leave_out_cells(columns.timestamp, array, is_bad, "time: a number or ISO 8601, not before 1970")
    if columns.partition is not None:
        array = array_of(columns.partition)
        partitions, is_bad = integers_of(array, _column(columns.partition))
        is_bad |= (partitions < 0) | (partitions > np.iinfo(np.int32).max)
        leave_out_cells(columns.partition, array, is_bad, "partition: a number from 0 to 2**31 - 1")
    headers = HeaderColumns.none(n)
    if columns.headers is not None:
        array = array_of(columns.headers)
        headers, is_bad = headers_of(array, _column(columns.headers))
        leave_out_cells(columns.headers, array, is_bad, "JSON object of headers, or list of {key, value}")
    records = Records.from_columns(value, key, headers, times)
    sound = np.flatnonzero(is_sound)
    if len(sound) < n:
        records, partitions, is_ms = records.take(sound), partitions[sound], is_ms[sound]
    left_bytes = batch.size_bytes - sum(each.size_bytes for each in damage)
    return RowRecords(records, partitions.astype(np.int32), is_ms, left_bytes, tuple(damage))


def _column(name: str) -> str:
    return f"column `{printable(name)}`"


def _preview(array: Array, row: int) -> str:
    """Return the first SHOWN_CHARACTERS characters of a cell, for an error message."""
    try:
        cell = array[row].as_py()
    except (ArithmeticError, ValueError):  # text that is not UTF-8, a time that Python does not have
        cell = ByteStrings.from_arrow("cell", text_of(array[row : row + 1], "cell")).item(0)
    cell = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    return cut("null" if cell is None else repr(cell), SHOWN_CHARACTERS)


def words_of(error: BaseException) -> str:
    """Return the reason of an error in our words, in one line."""
    if isinstance(error, KfbenchError | msgspec.MsgspecError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    found = (words for pattern, words in IN_OUR_WORDS.items() if pattern.search(f"{type(error).__name__} {error}"))
    return next(found, "damaged, or of a kind that cannot be read")


def chunks(batches: Iterator[RowBatch], columns: Columns) -> Iterator[Chunk]:
    """Yield the records of rows in chunks of about CHUNK_BYTES, with their damage."""
    offset = 0
    for batch in batches:
        damage = batch.damage
        for rows in _convert(batch, columns):
            damage += rows.damage
            records, n, left_bytes = rows.records, len(rows.records), rows.size_bytes
            for first, end in pairwise(group_bounds(_record_bytes(records), CHUNK_BYTES).tolist()):
                yield Chunk(
                    records=records.part(first, end).at_offsets(np.arange(offset, offset + end - first)),
                    size_bytes=share(left_bytes, end, n) - share(left_bytes, first, n) if n else left_bytes,
                    damage=tuple(sorted(damage, key=lambda each: each.position)),
                    partitions=None if columns.partition is None else rows.partitions[first:end],
                    is_ms=rows.is_ms[first:end],
                )
                offset, damage = offset + end - first, ()


def _convert(batch: RowBatch, columns: Columns) -> Iterator[RowRecords]:
    """Yield the rows of a batch as records.

    Arrow does not say which item it cannot convert. So the rows are halved until that item's row is found.
    """
    if not len(batch.numbers):
        yield RowRecords.none(batch.size_bytes)
        return
    try:
        yield rows_of(batch, columns)
        return
    except InvalidRecords:
        raise
    except UNDECODED as error:
        if len(batch.numbers) == 1:
            number, promise = int(batch.numbers[0]), words_of(error)
            yield RowRecords.none(0, Damage(position=number, size_bytes=batch.size_bytes, field="row", promise=promise))
            return
    n = len(batch.numbers)
    half_bytes = share(batch.size_bytes, n // 2, n)
    yield from _convert(batch.part(0, n // 2, half_bytes), columns)
    yield from _convert(batch.part(n // 2, n, batch.size_bytes - half_bytes), columns)


def _record_bytes(records: Records) -> Int64:
    """Return the number of bytes of each record's key, value and headers, plus 1: int64[records]."""
    shapes = records.shapes
    sizes = 1 + np.maximum(shapes.key_lengths, 0).astype(np.int64) + np.maximum(shapes.value_lengths, 0)
    if shapes.has_headers:
        headers = np.maximum(shapes.header_value_lengths, 0).astype(np.int64) + shapes.header_key_lengths
        sizes += np.diff(np.append(0, np.cumsum(headers))[shapes.header_bounds])
    return sizes


def damage_only(damage: Damage) -> RowBatch:
    """Return a batch without rows that only reports damage."""
    return RowBatch((), (), np.zeros(0, np.int64), 0, (damage,))


def share(size_bytes: int, rows: int, n: int) -> int:
    """Return the number of bytes of `rows` rows, if n rows of equal size take `size_bytes` bytes."""
    return size_bytes * rows // n if n else 0


class ParsedHeaders(NamedTuple):
    """The headers of table rows. is_bad: bool[rows], True for rows whose cell cannot be read as headers."""

    headers: HeaderColumns
    is_bad: NDArray[np.bool_]


class _Pair(msgspec.Struct):
    key: str
    value: msgspec.Raw = msgspec.Raw(b"null")


_HEADERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[_Pair])


def headers_of(array: Array, column: str) -> ParsedHeaders:
    """Return the headers of each row. A null cell has no headers. Raise InvalidRecords for another type of column."""
    is_bad = np.zeros(len(array), np.bool_)
    if pa.types.is_null(array.type):
        return ParsedHeaders(HeaderColumns.none(len(array)), is_bad)
    if is_text(array.type):
        return _json_headers(array)
    lists = entries_of(array) if pa.types.is_map(array.type) else array
    wanted = "list<struct<key, value>>, a map or text"
    bounds, keys, values = header_columns(lists, column, lambda items: text_of(items, column), wanted)
    nameless = np.flatnonzero(keys.lengths == NULL_LENGTH)
    if len(nameless):
        is_bad[np.searchsorted(bounds, nameless, side="right") - 1] = True
        keys = keys._replace(lengths=np.maximum(keys.lengths, 0))
    return ParsedHeaders(HeaderColumns(bounds, keys, values), is_bad)


def _json_headers(array: Array) -> ParsedHeaders:
    # msgspec reads a row in about a microsecond; Arrow cannot read objects whose names vary from row to row.
    counts, keys, raws = np.zeros(len(array), np.int64), [], []
    is_bad = np.zeros(len(array), np.bool_)
    for i, text in enumerate(array.cast(pa.large_binary()).to_pylist()):
        if not text:
            continue
        try:
            found = _HEADERS.decode(text)
        except (msgspec.DecodeError, RecursionError):
            is_bad[i] = text != b"null"
            continue
        pairs = list(found.items()) if isinstance(found, dict) else [(pair.key, pair.value) for pair in found]
        keys += [key.encode() for key, _ in pairs]
        raws += [value for _, value in pairs]
        counts[i] = len(pairs)
    bounds = np.append(0, np.cumsum(counts))
    return ParsedHeaders(HeaderColumns(bounds, ByteStrings.from_list("headers", keys), unquote_json(raws)), is_bad)


def unquote_json(raws: list[msgspec.Raw]) -> ByteStrings:
    """Return JSON values as bytes.

    A string becomes its UTF-8 text without quotes. null and an absent value become null. Other values keep their JSON
    text.
    """
    items = [bytes(raw) or b"null" for raw in raws]
    data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    if not items:
        return ByteStrings(data, starts, lengths)
    escapes = np.flatnonzero(data == ord("\\"))
    if len(escapes):
        for i in np.unique(np.searchsorted(starts, escapes, side="right") - 1).tolist():
            if items[i][:1] == b'"':
                with suppress(msgspec.DecodeError, UnicodeError):  # an invalid escape stays
                    items[i] = b'"' + msgspec.json.decode(items[i], type=str).encode() + b'"'
        data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    is_string, is_null = data[starts] == ord('"'), data[starts] == ord("n")
    return ByteStrings(
        data, starts + is_string, np.where(is_null, NULL_LENGTH, lengths - 2 * is_string).astype(np.int32)
    )
