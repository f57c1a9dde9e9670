"""Headers in a column of a table: list<struct<key, value>>, a map, or JSON text.

JSON text is an object, or a list of {"key": …, "value": …}.
"""

from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.byte_strings import ByteStrings
from kfbench.errors import InvalidRecords
from kfbench.layouts import NULL_LENGTH
from kfbench.sources.arrow_text import entries_of, is_text, plain, text_of

Array: TypeAlias = Any  # pa.Array, whose kernels are not typed


class Headers(NamedTuple):
    """The headers of n rows. Row i has those from bounds[i] to bounds[i + 1] - 1; bounds: int64[n + 1]."""

    bounds: Int64
    names: ByteStrings
    contents: ByteStrings


class HeaderColumn(NamedTuple):
    """The headers of rows, and is_bad bool[n]: rows whose cell holds something else."""

    headers: Headers
    is_bad: NDArray[np.bool_]


def no_headers(n: int) -> Headers:
    """Return the headers of n rows that have none."""
    none = ByteStrings.from_list("", [])
    return Headers(np.zeros(n + 1, np.int64), none, none)


class _Pair(msgspec.Struct):
    key: str
    value: msgspec.Raw = msgspec.Raw(b"null")


_HEADERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[_Pair])


def headers_of(array: Array, column: str) -> HeaderColumn:
    """Return the headers of each row; a null has none. Raise InvalidRecords for other types, with `column`."""
    kind = array.type
    bad = np.zeros(len(array), np.bool_)
    if pa.types.is_null(kind):
        return HeaderColumn(no_headers(len(array)), bad)
    if is_text(kind):
        return _json_headers(array)
    if pa.types.is_map(kind):
        array = entries_of(array)
    elif not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise InvalidRecords(f"{column}: list<struct<key, value>>, a map or text is wanted, not {kind}")
    pairs = array.flatten()
    if not pa.types.is_struct(pairs.type) or {"key", "value"} - {field.name for field in pairs.type}:
        raise InvalidRecords(f"{column}: list<struct<key, value>>, a map or text is wanted, not {kind}")
    counts = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    bounds = np.zeros(len(array) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    flat = dict(zip((field.name for field in pairs.type), pairs.flatten(), strict=True))
    names, contents = (
        ByteStrings.from_arrow("headers", text_of(plain(flat[part]), column)) for part in ("key", "value")
    )
    nameless = np.flatnonzero(names.lengths == NULL_LENGTH)
    if len(nameless):
        bad[np.searchsorted(bounds, nameless, side="right") - 1] = True
        names = names._replace(lengths=np.maximum(names.lengths, 0))
    return HeaderColumn(Headers(bounds, names, contents), bad)


def _json_headers(array: Array) -> HeaderColumn:
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
    return HeaderColumn(Headers(bounds, ByteStrings.from_list("headers", names), unquoted(raws)), bad)


def unquoted(raws: list[msgspec.Raw]) -> ByteStrings:
    """Return JSON values as bytes: strings without quotes, as UTF-8; null and nothing as null; others as they stand."""
    items = [bytes(raw) or b"null" for raw in raws]
    data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    if not items:
        return ByteStrings(data, starts, lengths)
    escapes = np.flatnonzero(data == ord("\\"))
    if len(escapes):
        for i in np.unique(np.searchsorted(starts, escapes, side="right") - 1).tolist():
            if items[i][:1] == b'"':
                with suppress(msgspec.DecodeError, UnicodeError):  # an escape that is no JSON stays
                    items[i] = b'"' + msgspec.json.decode(items[i], type=str).encode() + b'"'
        data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    is_string, is_null = data[starts] == ord('"'), data[starts] == ord("n")
    return ByteStrings(
        data, starts + is_string, np.where(is_null, NULL_LENGTH, lengths - 2 * is_string).astype(np.int32)
    )
