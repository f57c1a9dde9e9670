"""Records in tables: Parquet, JSON lines and CSV, their columns named by the user.

They carry no batches and no offsets: a batching has to be assumed, and records count up from 0. A row that makes no
record (no time where one is wanted, a line that is no JSON object, a CSV row of another width) is damage: it is left
out and stated with its row, counted from 1, the header of a CSV file not counted. What of a file cannot be read at all
is stated too, and the rest of the file is read where the format allows: the next row group, the next line.

Text may be compressed as a whole (.gz, .bz2, .lz4, .zst). In CSV an empty cell is null, `""` is an empty text; in a
whole row as JSON, cells that are JSON numbers, `true` or `false` stand as they are, all others are strings.
"""

import csv
import os
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import RawIOBase, StringIO
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidConfig, InvalidRecords, KfbenchError
from kfbench.log.inspect import Damage
from kfbench.records import Records
from kfbench.sources._columns import Columns, Parts, check_columns, parts_of, rows_as_json, rows_of, unquoted
from kfbench.sources._folder import OTHER_FILES, File, unreadable, walk
from kfbench.sources._json import cells_of, objects
from kfbench.sources.part import CHUNK_BYTES, Chunk, Found, Skipped

Kind = Literal["parquet", "json", "csv"]
KINDS: Final[dict[str, Kind]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
}
COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".lz4": "lz4", ".zst": "zstd"}
HIDDEN: Final = ("_", ".")  # `_SUCCESS`, `_temporary`, `.part-0.crc`: what Spark and Hive write beside their data

# Arrow's OSError is of what it reads, over several lines and without the file's name; the last two are of damaged names
# and sizes.
UNREADABLE: Final = (pa.ArrowException, InvalidRecords, OSError, UnicodeDecodeError, OverflowError)
PART_BYTES: Final = 256 << 20  # of row groups, as they lie there: what one worker reads of a large Parquet file
TEXT_BYTES: Final = 4 << 20  # of text, read and parsed at a time
LONGEST_ROW: Final = 64 << 20
MOST_ROWS: Final = 65_536  # of a Parquet file, decoded at a time
# A dictionary's entry stands for any number of rows: what these may come to, if each is as large as its whole page.
DECODED_BYTES: Final = 256 << 20
# Of a page: type and uncompressed size, the first two fields of Thrift's compact protocol, at most 2 * (1 + 5) bytes.
PAGE_START: Final = 12
I32: Final = rb"\x15([\x80-\xff]{0,4}[\x00-\x7f])"
PAGE_HEADER: Final = re.compile(I32 + I32, re.DOTALL)
DICTIONARY_PAGE: Final = 2
PART_FILE: Final = re.compile(r"part[-_.]?\d.*|[\d_]+", re.IGNORECASE)  # as Spark, Dask and Hive call theirs
ANY_BYTES: Final = "latin-1"  # Arrow's CSV reader tells of a bad row in text only, whatever its bytes are


@dataclass(frozen=True, kw_only=True)
class Table:
    """One file, or some row groups of a Parquet file, a `Part`. groups: the first and the one after the last."""

    path: str
    kind: Kind
    columns: Columns
    size_bytes: int
    groups: tuple[int, int] | None = None
    topic: str = ""
    partition: int | None = None

    @property
    def name(self) -> str:
        return self.path + (f" (row groups {self.groups[0]} to {self.groups[1] - 1})" if self.groups else "")

    @property
    def unit(self) -> str:
        return "line" if self.kind == "json" else "row"

    @property
    def key(self) -> str:
        return "/".join(Path(self.name).absolute().parts[-2:])

    def chunks(self) -> Iterator[Chunk]:
        """Raises KfbenchError for a column that is not there and where the rest of the file cannot be read."""
        read: dict[Kind, Callable[[Table], Iterator[_Read]]] = {"parquet": _parquet, "json": _json_lines, "csv": _csv}
        try:
            yield from _chunks(read[self.kind](self), self.columns)
        except UNREADABLE as error:
            raise InvalidRecords(f"{self.path}: {_line(error)}") from None


class _Read(NamedTuple):
    """Some rows of a file: their numbers int64[n], rising, from 1; what they take in the file; what was left out."""

    numbers: Int64
    parts: Parts
    size_bytes: int
    damage: tuple[Damage, ...] = ()


def _lost(damage: Sequence[Damage], size_bytes: int = 0) -> _Read:
    """No rows."""
    nothing = Parts(ByteStrings.from_list("", []), None, None, None, None)
    return _Read(np.zeros(0, np.int64), nothing, size_bytes, tuple(damage))


def find(path: str | os.PathLike[str], columns: Columns) -> Found:
    """The tables of a file or of a folder and all below it. Raises KfbenchError where there is none."""
    root = Path(path)
    if not root.is_dir():
        kind = kind_of(root)
        if kind is None:
            raise InvalidConfig(f"{root}: no table: {', '.join(KINDS)} are known")
        return Found(parts=tuple(_parts(root, kind, columns)))
    parts: list[Table] = []
    skipped: list[Skipped] = []
    refused: list[KfbenchError | OSError] = []
    for each in walk(root, lambda file: is_table(root, file)):
        if isinstance(each, Skipped):
            skipped.append(each)
            continue
        kind = kind_of(each.path)
        if kind is None or not is_table(root, each.path):
            skipped.append(Skipped(path=os.fspath(each.path), size_bytes=each.size_bytes, reason=OTHER_FILES))
            continue
        try:
            parts += _parts(each.path, kind, columns)
        except (KfbenchError, OSError) as error:
            skipped.append(unreadable(each.path, error, each.size_bytes))
            refused.append(error)
    if parts:
        return Found(parts=tuple(parts), skipped=tuple(skipped))
    if refused:
        raise refused[0]
    if lost := next((each for each in skipped if each.is_data), None):
        raise KfbenchError(f"{lost.path}: {lost.reason}")
    raise KfbenchError(f"{root}: no table in this folder or below it ({', '.join(KINDS)})")


def is_there(folder: Path) -> bool:
    """Whether a folder, or one below it, has a table."""
    files = (each.path for each in walk(folder, lambda _: False) if isinstance(each, File))
    return any(is_table(folder, file) for file in files)


def is_table(folder: Path, file: Path) -> bool:
    """Whether a file below a folder is one by its name, and is not set aside as no data."""
    is_hidden = file.is_relative_to(folder) and any(name.startswith(HIDDEN) for name in file.relative_to(folder).parts)
    return not is_hidden and kind_of(file) is not None


def kind_of(path: str | os.PathLike[str]) -> Kind | None:
    """What a file's name says it is; None: no table."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        return next((kind for suffix in suffixes[-1:] if (kind := KINDS.get(suffix)) != "parquet"), None)
    return KINDS.get(suffixes[-1]) if suffixes else None


def _parts(path: Path, kind: Kind, columns: Columns) -> list[Table]:
    """A file as one part, or a large Parquet file as several."""
    size_bytes = path.stat().st_size
    if not size_bytes:
        raise InvalidRecords(f"{path}: the file is empty")
    whole = Table(path=os.fspath(path), kind=kind, columns=columns, size_bytes=size_bytes, topic=_topic(path))
    if kind != "parquet":
        return [whole]
    try:
        with pq.ParquetFile(path) as file:
            check_columns(columns, file.schema_arrow.names)
            sizes = [_group_bytes(file.metadata.row_group(i)) for i in range(file.num_row_groups)]
    except UNREADABLE as error:
        raise InvalidRecords(f"{path}: {_line(error)}") from None
    if sum(sizes) <= PART_BYTES:
        return [replace(whole, size_bytes=sum(sizes))]
    return [
        replace(whole, groups=(first, end), size_bytes=sum(sizes[first:end]))
        for first, end in _runs(np.array(sizes), PART_BYTES)
    ]


def _topic(path: Path) -> str:
    """A file's name, or that of the folder that it is a part of: `events/day=1/part-00000.parquet` is of events."""
    name = path.name
    while (suffix := Path(name).suffix) and suffix.lower() in (*KINDS, *COMPRESSED):
        name = name.removesuffix(suffix)
    if not PART_FILE.fullmatch(name):
        return name
    return next((folder.name for folder in path.absolute().parents if folder.name and "=" not in folder.name), name)


def _runs(sizes: Int64, most: int) -> Iterator[tuple[int, int]]:
    """Neighbours together, about `most` in all."""
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // most)) + 1
    return pairwise([0, *cuts.tolist(), len(sizes)])


def _share(size_bytes: int, rows: int, n: int) -> int:
    return size_bytes * rows // n if n else 0


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _chunks(reads: Iterator[_Read], columns: Columns) -> Iterator[Chunk]:
    """Rows as chunks of about CHUNK_BYTES, with what was left out of them."""
    offset, position = 0, 0
    for read in reads:
        rows, n = rows_of(read.parts, columns), len(read.numbers)
        damage = list(read.damage)
        left_bytes = read.size_bytes
        for fault in rows.faults:
            more = f" (and {fault.rows - 1:,} more by row {read.numbers[-1]:,})" if fault.rows > 1 else ""
            lost_bytes = _share(read.size_bytes, fault.rows, n)
            left_bytes -= lost_bytes
            number = int(read.numbers[fault.row])
            damage.append(
                Damage(position=number, size_bytes=lost_bytes, field=fault.field, promise=fault.promise + more)
            )
        damage.sort(key=lambda each: each.position)
        records, numbers = rows.records, read.numbers[rows.kept]
        n = len(records)
        for first, end in _runs(_weights(records), CHUNK_BYTES):
            part = records.part(first, end)
            position = int(numbers[first]) if end > first else damage[0].position if damage else position
            yield Chunk(
                records=part.at_offsets(np.arange(offset, offset + len(part))),
                position=position,
                size_bytes=_share(left_bytes, end, n) - _share(left_bytes, first, n) if n else left_bytes,
                damage=() if first else tuple(damage),
                partitions=None if columns.partition is None else rows.partitions[first:end],
            )
            offset += len(part)


def _weights(records: Records) -> Int64:
    """The bytes of each record's key, value and headers, and one more."""
    shapes = records.shapes
    sizes = 1 + np.maximum(shapes.key_lengths, 0).astype(np.int64) + np.maximum(shapes.value_lengths, 0)
    if shapes.has_headers:
        headers = np.maximum(shapes.header_value_lengths, 0).astype(np.int64) + shapes.header_key_lengths
        sizes += np.diff(np.append(0, np.cumsum(headers))[shapes.header_bounds])
    return sizes


# Parquet


def _group_bytes(group: Any) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def _parquet(table: Table) -> Iterator[_Read]:
    # Buffered and not read ahead: a row group may be larger than memory.
    with pq.ParquetFile(table.path, buffer_size=1 << 20, pre_buffer=False) as file:
        there = file.schema_arrow.names
        check_columns(table.columns, there)
        wanted = table.columns.names if table.columns.value is not None else there
        first, end = table.groups or (0, file.num_row_groups)
        row = 1 + sum(file.metadata.row_group(i).num_rows for i in range(first))
        for i in range(first, end):
            yield from _row_group(table.path, file, i, wanted, table.columns, row)
            row += file.metadata.row_group(i).num_rows


def _row_group(
    path: str, file: pq.ParquetFile, i: int, wanted: list[str], columns: Columns, row: int
) -> Iterator[_Read]:
    group = file.metadata.row_group(i)
    size_bytes, rows, done = _group_bytes(group), group.num_rows, 0
    try:
        at_once = _rows_at_once(group, wanted, path)
        batches = file.iter_batches(at_once, row_groups=[i], columns=wanted, use_threads=False)
        for batch in _gathered(batches):
            end = done + batch.num_rows
            numbers = np.arange(row + done, row + end)
            yield from _reads(batch, numbers, columns, _share(size_bytes, end, rows) - _share(size_bytes, done, rows))
            done = end
    except (pa.ArrowException, OSError) as error:
        lost_bytes = size_bytes - _share(size_bytes, done, rows)
        promise = f"{_line(error)} ({rows - done:,} rows)"
        yield _lost([Damage(position=row + done, size_bytes=lost_bytes, field=f"row group {i}", promise=promise)])


def _rows_at_once(group: Any, wanted: Sequence[str], path: str) -> int:
    columns = [group.column(i) for i in range(group.num_columns)]
    columns = [column for column in columns if column.path_in_schema.split(".")[0] in wanted]
    mean_bytes = sum(column.total_uncompressed_size for column in columns) / max(group.num_rows, 1)
    largest_bytes = sum(_entry_bytes(column, path) for column in columns)
    return int(max(1, min(CHUNK_BYTES / max(mean_bytes, 1), DECODED_BYTES / max(largest_bytes, 1), MOST_ROWS)))


def _entry_bytes(column: Any, path: str) -> int:
    """What an entry of a column's dictionary may take: its page, uncompressed, or where that cannot be told the whole
    column. Without a dictionary, rows take in memory what they take there."""
    if not column.has_dictionary_page:
        return 0
    with Path(path).open("rb") as file:
        file.seek(column.dictionary_page_offset)
        start = file.read(PAGE_START)
    told = _page_bytes(start)
    whole = int(column.total_uncompressed_size)
    return whole if told is None else min(told, whole)


def _page_bytes(start: bytes) -> int | None:
    """The uncompressed size in a page's header (parquet.thrift's PageHeader); None: it is not one."""
    found = PAGE_HEADER.match(start)
    if found is None:
        return None
    numbers = [sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(text)) for text in found.groups()]
    kind, size_bytes = ((number >> 1) ^ -(number & 1) for number in numbers)
    return size_bytes if kind == DICTIONARY_PAGE and size_bytes >= 0 else None


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches as larger ones, so that what is done for each is worth it."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= CHUNK_BYTES // 4:
            yield _one(held)
            held, held_bytes = [], 0
    if held:
        yield _one(held)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _reads(
    batch: pa.RecordBatch,
    numbers: Int64,
    columns: Columns,
    size_bytes: int,
    as_json: Callable[[pa.RecordBatch], Any] = rows_as_json,
) -> Iterator[_Read]:
    """Arrow says that an item cannot be converted, not which: rows are halved until it is found."""
    n = batch.num_rows
    try:
        yield _Read(numbers, parts_of(batch, columns, as_json), size_bytes)
        return
    except pa.ArrowInvalid as error:
        if n == 1:
            yield _lost([Damage(position=int(numbers[0]), size_bytes=size_bytes, field="row", promise=_line(error))])
            return
    half_bytes = _share(size_bytes, n // 2, n)
    yield from _reads(batch.slice(0, n // 2), numbers[: n // 2], columns, half_bytes, as_json)
    yield from _reads(batch.slice(n // 2), numbers[n // 2 :], columns, size_bytes - half_bytes, as_json)


# Text

Told = Callable[[int], int]


@contextmanager
def _opened(path: str) -> Iterator[tuple[pa.NativeFile, Told]]:
    """The text of a file; and how much of the file it took, but for so many bytes at its end."""
    with pa.OSFile(path) as file:
        codec = next((codec for end, codec in COMPRESSED.items() if path.lower().endswith(end)), None)
        if codec is None:
            yield file, lambda kept: file.tell() - kept
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream, lambda _: file.tell()


def _lines(path: str) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Whole lines, uint8[n], and what they take in the file. Raises InvalidRecords, OSError."""
    with _opened(path) as (stream, told):
        kept, at = b"", 0
        while True:
            fresh = stream.read(TEXT_BYTES)
            data = kept + fresh
            end = data.rfind(b"\n") + 1 if fresh else len(data)
            kept = data[end:]
            if len(kept) > LONGEST_ROW:
                raise InvalidRecords(f"a line of more than {LONGEST_ROW >> 20} MiB: are these JSON lines?")
            if end:
                here = told(len(kept))
                yield np.frombuffer(data, np.uint8, end), here - at
                at = here
            if not fresh:
                return


# JSON lines


def _json_lines(table: Table) -> Iterator[_Read]:
    names = table.columns.names
    decoder = _decoder(names)
    line, unseen = 1, names
    for data, size_bytes in _lines(table.path):
        lines, numbers, line = _split(data, line)
        rows, good, bad = _decoded(decoder, lines)
        found = {name: list(map(attrgetter(f"c{i}"), rows)) for i, name in enumerate(names)}
        if unseen and rows:
            if any(not any(map(bytes, found[name])) for name in unseen):
                _check_seen(table.path, decoder, names)
            unseen = []
        damage = [
            Damage(
                position=int(numbers[i]),
                size_bytes=_share(
                    size_bytes, min(int(lines.lengths[i]) + 1, len(data) - int(lines.starts[i])), len(data)
                ),
                field="JSON",
                promise=why,
            )
            for i, why in bad
        ]
        values = ByteStrings(lines.data, lines.starts[good], lines.lengths[good])
        parts = _parts_of_items({name: unquoted(raws) for name, raws in found.items()}, values, table.columns)
        left_bytes = size_bytes - sum(each.size_bytes for each in damage)
        yield _Read(numbers[good], parts, left_bytes, tuple(damage))


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
            bad.append((i, _line(error)))
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


# CSV


def _csv(table: Table) -> Iterator[_Read]:
    columns, refused = table.columns, list[Any]()

    def refuse(row: Any) -> str:
        refused.append(row)
        return "skip"

    separator = "\t" if ".tsv" in Path(table.path).name.lower() else ","
    there = _names(table.path, separator)
    check_columns(columns, there)
    wanted = columns.names if columns.value is not None else there
    parsing = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse)
    reading = pa.csv.ReadOptions(
        block_size=TEXT_BYTES, use_threads=False, column_names=there, skip_rows_after_names=1, encoding=ANY_BYTES
    )
    # As bytes: what a cell is shows cell by cell, and is not guessed from the first rows.
    converting = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.large_binary()),
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    row, at, others = 1, 0, list[Any]()
    with _opened(table.path) as (stream, told):
        source = _Blocks(stream, told)
        reader = pa.csv.open_csv(source, reading, parsing, converting)
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                batch = pa.record_batch([])
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error):
                    raise
                promise = f"row {row:,} has no end within {TEXT_BYTES >> 20} MiB: is a quote left open?"
                raise InvalidRecords(promise) from None
            # Arrow reads ahead: some of these may be rows of the batch to come.
            known = len(others)
            while refused:
                others.append(refused.pop(0))
            lost_bytes = sum(_size_bytes(each) for each in others[known:])
            left_bytes = max(source.end() - at - lost_bytes, 0)
            at += left_bytes + lost_bytes
            numbers = np.arange(row, row + batch.num_rows + len(others))
            numbers = numbers[~np.isin(numbers, [_number(each) for each in others])][: batch.num_rows]
            row = int(numbers[-1]) + 1 if len(numbers) else row
            passed = [each for each in others if not batch.num_columns or _number(each) < row]
            others = others[len(passed) :]
            damage = [_of_other_width(each) for each in passed]
            if not batch.num_columns:
                yield _lost(damage, left_bytes)
                if source.error:
                    raise source.error
                return
            for i, read in enumerate(_reads(_as_they_were(batch), numbers, columns, left_bytes, _csv_rows)):
                yield read if i else read._replace(damage=(*damage, *read.damage))


def _names(path: str, separator: str) -> list[str]:
    """Of the columns: the first row. Raises InvalidRecords."""
    with _opened(path) as (stream, _):
        text = stream.read(TEXT_BYTES).decode("utf-8-sig", errors="replace")
    try:
        return next(row for row in csv.reader(StringIO(text, newline=""), delimiter=separator) if row)
    except (StopIteration, csv.Error):
        raise InvalidRecords("no header, which is the first row of a CSV file") from None


def _as_they_were(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cells that came through ANY_BYTES: each byte from 0x80 on is two of UTF-8."""
    return pa.RecordBatch.from_arrays([_bytes_of(column) for column in batch.columns], batch.schema.names)


def _bytes_of(column: Any) -> Any:
    data, starts, lengths = ByteStrings.from_arrow("cell", column)
    if not len(data) or data.max() < 0x80:
        return column
    is_second = (data & 0xC0) == 0x80
    seconds = np.append(0, np.cumsum(is_second))
    joined = data.copy()
    first = np.flatnonzero(is_second) - 1
    joined[first] = ((data[first] & 3) << 6) | (data[first + 1] & 0x3F)
    ends = starts + np.maximum(lengths, 0)
    sizes = np.where(lengths < 0, -1, np.maximum(lengths, 0) - (seconds[ends] - seconds[starts]))
    return ByteStrings(joined[~is_second], starts - seconds[starts], sizes.astype(np.int32)).to_arrow()


class _Blocks(RawIOBase):
    """A file that ends where it cannot be read: Arrow, which reads ahead, would lose what it has not parsed yet."""

    def __init__(self, stream: pa.NativeFile, told: Told) -> None:
        self._stream, self._told = stream, told
        self._ends: deque[int] = deque()
        self.error: Exception | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            data: bytes = self._stream.read(size) if self.error is None else b""
        except (OSError, ValueError, pa.ArrowException) as error:
            self.error, data = error, b""
        is_first = not self._ends
        self._ends.append(self._told(0))
        return data.removeprefix(BOM_UTF8) if is_first else data

    def end(self) -> int:
        """Of a block after the other, where it ends in the file; at last that of the last."""
        return self._ends.popleft() if len(self._ends) > 1 else self._ends[0]


def _number(row: Any) -> int:
    return int(row.number) - 1  # Arrow counts the header


def _size_bytes(row: Any) -> int:
    return len(row.text) + 1


def _of_other_width(row: Any) -> Damage:
    return Damage(
        position=_number(row),
        size_bytes=_size_bytes(row),
        field="row",
        promise=f"{row.actual_columns} cells, {row.expected_columns} are wanted",
    )


def _csv_rows(batch: pa.RecordBatch) -> Any:
    return objects(batch.schema.names, [cells_of(column) for column in batch.columns], batch.num_rows)
