"""Report sources that were not read completely (log segments and tables), after the results of what was read."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import typer

from kfbench.cli.output import complain

if TYPE_CHECKING:
    from kfbench.inspection.segment import Inspection
    from kfbench.log.damage import Damage
    from kfbench.sources import Skipped
    from kfbench.whatif.source import Source


def fail_on_damage(
    sources: "Iterable[Source | Inspection]",
    paths: Iterable[object],
    skipped: "Iterable[Skipped]" = (),
    damage: "Mapping[str, Sequence[Damage]]" = MappingProxyType({}),
    unread: Iterable[str] = (),
) -> None:
    """Print one line per source that is damaged, unreadable or has no valid batch. If there is any, exit with status 1.

    A source has a further line for each dictionary that its batches name and that is missing. A file without bytes is
    passed over, unless `paths` names it: a partition to which nobody has written.

    paths: the sources that the user named. skipped: those with data have a line. damage: by file, in place of sources.
    unread: more lines.
    """
    from kfbench.inspection.output import missing_words

    named = {str(path) for path in paths}
    complaints: list[str] = []
    for source in sources:
        if line := _damage_line(source, source.path in named):
            complaints.append(line)
        complaints += (f"{source.path}: {missing_words(each)}" for each in getattr(source, "missing", ()))
    complaints += [_place_line(path, places[0], len(places)) for path, places in damage.items()]
    complaints += [f"{each.path}: {each.reason}" for each in skipped if each.is_data]
    complaints += unread
    for complaint in complaints:
        complain(complaint)
    if complaints:
        raise typer.Exit(1)


def _place_line(path: str, place: "Damage", places: int, unit: str = "byte") -> str:
    return f"{path}: {place.words(unit)}" + (f" (and {places - 1:,} more)" if places > 1 else "")


def _damage_line(source: "Source | Inspection", is_named: bool) -> str | None:
    from kfbench.log.tail import EMPTY, nothing_in
    from kfbench.sources import GONE
    from kfbench.text import counted

    if source.damage:
        unit = getattr(source, "unit", "byte")
        return _place_line(source.path, source.damage[0], getattr(source, "damaged_places", len(source.damage)), unit)
    if places := getattr(source, "damaged_places", 0):
        return f"{source.path}: {counted(places, 'damaged place')}"
    if getattr(source, "is_empty", not source.size_bytes and not source.unreadable):
        return f"{source.path}: {EMPTY}" if is_named else None
    if source.unreadable:
        return None if source.unreadable == GONE else f"{source.path}: {source.unreadable}"
    if 0 < source.size_bytes == source.trailing_bytes:
        return f"{source.path}: {nothing_in(source.size_bytes)}"
    return None
