"""Records in columns: `Shapes` (timestamps, offsets and lengths) and `Records` (shapes and the bytes).

Both are checked once, at construction, and cannot be changed afterwards, because kernels index these arrays without a
check. An index array is copied if a caller could still write to it. Buffers of key, value and header bytes are never
copied.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.arrays import Bytes, Int32, Int64, as_bytes, freeze, integers_of, place_of, ranges
from kfbench.byte_strings import ByteStrings, HeaderColumns, byte_strings_of, headers_of, integers_of_column
from kfbench.errors import InvalidRecords
from kfbench.layouts import NO_TIMESTAMP, NULL_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

PAYLOAD: Final = ("key", "value", "header_key", "header_value")
_ABSENT: Any = None


def _total(lengths: Int32) -> int:
    return int(lengths.sum(dtype=np.int64)) + int(np.count_nonzero(lengths == NULL_LENGTH))


@dataclass(frozen=True, kw_only=True, eq=False)
class Shapes:
    """Timestamps, offsets and lengths of n records with m headers. Most formats need no more to compute their sizes.

    Attributes:
        timestamps_ms: int64[n], ms since 1970; -1: none.
        offsets: int64[n].
        key_lengths, value_lengths: int32[n], in bytes; -1: null.
        header_bounds: int64[n + 1]; record i has the headers bounds[i] to bounds[i + 1] - 1.
        header_key_lengths, header_value_lengths: int32[m], in bytes; a value of -1 is null, a key is never null.

    Raises InvalidRecords.
    """

    timestamps_ms: Int64
    offsets: Int64
    key_lengths: Int32
    value_lengths: Int32
    header_bounds: Int64 = _ABSENT  # if absent, no record has a header
    header_key_lengths: Int32 = _ABSENT
    header_value_lengths: Int32 = _ABSENT

    def __post_init__(self) -> None:
        defaults: dict[str, ArrayLike] = {
            "header_bounds": np.zeros(len(self.timestamps_ms) + 1, np.int64),
            "header_key_lengths": np.zeros(0, np.int32),
            "header_value_lengths": np.zeros(0, np.int32),
        }
        for field in fields(self):
            dtype = np.int32 if field.name.endswith("lengths") else np.int64
            value = getattr(self, field.name)
            column = integers_of(field.name, defaults[field.name] if value is None else value, dtype)
            object.__setattr__(self, field.name, column)
        n = len(self.timestamps_ms)
        for name, size in [("offsets", n), ("key_lengths", n), ("value_lengths", n), ("header_bounds", n + 1)]:
            if len(getattr(self, name)) != size:
                raise InvalidRecords(f"{name}: {len(getattr(self, name))} items for {n} records")
        bounds, m = self.header_bounds, len(self.header_key_lengths)
        if len(self.header_value_lengths) != m:
            raise InvalidRecords(f"header_value_lengths: {len(self.header_value_lengths)} items for {m} headers")
        if bounds[0] != 0 or bounds[-1] != m or (m and np.any(np.diff(bounds) < 0)):
            raise InvalidRecords(f"header_bounds: must rise from 0 to the {m} headers")
        for name in ("key_lengths", "value_lengths", "header_key_lengths", "header_value_lengths"):
            lengths, least = getattr(self, name), 0 if name == "header_key_lengths" else NULL_LENGTH
            if lengths.size and lengths.min() < least:
                raise InvalidRecords(f"{name}: {lengths.min()} is below {least}")

    def __len__(self) -> int:
        return len(self.timestamps_ms)

    @classmethod
    def trusted(cls, **columns: NDArray[Any]) -> Self:
        """Return an instance without checking the columns. Pass all fields, read-only (`freeze`)."""
        made: Self = unchecked(cls, columns)
        return made

    @cached_property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns, in the order of the fields above. Kernels that compute sizes take them in this order."""
        return tuple(getattr(self, name) for name in _SHAPE_FIELDS)

    @cached_property
    def key_bytes(self) -> int:
        return _total(self.key_lengths)

    @cached_property
    def value_bytes(self) -> int:
        return _total(self.value_lengths)

    @cached_property
    def header_bytes(self) -> int:
        return _total(self.header_key_lengths) + _total(self.header_value_lengths)

    @cached_property
    def longest_header_value_bytes(self) -> int:
        return int(self.header_value_lengths.max(initial=0))

    @cached_property
    def payload_bytes(self) -> int:
        """The number of bytes of all keys, values, header keys and header values. Every format has to store them."""
        return self.key_bytes + self.value_bytes + self.header_bytes

    @cached_property
    def timestamp_count(self) -> int:
        """The number of records that have a timestamp."""
        return int(np.count_nonzero(self.timestamps_ms != NO_TIMESTAMP))

    @cached_property
    def whole_second_count(self) -> int:
        """The number of records whose timestamp is a whole number of seconds, from 0 to the largest int32."""
        seconds = self.timestamps_ms // 1000
        whole = (seconds * 1000 == self.timestamps_ms) & (seconds >= 0) & (seconds <= np.iinfo(np.int32).max)
        return int(np.count_nonzero(whole))

    @property
    def header_count(self) -> int:
        return len(self.header_key_lengths)

    @property
    def has_headers(self) -> bool:
        return self.header_count > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Shapes):
            return NotImplemented
        return all(map(np.array_equal, self.columns, other.columns))

    __hash__ = None  # type: ignore[assignment]


_SHAPE_FIELDS = tuple(field.name for field in fields(Shapes))


def unchecked(cls: type[Any], columns: dict[str, Any]) -> Any:
    """Return an instance of a frozen dataclass with these attributes. Its constructor does not run."""
    made = object.__new__(cls)
    object.__setattr__(made, "__dict__", columns)  # the dict of keyword arguments, which nobody else has
    return made


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Records in columns: the shapes, and a buffer (uint8) with starts (int64) for each of keys, values and headers.

    Item i is data[starts[i]:starts[i] + lengths[i]]. The start of a null item is ignored. Several columns may share a
    buffer, and items may lie in any order. In a decoded log, every buffer is usually the log itself. Raises
    InvalidRecords for an item outside its buffer.
    """

    shapes: Shapes
    key_data: Bytes
    key_starts: Int64
    value_data: Bytes
    value_starts: Int64
    header_key_data: Bytes = _ABSENT
    header_key_starts: Int64 = _ABSENT
    header_value_data: Bytes = _ABSENT
    header_value_starts: Int64 = _ABSENT

    def __post_init__(self) -> None:
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if field.name.endswith("starts"):
                value = integers_of(field.name, np.zeros(0, np.int64) if value is None else value, np.int64)
            else:
                value = as_bytes(field.name, np.zeros(0, np.uint8) if value is None else value)
            object.__setattr__(self, field.name, value)
        for name in PAYLOAD:
            self._items(name).check(name)

    def _items(self, name: str) -> ByteStrings:
        lengths = getattr(self.shapes, f"{name}_lengths")
        return ByteStrings(getattr(self, f"{name}_data"), getattr(self, f"{name}_starts"), lengths)

    @classmethod
    def trusted(cls, **columns: Any) -> Self:
        """Return an instance without checking the columns. Pass all fields, read-only (`freeze`)."""
        records: Self = unchecked(cls, columns)
        return records

    @cached_property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """The columns for encode kernels: those of `shapes`, then data and starts of keys, values and headers."""
        return (*self.shapes.columns, *(getattr(self, name) for name in _RECORD_FIELDS[1:]))

    def at_times(self, timestamps_ms: Int64) -> Self:
        """Return the same records with these timestamps, int64[n]. The caller must not write to them later."""
        return self._in_shape(timestamps_ms=timestamps_ms)

    def at_offsets(self, offsets: Int64) -> Self:
        """Return the same records with these offsets, int64[n]. The caller must not write to them later."""
        return self._in_shape(offsets=offsets)

    def _in_shape(self, **columns: Int64) -> Self:
        freeze(*columns.values())
        shapes = Shapes.trusted(**{name: getattr(self.shapes, name) for name in _SHAPE_FIELDS} | columns)
        return type(self).trusted(shapes=shapes, **{name: getattr(self, name) for name in _RECORD_FIELDS[1:]})

    def pack(self) -> Self:
        """Copy the items into new buffers without gaps, and return the same records with these buffers."""
        buffers: dict[str, NDArray[Any]] = {}
        for name in PAYLOAD:
            items = self._items(name).pack()
            buffers |= {f"{name}_data": items.data, f"{name}_starts": items.starts}
        freeze(*buffers.values())
        return type(self).trusted(shapes=self.shapes, **buffers)

    def copied(self) -> Self:
        """Return a copy that shares no memory with these records. It keeps totals that were already computed."""
        shape_columns = {name: getattr(self.shapes, name).copy() for name in _SHAPE_FIELDS}
        buffers = {name: getattr(self, name).copy() for name in _RECORD_FIELDS[1:]}
        freeze(*shape_columns.values(), *buffers.values())
        shapes = Shapes.trusted(**shape_columns)
        shapes.__dict__.update((name, total) for name, total in self.shapes.__dict__.items() if isinstance(total, int))
        return type(self).trusted(shapes=shapes, **buffers)

    def part(self, first: int, end: int) -> Self:
        """Return the records first to end - 1 as views. No array is copied."""
        if first == 0 and end == len(self):
            return self
        return self._pick(slice(first, end), slice(*self.shapes.header_bounds[[first, end]].tolist()))

    def take(self, indices: ArrayLike) -> Self:
        """Return the records with these indices, in this order. Key, value and header bytes are not copied."""
        wanted = np.asarray(indices, np.int64)
        starts = self.shapes.header_bounds[wanted]
        return self._pick(wanted, ranges(starts, self.shapes.header_bounds[wanted + 1] - starts))

    def _pick(self, wanted: slice | Int64, headers: slice | Int64) -> Self:
        def rows_of(name: str) -> slice | Int64:
            return headers if name.startswith("header") else wanted

        shapes = self.shapes
        counts = np.diff(shapes.header_bounds)[wanted]
        columns = {name: getattr(shapes, name)[rows_of(name)] for name in _SHAPE_FIELDS if name != "header_bounds"}
        buffers = {
            name: getattr(self, name)[rows_of(name)] if name.endswith("starts") else getattr(self, name)
            for name in _RECORD_FIELDS[1:]
        }
        header_bounds = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=header_bounds[1:])
        freeze(*columns.values(), *buffers.values(), header_bounds)
        return type(self).trusted(shapes=Shapes.trusted(**columns, header_bounds=header_bounds), **buffers)

    @cached_property
    def buffers(self) -> tuple[Bytes, ...]:
        """The buffers of keys, values and headers that are not empty, each buffer once."""
        buffers = (self.key_data, self.value_data, self.header_key_data, self.header_value_data)
        return tuple({place_of(data): data for data in buffers if len(data)}.values())

    @classmethod
    def from_lists(
        cls,
        values: Iterable[bytes | None],
        keys: Iterable[bytes | None] | None = None,
        timestamps_ms: ArrayLike | None = None,
        headers: Iterable[Sequence[tuple[str, bytes | None]]] | None = None,
        offsets: ArrayLike | None = None,
    ) -> Self:
        """Build records from Python objects, one item per record.

        Defaults: null keys, timestamps -1, no headers, offsets 0, 1, 2, …
        """
        value_list = list(values)
        n = len(value_list)
        key_list = [None] * n if keys is None else list(keys)
        header_list = [()] * n if headers is None else [list(pairs) for pairs in headers]
        if len(header_list) != n:
            raise InvalidRecords(f"headers: {len(header_list)} items for {n} records")
        pairs = list(chain.from_iterable(header_list))
        try:
            names = [name.encode() for name, _ in pairs]
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidRecords(f"headers: (str, bytes or None) pairs are wanted ({error})") from None
        header_columns = HeaderColumns(
            bounds=np.cumsum([0, *map(len, header_list)], dtype=np.int64),
            keys=ByteStrings.from_list("headers", names),
            values=ByteStrings.from_list("headers", [content for _, content in pairs]),
        )
        columns = ByteStrings.from_list("values", value_list), ByteStrings.from_list("keys", key_list)
        return cls.from_columns(*columns, header_columns, timestamps_ms, offsets)

    @classmethod
    def from_columns(
        cls,
        values: ByteStrings,
        keys: ByteStrings | None,
        headers: HeaderColumns,
        timestamps_ms: ArrayLike | None = None,
        offsets: ArrayLike | None = None,
    ) -> Self:
        """Build records from columns, one item per record. Defaults: null keys, timestamps -1, offsets from 0."""
        n = len(values.lengths)
        keys = ByteStrings.nulls(n) if keys is None else keys
        shapes = Shapes(
            timestamps_ms=np.full(n, NO_TIMESTAMP) if timestamps_ms is None else np.asarray(timestamps_ms),
            offsets=np.arange(n) if offsets is None else np.asarray(offsets),
            key_lengths=keys.lengths,
            value_lengths=values.lengths,
            header_bounds=headers.bounds,
            header_key_lengths=headers.keys.lengths,
            header_value_lengths=headers.values.lengths,
        )
        return cls(
            shapes=shapes,
            key_data=keys.data,
            key_starts=keys.starts,
            value_data=values.data,
            value_starts=values.starts,
            header_key_data=headers.keys.data,
            header_key_starts=headers.keys.starts,
            header_value_data=headers.values.data,
            header_value_starts=headers.values.starts,
        )

    @classmethod
    def from_arrow(cls, table: "pa.Table | pa.RecordBatch") -> Self:
        """Build records from a table with a column `value`.

        Optional columns: `key`, `timestamp_ms`, `offset`, `headers`.

        key and value: binary, string, large_binary or large_string. A column with a single chunk is not copied.
        timestamp_ms: integers or Arrow timestamps. headers: list<struct<key, value>>.
        """
        headers = headers_of(table)
        values, keys = byte_strings_of(table, "value"), byte_strings_of(table, "key")
        timestamps_ms, offsets = (integers_of_column(table, name) for name in ("timestamp_ms", "offset"))
        if values is None:
            raise InvalidRecords(f"value: no such column among {', '.join(table.schema.names)}")
        return cls.from_columns(values, keys, headers, timestamps_ms, offsets)

    def to_arrow(self) -> "pa.Table":
        """Return an Arrow table with one row per record: offset, timestamp_ms, key, value, headers.

        key and value are large_binary, headers are large_list<struct<key, value>>.
        """
        import pyarrow as pa

        names = self._items("header_key").to_arrow()
        with suppress(pa.ArrowInvalid):  # header keys of a damaged or hostile log may not be UTF-8: they stay bytes
            names = names.cast(pa.large_string())
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
        return self._items("key").item(i)

    def value(self, i: int) -> bytes | None:
        return self._items("value").item(i)

    def headers(self, i: int) -> list[tuple[str, bytes | None]]:
        bounds = self.shapes.header_bounds
        i = range(len(self))[i]
        names, contents = self._items("header_key"), self._items("header_value")
        return [
            ((names.item(j) or b"").decode(errors="replace"), contents.item(j))
            for j in range(int(bounds[i]), int(bounds[i + 1]))
        ]

    def keys(self) -> list[bytes | None]:
        """Return the keys of all records. Faster than calling `key` for each."""
        return self._items("key").to_list()

    def values(self) -> list[bytes | None]:
        """Return the values of all records. Faster than calling `value` for each."""
        return self._items("value").to_list()

    def header_lists(self) -> list[list[tuple[str, bytes | None]]]:
        """Return the headers of all records. Faster than calling `headers` for each."""
        names = [(name or b"").decode(errors="replace") for name in self._items("header_key").to_list()]
        pairs = list(zip(names, self._items("header_value").to_list(), strict=True))
        return [pairs[first:end] for first, end in pairwise(self.shapes.header_bounds.tolist())]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Records):
            return NotImplemented
        if self.shapes != other.shapes:
            return False
        return all(self._items(name).same(other._items(name)) for name in PAYLOAD)

    __hash__ = None  # type: ignore[assignment]


_RECORD_FIELDS = tuple(field.name for field in fields(Records))
