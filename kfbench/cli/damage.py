"""Report damaged and unreadable sources (log segments and tables), after the results of their undamaged part."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from kfbench.cli.output import complain

if TYPE_CHECKING:
    from kfbench.inspection.segment import Inspection
    from kfbench.whatif.source import Source


def fail_on_damage(sources: "Iterable[Source | Inspection]", unread: Iterable[str] = ()) -> None:
    """Print one line per source that is damaged, unreadable or has no valid batch. If there is any, exit with status 1.

    unread: more lines to print, about sources that could not be opened.
    """
    complaints = [complaint for source in sources if (complaint := _damage_line(source))]
    complaints += unread
    for complaint in complaints:
        complain(complaint)
    if complaints:
        raise typer.Exit(1)


def _damage_line(source: "Source | Inspection") -> str | None:
    from kfbench.log.tail import nothing_in
    from kfbench.sources import GONE

    if source.damage:
        unit = getattr(source, "unit", "byte")
        others = getattr(source, "damaged_places", len(source.damage)) - 1
        return f"{source.path}: {source.damage[0].words(unit)}" + (f" (and {others:,} more)" if others else "")
    if source.unreadable:
        return None if source.unreadable == GONE else f"{source.path}: {source.unreadable}"
    if 0 < source.size_bytes == source.trailing_bytes:
        return f"{source.path}: {nothing_in(source.size_bytes)}"
    return None
