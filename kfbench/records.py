"""Records in columns: `Shapes` (all that sizes depend on) and `Records` (shapes and the bytes).

Both are checked once, at construction, and immutable from then on: kernels index these arrays without a check. Index
arrays that a caller could still write to are copied for that reason; data buffers never are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.errors import InvalidRecords
from kfbench.layouts import NO_TIMESTAMP, NULL_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]


def _column(name: str, values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """A read-only, contiguous, one-dimensional array that nobody else can write to."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidRecords(f"{name}: a one-dimensional array of integers is wanted, not {given.dtype}{given.shape}")
    if given.size and not np.can_cast(given.dtype, dtype):
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if given.min() < limits.min or given.max() > limits.max:
            raise InvalidRecords(f"{name}: a value does not fit {np.dtype(dtype)}")
    # A read-only array is taken as it is: who made it so has given it away.
    column = np.array(given, dtype, copy=True if given.flags.writeable else None, order="C").view()
    column.flags.writeable = False
    return column


def as_bytes(name: str, data: Any) -> Bytes:
    """A read-only uint8 view of anything with a buffer, without a copy."""
    try:
        view = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted ({error})") from None
    if not view.flags.c_contiguous:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted")
    view = view.view()
    view.flags.writeable = False
    return view


def _starts(lengths: NDArray[Any]) -> Int64:
    """Where each item starts when items lie one after another; null takes no room."""
    starts = np.zeros(len(lengths), np.int64)
    np.cumsum(np.maximum(lengths[:-1], 0), out=starts[1:], dtype=np.int64)
    return starts


def _total(lengths: Int32) -> int:
    return int(lengths.sum(dtype=np.int64)) + int(np.count_nonzero(lengths == NULL_LENGTH))


@dataclass(frozen=True, kw_only=True, eq=False)
class Shapes:
    """What sizes depend on, without a byte of payload.

    timestamps_ms int64[n] (-1: none), offsets int64[n], key_lengths and value_lengths int32[n] (-1: null),
    header_bounds int64[n+1] (record i has the headers bounds[i] to bounds[i+1]), header_key_lengths int32[m] (never
    null), header_value_lengths int32[m] (-1: null). Raises InvalidRecords.
    """

    timestamps_ms: Int64
    offsets: Int64
    key_lengths: Int32
    value_lengths: Int32
    header_bounds: Int64 | None = None  # None: no record has a header
    header_key_lengths: Int32 | None = None
    header_value_lengths: Int32 | None = None

    def __post_init__(self) -> None:
        defaults: dict[str, ArrayLike] = {
            "header_bounds": np.zeros(len(self.timestamps_ms) + 1, np.int64),
            "header_key_lengths": np.zeros(0, np.int32),
            "header_value_lengths": np.zeros(0, np.int32),
        }
        for field in fields(self):
            dtype = np.int32 if field.name.endswith("lengths") else np.int64
            value = getattr(self, field.name)
            column = _column(field.name, defaults[field.name] if value is None else value, dtype)
            object.__setattr__(self, field.name, column)
        n = len(self.timestamps_ms)
        for name, size in [("offsets", n), ("key_lengths", n), ("value_lengths", n), ("header_bounds", n + 1)]:
            if len(getattr(self, name)) != size:
                raise InvalidRecords(f"{name}: {len(getattr(self, name))} items for {n} records")
        bounds, m = self.columns[4], len(self.columns[5])
        if len(self.columns[6]) != m:
            raise InvalidRecords(f"header_value_lengths: {len(self.columns[6])} items for {m} headers")
        if bounds[0] != 0 or bounds[-1] != m or (m and np.any(np.diff(bounds) < 0)):
            raise InvalidRecords(f"header_bounds: must rise from 0 to the {m} headers")
        for name, least in [("key_lengths", -1), ("value_lengths", -1), ("header_key_lengths", 0), ("header_value_lengths", -1)]:
            lengths = getattr(self, name)
            if lengths.size and lengths.min() < least:
                raise InvalidRecords(f"{name}: {lengths.min()} is below {least}")

    def __len__(self) -> int:
        return len(self.timestamps_ms)

    @classmethod
    def checked(cls, **columns: NDArray[Any]) -> Self:
        """From arrays that a kernel has just written and checked: all fields, of the right types, given away."""
        return _unchecked(cls, columns)

    @cached_property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """What the size kernels take, in the order of the fields."""
        return tuple(getattr(self, name) for name in _SHAPE_FIELDS)

    @cached_property
    def key_bytes(self) -> int:
        return _total(self.key_lengths)

    @cached_property
    def value_bytes(self) -> int:
        return _total(self.value_lengths)

    @cached_property
    def header_bytes(self) -> int:
        _, _, _, _, _, keys, values = self.columns
        return _total(keys) + _total(values)

    @property
    def payload_bytes(self) -> int:
        """Key, value, header key and header value bytes: what every format has to carry."""
        return self.key_bytes + self.value_bytes + self.header_bytes

    @property
    def header_count(self) -> int:
        return len(self.columns[5])

    @property
    def has_headers(self) -> bool:
        return self.header_count > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shapes):
            return NotImplemented
        return all(map(np.array_equal, self.columns, other.columns))

    __hash__ = None  # type: ignore[assignment]


_SHAPE_FIELDS = tuple(field.name for field in fields(Shapes))


def _unchecked(cls: type[Any], columns: dict[str, NDArray[Any]]) -> Any:
    for column in columns.values():
        column.flags.writeable = False
    made = object.__new__(cls)
    made.__dict__.update(columns)
    return made


class _Items(NamedTuple):
    """Byte strings in one buffer."""

    data: Bytes
    starts: Int64
    lengths: Int32

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
        """The data buffer of a binary, string or large variant as it stands; a null keeps length -1."""
        import pyarrow as pa

        kind = array.type
        large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
        if not (large or pa.types.is_binary(kind) or pa.types.is_string(kind)):
            raise InvalidRecords(f"{name}: a binary or string column is wanted, not {kind}")
        _, offsets_buffer, data_buffer = array.buffers()
        n = len(array)
        if n == 0 or offsets_buffer is None:
            return cls(np.zeros(0, np.uint8), np.zeros(n, np.int64), np.full(n, NULL_LENGTH, np.int32))
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
        """A large_binary array; without a copy where the items lie one after another."""
        import pyarrow as pa

        null = self.lengths == NULL_LENGTH
        sizes = np.where(null, 0, self.lengths)
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        held = sizes > 0  # an empty item's start may be anything
        first = int(self.starts[held][0]) if held.any() else 0
        if np.array_equal(self.starts[held], (bounds[:-1] + first)[held]):
            data, bounds = self.data, bounds + first
        else:
            index = np.repeat(self.starts - bounds[:-1], sizes) + np.arange(bounds[-1])
            data = self.data[index]
        validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
        buffers = [validity, pa.py_buffer(bounds), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)

    def check(self, name: str) -> None:
        if len(self.starts) != len(self.lengths):
            raise InvalidRecords(f"{name}_starts: {len(self.starts)} items for {len(self.lengths)} lengths")
        held = self.lengths > 0
        if not held.any():
            return
        starts = self.starts[held]
        # Compared from the far side: start + length could wrap.
        if starts.min() < 0 or np.any(starts > len(self.data) - self.lengths[held].astype(np.int64)):
            raise InvalidRecords(f"{name}_starts: an item lies outside the {len(self.data)} bytes of {name}_data")

    def __getitem__(self, i: int) -> bytes | None:  # type: ignore[override]
        length = int(self.lengths[i])
        if length == NULL_LENGTH:
            return None
        start = int(self.starts[i])
        return self.data[start : start + length].tobytes()

    def same(self, other: "_Items") -> bool:
        return np.array_equal(self.lengths, other.lengths) and bool(self.to_arrow().equals(other.to_arrow()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Records in columns: the shapes, and one buffer (uint8) with starts (int64) for keys, values and headers each.

    A null's start is not looked at. Buffers may be shared and in any order: a decoded log's are the log itself.
    Raises InvalidRecords for an item that lies outside its buffer.
    """

    shapes: Shapes
    key_data: Bytes
    key_starts: Int64
    value_data: Bytes
    value_starts: Int64
    header_key_data: Bytes | None = None
    header_key_starts: Int64 | None = None
    header_value_data: Bytes | None = None
    header_value_starts: Int64 | None = None

    def __post_init__(self) -> None:
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if field.name.endswith("starts"):
                value = _column(field.name, np.zeros(0, np.int64) if value is None else value, np.int64)
            else:
                value = as_bytes(field.name, np.zeros(0, np.uint8) if value is None else value)
            object.__setattr__(self, field.name, value)
        for name in ("key", "value", "header_key", "header_value"):
            self._items(name).check(name)

    def _items(self, name: str) -> _Items:
        lengths = getattr(self.shapes, f"{name}_lengths")
        return _Items(getattr(self, f"{name}_data"), getattr(self, f"{name}_starts"), lengths)

    @classmethod
    def checked(cls, shapes: Shapes, **columns: NDArray[Any]) -> Self:
        """From arrays that a kernel has just written and checked: all fields, of the right types, given away."""
        records = _unchecked(cls, columns)
        records.__dict__["shapes"] = shapes
        return records

    @cached_property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """What the encode kernels take: the shapes' columns, then data and starts of keys, values, header keys, values."""
        return (*self.shapes.columns, *(getattr(self, name) for name in _RECORD_FIELDS[1:]))

    @classmethod
    def from_lists(
        cls,
        values: Iterable[bytes | None],
        keys: Iterable[bytes | None] | None = None,
        timestamps_ms: ArrayLike | None = None,
        headers: Iterable[Sequence[tuple[str, bytes | None]]] | None = None,
        offsets: ArrayLike | None = None,
    ) -> Self:
        """From Python objects, one item a record. Absent: null keys, timestamps -1, no headers, offsets from 0."""
        value_list = list(values)
        n = len(value_list)
        key_list = [None] * n if keys is None else list(keys)
        header_list = [()] * n if headers is None else [list(pairs) for pairs in headers]
        if len(header_list) != n:
            raise InvalidRecords(f"headers: {len(header_list)} items for {n} records")
        pairs = list(chain.from_iterable(header_list))
        value_items, key_items = _Items.from_list("values", value_list), _Items.from_list("keys", key_list)
        try:
            names = [name.encode() for name, _ in pairs]
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidRecords(f"headers: (str, bytes or None) pairs are wanted ({error})") from None
        name_items = _Items.from_list("headers", names)
        content_items = _Items.from_list("headers", [content for _, content in pairs])
        bounds = np.zeros(n + 1, np.int64)
        np.cumsum([len(each) for each in header_list], out=bounds[1:])
        shapes = Shapes(
            timestamps_ms=np.full(n, NO_TIMESTAMP) if timestamps_ms is None else np.asarray(timestamps_ms),
            offsets=np.arange(n) if offsets is None else np.asarray(offsets),
            key_lengths=key_items.lengths,
            value_lengths=value_items.lengths,
            header_bounds=bounds,
            header_key_lengths=name_items.lengths,
            header_value_lengths=content_items.lengths,
        )
        return cls._of(shapes, key_items, value_items, name_items, content_items)

    @classmethod
    def _of(cls, shapes: Shapes, keys: _Items, values: _Items, names: _Items, contents: _Items) -> Self:
        return cls(
            shapes=shapes,
            key_data=keys.data,
            key_starts=keys.starts,
            value_data=values.data,
            value_starts=values.starts,
            header_key_data=names.data,
            header_key_starts=names.starts,
            header_value_data=contents.data,
            header_value_starts=contents.starts,
        )

    @classmethod
    def from_arrow(cls, table: "pa.Table | pa.RecordBatch") -> Self:
        """From columns `value` and, where they are there, `key`, `timestamp_ms`, `offset`, `headers`.

        key and value: binary, string or their large variants, taken without a copy (of one chunk); timestamp_ms: an
        integer or a timestamp; headers: list<struct<key, value>>.
        """
        import pyarrow as pa

        def column(name: str) -> "pa.Array[Any] | None":
            if name not in table.schema.names:
                return None
            found = table.column(name)
            if not isinstance(found, pa.ChunkedArray):
                return found
            if found.num_chunks != 1 and found.type in (pa.binary(), pa.string()):
                found = found.cast(pa.large_binary())  # together they may be beyond 2 GiB
            return found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks or [pa.array([], found.type)])

        def integers(name: str) -> NDArray[Any] | None:
            found = column(name)
            if found is None:
                return None
            if found.null_count:
                raise InvalidRecords(f"{name}: null at row {found.is_null().to_pylist().index(True)}")
            if pa.types.is_timestamp(found.type):
                found = found.cast(pa.timestamp("ms", found.type.tz), safe=False).cast(pa.int64())
            return found.to_numpy()  # type: ignore[no-any-return]

        n = table.num_rows
        values, keys, timestamps_ms, offsets, lists = (
            column("value"), column("key"), integers("timestamp_ms"), integers("offset"), column("headers")
        )  # fmt: skip
        if values is None:
            raise InvalidRecords(f"value: no such column among {', '.join(table.schema.names)}")
        value_items = _Items.from_arrow("value", values)
        nulls = _Items(np.zeros(0, np.uint8), np.zeros(n, np.int64), np.full(n, NULL_LENGTH, np.int32))
        key_items = nulls if keys is None else _Items.from_arrow("key", keys)
        bounds, names, contents = np.zeros(n + 1, np.int64), _Items.from_list("", []), _Items.from_list("", [])
        if lists is not None:
            if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)):
                raise InvalidRecords(f"headers: list<struct<key, value>> is wanted, not {lists.type}")
            counts = lists.value_lengths().fill_null(0).to_numpy()
            np.cumsum(counts, out=bounds[1:])
            pairs = lists.flatten()
            if not pa.types.is_struct(pairs.type) or {"key", "value"} - {field.name for field in pairs.type}:
                raise InvalidRecords(f"headers: list<struct<key, value>> is wanted, not {lists.type}")
            flat = dict(zip((field.name for field in pairs.type), pairs.flatten(), strict=True))
            names, contents = _Items.from_arrow("headers", flat["key"]), _Items.from_arrow("headers", flat["value"])
        shapes = Shapes(
            timestamps_ms=np.full(n, NO_TIMESTAMP) if timestamps_ms is None else timestamps_ms,
            offsets=np.arange(n) if offsets is None else offsets,
            key_lengths=key_items.lengths,
            value_lengths=value_items.lengths,
            header_bounds=bounds,
            header_key_lengths=names.lengths,
            header_value_lengths=contents.lengths,
        )
        return cls._of(shapes, key_items, value_items, names, contents)

    def to_arrow(self) -> "pa.Table":
        """A table of offset, timestamp_ms, key, value (large_binary) and headers (large_list<struct<key, value>>)."""
        import pyarrow as pa

        names = self._items("header_key").to_arrow().cast(pa.large_string())
        pairs = pa.StructArray.from_arrays([names, self._items("header_value").to_arrow()], names=["key", "value"])
        return pa.table(
            {
                "offset": self.offsets,
                "timestamp_ms": self.timestamps_ms,
                "key": self._items("key").to_arrow(),
                "value": self._items("value").to_arrow(),
                "headers": pa.LargeListArray.from_arrays(self.shapes.header_bounds, pairs),
            }
        )

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def timestamps_ms(self) -> Int64:
        return self.shapes.timestamps_ms

    @property
    def offsets(self) -> Int64:
        return self.shapes.offsets

    def key(self, i: int) -> bytes | None:
        return self._items("key")[i]

    def value(self, i: int) -> bytes | None:
        return self._items("value")[i]

    def headers(self, i: int) -> list[tuple[str, bytes | None]]:
        bounds = self.shapes.columns[4]
        i = range(len(self))[i]
        names, contents = self._items("header_key"), self._items("header_value")
        return [((names[j] or b"").decode(errors="replace"), contents[j]) for j in range(int(bounds[i]), int(bounds[i + 1]))]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Records):
            return NotImplemented
        if self.shapes != other.shapes:
            return False
        return all(self._items(name).same(other._items(name)) for name in ("key", "value", "header_key", "header_value"))

    __hash__ = None  # type: ignore[assignment]


_RECORD_FIELDS = tuple(field.name for field in fields(Records))
