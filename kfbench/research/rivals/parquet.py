"""Parquet, written and read by pyarrow. A batch is a file with one row group.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope. Means
of the first 100 batches of seed 7, or of all batches in 10,000 records:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| pyarrow's defaults: dictionaries, statistics, pages 1.0, Arrow schema (`parquet`) | 2,985 | 368 | 71.7 | 37.8 | 33.2 |
| lean, plain byte strings | 433 | 108 | 40.6 | 28.1 | 25.3 |
| DELTA_LENGTH_BYTE_ARRAY | 432 | 107 | 39.2 | 27.6 | 25.1 |
| DELTA_BYTE_ARRAY | 439 | 110 | 40.2 | 28.3 | 25.0 |
| keys and header keys DELTA_BYTE_ARRAY, values DELTA_LENGTH_BYTE_ARRAY | 445 | 109 | 39.3 | 27.7 | 25.2 |
| keys and header keys DELTA_LENGTH_BYTE_ARRAY, values DELTA_BYTE_ARRAY | 446 | 110 | 40.5 | 28.4 | 25.0 |
| dictionaries of keys and header keys, values DELTA_BYTE_ARRAY | 475 | 114 | 42.2 | 29.3 | 25.4 |
| dictionaries of all headers, keys and values DELTA_LENGTH_BYTE_ARRAY | 432 | 107 | 39.2 | 27.6 | 25.1 |
| dictionaries of all byte strings | 461 | 112 | 42.6 | 29.8 | 26.4 |
| the smallest for each batch (`parquet-best`) | 432 | 107 | 39.2 | 27.6 | 25.0 |

A lean file has no statistics, no Arrow schema and no column that holds only defaults. Its deltas are
DELTA_BINARY_PACKED. The codec compresses the whole file, with data pages 1.0. `parquet-best` also tries the eight
encodings with data pages 2.0 that are compressed one by one. user-activity has no headers.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.research.rivals.base import (
    PAYLOAD,
    TIMES,
    Deltas,
    FetchedPayload,
    Rival,
    SmallestRival,
    compress_whole,
    decompress_whole,
    row_of,
    times_of,
    with_defaults,
    zstd_level,
)

_LENGTHS: Final = "DELTA_LENGTH_BYTE_ARRAY"
_PREFIXES: Final = "DELTA_BYTE_ARRAY"
_KEY, _VALUE = "key", "value"
_HEADER_KEY, _HEADER_VALUE = "headers.list.element.key", "headers.list.element.value"
_ALL: Final = (_KEY, _VALUE, _HEADER_KEY, _HEADER_VALUE)


class Parquet(Rival):
    """Parquet with pyarrow's defaults: dictionaries, statistics, data pages 1.0, the Arrow schema in the footer."""

    name = "parquet"

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return _parquet_bytes(prepared, codec, level, {}, is_whole=False)

    def decode(self, container: bytes) -> pa.Table:
        return _read(container)

    def read_times(self, container: bytes) -> Deltas:
        return times_of(_read(container, TIMES))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        """Return the payload of record i. Parquet decompresses all pages of the payload columns for that."""
        return row_of(_read(container, PAYLOAD), i)


class _ParquetChoice(NamedTuple):
    """A way to write a Parquet file.

    Args:
        dictionaries: the paths of the columns with dictionaries.
        encodings: path and encoding of each other column.
        is_whole: True if the codec compresses the file (data pages 1.0), not each page (2.0).
    """

    dictionaries: tuple[str, ...]
    encodings: tuple[tuple[str, str], ...]
    is_whole: bool


_ENCODINGS: Final[tuple[tuple[tuple[str, ...], dict[str, str]], ...]] = (
    ((), {}),
    ((), dict.fromkeys(_ALL, _LENGTHS)),
    ((), dict.fromkeys(_ALL, _PREFIXES)),
    ((), {_KEY: _PREFIXES, _HEADER_KEY: _PREFIXES, _VALUE: _LENGTHS, _HEADER_VALUE: _LENGTHS}),
    ((), {_KEY: _LENGTHS, _HEADER_KEY: _LENGTHS, _VALUE: _PREFIXES, _HEADER_VALUE: _PREFIXES}),
    ((_KEY, _HEADER_KEY), {_VALUE: _PREFIXES, _HEADER_VALUE: _PREFIXES}),
    ((_HEADER_KEY, _HEADER_VALUE), {_KEY: _LENGTHS, _VALUE: _LENGTHS}),
    (_ALL, {}),
)
"""Dictionaries and encodings, as in the module's list."""


class ParquetBest(SmallestRival):
    """The smallest of sixteen Parquet files without statistics, Arrow schema, or columns that hold only defaults.

    The file tells its encodings. Its first bytes tell whether it is compressed as a whole.
    """

    name = "parquet-best"

    def choices(self, prepared: pa.Table, codec: str) -> list[_ParquetChoice]:
        """Return the settings, each once: without headers or keys, some are equal."""

        def is_present(path: str) -> bool:
            return path.split(".")[0] in prepared.column_names

        found = [
            _ParquetChoice(
                tuple(filter(is_present, dictionaries)),
                tuple((path, name) for path, name in encodings.items() if is_present(path)),
                is_whole,
            )
            for (dictionaries, encodings), is_whole in product(_ENCODINGS, (True, False))
        ]
        return list(dict.fromkeys(found))

    def write(self, prepared: pa.Table, codec: str, level: int | None, choice: _ParquetChoice) -> bytes:
        deltas = {name: "DELTA_BINARY_PACKED" for name in TIMES if name in prepared.column_names}
        setting = {
            "write_statistics": False,
            "store_schema": False,
            "use_dictionary": [*choice.dictionaries] or False,
            "column_encoding": deltas | dict(choice.encodings) or None,
            "data_page_version": "1.0" if choice.is_whole else "2.0",
        }
        return _parquet_bytes(prepared, codec, level, setting, is_whole=choice.is_whole)

    def decode(self, container: bytes) -> pa.Table:
        return _read(decompress_whole(container))

    def read_times(self, container: bytes) -> Deltas:
        file = _open(decompress_whole(container))
        names = [name for name in TIMES if name in file.schema_arrow.names]
        return times_of(file.read(columns=names, use_threads=False), file.metadata.num_rows)

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        file = _open(decompress_whole(container))
        table = file.read(columns=[name for name in PAYLOAD if name in file.schema_arrow.names], use_threads=False)
        return row_of(table, i)

    def table(self, decoded: pa.Table) -> pa.Table:
        return with_defaults(decoded)


def _parquet_bytes(
    table: pa.Table, codec: str, level: int | None, setting: Mapping[str, Any], *, is_whole: bool
) -> bytes:
    """Return a Parquet file with one row group. is_whole: compress the file, not each page."""
    page_codec = "none" if is_whole else codec
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=max(len(table), 1),
        compression=page_codec,
        compression_level=zstd_level(page_codec, level),
        **setting,
    )
    return compress_whole(sink.getvalue().to_pybytes(), codec if is_whole else "none", level)


def _open(container: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(container), pre_buffer=False)


def _read(container: bytes, columns: list[str] | None = None) -> pa.Table:
    return _open(container).read(columns=columns, use_threads=False)
