"""Columns of an Arrow table that holds records: byte strings, integers and headers."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords

if TYPE_CHECKING:
    import pyarrow as pa


class HeaderColumns(NamedTuple):
    """Headers of n records: bounds int64[n + 1], and the keys and values of all headers."""

    bounds: Int64
    keys: ByteStrings
    values: ByteStrings


def byte_strings_of(table: "pa.Table | pa.RecordBatch", name: str) -> ByteStrings | None:
    """Return a column of binary, string or large variants, without a copy if it has one chunk. None: no such column."""
    column = _column(table, name)
    return None if column is None else ByteStrings.from_arrow(name, column)


def integers_of_column(table: "pa.Table | pa.RecordBatch", name: str) -> NDArray[Any] | None:
    """Return a column of integers or of timestamps, which become milliseconds. None: there is no such column."""
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
    """Return the headers of a column list<struct<key, value>>; of no such column, none."""
    import pyarrow as pa

    bounds, lists = np.zeros(table.num_rows + 1, np.int64), _column(table, "headers")
    if lists is None:
        return HeaderColumns(bounds, ByteStrings.from_list("", []), ByteStrings.from_list("", []))
    if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
        raise InvalidRecords(f"headers: list<struct<key, value>> is wanted, not {lists.type}")
    np.cumsum(lists.value_lengths().fill_null(0).to_numpy(), out=bounds[1:])
    pairs = lists.flatten()
    if not pa.types.is_struct(pairs.type) or {"key", "value"} - {field.name for field in pairs.type}:
        raise InvalidRecords(f"headers: list<struct<key, value>> is wanted, not {lists.type}")
    columns = dict(zip((field.name for field in pairs.type), pairs.flatten(), strict=True))
    keys, values = (ByteStrings.from_arrow("headers", columns[name]) for name in ("key", "value"))
    return HeaderColumns(bounds, keys, values)


def _column(table: "pa.Table | pa.RecordBatch", name: str) -> "pa.Array[Any] | None":
    """Return a column as one array."""
    import pyarrow as pa

    if name not in table.schema.names:
        return None
    column = table.column(name)
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks != 1 and column.type in (pa.binary(), pa.string()):
        column = column.cast(pa.large_binary())  # together the chunks may be beyond 2 GiB
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
