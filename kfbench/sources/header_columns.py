"""Read record headers from a table column of type list<struct<key, value>>, map, or JSON text.

JSON text is an object, or a list of {"key": …, "value": …}.
"""

from contextlib import suppress
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.byte_strings import ByteStrings, HeaderColumns, header_columns
from kfbench.layouts import NULL_LENGTH
from kfbench.sources.arrow_text import Array, entries_of, is_text, text_of


class ParsedHeaders(NamedTuple):
    """The headers of table rows. is_bad: bool[rows], True for rows whose cell cannot be read as headers."""

    headers: HeaderColumns
    is_bad: NDArray[np.bool_]


class _Pair(msgspec.Struct):
    key: str
    value: msgspec.Raw = msgspec.Raw(b"null")


_HEADERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[_Pair])


def headers_of(array: Array, column: str) -> ParsedHeaders:
    """Return the headers of each row. A null cell has no headers. Raise InvalidRecords for another type of column."""
    is_bad = np.zeros(len(array), np.bool_)
    if pa.types.is_null(array.type):
        return ParsedHeaders(HeaderColumns.none(len(array)), is_bad)
    if is_text(array.type):
        return _json_headers(array)
    lists = entries_of(array) if pa.types.is_map(array.type) else array
    wanted = "list<struct<key, value>>, a map or text"
    bounds, keys, values = header_columns(lists, column, lambda items: text_of(items, column), wanted)
    nameless = np.flatnonzero(keys.lengths == NULL_LENGTH)
    if len(nameless):
        is_bad[np.searchsorted(bounds, nameless, side="right") - 1] = True
        keys = keys._replace(lengths=np.maximum(keys.lengths, 0))
    return ParsedHeaders(HeaderColumns(bounds, keys, values), is_bad)


def _json_headers(array: Array) -> ParsedHeaders:
    # msgspec reads a row in about a microsecond; Arrow cannot read objects whose names vary from row to row.
    counts, keys, raws = np.zeros(len(array), np.int64), [], []
    is_bad = np.zeros(len(array), np.bool_)
    for i, text in enumerate(array.cast(pa.large_binary()).to_pylist()):
        if not text:
            continue
        try:
            found = _HEADERS.decode(text)
        except (msgspec.DecodeError, RecursionError):
            is_bad[i] = text != b"null"
            continue
        pairs = list(found.items()) if isinstance(found, dict) else [(pair.key, pair.value) for pair in found]
        keys += [key.encode() for key, _ in pairs]
        raws += [value for _, value in pairs]
        counts[i] = len(pairs)
    bounds = np.append(0, np.cumsum(counts))
    return ParsedHeaders(HeaderColumns(bounds, ByteStrings.from_list("headers", keys), unquoted(raws)), is_bad)


def unquoted(raws: list[msgspec.Raw]) -> ByteStrings:
    """Return JSON values as bytes.

    A string becomes its UTF-8 text without quotes. null and an absent value become null. Other values keep their JSON
    text.
    """
    items = [bytes(raw) or b"null" for raw in raws]
    data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    if not items:
        return ByteStrings(data, starts, lengths)
    escapes = np.flatnonzero(data == ord("\\"))
    if len(escapes):
        for i in np.unique(np.searchsorted(starts, escapes, side="right") - 1).tolist():
            if items[i][:1] == b'"':
                with suppress(msgspec.DecodeError, UnicodeError):  # an invalid escape stays
                    items[i] = b'"' + msgspec.json.decode(items[i], type=str).encode() + b'"'
        data, starts, lengths = ByteStrings.from_arrow("JSON", pa.array(items, pa.large_binary()))
    is_string, is_null = data[starts] == ord('"'), data[starts] == ord("n")
    return ByteStrings(
        data, starts + is_string, np.where(is_null, NULL_LENGTH, lengths - 2 * is_string).astype(np.int32)
    )
