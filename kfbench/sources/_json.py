"""Arrow columns as text, and as JSON as `json.dumps` writes it without spaces and without ASCII escapes.

Whole columns at a time: strings are quoted, lists and structs joined by Arrow's kernels. Times are ISO 8601, maps are
objects, floats that JSON has no number for are null.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kfbench.errors import InvalidRecords

Array: TypeAlias = Any  # pa.Array, whose kernels are not typed
TEXT: Final = pa.large_string()
CELL: Final = r"^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false)$"
CONTROL: Final = r"[\x00-\x1f]"


def is_text(kind: pa.DataType) -> bool:
    """Text, or bytes that may be text."""
    types = pa.types
    return any(
        is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def plain(array: Array) -> Array:
    """Without a dictionary, a view or a fixed size, which few kernels know."""
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_string_view(kind):
        return array.cast(TEXT)
    if types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if types.is_fixed_size_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def entries_of(array: Array) -> Array:
    """A map as list<struct<key, value>>."""
    kind = array.type
    entry = pa.struct([pa.field("key", kind.key_type), pa.field("value", kind.item_type)])
    return array.cast(pa.list_(pa.field("entries", entry)))


def text_of(array: Array, what: str) -> Array:
    """Binary and text as they are; a number, a truth value, a date: its text; a list, a struct, a map: JSON."""
    kind = array.type
    if is_text(kind):
        return array
    if pa.types.is_null(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_nested(kind):
        return pc.if_else(array.is_valid(), json_of(array, what), None)
    return _scalars(array, what)


def json_of(array: Array, what: str) -> Array:
    """large_string[n]; null is `null`. Raises InvalidRecords, with `what` it is, for bytes, which JSON cannot hold."""
    return _json(plain(array), what).fill_null("null")


def together(*parts: Array | str) -> Array:
    """The parts of each item in one text; null where one of them is."""
    return pc.binary_join_element_wise(
        *(pa.scalar(part, TEXT) if isinstance(part, str) else part for part in (*parts, ""))
    )


def _json(array: Array, what: str) -> Array:
    types, kind = pa.types, array.type
    if types.is_null(kind):
        return array.cast(TEXT)
    if types.is_string(kind) or types.is_large_string(kind):
        return _quoted(array.cast(TEXT))
    if types.is_struct(kind):
        return _object(array, what)
    if types.is_map(kind):
        lists = entries_of(array)
        names, values = lists.flatten().flatten()
        names = text_of(plain(names), what).cast(TEXT)
        return _joined(lists, together(_quoted(names), ":", json_of(values, what)), "{", "}")
    if types.is_list(kind) or types.is_large_list(kind):
        return _joined(array, json_of(array.flatten(), what), "[", "]")
    if types.is_binary(kind) or types.is_large_binary(kind):
        raise InvalidRecords(f"{what}: JSON cannot hold {kind}: name one column as the value")
    text = _scalars(array, what)
    if types.is_floating(kind):
        return pc.if_else(pc.is_finite(array), text, None)
    is_number = types.is_integer(kind) or types.is_decimal(kind) or types.is_boolean(kind) or types.is_duration(kind)
    return text if is_number else together('"', text, '"')


def _scalars(array: Array, what: str) -> Array:
    """Numbers, truth values, dates and times as text."""
    types, kind = pa.types, array.type
    if types.is_timestamp(kind):
        # Without its zone, so that it is printed in UTC.
        text = array.cast(pa.int64()).cast(pa.timestamp(kind.unit)).cast(TEXT)
        return together(pc.replace_substring(text, " ", "T"), "Z" if kind.tz else "")
    if types.is_duration(kind):
        return array.cast(pa.int64()).cast(TEXT)
    if types.is_float16(kind):
        return array.cast(pa.float32()).cast(TEXT)
    try:
        return array.cast(TEXT)
    except pa.ArrowNotImplementedError:
        raise InvalidRecords(f"{what}: {kind} has no text") from None


def _object(array: Array, what: str) -> Array:
    names = [field.name for field in array.type]
    texts = [json_of(column, f"{what}: {name}") for name, column in zip(names, array.flatten(), strict=True)]
    return pc.if_else(array.is_valid(), objects(names, texts, len(array)), None)


def objects(names: Sequence[str], texts: Sequence[Array], n: int) -> Array:
    """An object of each row, large_string[n], from its values' JSON texts."""
    if not names:
        return pa.repeat(pa.scalar("{}", TEXT), n)
    parts: list[Array | str] = []
    for i, (name, text) in enumerate(zip(names, texts, strict=True)):
        parts += [("," if i else "{") + json.dumps(name, ensure_ascii=False) + ":", text]
    return together(*parts, "}")


def cells_of(text: Array) -> Array:
    """CSV cells as JSON: numbers, `true` and `false` as they stand, others as strings, null as `null`."""
    text = text.cast(TEXT)
    return pc.if_else(pc.match_substring_regex(text, CELL), text, _quoted(text)).fill_null("null")


def _joined(array: Array, items: Array, before: str, after: str) -> Array:
    counts = pc.list_value_length(array).fill_null(0).cast(pa.int64())
    bounds = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(counts)])
    text = pc.binary_join(pa.LargeListArray.from_arrays(bounds, items), pa.scalar(",", TEXT))
    return pc.if_else(array.is_valid(), together(before, text, after), None)


def _quoted(text: Array) -> Array:
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(text, CONTROL)).as_py():
        for code in range(0x20):
            text = pc.replace_substring(text, chr(code), json.dumps(chr(code))[1:-1])
    return together('"', text, '"')
