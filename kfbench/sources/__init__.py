"""Sources of records: log segments, tables, folders of either, a topic. `find` lists the parts that are to be read."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from kfbench.errors import InvalidConfig, InvalidRecords, KfbenchError
from kfbench.log.segment import LOG_SUFFIX
from kfbench.sources import foreign_files, log, tables
from kfbench.sources.columns import Columns
from kfbench.sources.folder import GONE, OTHER_FILES, NothingToRead
from kfbench.sources.part import Chunk, FoundSources, Part, Skipped

__all__ = ["GONE", "TABLES", "Chunk", "Columns", "FoundSources", "Part", "Skipped", "find", "search"]

TABLES: Final = "tables next to segments: name them to read them"
REPLICAS: Final = "segments of other replicas"


def search(
    paths: Iterable[str | os.PathLike[str]], find_one: Callable[[Path], FoundSources] = log.find
) -> FoundSources:
    """Return the parts of all paths, in the order of `paths`, by calling `find_one` for each.

    This is the rule for all commands that take several sources. A path with nothing to read does not hide the others.
    It is in `skipped`: as data, unless it is a folder without a segment or table. If no path has a part, raises
    KfbenchError about the first one. Segments that cannot be read fail later, each by itself.
    """
    parts: list[Part] = []
    skipped: dict[str, Skipped] = {}
    refused: list[KfbenchError] = []
    for path in map(Path, paths):
        try:
            if not path.exists():
                raise KfbenchError(f"{path}: no such file or folder")
            found = find_one(path)
        except KfbenchError as error:
            refused.append(error)
            is_data = not isinstance(error, NothingToRead)
            reason = str(error).removeprefix(f"{path}: ") if is_data else f"folder with nothing to read ({path})"
            size_bytes = path.stat().st_size if path.is_file() else 0
            skipped[os.fspath(path)] = Skipped(
                path=os.fspath(path), size_bytes=size_bytes, reason=reason, is_data=is_data
            )
            continue
        skipped |= {each.path: each for each in found.skipped}
        parts += found.parts
    if parts:
        return FoundSources(parts=tuple(parts), skipped=tuple(skipped.values()))
    if refused:
        raise refused[0]
    for each in skipped.values():
        raise KfbenchError(f"{each.path}: nothing to read: {each.reason}; records are in files with {LOG_SUFFIX}")
    raise InvalidConfig("no source is given: a segment file, a table, or a folder of either is wanted")


def find(
    paths: Iterable[str | os.PathLike[str]], columns: Columns | None = None, *, is_for_tables: bool = True
) -> FoundSources:
    """Return the parts to read of all paths, in the order of `paths`. A large file has several parts. See `search`.

    No file is returned twice. A file's name says whether it is a table or a segment. A folder with a segment counts as
    a folder of segments, any other folder as a folder of tables. columns: the columns of tables that make a record.
    is_for_tables: False reads segments only, whatever their names.

    These are skipped if another path has parts: tables next to segments, and segments of another replica of the same
    partition.
    """
    found = search(paths, partial(_find, columns=columns or Columns()) if is_for_tables else log.find)
    parts: list[Part] = []
    skipped = list(found.skipped)
    places: set[tuple[str, str]] = set()
    keys: set[str] = set()
    for part in found.parts:
        place = os.path.realpath(part.name), part.key
        if place in places:
            continue
        places.add(place)
        if part.partition is not None and isinstance(part, log.Segment):
            if part.key in keys:
                skipped.append(Skipped(path=part.name, size_bytes=part.size_bytes, reason=REPLICAS))
                continue
            keys.add(part.key)
        parts += part.shares() if isinstance(part, log.Segment) else [part]
    return FoundSources(parts=tuple(parts), skipped=tuple(skipped))


def _find(path: Path, columns: Columns) -> FoundSources:
    if path.is_dir():
        try:
            found = log.find(path)
        except KfbenchError:
            if not tables.has_table(path):
                raise
        else:
            skipped = (
                replace(each, reason=TABLES)
                if each.reason == OTHER_FILES and tables.is_table(path, Path(each.path))
                else each
                for each in found.skipped
            )
            return replace(found, skipped=tuple(skipped))
    elif tables.kind_of(path) is None:
        # A file named like a segment is left to the reader of segments, which says what else it is.
        if path.suffix != LOG_SUFFIX and path.is_file() and (hint := foreign_files.hint(path, None)):
            raise InvalidRecords(f"{path}: {hint}")
        return log.find(path)
    return tables.find(path, columns)
