"""Rows of a table's file on their way to records: what a kind of file gives, and what the kinds share in reading it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.log.inspect import Damage
from kfbench.sources._columns import Columns, Parts, parts_of, rows_as_json

# Arrow's OSError is of what it reads, over several lines and without the file's name; the last two are of damaged names
# and sizes.
UNREADABLE: Final = (pa.ArrowException, InvalidRecords, OSError, UnicodeDecodeError, OverflowError)


class Read(NamedTuple):
    """Some rows of a file: their numbers int64[n], rising, from 1; what they take in the file; what was left out."""

    numbers: Int64
    parts: Parts
    size_bytes: int
    damage: tuple[Damage, ...] = ()


def lost(damage: Sequence[Damage], size_bytes: int = 0) -> Read:
    """No rows."""
    nothing = Parts(ByteStrings.from_list("", []), None, None, None, None)
    return Read(np.zeros(0, np.int64), nothing, size_bytes, tuple(damage))


def reads(
    batch: pa.RecordBatch,
    numbers: Int64,
    columns: Columns,
    size_bytes: int,
    as_json: Callable[[pa.RecordBatch], Any] = rows_as_json,
) -> Iterator[Read]:
    """Rows as parts of records. as_json: a whole row as a value."""
    # Arrow says that an item cannot be converted, not which: rows are halved until it is found.
    n = batch.num_rows
    try:
        yield Read(numbers, parts_of(batch, columns, as_json), size_bytes)
        return
    except pa.ArrowInvalid as error:
        if n == 1:
            yield lost(
                [Damage(position=int(numbers[0]), size_bytes=size_bytes, field="row", promise=first_line(error))]
            )
            return
    half_bytes = share(size_bytes, n // 2, n)
    yield from reads(batch.slice(0, n // 2), numbers[: n // 2], columns, half_bytes, as_json)
    yield from reads(batch.slice(n // 2), numbers[n // 2 :], columns, size_bytes - half_bytes, as_json)


def runs(sizes: Int64, most: int) -> Iterator[tuple[int, int]]:
    """Neighbours together, about `most` in all."""
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // most)) + 1
    return pairwise([0, *cuts.tolist(), len(sizes)])


def share(size_bytes: int, rows: int, n: int) -> int:
    """What some of n rows take, where all take as much."""
    return size_bytes * rows // n if n else 0


def first_line(error: Exception) -> str:
    """What an error says: Arrow's may go on about its own source."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
