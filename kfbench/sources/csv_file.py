"""CSV files: a first row of names, then cells. An empty cell is null, `""` is an empty text.

In a whole row as JSON, cells that are JSON numbers, `true` or `false` stand as they are, all others are strings.
"""

import csv
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from io import RawIOBase, StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.inspect import Damage
from kfbench.sources.arrow_text import cells_of, objects
from kfbench.sources.columns import Columns, check_columns
from kfbench.sources.row_runs import RowRun, damage_only, row_runs
from kfbench.sources.text_file import TEXT_BYTES, BytesTaken, opened

ANY_BYTES: Final = "latin-1"  # Arrow reports a bad row as text; every byte is a character of latin-1


def read(path: str, columns: Columns) -> Iterator[RowRun]:
    """Yield the rows of a file.

    Raises KfbenchError for a missing column and for a row without end; OSError; ArrowException.
    """
    refused = list[Any]()

    def refuse(row: Any) -> str:
        refused.append(row)
        return "skip"

    separator = "\t" if ".tsv" in Path(path).name.lower() else ","
    names = _column_names(path, separator)
    check_columns(columns, names)
    wanted = columns.names if columns.value is not None else names
    parsing = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse)
    reading = pa.csv.ReadOptions(
        block_size=TEXT_BYTES, use_threads=False, column_names=names, skip_rows_after_names=1, encoding=ANY_BYTES
    )
    # Cells stay bytes: Arrow would guess a column's type from its first rows.
    converting = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.large_binary()),
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    row, at, others = 1, 0, list[Any]()
    with opened(path) as (stream, bytes_taken):
        source = _Blocks(stream, bytes_taken)
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
            # Arrow reads ahead: some refused rows may belong to the next batch.
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
            damage = [_width_damage(each) for each in passed]
            if not batch.num_columns:
                yield damage_only(damage, left_bytes)
                if source.error:
                    raise source.error
                return
            for i, each in enumerate(row_runs(_restore_bytes(batch), numbers, columns, left_bytes, _rows_as_json)):
                yield each if i else each._replace(damage=(*damage, *each.damage))


def _column_names(path: str, separator: str) -> list[str]:
    """Return the cells of the first row. Raises InvalidRecords."""
    with opened(path) as (stream, _):
        text = stream.read(TEXT_BYTES).decode("utf-8-sig", errors="replace")
    try:
        return next(row for row in csv.reader(StringIO(text, newline=""), delimiter=separator) if row)
    except (StopIteration, csv.Error):
        raise InvalidRecords("no header, which is the first row of a CSV file") from None


def _restore_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return cells with their own bytes: reading as ANY_BYTES turned each byte from 0x80 on into two bytes of UTF-8."""
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
    """A file that ends where it cannot be read, and keeps the error.

    Arrow reads ahead. An exception would lose the rows that it has read and not parsed yet.
    """

    def __init__(self, stream: pa.NativeFile, bytes_taken: BytesTaken) -> None:
        self._stream, self._bytes_taken = stream, bytes_taken
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
        self._ends.append(self._bytes_taken(0))
        return data.removeprefix(BOM_UTF8) if is_first else data

    def end(self) -> int:
        """Return where the next block ends in the file; for the last block, again and again."""
        return self._ends.popleft() if len(self._ends) > 1 else self._ends[0]


def _number(row: Any) -> int:
    return int(row.number) - 1  # Arrow counts the header


def _size_bytes(row: Any) -> int:
    return len(row.text) + 1


def _width_damage(row: Any) -> Damage:
    return Damage(
        position=_number(row),
        size_bytes=_size_bytes(row),
        field="row",
        promise=f"{row.actual_columns} cells, {row.expected_columns} are wanted",
    )


def _rows_as_json(batch: pa.RecordBatch) -> Any:
    return objects(batch.schema.names, [cells_of(column) for column in batch.columns], batch.num_rows)
