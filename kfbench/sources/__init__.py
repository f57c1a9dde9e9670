"""Sources of one's own records: log segments and directories, tables, a topic. `find` lists what there is to read."""

import os
from collections.abc import Iterable
from pathlib import Path

from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.sources import log, tables
from kfbench.sources._columns import Columns
from kfbench.sources.part import Chunk, Found, Part, Skipped

__all__ = ["Chunk", "Columns", "Found", "Part", "Skipped", "find"]


def find(paths: Iterable[str | os.PathLike[str]], columns: Columns | None = None) -> Found:
    """The parts of all sources, in the order given, each once.

    Files are tables by their names, else segments; a folder is one of segments if it has any, else one of tables, whose
    rows are records by `columns`. A folder with neither and a table that cannot be read are left out where there is
    more, and said. Raises KfbenchError where no source has a part, and for a path that is not there.
    """
    parts: dict[str, Part] = {}
    skipped: dict[str, Skipped] = {}
    refused: list[KfbenchError] = []
    for path in paths:
        try:
            found = _find(Path(path), columns or Columns())
        except KfbenchError as error:
            is_folder = Path(path).is_dir()
            if not is_folder and not (tables.kind_of(path) and Path(path).exists()):
                raise
            refused.append(error)
            size_bytes = 0 if is_folder else Path(path).stat().st_size
            reason = "nothing to read in it" if is_folder else str(error).removeprefix(f"{path}: ")
            skipped[os.fspath(path)] = Skipped(
                path=os.fspath(path), size_bytes=size_bytes, reason=reason, is_data=not is_folder
            )
            continue
        parts |= {os.path.realpath(part.name): part for part in found.parts}
        skipped |= {each.path: each for each in found.skipped}
    if parts:
        return Found(parts=tuple(parts.values()), skipped=tuple(skipped.values()))
    if refused:
        raise refused[0]
    raise InvalidConfig("no source is given: a segment file, a table, or a folder of either is wanted")


def _find(path: Path, columns: Columns) -> Found:
    if path.is_dir():
        try:
            return log.find(path)
        except KfbenchError:
            if not tables.is_there(path):
                raise
    elif tables.kind_of(path) is None:
        return log.find(path)
    return tables.find(path, columns)
