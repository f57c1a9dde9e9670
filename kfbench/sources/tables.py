"""Read records from tables: Parquet, JSON lines and CSV. The user names the columns.

Tables have no batches and no offsets. The caller assumes batches, and offsets count from 0.

A row that cannot become a record is damage. Examples: a timestamp that cannot be read, a line that is no JSON object, a
CSV row with a wrong number of cells. The row is left out and listed with its number, counted from 1 without the header
of a CSV file. A section of a file that cannot be read is damage too. Reading continues at the next row group or line.

Text may be compressed as a whole (.gz, .bz2, .lz4, .zst).
"""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from kfbench.errors import InvalidConfig, InvalidRecords, KfbenchError
from kfbench.sources import csv_file, foreign_files, json_lines, parquet_file
from kfbench.sources.columns import UNREADABLE, Columns, RowBatch, chunks, words_of
from kfbench.sources.folder import File, find_parts, walk
from kfbench.sources.part import Chunk, FileSpan, FoundSources, spans
from kfbench.sources.text_file import COMPRESSED_SUFFIXES, codec_of

TableType = Literal["parquet", "json", "csv"]
TABLE_TYPES: Final[dict[str, TableType]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
}
FINGERPRINT: Final = "kfbench fingerprint"  # the kind that a fingerprint names
HEAD_BYTES: Final = 1 << 20
HIDDEN: Final = ("_", ".")  # `_SUCCESS`, `_temporary`, `.part-0.crc`: Spark and Hive write them next to their data
PART_FILE: Final = re.compile(r"part[-_.]?\d.*|[\d_]+", re.IGNORECASE)  # names that Spark, Dask and Hive use


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """One table file or a share of it, a `Part`.

    span: the row groups of a Parquet file, or the bytes in which lines of JSON begin; None: the whole file.
    """

    path: str
    kind: TableType
    columns: Columns
    size_bytes: int
    span: FileSpan | None = None
    topic: str = ""
    partition: int | None = None

    @property
    def name(self) -> str:
        return self.path

    @property
    def unit(self) -> str:
        return "line" if self.kind == "json" else "row"

    @property
    def key(self) -> str:
        place = "/".join(Path(self.name).absolute().parts[-2:])
        return f"{place}@{self.span.start}" if self.span and self.span.start else place

    def chunks(self) -> Iterator[Chunk]:
        """Yield the records. Raises KfbenchError for a missing column, and if the rest of the file cannot be read."""
        try:
            yield from chunks(self._batches(), self.columns)
        except UNREADABLE as error:
            raise InvalidRecords(f"{self.path}: {words_of(error)}") from error

    def _batches(self) -> Iterator[RowBatch]:
        if self.kind == "parquet":
            return parquet_file.read(self.path, self.columns, self.span)
        if self.kind == "json":
            return json_lines.read(self.path, self.columns, self.span)
        return csv_file.read(self.path, self.columns)


def find(path: str | os.PathLike[str], columns: Columns) -> FoundSources:
    """Return the tables of a file, or of a folder and its subfolders.

    Raises KfbenchError if there is none, and for a fingerprint, whose lines are no records.
    """
    root = Path(path)
    if not root.is_dir():
        return FoundSources(parts=tuple(_parts(root, columns)))
    found = find_parts(root, lambda file: is_table(root, file), lambda file: _parts(file, columns))
    if not found.parts:
        raise KfbenchError(f"{root}: no table in this folder or below it ({', '.join(TABLE_TYPES)})")
    return found


def is_fingerprint(path: Path) -> bool:
    """Return True if a file is JSON that names itself a fingerprint near its beginning."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return False
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{") and f'"{FINGERPRINT}"'.encode() in head


def has_table(folder: Path) -> bool:
    """Return True if there is a table in a folder or its subfolders."""
    files = (each.path for each in walk(folder, lambda _: False) if isinstance(each, File))
    return any(is_table(folder, file) for file in files)


def is_table(folder: Path, file: Path) -> bool:
    """Return True if a file's name is that of a table, and no name between `folder` and the file is hidden."""
    is_hidden = file.is_relative_to(folder) and any(name.startswith(HIDDEN) for name in file.relative_to(folder).parts)
    return not is_hidden and kind_of(file) is not None


def kind_of(path: str | os.PathLike[str]) -> TableType | None:
    """Return the kind of table by the file's name; None: the name is not that of a table."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
        return next((kind for suffix in suffixes[-1:] if (kind := TABLE_TYPES.get(suffix)) != "parquet"), None)
    return TABLE_TYPES.get(suffixes[-1]) if suffixes else None


def _parts(path: Path, columns: Columns) -> list[TableFile]:
    """Return a file as one part, or a large file as several parts.

    CSV and compressed text are not split: the end of a CSV row depends on all quotes before it.
    """
    kind = kind_of(path)
    if kind is None:
        raise InvalidConfig(f"{path}: no table: {', '.join(TABLE_TYPES)} are known")
    if kind == "json" and is_fingerprint(path):
        raise InvalidConfig(
            f"{path}: is a fingerprint, and has no records; `kfbench what-if` reads it, alone, and so does "
            "`kfbench.fingerprint.file.what_if_of`"
        )
    size_bytes = path.stat().st_size
    if not size_bytes:
        raise InvalidRecords(f"{path}: the file is empty")
    if hint := foreign_files.hint(path, kind):
        raise InvalidRecords(f"{path}: {hint}")
    whole = TableFile(path=os.fspath(path), kind=kind, columns=columns, size_bytes=size_bytes, topic=_topic(path))
    if kind == "csv" or (kind == "json" and codec_of(path)):
        return [whole]
    if kind == "json":
        return [
            replace(whole, span=span, size_bytes=(size_bytes if span.end is None else span.end) - span.start)
            for span in spans(size_bytes)
        ]
    try:
        shares = parquet_file.find_shares(path, columns)
    except UNREADABLE as error:
        raise InvalidRecords(f"{path}: {words_of(error)}") from error
    return [replace(whole, span=groups, size_bytes=share_bytes) for groups, share_bytes in shares.items()]


def _topic(path: Path) -> str:
    """Return the file's name without suffixes as topic name; for a part file, the name of its table's folder.

    Example: `events` for events/day=1/part-0.parquet.
    """
    name = path.name
    while (suffix := Path(name).suffix) and suffix.lower() in (*TABLE_TYPES, *COMPRESSED_SUFFIXES):
        name = name.removesuffix(suffix)
    if not PART_FILE.fullmatch(name):
        return name
    return next((folder.name for folder in path.absolute().parents if folder.name and "=" not in folder.name), name)
