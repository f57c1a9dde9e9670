"""Report sources that were not read completely (log segments and tables), after the results of what was read."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from kfbench.cli.output import complain

if TYPE_CHECKING:
    from kfbench.inspection.segment import Inspection
    from kfbench.whatif.source import Source


def fail_on_damage(sources: "Iterable[Source | Inspection]", unread: Iterable[str] = ()) -> None:
    """Print one line per source that is damaged, unreadable or has no valid batch. If there is any, exit with status 1.

    A source has a further line for each dictionary that its batches name and that is missing.

    unread: more lines to print, about sources that could not be opened.
    """
    complaints = [line for source in sources for line in _lines(source)]
    complaints += unread
    for complaint in complaints:
        complain(complaint)
    if complaints:
        raise typer.Exit(1)


def _lines(source: "Source | Inspection") -> "Iterator[str]":
    from kfbench.inspection.output import missing_words
    from kfbench.inspection.segment import Inspection

    if line := _damage_line(source):
        yield line
    if isinstance(source, Inspection):
        yield from (f"{source.path}: {missing_words(each)}" for each in source.missing)


def _damage_line(source: "Source | Inspection") -> str | None:
    from kfbench.log.tail import nothing_in
    from kfbench.sources import GONE
    from kfbench.text import counted

    if source.damage:
        unit = getattr(source, "unit", "byte")
        others = getattr(source, "damaged_places", len(source.damage)) - 1
        return f"{source.path}: {source.damage[0].words(unit)}" + (f" (and {others:,} more)" if others else "")
    if places := getattr(source, "damaged_places", 0):
        return f"{source.path}: {counted(places, 'damaged place')}"
    if source.unreadable:
        return None if source.unreadable == GONE else f"{source.path}: {source.unreadable}"
    if 0 < source.size_bytes == source.trailing_bytes:
        return f"{source.path}: {nothing_in(source.size_bytes)}"
    return None
