"""Read CSV files: a first row of column names, then rows of cells. An empty cell is null, `""` is an empty text.

If a whole row becomes JSON, cells with a JSON number, `true` or `false` stay as they are. All others become strings.
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
from kfbench.log.damage import Damage
from kfbench.sources.arrow_text import cells_of, objects
from kfbench.sources.columns import Columns, check_columns
from kfbench.sources.row_runs import RowRun, damage_only, row_runs
from kfbench.sources.text_file import TEXT_BYTES, OpenText, opened

ANY_BYTES: Final = "latin-1"  # Arrow reports a bad row as text, and latin-1 can decode every byte


def read(path: str, columns: Columns) -> Iterator[RowRun]:
    """Yield the rows of a CSV file.

    Raises KfbenchError for a missing column and for a row without end; OSError; ArrowException.
    """
    # Rows with a wrong number of cells: those that Arrow has just reported, and those that were not yielded yet.
    refused, pending = list[Damage](), list[Damage]()
    separator = "\t" if ".tsv" in Path(path).name.lower() else ","
    names = _column_names(path, separator)
    check_columns(columns, names)
    row, at = 1, 0
    with opened(path) as text:
        source = _Blocks(text)
        reader = _open_reader(source, names, columns, separator, refused)
        while True:
            batch = _next_batch(reader, row)
            # Arrow reads ahead: some refused rows may belong to the next batch.
            fresh = [refused.pop(0) for _ in range(len(refused))]
            pending += fresh
            lost_bytes = sum(each.size_bytes for each in fresh)
            left_bytes = max(source.end() - at - lost_bytes, 0)
            at += left_bytes + lost_bytes
            if batch is None:
                yield damage_only(pending, left_bytes)
                if source.error:
                    raise source.error
                return
            numbers = np.arange(row, row + batch.num_rows + len(pending))
            numbers = numbers[~np.isin(numbers, [each.position for each in pending])][: batch.num_rows]
            row = int(numbers[-1]) + 1 if len(numbers) else row
            damage = tuple(each for each in pending if each.position < row)
            pending = pending[len(damage) :]
            for i, run in enumerate(row_runs(_restore_bytes(batch), numbers, columns, left_bytes, _rows_as_json)):
                yield run if i else run._replace(damage=(*damage, *run.damage))


def _open_reader(source: "_Blocks", names: list[str], columns: Columns, separator: str, refused: list[Damage]) -> Any:
    """Return Arrow's reader of batches of rows. It appends rows with a wrong number of cells to `refused`."""

    def refuse(row: Any) -> str:
        refused.append(
            Damage(
                position=int(row.number) - 1,  # Arrow counts the header
                size_bytes=len(row.text) + 1,
                field="row",
                promise=f"{row.actual_columns} cells, {row.expected_columns} are wanted",
            )
        )
        return "skip"

    wanted = columns.names if columns.value is not None else names
    parsing = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse)
    reading = pa.csv.ReadOptions(
        block_size=TEXT_BYTES, use_threads=False, column_names=names, skip_rows_after_names=1, encoding=ANY_BYTES
    )
    # Cells stay bytes, because Arrow would guess a column's type from its first rows.
    converting = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.large_binary()),
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pa.csv.open_csv(source, reading, parsing, converting)


def _next_batch(reader: Any, row: int) -> pa.RecordBatch | None:
    """Return the next rows; None at the end of the file. Raise InvalidRecords for a row without end.

    row: the number of the first of these rows, for the message.
    """
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
        promise = f"row {row:,} has no end within {TEXT_BYTES >> 20} MiB: is a quote left open?"
        raise InvalidRecords(promise) from None


def _column_names(path: str, separator: str) -> list[str]:
    """Return the cells of the first row, which are the column names. Raises InvalidRecords if there is no row."""
    with opened(path) as file:
        text = file.stream.read(TEXT_BYTES).decode("utf-8-sig", errors="replace")
    try:
        return next(row for row in csv.reader(StringIO(text, newline=""), delimiter=separator) if row)
    except (StopIteration, csv.Error):
        raise InvalidRecords("no header, which is the first row of a CSV file") from None


def _restore_bytes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the cells with the bytes that they have in the file.

    Reading the file as ANY_BYTES turned each byte above 0x7F into two bytes.
    """
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
    """A file for Arrow's reader. At the first read error it pretends to end, and stores the error in `error`.

    Arrow reads ahead. An exception would lose rows that it has read but not parsed yet.
    """

    def __init__(self, text: OpenText) -> None:
        self._stream, self._bytes_taken = text
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
        """Return the position in the file at which the next block ends. After the last block, return its end again."""
        return self._ends.popleft() if len(self._ends) > 1 else self._ends[0]


def _rows_as_json(batch: pa.RecordBatch) -> Any:
    return objects(batch.schema.names, [cells_of(column) for column in batch.columns], batch.num_rows)
