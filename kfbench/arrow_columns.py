"""Read the columns of an Arrow table of records: byte strings, integers and headers."""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords

if TYPE_CHECKING:
    import pyarrow as pa


class HeaderColumns(NamedTuple):
    """Headers of n records: record i has the headers bounds[i] to bounds[i + 1] - 1.

    bounds: int64[n + 1]. keys, values: one item per header.
    """

    bounds: Int64
    keys: ByteStrings
    values: ByteStrings

    @classmethod
    def none(cls, n: int) -> Self:
        nothing = ByteStrings.nulls(0)
        return cls(np.zeros(n + 1, np.int64), nothing, nothing)


class HeaderLists(NamedTuple):
    """Headers of n records as Arrow arrays: record i has the items bounds[i] to bounds[i + 1] - 1.

    bounds: int64[n + 1]. keys, values: one item per header.
    """

    bounds: Int64
    keys: "pa.Array[Any]"
    values: "pa.Array[Any]"


def byte_strings_of(table: "pa.Table | pa.RecordBatch", name: str) -> ByteStrings | None:
    """Return the column `name` as byte strings, or None if there is no such column.

    The column is binary, string, large_binary or large_string. A column with a single chunk is not copied. Raises
    InvalidRecords for another type.
    """
    column = _column(table, name)
    return None if column is None else ByteStrings.from_arrow(name, column)


def integers_of_column(table: "pa.Table | pa.RecordBatch", name: str) -> NDArray[Any] | None:
    """Return a column of integers, or of Arrow timestamps as milliseconds; None: no such column.

    Raises InvalidRecords if a row is null.
    """
    import pyarrow as pa

    column = _column(table, name)
    if column is None:
        return None
    if column.null_count:
        raise InvalidRecords(f"{name}: null at row {column.is_null().to_pylist().index(True)}")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return column.to_numpy()  # type: ignore[no-any-return]


def headers_of(table: "pa.Table | pa.RecordBatch") -> HeaderColumns:
    """Return the column `headers`, a list<struct<key, value>>. Without this column no record has headers."""
    column = _column(table, "headers")
    if column is None:
        return HeaderColumns.none(table.num_rows)
    lists = header_lists(column, "headers")
    keys, values = (ByteStrings.from_arrow("headers", items) for items in (lists.keys, lists.values))
    return HeaderColumns(lists.bounds, keys, values)


def header_lists(lists: "pa.Array[Any]", name: str, wanted: str = "list<struct<key, value>>") -> HeaderLists:
    """Split a column of lists of (key, value) into one array of keys and one of values. A null is an empty list.

    name, wanted: the column's name and its expected type, for the message of InvalidRecords about another type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_list = pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)
    items = lists.flatten() if is_list else lists
    if not is_list or not pa.types.is_struct(items.type) or {"key", "value"} - {field.name for field in items.type}:
        raise InvalidRecords(f"{name}: {wanted} is wanted, not {lists.type}")
    counts = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    columns = dict(zip((field.name for field in items.type), items.flatten(), strict=True))
    return HeaderLists(np.append(0, np.cumsum(counts, dtype=np.int64)), columns["key"], columns["value"])


def _column(table: "pa.Table | pa.RecordBatch", name: str) -> "pa.Array[Any] | None":
    import pyarrow as pa

    if name not in table.schema.names:
        return None
    column = table.column(name)
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks != 1 and column.type in (pa.binary(), pa.string()):
        column = column.cast(pa.large_binary())  # all chunks together may exceed 2 GiB
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
