"""Avro, written and read by fastavro.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| object container, blocks of 16,000 bytes (the default) | 726 | 130 | 51.3 | 45.3 | 44.9 |
| object container, one block (`avro`) | 726 | 130 | 45.2 | 31.9 | 29.2 |
| object container, one block, compressed as a whole | 424 | 99.9 | 42.3 | 32.0 | 29.2 |
| fingerprint of the schema, one object compressed as a whole (`avro-best`) | 253 | 83.0 | 40.4 | 31.8 | 29.1 |
| the same, with one array per field | 260 | 83.1 | 39.7 | 30.5 | 28.3 |
| the same as `avro-best`, with absolute offsets and timestamps | 258 | 84.8 | 41.3 | 31.9 | 29.3 |

One array per field is a columnar format of our own inside Avro, so it is not an arm.
"""

from collections.abc import Iterable
from io import BytesIO
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
from fastavro import parse_schema, reader, schemaless_reader, schemaless_writer, writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

from kfbench.errors import CorruptLog
from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import PAYLOAD, SCHEMA, TIMES, Fetched, Rival, Setting, Times, from_table, to_table, zstd_level

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
_ARRAY, _ARRAY_TIMES, _ARRAY_PAYLOAD = (
    parse_schema({"type": "array", "items": _schema(names)}) for names in (_TYPES, TIMES, PAYLOAD)
)
_SINGLE_OBJECT: Final = b"\xc3\x01" + bytes.fromhex(fingerprint(to_parsing_canonical_form(_ARRAY), "CRC-64-AVRO"))
_CODECS: Final = {"none": "null", "lz4": "lz4", "zstd": "zstandard"}
_SYNC: Final = bytes(16)  # fastavro would write random bytes, of the same size
_ONE_BLOCK: Final = np.iinfo(np.int32).max


class Avro(Rival):
    """An object container with its schema and one block of records. `fetch` decodes the records up to the wanted one.

    fastavro takes and returns a list of dictionaries. It ignores fields that a reader does not want.
    """

    name = "avro"
    needs = "fastavro"

    def prepare(self, records: Records) -> Rows:
        return to_table(records).to_pylist()  # type: ignore[no-any-return]

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

    def read_times(self, container: bytes) -> Times:
        return _times(_rows(container, _ROW_TIMES))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return _fetched(next(islice(_rows(container, _ROW_PAYLOAD), i, None)))

    def records(self, decoded: Rows) -> Records:
        return from_table(pa.Table.from_pylist(decoded, schema=SCHEMA))


class AvroBest(Avro):
    """Avro's single-object encoding of one array of records: ten bytes for the schema, which the reader must know.

    The codec compresses the array as a whole, after the ten bytes. `fetch` decodes all records: an array has no index.
    """

    name = "avro-best"
    setting: ClassVar[Setting] = "best"

    def encode(self, prepared: Rows, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        out = BytesIO()
        schemaless_writer(out, _ARRAY, prepared)
        return _SINGLE_OBJECT + whole.compress(out.getvalue(), codec, level)

    def decode(self, container: bytes) -> Rows:
        return _array(container)

    def read_times(self, container: bytes) -> Times:
        return _times(_array(container, _ARRAY_TIMES))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return _fetched(_array(container, _ARRAY_PAYLOAD)[i])


def _rows(container: bytes, wanted: Any = None) -> Any:
    return reader(BytesIO(container), wanted)


def _array(container: bytes, wanted: Any = None) -> Rows:
    found, object_ = container[: len(_SINGLE_OBJECT)], container[len(_SINGLE_OBJECT) :]
    if found != _SINGLE_OBJECT:
        raise CorruptLog(0, "schema", f"the object starts with {found.hex()}, not {_SINGLE_OBJECT.hex()}")
    return schemaless_reader(BytesIO(whole.decompress(object_)), _ARRAY, wanted)  # type: ignore[return-value]


def _times(rows: Iterable[dict[str, Any]]) -> Times:
    deltas = np.array([(row["offset_delta"], row["timestamp_delta"]) for row in rows], np.int64)
    return Times(deltas[:, 0], deltas[:, 1])


def _fetched(row: dict[str, Any]) -> Fetched:
    return Fetched(row["key"], row["value"], tuple((header["key"], header["value"]) for header in row["headers"]))
