"""Runs of neighbouring table rows, which the readers of all kinds of tables yield, and helpers for these readers."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.damage import Damage
from kfbench.sources.columns import Columns, Parts, parts_of, rows_as_json

# Errors that mean damage. Arrow raises OSError for damaged content too. Damaged names and sizes raise the last two.
UNREADABLE: Final = (pa.ArrowException, InvalidRecords, OSError, UnicodeDecodeError, OverflowError)


class RowRun(NamedTuple):
    """Neighbouring rows of a table file.

    numbers: int64[rows], the rows' numbers in ascending order, counted from 1. size_bytes: the bytes of these rows in
    the file. damage: rows that were left out, and the reasons.
    """

    numbers: Int64
    parts: Parts
    size_bytes: int
    damage: tuple[Damage, ...] = ()


def damage_only(damage: Sequence[Damage], size_bytes: int = 0) -> RowRun:
    """Return a run without rows that only reports damage."""
    nothing = Parts(ByteStrings.from_list("", []), None, None, None, None)
    return RowRun(np.zeros(0, np.int64), nothing, size_bytes, tuple(damage))


def row_runs(
    batch: pa.RecordBatch,
    numbers: Int64,
    columns: Columns,
    size_bytes: int,
    as_json: Callable[[pa.RecordBatch], Any] = rows_as_json,
) -> Iterator[RowRun]:
    """Yield the rows of `batch` with their cells split into the parts of a record.

    as_json: a function that converts whole rows to values. Arrow does not say which item it cannot convert. So the rows
    are halved until that item's row is found. This row is damage.
    """
    n = batch.num_rows
    try:
        yield RowRun(numbers, parts_of(batch, columns, as_json), size_bytes)
        return
    except pa.ArrowInvalid as error:
        if n == 1:
            row = int(numbers[0])
            yield damage_only([Damage(position=row, size_bytes=size_bytes, field="row", promise=first_line(error))])
            return
    half_bytes = share(size_bytes, n // 2, n)
    yield from row_runs(batch.slice(0, n // 2), numbers[: n // 2], columns, half_bytes, as_json)
    yield from row_runs(batch.slice(n // 2), numbers[n // 2 :], columns, size_bytes - half_bytes, as_json)


def runs_of_size(sizes: Int64, run_size: int) -> Iterator[tuple[int, int]]:
    """Group neighbours whose sizes add up to about run_size.

    Yield (first index, index after the last) of each group.
    """
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // run_size)) + 1
    return pairwise([0, *cuts.tolist(), len(sizes)])


def share(size_bytes: int, rows: int, n: int) -> int:
    """Return the number of bytes of `rows` rows, if n rows of equal size take `size_bytes` bytes."""
    return size_bytes * rows // n if n else 0


def first_line(error: Exception) -> str:
    """Return the first line of an error's message. Arrow appends lines about its own source code."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
