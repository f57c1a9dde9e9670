"""CSV: a first row of names, then cells. An empty cell is null, `""` is an empty text.

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
from kfbench.sources._columns import Columns, check_columns
from kfbench.sources._json import cells_of, objects
from kfbench.sources._read import Read, lost, reads
from kfbench.sources._text import TEXT_BYTES, Told, opened

ANY_BYTES: Final = "latin-1"  # Arrow's CSV reader tells of a bad row in text only, whatever its bytes are


def read(path: str, columns: Columns) -> Iterator[Read]:
    """Raises KfbenchError for a column that is not there and for a row without an end, OSError, ArrowException."""
    refused = list[Any]()

    def refuse(row: Any) -> str:
        refused.append(row)
        return "skip"

    separator = "\t" if ".tsv" in Path(path).name.lower() else ","
    there = _names(path, separator)
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
    with opened(path) as (stream, told):
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
                yield lost(damage, left_bytes)
                if source.error:
                    raise source.error
                return
            for i, each in enumerate(reads(_as_they_were(batch), numbers, columns, left_bytes, _rows_as_json)):
                yield each if i else each._replace(damage=(*damage, *each.damage))


def _names(path: str, separator: str) -> list[str]:
    """Of the columns: the first row. Raises InvalidRecords."""
    with opened(path) as (stream, _):
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


def _rows_as_json(batch: pa.RecordBatch) -> Any:
    return objects(batch.schema.names, [cells_of(column) for column in batch.columns], batch.num_rows)
