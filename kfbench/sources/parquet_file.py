"""Read Parquet files, row group by row group. Only the columns that the user named are read."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.arrays import group_bounds
from kfbench.errors import InvalidRecords
from kfbench.log.damage import Damage
from kfbench.sources.columns import UNREADABLE, Columns, RowBatch, check_columns, damage_only, share, words_of
from kfbench.sources.part import CHUNK_BYTES, SHARE_BYTES, FileSpan

MOST_ROWS: Final = 65_536  # the largest number of rows that are decoded at a time
# The most bytes that are decoded at a time. Any number of rows may share an entry of a dictionary, so each cell counts
# as if it were as large as the whole dictionary.
DECODED_BYTES: Final = 256 << 20
# A page begins with its type and its uncompressed size: two fields of Thrift's compact protocol, at most 2 * (1 + 5)
# bytes.
PAGE_START: Final = 12
I32: Final = rb"\x15([\x80-\xff]{0,4}[\x00-\x7f])"
PAGE_HEADER: Final = re.compile(I32 + I32, re.DOTALL)
DICTIONARY_PAGE: Final = 2


def find_shares(path: Path, columns: Columns) -> dict[FileSpan | None, int]:
    """Split a file into shares of about SHARE_BYTES each: the row groups of a share (None: all), and their bytes.

    Raises KfbenchError for a missing column or a damaged end of the file, OSError.
    """
    with _open_parquet(path) as file:
        check_columns(columns, file.schema_arrow.names)
        sizes = [_group_bytes(file.metadata.row_group(i)) for i in range(file.num_row_groups)]
    if sum(sizes) <= SHARE_BYTES:
        return {None: sum(sizes)}
    runs = pairwise(group_bounds(np.array(sizes), SHARE_BYTES).tolist())
    return {FileSpan(first, end): sum(sizes[first:end]) for first, end in runs}


@contextmanager
def _open_parquet(path: str | os.PathLike[str]) -> Iterator[pq.ParquetFile]:
    # Buffered and not read ahead: a row group may be larger than memory. INT96 in ns does not reach the year 2263.
    with pa.OSFile(os.fsencode(path)) as stream:
        try:
            file = pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False, coerce_int96_timestamp_unit="us")
            _ = file.schema_arrow.names  # of UTF-8
        except UNREADABLE as error:
            raise InvalidRecords(
                f"the end of the Parquet file, which describes it, cannot be read: {words_of(error)}"
            ) from error
        with file:
            yield file


def _group_bytes(group: Any) -> int:
    return sum(group.column(i).total_compressed_size for i in range(group.num_columns))


def read(path: str, columns: Columns, groups: FileSpan | None) -> Iterator[RowBatch]:
    """Yield the rows of the row groups `groups`; None: of all. Raises KfbenchError, OSError."""
    with _open_parquet(path) as file:
        names = file.schema_arrow.names
        check_columns(columns, names)
        wanted = columns.names if columns.value is not None else names
        first, end = groups or (0, None)
        row = 1 + sum(file.metadata.row_group(i).num_rows for i in range(first))
        for i in range(file.num_row_groups)[first:end]:
            yield from _row_group(path, file, i, wanted, row)
            row += file.metadata.row_group(i).num_rows


def _row_group(path: str, file: pq.ParquetFile, i: int, wanted: list[str], row: int) -> Iterator[RowBatch]:
    group = file.metadata.row_group(i)
    size_bytes, rows, done = _group_bytes(group), group.num_rows, 0
    try:
        at_once = _rows_at_once(group, wanted, path)
        batches = file.iter_batches(at_once, row_groups=[i], columns=wanted, use_threads=False)
        for batch in _merge_small(batches):
            end = done + batch.num_rows
            numbers = np.arange(row + done, row + end)
            batch_bytes = share(size_bytes, end, rows) - share(size_bytes, done, rows)
            yield RowBatch(batch.schema.names, batch.columns, numbers, batch_bytes)
            done = end
    except UNREADABLE as error:
        lost_bytes = size_bytes - share(size_bytes, done, rows)
        promise = f"{words_of(error)} ({rows - done:,} rows)"
        yield damage_only(Damage(position=row + done, size_bytes=lost_bytes, field=f"row group {i}", promise=promise))


def _rows_at_once(group: Any, wanted: Sequence[str], path: str) -> int:
    columns = [group.column(i) for i in range(group.num_columns)]
    columns = [column for column in columns if column.path_in_schema.split(".")[0] in wanted]
    mean_bytes = sum(column.total_uncompressed_size for column in columns) / max(group.num_rows, 1)
    largest_bytes = sum(_entry_bytes(column, path) for column in columns)
    return int(max(1, min(CHUNK_BYTES / max(mean_bytes, 1), DECODED_BYTES / max(largest_bytes, 1), MOST_ROWS)))


def _entry_bytes(column: Any, path: str) -> int:
    """Return an upper bound of the bytes of one entry in a column's dictionary; 0: the column has no dictionary.

    The bound is the uncompressed size of the dictionary's page. If the page cannot be read, it is the size of the
    column.
    """
    if not column.has_dictionary_page:
        return 0
    with Path(path).open("rb") as file:
        file.seek(column.dictionary_page_offset)
        start = file.read(PAGE_START)
    page_bytes = _page_bytes(start)
    column_bytes = int(column.total_uncompressed_size)
    return column_bytes if page_bytes is None else min(page_bytes, column_bytes)


def _page_bytes(start: bytes) -> int | None:
    """Return the uncompressed size that the header of a dictionary page states (PageHeader in parquet.thrift).

    start: the first bytes of the page. None: they are not the header of a dictionary page.
    """
    found = PAGE_HEADER.match(start)
    if found is None:
        return None
    numbers = [sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(text)) for text in found.groups()]
    kind, size_bytes = ((number >> 1) ^ -(number & 1) for number in numbers)
    return size_bytes if kind == DICTIONARY_PAGE and size_bytes >= 0 else None


def _merge_small(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge small record batches into larger ones of about CHUNK_BYTES / 4, because each batch has a fixed cost."""
    small: list[pa.RecordBatch] = []
    small_bytes = 0
    for batch in batches:
        small.append(batch)
        small_bytes += batch.nbytes
        if small_bytes >= CHUNK_BYTES // 4:
            yield _concatenated(small)
            small, small_bytes = [], 0
    if small:
        yield _concatenated(small)


def _concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # one batch is not copied
