"""Columns of a table as the parts of records: bytes, times, headers and partitions, and which rows have none.

Keys, values and header values: binary and text as they stand, without a copy; a number, a truth value, a date: its
text; a list, a struct or a map: JSON. Times: int ms, Arrow timestamps and dates, text (int ms, or ISO 8601; without a
zone: UTC). Headers: list<struct<key, value>>, a map, or text that is a JSON object or a JSON list of
{"key": …, "value": …}. Partitions: integers, or their text.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.layouts import NO_TIMESTAMP, NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.sources._json import entries_of, is_text, json_of, plain, text_of, together

Array: TypeAlias = Any  # pa.Array, whose kernels are not typed
ISO_8601: Final = (
    r"^(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,](?P<fraction>\d{1,9}))?(?P<zone>[Zz]|[+-]\d{2}(?::?\d{2})?)?)?$"
)
INTEGER: Final = r"^-?\d{1,18}$"
LAST_MS: Final = np.iinfo(np.int64).max // 2  # linger is added to a time
SHOWN_CHARACTERS: Final = 60
ONE_PARTITION: Final = 0


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The column of each part of a record. value None: the whole row as JSON. Others None: records have none.

    Rows without `timestamp` are records without a time (-1); rows without `partition` are all of one partition.
    """

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    partition: str | None = None

    @property
    def names(self) -> list[str]:
        """Those that are named, each once."""
        return list(dict.fromkeys(name for field in fields(self) if (name := getattr(self, field.name)) is not None))

    @property
    def words(self) -> str:
        """What becomes of a row."""
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
    """Rows that are no records: the first of them (from 0, among those given), how many, and why."""

    row: int
    rows: int
    field: str
    promise: str


class Parts(NamedTuple):
    """What rows have; columns that are not there are None."""

    value: ByteStrings
    key: ByteStrings | None
    timestamp: Array | None
    headers: Array | None
    partition: Array | None


class Rows(NamedTuple):
    """Sound rows, kept int64[n] of those given: their records, their partitions int32[n]; and those left out."""

    records: Records
    partitions: NDArray[np.int32]
    kept: Int64
    faults: list[Fault]


def rows_as_json(batch: pa.RecordBatch) -> Array:
    return json_of(batch.to_struct_array(), "the whole row as a value")


def parts_of(
    batch: pa.RecordBatch, columns: Columns, as_json: Callable[[pa.RecordBatch], Array] = rows_as_json
) -> Parts:
    """as_json: what makes a value of a whole row. Raises InvalidRecords for types that do not fit."""

    def column(name: str | None) -> Array | None:
        return None if name is None else plain(batch.column(name))

    def items(name: str, array: Array) -> ByteStrings:
        return ByteStrings.from_arrow(name, text_of(array, f"column `{name}`"))

    if columns.value is None:
        value = ByteStrings.from_arrow("value", as_json(batch))
    else:
        value = items(columns.value, plain(batch.column(columns.value)))
    key = column(columns.key)
    return Parts(
        value=value,
        key=None if columns.key is None or key is None else items(columns.key, key),
        timestamp=column(columns.timestamp),
        headers=column(columns.headers),
        partition=column(columns.partition),
    )


def check_columns(columns: Columns, there: Sequence[str]) -> None:
    """Raises InvalidRecords for a column that is not there, or there twice."""
    for name in columns.names:
        if there.count(name) != 1:
            what = "several columns" if name in there else "no column"
            raise InvalidRecords(f"{what} `{name}` (columns: {', '.join(there)})")


def rows_of(parts: Parts, columns: Columns) -> Rows:
    """The rows that make a record; a row that has no time, no headers or no partition where it should is a fault."""
    n = len(parts.value.lengths)
    sound, faults = np.ones(n, np.bool_), []
    times_ms = np.full(n, NO_TIMESTAMP, np.int64)
    partitions = np.full(n, ONE_PARTITION, np.int64)

    def left_out(name: str | None, array: Array, bad: NDArray[np.bool_], wanted: str) -> None:
        fresh = bad & sound
        if fresh.any():
            first = int(np.argmax(fresh))
            promise = f"{_shown(array[first])} is no {wanted}"
            faults.append(Fault(first, int(fresh.sum()), f"column `{name}`", promise))
            sound[fresh] = False

    if parts.timestamp is not None:
        times_ms, bad = times_of(parts.timestamp, f"column `{columns.timestamp}`")
        left_out(columns.timestamp, parts.timestamp, bad, "time: milliseconds or ISO 8601, not before 1970")
    if parts.partition is not None:
        partitions, bad = _integers(parts.partition, f"column `{columns.partition}`")
        bad |= (partitions < 0) | (partitions > np.iinfo(np.int32).max)
        left_out(columns.partition, parts.partition, bad, "partition: a number from 0 to 2**31 - 1")
    headers = _no_headers(n)
    if parts.headers is not None:
        headers, bad = headers_of(parts.headers, f"column `{columns.headers}`")
        left_out(columns.headers, parts.headers, bad, "JSON object of headers, or list of {key, value}")
    nulls = ByteStrings(np.zeros(0, np.uint8), np.zeros(n, np.int64), np.full(n, NULL_LENGTH, np.int32))
    records = _records(parts.value, parts.key or nulls, times_ms, headers)
    kept = np.flatnonzero(sound)
    if len(kept) < n:
        records, partitions = records.take(kept), partitions[kept]
    return Rows(records, partitions.astype(np.int32), kept, faults)


class Headers(NamedTuple):
    """bounds int64[n + 1] over the headers' names and contents."""

    bounds: Int64
    names: ByteStrings
    contents: ByteStrings


def _no_headers(n: int) -> Headers:
    none = ByteStrings.from_list("", [])
    return Headers(np.zeros(n + 1, np.int64), none, none)


def _records(value: ByteStrings, key: ByteStrings, times_ms: Int64, headers: Headers) -> Records:
    return Records(
        shapes=Shapes(
            timestamps_ms=times_ms,
            offsets=np.arange(len(times_ms)),
            key_lengths=key.lengths,
            value_lengths=value.lengths,
            header_bounds=headers.bounds,
            header_key_lengths=headers.names.lengths,
            header_value_lengths=headers.contents.lengths,
        ),
        key_data=key.data,
        key_starts=key.starts,
        value_data=value.data,
        value_starts=value.starts,
        header_key_data=headers.names.data,
        header_key_starts=headers.names.starts,
        header_value_data=headers.contents.data,
        header_value_starts=headers.contents.starts,
    )


def _shown(scalar: Any) -> str:
    found = scalar.as_py()
    found = found.decode(errors="replace") if isinstance(found, bytes) else found
    text = "null" if found is None else repr(found)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def times_of(array: Array, what: str) -> tuple[Int64, NDArray[np.bool_]]:
    """int64[n] ms since 1970, and which items are no time. Raises InvalidRecords for a type that holds none."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        whole = array.cast(pa.timestamp("ms", zone), safe=False).cast(pa.int64())
        times_ms, bad = whole.fill_null(-1).to_numpy(zero_copy_only=False), np.zeros(len(array), np.bool_)
    elif is_text(kind):
        times_ms, bad = _parsed(array.cast(pa.large_binary()))
    else:
        times_ms, bad = _integers(array, what)
    return times_ms, bad | (times_ms < 0) | (times_ms > LAST_MS)


def _integers(array: Array, what: str) -> tuple[Int64, NDArray[np.bool_]]:
    """int64[n], -1 where there is none, and where that is. Whole floats are integers that had nulls beside them."""
    kind = array.type
    if pa.types.is_null(kind):
        array = array.cast(pa.int64())
    elif is_text(kind):
        array = array.cast(pa.large_binary())
        array = pc.if_else(pc.match_substring_regex(array, INTEGER), array, None).cast(pa.large_string())
    elif pa.types.is_floating(kind):
        numbers = array.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))
        array = pc.if_else(whole, numbers, None)
    elif pa.types.is_uint64(kind):
        array = pc.if_else(pc.less(array, pa.scalar(2**63, pa.uint64())), array, None)
    elif not pa.types.is_integer(kind):
        raise InvalidRecords(f"{what}: integers, text or times are wanted, not {kind}")
    bad = array.is_null().to_numpy(zero_copy_only=False)
    return array.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), bad


def _parsed(array: Array) -> tuple[Int64, NDArray[np.bool_]]:
    """Text: int ms, or ISO 8601."""
    times_ms, bad = _integers(array, "")
    left = np.flatnonzero(bad)
    if not len(left):
        return times_ms, bad
    found = pc.extract_regex(array.take(left), ISO_8601)
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    left, found = left[matched], found.filter(found.is_valid())
    if not len(left):
        return times_ms, bad
    day, time, fraction, zone = (
        found.field(name).cast(pa.large_string()) for name in ("day", "time", "fraction", "zone")
    )
    time = pc.if_else(pc.equal(time, ""), "00:00", time)
    seconds, sound = _seconds(together(day, "T", time))
    milliseconds = pc.utf8_slice_codeunits(together(fraction, "000"), 0, 3).cast(pa.int64())
    digits = pc.replace_substring_regex(zone, "[^0-9]", "")
    digits = pc.utf8_slice_codeunits(together(digits, "0000"), 0, 4)
    hours, minutes = (pc.utf8_slice_codeunits(digits, at, at + 2).cast(pa.int64()).to_numpy() for at in (0, 2))
    behind = pc.starts_with(zone, "-").to_numpy(zero_copy_only=False)
    offset_s = np.where(behind, -1, 1) * (3600 * hours + 60 * minutes)
    sound &= (hours < 24) & (minutes < 60)
    times_ms, bad = times_ms.copy(), bad.copy()
    times_ms[left] = np.where(sound, 1000 * (seconds - offset_s) + milliseconds.to_numpy(), -1)
    bad[left] = ~sound
    return times_ms, bad


def _seconds(texts: Array) -> tuple[Int64, NDArray[np.bool_]]:
    """Arrow says that a text among them is no time, not which: they are halved until it is found."""
    try:
        seconds = texts.cast(pa.timestamp("s")).cast(pa.int64())
        return seconds.to_numpy(zero_copy_only=False), np.ones(len(texts), np.bool_)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return np.full(1, -1, np.int64), np.zeros(1, np.bool_)
    half = len(texts) // 2
    before, after = _seconds(texts[:half]), _seconds(texts[half:])
    return np.concatenate([before[0], after[0]]), np.concatenate([before[1], after[1]])


class _Pair(msgspec.Struct):
    key: str
    value: msgspec.Raw = msgspec.Raw(b"null")


_HEADERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[_Pair])


def headers_of(array: Array, what: str) -> tuple[Headers, NDArray[np.bool_]]:
    """The headers of each row, null: none; and which rows have something else."""
    kind = array.type
    bad = np.zeros(len(array), np.bool_)
    if pa.types.is_null(kind):
        return _no_headers(len(array)), bad
    if is_text(kind):
        return _json_headers(array)
    if pa.types.is_map(kind):
        array = entries_of(array)
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InvalidRecords(f"{what}: list<struct<key, value>>, a map or text is wanted, not {kind}")
    pairs = array.flatten()
    if not pa.types.is_struct(pairs.type) or {"key", "value"} - {field.name for field in pairs.type}:
        raise InvalidRecords(f"{what}: list<struct<key, value>>, a map or text is wanted, not {kind}")
    counts = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    flat = dict(zip((field.name for field in pairs.type), pairs.flatten(), strict=True))
    names, contents = (ByteStrings.from_arrow("headers", text_of(plain(flat[part]), what)) for part in ("key", "value"))
    nameless = np.flatnonzero(names.lengths == NULL_LENGTH)
    if len(nameless):
        bad[np.searchsorted(bounds, nameless, side="right") - 1] = True
        names = names._replace(lengths=np.maximum(names.lengths, 0))
    return Headers(bounds, names, contents), bad


def _json_headers(array: Array) -> tuple[Headers, NDArray[np.bool_]]:
    # msgspec reads a row in about a microsecond; Arrow has no reader for objects whose names vary from row to row.
    counts, names, raws = np.zeros(len(array), np.int64), [], []
    bad = np.zeros(len(array), np.bool_)
    for i, text in enumerate(array.to_pylist()):
        if not text:
            continue
        try:
            found = _HEADERS.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad[i] = text not in ("null", b"null")
            continue
        pairs = list(found.items()) if isinstance(found, dict) else [(pair.key, pair.value) for pair in found]
        names += [name.encode() for name, _ in pairs]
        raws += [value for _, value in pairs]
        counts[i] = len(pairs)
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return Headers(bounds, ByteStrings.from_list("headers", names), unquoted(raws)), bad


def unquoted(raws: list[msgspec.Raw]) -> ByteStrings:
    """JSON values as bytes: a string's characters as UTF-8, null or nothing as null, anything else as it stands."""
    items = [bytes(raw) or b"null" for raw in raws]
    data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    if not items:
        return ByteStrings(data, starts, lengths)
    escapes = np.flatnonzero(data == ord("\\"))
    if len(escapes):
        for i in np.unique(np.searchsorted(starts, escapes, side="right") - 1).tolist():
            if items[i][:1] == b'"':
                with suppress(msgspec.DecodeError, UnicodeError):  # else as it stands
                    items[i] = b'"' + msgspec.json.decode(items[i], type=str).encode() + b'"'
        data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    is_string, is_null = data[starts] == ord('"'), data[starts] == ord("n")
    return ByteStrings(
        data, starts + is_string, np.where(is_null, NULL_LENGTH, lengths - 2 * is_string).astype(np.int32)
    )
