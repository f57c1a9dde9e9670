"""Avro, written and read by fastavro.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope. Means
of the first 100 batches of seed 7, or of all batches in 10,000 records:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| object container with its schema, one block (`avro`) | 723 | 131 | 45.6 | 31.9 | 29.2 |
| single object, one array of records | 250 | 83.5 | 40.8 | 31.8 | 29.1 |
| the same, without defaults and unneeded unions | 246 | 79.9 | 37.6 | 28.7 | 26.2 |
| the smaller for each batch (`avro-best`) | 246 | 79.9 | 37.6 | 28.7 | 26.2 |

A container of several blocks is larger. One array per field is no arm: it is a columnar format of our own inside Avro.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from io import BytesIO
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from fastavro import parse_schema, reader, schemaless_reader, schemaless_writer, writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from kfbench.codecs import CODECS
from kfbench.errors import CorruptLog
from kfbench.research.rivals.base import (
    OPTIONAL,
    PAYLOAD,
    SCHEMA,
    TIMES,
    Deltas,
    FetchedPayload,
    Rival,
    SmallestRival,
    compress_whole,
    decompress_whole,
    schema_of_byte,
    with_defaults,
    without_defaults,
    zstd_level,
)

Rows = list[dict[str, Any]]

_NULLABLE: Final = ["null", "bytes"]
_HEADER: Final = {
    "type": "record",
    "name": "Header",
    "fields": [{"name": "key", "type": "bytes"}, {"name": "value", "type": _NULLABLE}],
}
_TYPES: Final = {
    "offset_delta": "int",
    "timestamp_delta": "long",
    "key": _NULLABLE,
    "value": _NULLABLE,
    "headers": {"type": "array", "items": _HEADER},
}


def _schema(names: Iterable[str]) -> dict[str, Any]:
    fields = [{"name": name, "type": _TYPES[name]} for name in names]
    return {"type": "record", "name": "Record", "fields": fields}


_ROW, _ROW_TIMES, _ROW_PAYLOAD = (parse_schema(_schema(names)) for names in (_TYPES, TIMES, PAYLOAD))


class _Array(NamedTuple):
    """An array of records: its columns, its parsed schema, and the ten bytes that name this schema."""

    names: tuple[str, ...]
    schema: Any
    start: bytes


@cache
def _array_of(names: tuple[str, ...], filled: tuple[str, ...] = ()) -> _Array:
    """Return the array of records with these columns. filled: the columns without nulls."""
    record = _schema(names)
    for field in record["fields"]:
        if field["name"] in filled:
            field["type"] = "bytes"
    schema = parse_schema({"type": "array", "items": record})
    digest = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
    return _Array(names, schema, b"\xc3\x01" + bytes.fromhex(digest))


@cache
def _arrays() -> Mapping[bytes, _Array]:
    """Return all arrays that a reader knows, by their ten bytes."""
    columns = [tuple(schema_of_byte(bits).names) for bits in range(1 << len(OPTIONAL))]
    filled = [(), ("key",), ("value",), ("key", "value")]
    found = [_array_of(names, each) for names in columns for each in filled if {*each} <= {*names}]
    return {array.start: array for array in found}


_CODECS: Final = {"none": "null", "lz4": "lz4", "zstd": "zstandard"}
_SYNC: Final = bytes(16)  # fastavro would write random bytes, of the same size
_START_BYTES: Final = 10
_ONE_BLOCK: Final = np.iinfo(np.int32).max


class Avro(Rival):
    """An object container with its schema and one block of records. `fetch` decodes the records up to the wanted one.

    fastavro takes and returns a list of dictionaries. It ignores fields that a reader does not want.
    """

    name = "avro"
    needs = "fastavro"

    def prepare_table(self, table: pa.Table) -> Any:
        return table.to_pylist()

    def encode(self, prepared: Rows, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        out = BytesIO()
        writer(
            out,
            _ROW,
            prepared,
            codec=_CODECS[codec],
            sync_interval=_ONE_BLOCK,
            sync_marker=_SYNC,
            codec_compression_level=zstd_level(codec, level),
        )
        return out.getvalue()

    def decode(self, container: bytes) -> Rows:
        return list(_rows(container))

    def read_times(self, container: bytes) -> Deltas:
        return _times(_rows(container, _ROW_TIMES))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        return _payload_of(next(islice(_rows(container, _ROW_PAYLOAD), i, None)))

    def table(self, decoded: Rows) -> pa.Table:
        return pa.Table.from_pylist(decoded, schema=SCHEMA)


class _Prepared(NamedTuple):
    """The rows of a batch, and the arrays that are tried."""

    rows: Rows
    arrays: tuple[_Array, _Array]


class AvroBest(SmallestRival, Avro):
    """The smaller of two single objects: arrays of all columns, or of those with more than defaults.

    An object starts with ten bytes that name its schema, which the reader must know. The second array also has no
    union where a key or value is never null. The codec compresses an array as a whole, after the ten bytes. `fetch`
    decodes all records: an array has no index.
    """

    name = "avro-best"

    def codec_version(self, codec: str) -> str:
        return CODECS[codec].version

    def prepare_table(self, table: pa.Table) -> _Prepared:
        lean = without_defaults(table)
        filled = tuple(name for name in ("key", "value") if name in lean.column_names and not lean[name].null_count)
        arrays = _array_of(tuple(table.column_names)), _array_of(tuple(lean.column_names), filled)
        return _Prepared(table.to_pylist(), arrays)

    def choices(self, prepared: _Prepared, codec: str) -> Sequence[_Array]:
        return prepared.arrays

    def write(self, prepared: _Prepared, codec: str, level: int | None, choice: _Array) -> bytes:
        out = BytesIO()
        schemaless_writer(out, choice.schema, prepared.rows)
        return choice.start + compress_whole(out.getvalue(), codec, level)

    def decode(self, container: bytes) -> Rows:
        return _array(container)

    def read_times(self, container: bytes) -> Deltas:
        return _times(_array(container, TIMES))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        return _payload_of(_array(container, PAYLOAD)[i])

    def table(self, decoded: Rows) -> pa.Table:
        schema = pa.schema([field for field in SCHEMA if field.name in decoded[0]])
        return with_defaults(pa.Table.from_pylist(decoded, schema=schema))


def _rows(container: bytes, wanted: Any = None) -> Any:
    return reader(BytesIO(container), wanted)


def _array(container: bytes, wanted: Sequence[str] | None = None) -> Rows:
    """Return the rows of a single object. wanted: the columns to return, if the object has them; None: all."""
    found = _arrays().get(container[:_START_BYTES])
    if found is None:
        raise CorruptLog(0, "schema", f"no known schema has the name {container[:_START_BYTES].hex()}")
    of_reader = None if wanted is None else _array_of(tuple(name for name in found.names if name in wanted)).schema
    data = BytesIO(decompress_whole(container[_START_BYTES:]))
    return schemaless_reader(data, found.schema, of_reader)  # type: ignore[return-value]


def _times(rows: Iterable[dict[str, Any]]) -> Deltas:
    deltas = np.array([(row.get("offset_delta", i), row.get("timestamp_delta", 0)) for i, row in enumerate(rows)])
    return Deltas(*deltas.astype(np.int64).T)


def _payload_of(row: dict[str, Any]) -> FetchedPayload:
    headers = tuple((header["key"], header["value"]) for header in row.get("headers", ()))
    return FetchedPayload(row.get("key"), row["value"], headers)
