"""Write small Parquet files: the settings that the rivals' searches share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.rivals import whole
from kfbench.rivals.base import TIMES, zstd_level

LENGTHS: Final = "DELTA_LENGTH_BYTE_ARRAY"
PREFIXES: Final = "DELTA_BYTE_ARRAY"
LEAN: Final[Mapping[str, Any]] = {"write_statistics": False, "store_schema": False}


def lean_setting(names: Iterable[str], dictionaries: Iterable[str], encodings: Mapping[str, str]) -> dict[str, Any]:
    """Return writer settings without statistics or Arrow schema, and with delta encodings of TIMES.

    names: the columns of the table. dictionaries, encodings: paths of leaf columns; other columns are plain.
    """
    present = set(names)

    def is_there(path: str) -> bool:
        return path.partition(".")[0] in present

    coded = [path for path in dictionaries if is_there(path)]
    encodings = dict.fromkeys(TIMES, "DELTA_BINARY_PACKED") | {**encodings}
    column_encoding = {path: name for path, name in encodings.items() if is_there(path) and path not in coded}
    return {**LEAN, "use_dictionary": coded or False, "column_encoding": column_encoding or None}


def parquet_bytes(
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
    return whole.compress(sink.getvalue().to_pybytes(), codec if is_whole else "none", level)
