"""Columns of byte strings (keys, values, header keys, header values), built from lists or Arrow arrays.

The functions at the end read the columns of an Arrow table of records: byte strings, integers and headers.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64, ranges
from kfbench.errors import InvalidRecords
from kfbench.layouts import NULL_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa


def _starts(lengths: NDArray[Any]) -> Int64:
    """Return the start of each item, int64[n], for items that are stored without gaps. A null takes no bytes."""
    starts = np.zeros(len(lengths), np.int64)
    np.cumsum(np.maximum(lengths[:-1], 0), out=starts[1:], dtype=np.int64)
    return starts


class ByteStrings(NamedTuple):
    """n byte strings in one buffer: item i is data[starts[i]:starts[i] + lengths[i]].

    data: uint8. starts: int64[n]. lengths: int32[n]; -1 is a null, whose start is ignored.
    """

    data: Bytes
    starts: Int64
    lengths: Int32

    @classmethod
    def nulls(cls, n: int) -> Self:
        return cls(np.zeros(0, np.uint8), np.zeros(n, np.int64), np.full(n, NULL_LENGTH, np.int32))

    @classmethod
    def from_list(cls, name: str, items: Sequence[bytes | None]) -> Self:
        try:
            lengths = np.array([NULL_LENGTH if item is None else len(item) for item in items], np.int32)
            data = b"".join(item for item in items if item is not None)
        except TypeError as error:
            raise InvalidRecords(f"{name}: bytes or None are wanted ({error})") from None
        return cls(np.frombuffer(data, np.uint8), _starts(lengths), lengths)

    @classmethod
    def from_arrow(cls, name: str, array: "pa.Array[Any]") -> Self:
        """Return the items of an Arrow array of binary, string, large_binary or large_string.

        Its data buffer is not copied.

        name: the column's name in the message of InvalidRecords.
        """
        import pyarrow as pa

        kind = array.type
        large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
        if not (large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
            raise InvalidRecords(f"{name}: a binary or string column is wanted, not {kind}")
        _, offsets_buffer, data_buffer = array.buffers()
        n = len(array)
        if n == 0 or offsets_buffer is None:
            return cls.nulls(n)
        width = np.int64 if large else np.int32
        bounds = np.frombuffer(offsets_buffer, width, n + 1, array.offset * np.dtype(width).itemsize)
        sizes = np.diff(bounds)
        if sizes.size and sizes.max() > np.iinfo(np.int32).max:
            raise InvalidRecords(f"{name}: a value of {sizes.max()} bytes is beyond int32")
        lengths = sizes.astype(np.int32)
        if array.null_count:
            lengths[array.is_null().to_numpy(zero_copy_only=False)] = NULL_LENGTH
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
        return cls(data, bounds[:-1].astype(np.int64), lengths)

    def to_arrow(self) -> "pa.Array[Any]":
        """Return a large_binary array. The bytes are not copied if the items are stored without gaps and in order."""
        import pyarrow as pa

        null = self.lengths == NULL_LENGTH
        sizes = np.maximum(self.lengths, 0).astype(np.int64)
        bounds = np.append(0, np.cumsum(sizes))
        is_filled = sizes > 0  # the start of an empty item means nothing
        first = int(self.starts[is_filled][0]) if is_filled.any() else 0
        if np.array_equal(self.starts[is_filled], (bounds[:-1] + first)[is_filled]):
            data, bounds = self.data, bounds + first
        else:
            data = self.data[ranges(self.starts, sizes)]
        validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
        buffers = [validity, pa.py_buffer(bounds), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)

    def pack(self) -> Self:
        """Copy the items into a new buffer, in order and without gaps."""
        sizes = np.maximum(self.lengths, 0).astype(np.int64)
        return type(self)(self.data[ranges(self.starts, sizes)], _starts(self.lengths), self.lengths)

    def check(self, name: str) -> None:
        """Raise InvalidRecords if an item lies outside the data. name: the items' name in the message."""
        if len(self.starts) != len(self.lengths):
            raise InvalidRecords(f"{name}_starts: {len(self.starts)} items for {len(self.lengths)} lengths")
        is_filled = self.lengths > 0
        if not is_filled.any():
            return
        starts = self.starts[is_filled]
        # Subtract, because start + length could overflow.
        if starts.min() < 0 or np.any(starts > len(self.data) - self.lengths[is_filled].astype(np.int64)):
            raise InvalidRecords(f"{name}_starts: an item lies outside the {len(self.data)} bytes of {name}_data")

    def item(self, i: int) -> bytes | None:
        length = int(self.lengths[i])
        if length == NULL_LENGTH:
            return None
        start = int(self.starts[i])
        return bytes(self.data[start : start + length])

    def to_list(self) -> list[bytes | None]:
        """Return all items. Faster than calling `item` for each."""
        is_filled = self.lengths > 0
        starts = np.where(is_filled, self.starts, 0)  # the start of an empty item means nothing
        first = int(self.starts[is_filled].min()) if is_filled.any() else 0
        ends = starts + np.maximum(self.lengths, 0)
        # One copy of the part that holds items, because a slice of `bytes` is cheaper than a slice of an array.
        data = self.data[first : int(ends.max(initial=0))].tobytes()
        bounds = zip(self.lengths.tolist(), (starts - first).tolist(), (ends - first).tolist(), strict=True)
        return [data[start:end] if length > 0 else b"" if length == 0 else None for length, start, end in bounds]

    def same(self, other: "ByteStrings") -> bool:
        return np.array_equal(self.lengths, other.lengths) and bool(self.to_arrow().equals(other.to_arrow()))


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
    return header_columns(column, "headers", lambda items: items)


def header_columns(
    lists: "pa.Array[Any]",
    name: str,
    as_text: "Callable[[pa.Array[Any]], pa.Array[Any]]",
    wanted: str = "list<struct<key, value>>",
) -> HeaderColumns:
    """Return the headers of a column of lists of (key, value). A null is an empty list.

    as_text: a function that converts an array of keys or values to text or bytes. name, wanted: the column's name and
    its expected type, for the message of InvalidRecords about another type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_list = pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)
    items = lists.flatten() if is_list else lists
    if not is_list or not pa.types.is_struct(items.type) or {"key", "value"} - {field.name for field in items.type}:
        raise InvalidRecords(f"{name}: {wanted} is wanted, not {lists.type}")
    counts = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    columns = dict(zip((field.name for field in items.type), items.flatten(), strict=True))
    keys, values = (ByteStrings.from_arrow("headers", as_text(columns[part])) for part in ("key", "value"))
    return HeaderColumns(np.append(0, np.cumsum(counts, dtype=np.int64)), keys, values)


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
