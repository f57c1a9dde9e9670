"""The answer of `kfbench what-if` for a terminal: a summary of at most 40 lines, or the tables asked for."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Final

from kfbench.tables import Table
from kfbench.text import counted
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.notes import answer_notes, rate_notes, source_notes
from kfbench.whatif.summary import all_topics_table, log_line, summary_tables
from kfbench.whatif.tables import sections

WIDTH: Final = 100
MOST_NOTES: Final = 4  # about damage and what was left out


def render_text(answer: WhatIf, names: Sequence[str] = ()) -> str:
    """Return the summary, then the tables of these names; "all": every table."""
    wanted = [table for table in tables(answer) if "all" in names or table.name in names]
    return "\n\n".join([_summary(answer), *(table.to_text() for table in wanted)])


def _first_notes(answer: WhatIf) -> list[str]:
    """Return what was damaged or left out, as far as it has room."""
    notes = list(source_notes(answer))
    hidden = len(notes) - MOST_NOTES
    return notes if hidden <= 0 else [*notes[:MOST_NOTES], f"and {counted(hidden, 'line')} more: --table sources"]


def tables(answer: WhatIf) -> list[Table]:
    """Return the tables behind the summary, in the order in which they are shown."""
    return [all_topics_table(answer), *(table for section in sections(answer) for table in section.tables)]


def _summary(answer: WhatIf) -> str:
    notes = [*answer_notes(answer), *_first_notes(answer), *rate_notes(answer)]
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}  # paths
    lines = [line for note in notes for line in wrap(note, WIDTH, subsequent_indent="  ", **whole)]
    lines.append("More: --table {all,sizes,levels,fields,…}, a page by --out DIR, --json, --format all.")
    blocks = [log_line(answer), *(table.to_text() for table in summary_tables(answer)), "\n".join(lines)]
    return "\n\n".join(blocks)
