"""Runs of rows of a table file, as each kind of file yields them, and helpers that the kinds share."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.inspect import Damage
from kfbench.sources.columns import Columns, Parts, parts_of, rows_as_json

# Arrow raises OSError for damaged content too. The last two come from damaged names and sizes.
UNREADABLE: Final = (pa.ArrowException, InvalidRecords, OSError, UnicodeDecodeError, OverflowError)


class RowRun(NamedTuple):
    """Some rows of a file: row numbers int64[n], rising, counted from 1; cells; bytes in the file; damage left out."""

    numbers: Int64
    parts: Parts
    size_bytes: int
    damage: tuple[Damage, ...] = ()


def damage_only(damage: Sequence[Damage], size_bytes: int = 0) -> RowRun:
    """Return a run without rows that states damage."""
    nothing = Parts(ByteStrings.from_list("", []), None, None, None, None)
    return RowRun(np.zeros(0, np.int64), nothing, size_bytes, tuple(damage))


def row_runs(
    batch: pa.RecordBatch,
    numbers: Int64,
    columns: Columns,
    size_bytes: int,
    as_json: Callable[[pa.RecordBatch], Any] = rows_as_json,
) -> Iterator[RowRun]:
    """Yield rows as parts of records. as_json: turns whole rows into values.

    Arrow does not say which item it cannot convert: halve the rows until that item is found, and state it as damage.
    """
    n = batch.num_rows
    try:
        yield RowRun(numbers, parts_of(batch, columns, as_json), size_bytes)
        return
    except pa.ArrowInvalid as error:
        if n == 1:
            yield damage_only(
                [Damage(position=int(numbers[0]), size_bytes=size_bytes, field="row", promise=first_line(error))]
            )
            return
    half_bytes = share(size_bytes, n // 2, n)
    yield from row_runs(batch.slice(0, n // 2), numbers[: n // 2], columns, half_bytes, as_json)
    yield from row_runs(batch.slice(n // 2), numbers[n // 2 :], columns, size_bytes - half_bytes, as_json)


def runs_of_size(sizes: Int64, run_size: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each run of neighbours whose sizes add up to about run_size."""
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // run_size)) + 1
    return pairwise([0, *cuts.tolist(), len(sizes)])


def share(size_bytes: int, rows: int, n: int) -> int:
    """Return the bytes of some of n rows, if all rows are equally large."""
    return size_bytes * rows // n if n else 0


def first_line(error: Exception) -> str:
    """Return an error's first line; Arrow appends lines about its own source."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
