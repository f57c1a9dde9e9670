"""Measure "what if the broker knew the schema": JSON values as typed columns in Parquet and Arrow.

The schema is inferred from all records of the sample, as if it were registered for the topic. A value that is no JSON
object stays opaque bytes, and so does an object with a key twice, NaN or Infinity. Everything else of a record is
stored as in the opaque containers, and v2's 61-byte batch header is counted.

Verified: each JSON value that is read back is semantically equal to the original. It is not byte-exact. Lost are

- the order of keys, whitespace, and escapes in strings;
- the spelling of numbers, such as 1.0 and 1, and digits beyond double precision;
- the difference between a member that is null and an absent member.

Text stays text: timestamps and numbers in strings are not parsed.

| arm | documented | best |
|---|---|---|
| parquet-shredded | default settings | smallest of ten files |
| arrow-shredded | stream, compressed buffers | smallest of four streams |

"best" takes the smallest for each batch. It writes no statistics, no Arrow schema, and no columns with only defaults.
The ten files have five encodings, each with pages compressed or the file as a whole:

- dictionaries everywhere;
- no dictionaries, strings plain or DELTA_LENGTH_BYTE_ARRAY;
- dictionaries where strings repeat, other strings DELTA_LENGTH_BYTE_ARRAY or DELTA_BYTE_ARRAY.

The four streams have strings that repeat as dictionaries or not, each with buffers compressed or the stream as a whole.

Each setting has a second row, "... without schema". Parquet: the file's size minus that of a file without
rows. Arrow: the stream without the schema message and the end marker.

Bytes per record of user-activity (seed 7) in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3:

| arm | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| columnar, opaque values | 201 | 72.3 | 33.5 | 25.7 | 24.2 |
| parquet-shredded, documented | 3,186 | 397 | 71.9 | 30.7 | 22.5 |
| parquet-shredded, best | 540 | 120 | 37.6 | 20.0 | 13.5 |
| parquet-shredded, best without schema | 331 | 95.8 | 34.8 | 19.8 | 13.5 |
| arrow-shredded, best | 569 | 124 | 48.7 | 28.7 | 20.4 |

Among the batch sizes tried, parquet-shredded at its best is first smaller than columnar at 200 records per batch in
user-activity, service-events and transactional. The size is 500 in cdc-debezium and out-of-order, and 1,000 in
cloudevents and connect-internal. In cloudevents columnar is smaller again at 10,000.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import product
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.arrays import Int64
from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import TIMES, buffer_codec, relative, to_table, without_defaults
from kfbench.rivals.envelope import ENVELOPE_BYTES
from kfbench.rivals.parquet_file import LEAN, LENGTHS, PREFIXES, lean_setting, parquet_bytes
from kfbench.rivals.sizes import ZSTD_LEVEL, RivalSize, batches_of, check_same, size_row

WITHOUT_SCHEMA: Final = " without schema"
END_BYTES: Final = 8  # the end marker of an Arrow stream
REPEATING_SHARE: Final = 0.5  # strings repeat if at most this share of them is distinct


class ContainerSize(NamedTuple):
    """The size in bytes of a container with its schema, and without the bytes that only the schema needs."""

    whole: int
    bare: int


Measure = Callable[[Records, Int64, str], list[ContainerSize]]


@dataclass(frozen=True, kw_only=True)
class Shredded:
    """The records of a topic with parsed values.

    Args:
        objects: per record, the JSON object of its value; None: the value is stored as opaque bytes.
        json_type: the Arrow type of all objects.
        repeats: per dotted path of a string member, True if its values repeat.
    """

    objects: list[dict[str, Any] | None]
    json_type: pa.DataType
    repeats: Mapping[str, bool]

    @classmethod
    def of(cls, records: Records) -> "Shredded":
        """Parse the values and infer their type. Raises pyarrow.ArrowInvalid if members have conflicting types."""
        objects = [json_object(value) for value in records.values()]
        column = pa.array(objects)
        return cls(objects=objects, json_type=column.type, repeats=dict(_strings(column, "json")))

    def tables(self, records: Records, bounds: Int64, is_best: bool, with_dictionaries: bool) -> Iterator[pa.Table]:
        """Yield the table of each batch.

        is_best: leave out columns that hold only defaults. with_dictionaries: strings that repeat become Arrow
        dictionaries.
        """
        kind = _dictionary_type(self.json_type, "json", self.repeats) if with_dictionaries else self.json_type
        parsed = zip(self.objects, records.values(), strict=True)
        opaque = [None if found is not None else value for found, value in parsed]
        has_opaque = any(value is not None for value in opaque)
        first = 0
        for batch in batches_of(records, bounds):
            end = first + len(batch)
            table = to_table(relative(batch))
            if is_best:
                table = without_defaults(table)
            elif not records.shapes.has_headers:
                table = table.drop_columns("headers")
            table = table.drop_columns("value").append_column("json", pa.array(self.objects[first:end], kind))
            yield table.append_column("value", pa.array(opaque[first:end], pa.binary())) if has_opaque else table
            first = end


def json_object(value: bytes | None) -> dict[str, Any] | None:
    """Return the JSON object in a value, or None if typed columns cannot store it."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key twice")
        return found

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        found = json.loads(value or b"", object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def without_nulls(value: Any) -> Any:
    """Return the JSON value without the members that are null. Items of arrays stay."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def shredded_sizes(records: Records, bounds: Int64, codec: str) -> list[RivalSize]:
    """Return the size of all batches with their JSON in typed columns: one row per arm and setting.

    Return no rows if no value is a JSON object. bounds: int64[batches + 1]. codec: "none", "lz4" or "zstd" (level 3).
    """
    if not any(json_object(value) for value in records.values()):
        return []
    rows = []
    for name, setting, measure in ARMS:
        sizes: list[ContainerSize] = []

        def total(measure: Measure = measure, sizes: list[ContainerSize] = sizes) -> int:
            sizes += measure(records, bounds, codec)
            return sum(ENVELOPE_BYTES + size.whole for size in sizes)

        row = size_row(name, setting, len(records), len(bounds) - 1, total)
        bare = None if row.error else sum(ENVELOPE_BYTES + size.bare for size in sizes)
        rows += [row, row._replace(setting=setting + WITHOUT_SCHEMA, size_bytes=bare)]
    return rows


def _strings(column: pa.Array, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the path of each string member, and True if its values repeat."""
    if pa.types.is_struct(column.type):
        for i, field in enumerate(column.type):
            yield from _strings(column.field(i), f"{path}.{field.name}")
    elif pa.types.is_string(column.type):
        filled = len(column) - column.null_count
        yield path, len(column.unique()) <= REPEATING_SHARE * filled


def _dictionary_type(kind: pa.DataType, path: str, repeats: Mapping[str, bool]) -> pa.DataType:
    """Return the type with dictionaries for the strings that repeat."""
    if pa.types.is_struct(kind):
        members = {field.name: _dictionary_type(field.type, f"{path}.{field.name}", repeats) for field in kind}
        return pa.struct(list(members.items()))
    return pa.dictionary(pa.int32(), kind) if repeats.get(path) else kind


def _check(read: pa.Table, table: pa.Table, objects: list[dict[str, Any] | None]) -> None:
    check_same("columns", read.cast(table.schema).equals(table))
    same = [without_nulls(found) for found in read.column("json").to_pylist()] == list(map(without_nulls, objects))
    check_same("JSON", same)


def _smallest(sizes: list[ContainerSize]) -> ContainerSize:
    return ContainerSize(min(size.whole for size in sizes), min(size.bare for size in sizes))


def _parquet(records: Records, bounds: Int64, codec: str, is_best: bool) -> list[ContainerSize]:
    shredded, sizes, first = Shredded.of(records), [], 0
    choices = list(product(_parquet_settings(shredded.repeats, is_best), (False, True) if is_best else (False,)))
    schema_bytes: dict[pa.Schema, list[int]] = {}
    for table in shredded.tables(records, bounds, is_best, with_dictionaries=False):
        if table.schema not in schema_bytes:
            empty = table.schema.empty_table()
            schema_bytes[table.schema] = [len(_bytes(empty, codec, *choice)) for choice in choices]
        objects = shredded.objects[first : first + len(table)]
        found = []
        for choice, empty_bytes in zip(choices, schema_bytes[table.schema], strict=True):
            data = _bytes(table, codec, *choice)
            _check(_read_parquet(whole.decompress(data)), table, objects)
            found.append(ContainerSize(len(data), len(data) - empty_bytes))
        sizes.append(_smallest(found))
        first += len(table)
    return sizes


def _parquet_settings(repeats: Mapping[str, bool], is_best: bool) -> list[dict[str, Any]]:
    """Return the writer's settings to try. The module lists them."""
    if not is_best:
        return [{}]
    names = ["key", "value", "json", *TIMES]
    repeating = sorted(path for path, is_repeating in repeats.items() if is_repeating)
    others = ["key", *(path for path, is_repeating in repeats.items() if not is_repeating)]
    encodings: list[tuple[list[str], dict[str, str]]] = [
        ([], {}),
        ([], dict.fromkeys([*others, *repeating], LENGTHS)),
        (repeating, dict.fromkeys(others, LENGTHS)),
        (repeating, dict.fromkeys(others, PREFIXES)),
    ]
    return [{**LEAN}, *(lean_setting(names, *each) for each in encodings)]


def _bytes(table: pa.Table, codec: str, setting: Mapping[str, Any], is_whole: bool) -> bytes:
    return parquet_bytes(table, codec, ZSTD_LEVEL, setting, is_whole=is_whole)


def _read_parquet(data: bytes) -> pa.Table:
    return pq.read_table(BytesIO(data))


def _arrow(records: Records, bounds: Int64, codec: str, is_best: bool) -> list[ContainerSize]:
    shredded, sizes, first = Shredded.of(records), [], 0
    options = (False, True) if is_best else (False,)
    choices = [shredded.tables(records, bounds, is_best, with_dictionaries) for with_dictionaries in options]
    for tables in zip(*choices, strict=True):
        objects = shredded.objects[first : first + len(tables[0])]
        found = [_arrow_size(table, objects, codec, is_whole) for table, is_whole in product(tables, options)]
        sizes.append(_smallest(found))
        first += len(tables[0])
    return sizes


def _arrow_size(table: pa.Table, objects: list[dict[str, Any] | None], codec: str, is_whole: bool) -> ContainerSize:
    """Return the size of a stream with one batch. is_whole: compress its messages together, not each buffer."""
    options = pa.ipc.IpcWriteOptions(compression=buffer_codec("none" if is_whole else codec, ZSTD_LEVEL))
    out = BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=options) as writer:
        writer.write_table(table)
    stream = out.getvalue()
    messages = stream[len(table.schema.serialize()) : -END_BYTES]
    packed, bare = (whole.compress(data, codec if is_whole else "none", None) for data in (stream, messages))
    _check(pa.ipc.open_stream(whole.decompress(packed)).read_all(), table, objects)
    check_same("messages", whole.decompress(bare) == messages)
    return ContainerSize(len(packed), len(bare))


ARMS: Final[tuple[tuple[str, str, Measure], ...]] = (
    ("parquet-shredded", "documented", partial(_parquet, is_best=False)),
    ("parquet-shredded", "best", partial(_parquet, is_best=True)),
    ("arrow-shredded", "documented", partial(_arrow, is_best=False)),
    ("arrow-shredded", "best", partial(_arrow, is_best=True)),
)
