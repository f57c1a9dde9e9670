"""Sources of records of one's own: log segments and directories. `find` lists what there is to read."""

import os
from collections.abc import Iterable
from pathlib import Path

from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.sources import log
from kfbench.sources.part import Chunk, Found, Part, Skipped

__all__ = ["Chunk", "Found", "Part", "Skipped", "find"]


def find(paths: Iterable[str | os.PathLike[str]]) -> Found:
    """The parts of all sources, in the order given, each once.

    A folder without a segment among others is left out, and said. Raises KfbenchError where no source has a part, and
    for a path that is not there.
    """
    parts: dict[str, Part] = {}
    skipped: dict[str, Skipped] = {}
    refused: list[KfbenchError] = []
    for path in paths:
        try:
            found = log.find(path)
        except KfbenchError as error:
            if not Path(path).is_dir():
                raise
            refused.append(error)
            skipped[os.fspath(path)] = Skipped(path=os.fspath(path), size_bytes=0, reason="no segment in it")
            continue
        parts |= {os.path.realpath(part.name): part for part in found.parts}
        skipped |= {each.path: each for each in found.skipped}
    if parts:
        return Found(parts=tuple(parts.values()), skipped=tuple(skipped.values()))
    if refused:
        raise refused[0]
    raise InvalidConfig("no source is given: a segment file or a folder of segments is wanted")
