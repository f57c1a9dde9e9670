"""Columns of byte strings (keys, values, header keys, header values), built from lists or Arrow arrays."""

from collections.abc import Sequence
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

    def packed(self) -> Self:
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
