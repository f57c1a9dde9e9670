"""Convert columns of a table to the parts of records: keys, values, timestamps, headers, partitions.

A column of binary or text becomes keys, values or header values without a change or a copy. Numbers, booleans and dates
become their text; lists, structs and maps become JSON. Timestamps and partitions: see `time_columns`. Headers: see
`header_columns`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.arrow_columns import HeaderColumns
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.layouts import NO_TIMESTAMP
from kfbench.records import Records
from kfbench.sources.arrow_text import Array, json_of, plain, text_of
from kfbench.sources.header_columns import headers_of
from kfbench.sources.time_columns import integers_of, times_of

SHOWN_CHARACTERS: Final = 60
ONE_PARTITION: Final = 0


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
        named = {part: f"column `{getattr(self, part)}`" for part in absent if getattr(self, part) is not None}
        return "; ".join(f"{part}: {named.get(part, without)}" for part, without in absent.items())


class Fault(NamedTuple):
    """Rows that cannot become records, all for the same reason.

    row: the index of the first one, counted from 0. rows: their number. field: the column's name. promise: the rule
    that the first one breaks.
    """

    row: int
    rows: int
    field: str
    promise: str


class Parts(NamedTuple):
    """The cells of some rows, one column per part of a record. None: the user named no column for this part."""

    value: ByteStrings
    key: ByteStrings | None
    timestamp: Array | None
    headers: Array | None
    partition: Array | None


class Rows(NamedTuple):
    """The result of converting rows: their records, and the faults of the rows that cannot become records.

    partitions: int32[records]. is_ms: bool[records], False for a timestamp that is a number of unknown unit.
    """

    records: Records
    partitions: NDArray[np.int32]
    is_ms: NDArray[np.bool_]
    faults: list[Fault]


def rows_as_json(batch: pa.RecordBatch) -> Array:
    """Return each row as the text of a JSON object, large_string[n]."""
    return json_of(batch.to_struct_array(), "the whole row as a value")


def parts_of(
    batch: pa.RecordBatch, columns: Columns, as_json: Callable[[pa.RecordBatch], Array] = rows_as_json
) -> Parts:
    """Return the cells of the rows, split into the parts of a record.

    as_json: a function that converts whole rows to values. Raises InvalidRecords for a column of an unusable type.
    """

    def column(name: str | None) -> Array | None:
        return None if name is None else plain(batch.column(name))

    def texts(name: str) -> ByteStrings:
        return ByteStrings.from_arrow(name, text_of(column(name), f"column `{name}`"))

    return Parts(
        value=ByteStrings.from_arrow("value", as_json(batch)) if columns.value is None else texts(columns.value),
        key=None if columns.key is None else texts(columns.key),
        timestamp=column(columns.timestamp),
        headers=column(columns.headers),
        partition=column(columns.partition),
    )


def check_columns(columns: Columns, table_names: Sequence[str]) -> None:
    """Raise InvalidRecords if a named column is missing in the table, or occurs twice."""
    for name in columns.names:
        if table_names.count(name) != 1:
            problem = "several columns" if name in table_names else "no column"
            raise InvalidRecords(f"{problem} `{name}` (columns: {', '.join(table_names)})")


def rows_of(parts: Parts, columns: Columns) -> Rows:
    """Convert rows to records. A row whose timestamp, headers or partition cannot be read becomes a fault."""
    n = len(parts.value.lengths)
    is_sound, faults = np.ones(n, np.bool_), []
    times, is_ms = np.full(n, NO_TIMESTAMP, np.int64), np.ones(n, np.bool_)
    partitions = np.full(n, ONE_PARTITION, np.int64)

    def leave_out(name: str | None, array: Array, is_bad: NDArray[np.bool_], wanted: str) -> None:
        is_fresh = is_bad & is_sound
        if is_fresh.any():
            first = int(np.argmax(is_fresh))
            promise = f"{_shown(array[first])} is no {wanted}"
            faults.append(Fault(first, int(is_fresh.sum()), f"column `{name}`", promise))
            is_sound[is_fresh] = False

    if parts.timestamp is not None:
        times, is_bad, is_ms = times_of(parts.timestamp, f"column `{columns.timestamp}`")
        leave_out(columns.timestamp, parts.timestamp, is_bad, "time: a number or ISO 8601, not before 1970")
    if parts.partition is not None:
        partitions, is_bad = integers_of(parts.partition, f"column `{columns.partition}`")
        is_bad |= (partitions < 0) | (partitions > np.iinfo(np.int32).max)
        leave_out(columns.partition, parts.partition, is_bad, "partition: a number from 0 to 2**31 - 1")
    headers = HeaderColumns.none(n)
    if parts.headers is not None:
        headers, is_bad = headers_of(parts.headers, f"column `{columns.headers}`")
        leave_out(columns.headers, parts.headers, is_bad, "JSON object of headers, or list of {key, value}")
    records = Records.from_columns(parts.value, parts.key, headers, times)
    sound = np.flatnonzero(is_sound)
    if len(sound) < n:
        records, partitions, is_ms = records.take(sound), partitions[sound], is_ms[sound]
    return Rows(records, partitions.astype(np.int32), is_ms, faults)


def _shown(scalar: Any) -> str:
    """Return the first SHOWN_CHARACTERS characters of a cell, for an error message."""
    cell = scalar.as_py()
    cell = cell.decode(errors="replace") if isinstance(cell, bytes) else cell
    text = "null" if cell is None else repr(cell)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
