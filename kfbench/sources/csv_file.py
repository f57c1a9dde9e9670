"""Read CSV files: a first row of column names, then rows of cells. An empty cell is null, `""` is an empty text.

If a whole row becomes JSON, cells with a JSON number, `true` or `false` stay as they are. All others become strings.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from kfbench.errors import InvalidRecords
from kfbench.log.damage import Damage
from kfbench.sources.arrow_text import cells_of
from kfbench.sources.columns import Columns, RowBatch, check_columns, damage_only, share
from kfbench.sources.text_file import TextBlock, blocks

LINE_BREAKS: Final = (b"\n", b"\r")
SPACES: Final = (b" ", b"\t")
ANY_BYTES: Final = "latin-1"  # can decode every byte


def read(path: str, columns: Columns) -> Iterator[RowBatch]:
    """Yield the rows of a CSV file. Raises KfbenchError for a missing column or header; OSError; ArrowException."""
    separator = "\t" if ".tsv" in Path(path).name.lower() else ","
    header: list[str] = []
    wanted: list[int] = []
    row = 0  # the number of the next row; the header is row 0
    for block in blocks(path, partial(_rows_end, separator=separator)):
        if block.fault:
            yield damage_only(Damage(position=row, size_bytes=block.size_bytes, field="row", promise=block.fault))
            row += 1
            continue
        found = _parse(block, separator, wanted, len(header), row)
        row += len(found.numbers) + len(found.damage)
        if not header and found.cells:
            first_row: list[Any] = [column[0] for column in found.cells]
            header = [(cell.as_py() or b"").decode(errors="surrogateescape") for cell in first_row]
            check_columns(columns, header)
            wanted = [header.index(name) for name in columns.names] if columns.value else [*range(len(header))]
            found = found._replace(cells=[found.cells[i][1:] for i in wanted], numbers=found.numbers[1:])
        yield found._replace(names=[header[i] for i in wanted])
    if not header:
        raise InvalidRecords("no header, which is the first row of a CSV file")


class _Quotes:
    """The parts of a text that are inside quotes, as Arrow's parser sees them. The text begins with a row.

    A quote at the beginning of a cell opens it. Any other quote outside quotes is text. A quote inside quotes closes
    them, but two in a row are text. So of a run of quotes only the parity counts.
    """

    def __init__(self, text: bytes, separator: str) -> None:
        data = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(data == ord('"'))
        is_first = np.append(True, np.diff(quotes) > 1)[: len(quotes)]
        if not is_first.all():
            runs = np.flatnonzero(is_first)
            quotes = quotes[runs[np.diff(runs, append=len(quotes)) % 2 == 1]]
        is_before_cell = np.zeros(256, np.bool_)
        is_before_cell[np.frombuffer(f"{separator}\r\n".encode(), np.uint8)] = True
        may_open = is_before_cell[data[quotes - 1]] | (quotes == 0)
        # A run that may open a cell enters or leaves quotes. Any other run is text outside quotes, or leaves them.
        if may_open[::2].all():
            is_inside = np.arange(len(quotes)) % 2 == 0
        else:
            opened = np.cumsum(may_open)
            is_inside = (opened - np.maximum.accumulate(np.where(may_open, 0, opened))) % 2 == 1
        self._runs, self._is_inside = quotes, is_inside

    def start_around(self, at: int) -> int | None:
        """Return the position of the quote that opens the cell around a position. None: it is outside quotes."""
        i = int(np.searchsorted(self._runs, at)) - 1
        return int(self._runs[i]) if i >= 0 and self._is_inside[i] else None


def _rows_end(text: bytes, separator: str) -> int:
    """Return the number of bytes that the whole rows of a text take."""
    breaks = [each for each in LINE_BREAKS if each in text]
    quotes = _Quotes(text, separator) if b'"' in text else None
    start: int | None = len(text)
    while start is not None:
        at = max((text.rfind(each, 0, start) for each in breaks), default=-1)
        start = quotes.start_around(at) if quotes else None
    return at + 1


def _without_blank_rows(text: bytes, separator: str) -> bytes:
    """Return the text without rows that have only spaces. Arrow itself skips empty rows."""
    if text[:1] not in SPACES and not any(start + space in text for start in LINE_BREAKS for space in SPACES):
        return text
    quotes = _Quotes(text, separator)
    blank = rb"(?<![^\r\n])[%b]+(?=[\r\n]|\Z)" % b"".join(SPACES).replace(separator.encode(), b"")
    return re.sub(blank, lambda row: b"" if quotes.start_around(row.start()) is None else row[0], text)


def _parse(block: TextBlock, separator: str, wanted: Sequence[int], width: int, row: int) -> RowBatch:
    """Parse whole rows. Cells are bytes, columns have no names yet. Rows with a wrong number of cells are damage.

    wanted: the indices of the columns to read. width: the number of columns; 0: that of the first row, all are read.
    row: the number of the first row.
    """
    text = _without_blank_rows(block.text, separator)
    if not text or text.isspace():
        return RowBatch((), (), np.zeros(0, np.int64), block.size_bytes)
    damage: list[Damage] = []
    text_bytes = len(block.text) + (not block.text.endswith(b"\n"))

    def refuse(found: Any) -> str:
        damage.append(
            Damage(
                position=row + int(found.number) - 1,
                size_bytes=share(block.size_bytes, len(found.text.encode(encoding)) + 1, text_bytes),
                field="row",
                promise=f"{found.actual_columns} cells, {found.expected_columns} are wanted",
            )
        )
        return "skip"

    encoding = "utf-8"
    try:
        text.decode()
    except UnicodeDecodeError:  # Arrow reports a bad row as text
        encoding, text = ANY_BYTES, text.decode(ANY_BYTES).encode()
    # Arrow skips a mark at the beginning of each text that it reads, and no single row without a line break.
    text = b"\n" * text.startswith(BOM_UTF8) + text + b"\n" * (not text.endswith(LINE_BREAKS))
    names = [str(i) for i in range(width)]
    table = pa.csv.read_csv(
        pa.BufferReader(text),
        pa.csv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=names, autogenerate_column_names=not names
        ),
        pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse),
        # Cells stay bytes, because Arrow would guess a column's type from its first rows.
        pa.csv.ConvertOptions(
            default_column_type=pa.large_binary(),
            include_columns=[names[i] for i in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    cells = [column.combine_chunks() for column in table.columns]
    if encoding == ANY_BYTES:
        cells = [
            # Reading a cell as ANY_BYTES turned each byte above 0x7F into two.
            pa.array([cell and cell.decode().encode(ANY_BYTES) for cell in column.to_pylist()], column.type)
            for column in cells
        ]
    numbers = np.arange(row, row + table.num_rows + len(damage))
    numbers = np.delete(numbers, [each.position - row for each in damage])
    left_bytes = block.size_bytes - sum(each.size_bytes for each in damage)
    return RowBatch((), cells, numbers, left_bytes, tuple(damage), cells_as_json=lambda text, _: cells_of(text))
