"""Parquet, written and read by pyarrow. A batch is a file with one row group.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| pyarrow's defaults: dictionaries, statistics, pages 1.0, Arrow schema (`parquet`) | 3,006 | 369 | 71.2 | 37.8 | 33.2 |
| no dictionaries | 2,785 | 345 | 66.3 | 33.4 | 29.0 |
| and no statistics, no Arrow schema | 1,018 | 166 | 48.5 | 31.6 | 28.8 |
| and data pages 2.0 | 979 | 164 | 48.3 | 31.6 | 28.8 |
| and DELTA_BINARY_PACKED deltas | 976 | 159 | 45.8 | 29.3 | 26.0 |
| and DELTA_LENGTH_BYTE_ARRAY byte strings | 993 | 161 | 45.1 | 29.0 | 25.8 |
| or DELTA_BYTE_ARRAY byte strings | 1,013 | 164 | 45.9 | 29.0 | 25.5 |
| pages 1.0, delta and length encodings, zstd around the file | 608 | 120 | 40.4 | 27.8 | 25.1 |
| and no column that holds only defaults (`parquet-best`) | 436 | 107 | 38.9 | 27.6 | 25.1 |

Column names of one letter would save 9 bytes per record in batches of 1, 2 in batches of 10, 0.2 in batches of 100.
"""

from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import (
    PAYLOAD,
    TIMES,
    Fetched,
    Rival,
    Setting,
    Times,
    from_table,
    row_of,
    times_of,
    to_table,
    with_defaults,
    without_defaults,
    zstd_level,
)

_BYTE_STRINGS: Final = ("key", "value", "headers.list.element.key", "headers.list.element.value")


class Parquet(Rival):
    """Parquet with pyarrow's defaults: dictionaries, statistics, data pages 1.0, the Arrow schema in the footer."""

    name = "parquet"

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return _write(prepared, compression=codec, compression_level=zstd_level(codec, level))

    def decode(self, container: bytes) -> pa.Table:
        return _read(container)

    def read_times(self, container: bytes) -> Times:
        return times_of(_read(container, TIMES))

    def fetch(self, container: bytes, i: int) -> Fetched:
        """Return the payload of record i. Parquet decompresses all pages of the payload columns for that."""
        return row_of(_read(container, PAYLOAD), i)


class ParquetBest(Rival):
    """Parquet in the smallest form that we found: no dictionaries, statistics or Arrow schema, and delta encodings.

    Columns that hold only defaults are left out. The codec compresses the file as a whole, so every read decompresses
    all of it.
    """

    name = "parquet-best"
    setting: ClassVar[Setting] = "best"

    def prepare(self, records: Records) -> pa.Table:
        return without_defaults(to_table(records))

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        names = [name for name in _BYTE_STRINGS if name.split(".")[0] in prepared.column_names]
        encodings = {name: "DELTA_BINARY_PACKED" for name in TIMES if name in prepared.column_names}
        encodings |= dict.fromkeys(names, "DELTA_LENGTH_BYTE_ARRAY")
        lean: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
        return whole.compress(_write(prepared, compression="none", column_encoding=encodings, **lean), codec, level)

    def decode(self, container: bytes) -> pa.Table:
        return _read(whole.decompress(container))

    def read_times(self, container: bytes) -> Times:
        file = _open(whole.decompress(container))
        table = file.read(columns=[name for name in TIMES if name in file.schema_arrow.names], use_threads=False)
        n = file.metadata.num_rows
        columns = {name: table[name].to_numpy().astype(np.int64) for name in table.column_names}
        return Times(columns.get("offset_delta", np.arange(n)), columns.get("timestamp_delta", np.zeros(n, np.int64)))

    def fetch(self, container: bytes, i: int) -> Fetched:
        file = _open(whole.decompress(container))
        table = file.read(columns=[name for name in PAYLOAD if name in file.schema_arrow.names], use_threads=False)
        return row_of(table, i)

    def records(self, decoded: pa.Table) -> Records:
        return from_table(with_defaults(decoded))


def _write(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=max(len(table), 1), **options)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _open(container: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(container), pre_buffer=False)


def _read(container: bytes, columns: list[str] | None = None) -> pa.Table:
    return _open(container).read(columns=columns, use_threads=False)
