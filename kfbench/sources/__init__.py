"""Sources of records: log segments, tables, folders of either, a topic. `find` lists the parts that are to be read."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from kfbench.errors import InvalidConfig, InvalidRecords, KfbenchError
from kfbench.sources import log, other_files, tables
from kfbench.sources.columns import Columns
from kfbench.sources.folder import GONE, OTHER_FILES
from kfbench.sources.part import Chunk, Found, Part, Skipped

__all__ = ["GONE", "TABLES", "Chunk", "Columns", "Found", "Part", "Skipped", "find"]

TABLES: Final = "tables next to segments: name them to read them"
REPLICAS: Final = "segments of other replicas"


def find(paths: Iterable[str | os.PathLike[str]], columns: Columns | None = None) -> Found:
    """Return the parts to read of all paths, in the order of `paths`. A large file has several parts.

    No file is returned twice. A file's name says whether it is a table or a segment. A folder with a segment counts as
    a folder of segments, any other folder as a folder of tables. columns: the columns of tables that make a record.

    These are skipped if another path has parts: tables next to segments, a folder with neither, a table that cannot be
    read, and segments of another replica of the same partition. Raises KfbenchError if no path has a part, and for a
    path that does not exist.
    """
    parts: list[Part] = []
    skipped: dict[str, Skipped] = {}
    refused: list[KfbenchError] = []
    places: set[str] = set()
    keys: set[str] = set()
    for path in paths:
        try:
            found = _find(Path(path), columns or Columns())
        except KfbenchError as error:
            is_folder = Path(path).is_dir()
            is_known = tables.kind_of(path) or isinstance(error, InvalidRecords)
            if not is_folder and not (is_known and Path(path).exists()):
                raise
            refused.append(error)
            size_bytes = 0 if is_folder else Path(path).stat().st_size
            reason = f"folder with nothing to read ({path})" if is_folder else str(error).removeprefix(f"{path}: ")
            skipped[os.fspath(path)] = Skipped(
                path=os.fspath(path), size_bytes=size_bytes, reason=reason, is_data=not is_folder
            )
            continue
        skipped |= {each.path: each for each in found.skipped}
        given = {part.name: os.path.realpath(part.name) for part in found.parts}
        for part in found.parts:
            if given[part.name] in places:
                continue
            if part.partition is not None and isinstance(part, log.Segment):
                if part.key in keys:
                    skipped[part.name] = Skipped(path=part.name, size_bytes=part.size_bytes, reason=REPLICAS)
                    continue
                keys.add(part.key)
            parts += part.shares() if isinstance(part, log.Segment) else [part]
        places.update(given.values())
    if parts:
        return Found(parts=tuple(parts), skipped=tuple(skipped.values()))
    if refused:
        raise refused[0]
    for each in skipped.values():
        raise KfbenchError(f"{each.path}: nothing to read: {each.reason}")
    raise InvalidConfig("no source is given: a segment file, a table, or a folder of either is wanted")


def _find(path: Path, columns: Columns) -> Found:
    if path.is_dir():
        try:
            found = log.find(path)
        except KfbenchError:
            if not tables.has_table(path):
                raise
        else:
            others = [replace(each, reason=TABLES) if _is_table(path, each) else each for each in found.skipped]
            return replace(found, skipped=tuple(others))
    elif tables.kind_of(path) is None:
        if path.is_file() and (hint := other_files.hint(path, None)):
            raise InvalidRecords(f"{path}: {hint}")
        return log.find(path)
    return tables.find(path, columns)


def _is_table(folder: Path, skipped: Skipped) -> bool:
    return skipped.reason == OTHER_FILES and tables.is_table(folder, Path(skipped.path))
