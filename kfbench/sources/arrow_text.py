"""Convert Arrow columns to text, and to JSON as `json.dumps` writes it, without spaces and without ASCII escapes.

Arrow's kernels convert whole columns: they quote strings, and join lists and structs. Timestamps become ISO 8601, and
maps become objects. NaN and infinite floats become null in JSON.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kfbench.errors import InvalidRecords

Array: TypeAlias = Any  # pa.Array, whose kernels are not typed
TEXT: Final = pa.large_string()
CELL: Final = r"^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false)$"
CONTROL: Final = r"[\x00-\x1f]"
WHOLE: Final = r"^-?\d+$"


def is_text(kind: pa.DataType) -> bool:
    """Return True for a type of text or of bytes (bytes may be text)."""
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def plain(array: Array) -> Array:
    """Return the same items in a simpler type: no extension, dictionary or run-end encoding, view, or fixed size.

    Few of Arrow's kernels accept these types. Of an extension type, such as a UUID, its storage is returned.
    """
    types, kind = pa.types, array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage)
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if types.is_string_view(kind):
        return array.cast(TEXT)
    if types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if types.is_fixed_size_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        counts = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        bounds = pa.array(np.append(0, np.cumsum(counts, dtype=np.int64)))
        return pa.LargeListArray.from_arrays(bounds, pc.list_flatten(array), mask=array.is_null())
    return array


def entries_of(array: Array) -> Array:
    """Return a column of maps as a column of list<struct<key, value>>."""
    kind = array.type
    entry = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return array.cast(pa.list_(pa.field("entries", entry)))


def text_of(array: Array, place: str) -> Array:
    """Return a column as text or bytes. Lists, structs and maps become JSON, other types their text.

    place: the column's name in the message of InvalidRecords.
    """
    array = plain(array)
    kind = array.type
    if is_text(kind):
        return array
    if pa.types.is_null(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_nested(kind):
        return pc.if_else(array.is_valid(), json_of(array, place), None)
    return _text_of_scalars(array, place)


def json_of(array: Array, place: str) -> Array:
    """Return the JSON text of each item, large_string[n]. A null item is `null`. Raise InvalidRecords for bytes."""
    return _json(plain(array), place).fill_null("null")


def join_parts(*parts: Array | str) -> Array:
    """Concatenate the parts of each item, for example a prefix and a column. The result is null if any part is null."""
    return pc.binary_join_element_wise(
        *(pa.scalar(part, TEXT) if isinstance(part, str) else part for part in (*parts, ""))
    )


def _json(array: Array, place: str) -> Array:
    types, kind = pa.types, array.type
    if types.is_null(kind):
        return array.cast(TEXT)
    if types.is_string(kind) or types.is_large_string(kind):
        return _quote(array.cast(pa.large_binary()).cast(TEXT))  # from bytes, so that Arrow checks that it is UTF-8
    if types.is_struct(kind):
        names = [field.name for field in kind]
        texts = [json_of(column, f"{place}: {name}") for name, column in zip(names, array.flatten(), strict=True)]
        return pc.if_else(array.is_valid(), objects(names, texts, len(array)), None)
    if types.is_map(kind):
        lists = entries_of(array)
        names, values = lists.flatten().flatten()
        names = text_of(names, place).cast(TEXT)
        return _join_items(lists, join_parts(_quote(names), ":", json_of(values, place)), "{", "}")
    if types.is_list(kind) or types.is_large_list(kind):
        return _join_items(array, json_of(array.flatten(), place), "[", "]")
    if types.is_binary(kind) or types.is_large_binary(kind):
        raise InvalidRecords(f"{place}: JSON cannot hold {kind}: name one column as the value")
    text = _text_of_scalars(array, place)
    if types.is_floating(kind):
        return pc.if_else(pc.is_finite(array), text, None)
    is_number = types.is_integer(kind) or types.is_decimal(kind) or types.is_boolean(kind) or types.is_duration(kind)
    return text if is_number else join_parts('"', text, '"')


def _text_of_scalars(array: Array, place: str) -> Array:
    """Convert numbers, booleans, dates and times to text."""
    types, kind = pa.types, array.type
    if types.is_timestamp(kind):
        # Without its zone, Arrow prints the time in UTC.
        text = array.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(TEXT)
        return join_parts(pc.replace_substring(text, " ", "T"), "Z" if kind.tz else "")
    if types.is_duration(kind):
        return array.cast(pa.int64()).cast(TEXT)
    if types.is_floating(kind):
        return _text_of_floats(array)
    try:
        return array.cast(TEXT)
    except pa.ArrowNotImplementedError:
        raise InvalidRecords(f"{place}: {kind} has no text") from None


def _text_of_floats(array: Array) -> Array:
    """Convert floats to the shortest text that reads back as the same float, as `repr` does: 1.0, 1e+16."""
    numbers = array.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.float16:  # Arrow has no text for it
        is_plain, text = np.zeros(len(array), np.bool_), pa.nulls(len(array), TEXT)
    else:
        sizes = np.abs(numbers)
        is_plain, text = (sizes == 0) | ((sizes >= 1e-4) & (sizes < 1e10)), array.cast(TEXT)
        text = pc.if_else(pc.match_substring_regex(text, WHOLE), join_parts(text, ".0"), text)
    if not is_plain.all():  # Arrow takes other exponents than `repr`
        text = pc.replace_with_mask(
            text, pa.array(~is_plain), pa.array(numbers[~is_plain].astype(np.str_).tolist(), TEXT)
        )
    return pc.if_else(array.is_valid(), text, None)


def objects(names: Sequence[str], texts: Sequence[Array], n: int) -> Array:
    """Return one JSON object per row, large_string[n]. names, texts: the name and the JSON texts of each column.

    JSON is UTF-8, so other bytes of a name become U+FFFD.
    """
    if not names:
        return pa.repeat(pa.scalar("{}", TEXT), n)
    parts: list[Array | str] = []
    for i, (name, text) in enumerate(zip(names, texts, strict=True)):
        of_utf8 = name.encode(errors="surrogateescape").decode(errors="replace")
        parts += [("," if i else "{") + json.dumps(of_utf8, ensure_ascii=False) + ":", text]
    return join_parts(*parts, "}")


def cells_of(text: Array) -> Array:
    """Convert CSV cells to JSON.

    Numbers, `true` and `false` stay as they are, null becomes `null`, others become strings. A cell that is not UTF-8
    becomes null.
    """
    text, is_null = _utf8_or_null(text), text.is_null()
    return pc.if_else(is_null, "null", pc.if_else(pc.match_substring_regex(text, CELL), text, _quote(text)))


def _utf8_or_null(array: Array) -> Array:
    """Return bytes as text; null for an item that is not UTF-8."""
    try:
        return array.cast(TEXT)
    except pa.ArrowInvalid:  # it does not say which items
        items = ((item or b"").decode(errors="replace").encode() for item in array.to_pylist())
        is_utf8 = pc.equal(array, pa.array(items, array.type))
        return pc.if_else(is_utf8, array, None).cast(TEXT)


def _join_items(array: Array, items: Array, before: str, after: str) -> Array:
    counts = pc.list_value_length(array).fill_null(0).cast(pa.int64())
    bounds = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts)])
    text = pc.binary_join(pa.LargeListArray.from_arrays(bounds, items), pa.scalar(",", TEXT))
    return pc.if_else(array.is_valid(), join_parts(before, text, after), None)


def _quote(text: Array) -> Array:
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(text, CONTROL)).as_py():
        for code in range(0x20):
            text = pc.replace_substring(text, chr(code), json.dumps(chr(code))[1:-1])
    return join_parts('"', text, '"')
