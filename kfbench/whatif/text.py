"""The answer of `kfbench what-if` for a terminal: a summary of at most 40 lines, then the requested tables."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Final

from kfbench.tables import Table
from kfbench.text import counted
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes, rate_notes, source_notes
from kfbench.whatif.summary import all_topics_table, log_line, summary_tables
from kfbench.whatif.tables import sections

WIDTH: Final = 100
SUMMARY_LINES: Final = 40
FEWEST_NOTES: Final = 3  # lines of notes that are shown in any case
NOTES: Final = "notes"  # the name that asks for every line of notes
TABLES: Final = (
    "all-topics", "sources", "sizes", "savings", "savings-of-v2", "losses", "levels", "fields", "overhead-bytes",
    "rebatched", "rebatched-savings", *WHATIF_TABLES, "break-even", "month", "month-saved",
)  # fmt: skip
MORE: Final = "More: --table NAME (sizes, levels, fields, …, all), {options}--out DIR, --json, --format all."


def render_text(answer: WhatIf, names: Sequence[str] = ()) -> str:
    """Return the summary, then the tables with these names.

    The name "notes" asks for every line of the summary's notes, "all" for these and every table.
    """
    wanted = [table for table in tables(answer) if "all" in names or table.name in names]
    has_all_notes = bool({NOTES, "all"} & {*names})
    return "\n\n".join([_summary(answer, has_all_notes), *(table.to_text() for table in wanted)])


def tables(answer: WhatIf) -> list[Table]:
    """Return all tables except the summary, in the order in which they are shown."""
    return [all_topics_table(answer), *(table for section in sections(answer) for table in section.tables)]


def _summary(answer: WhatIf, has_all_notes: bool) -> str:
    tables = "\n\n".join(table.to_text() for table in summary_tables(answer))
    lines = [*wrap(log_line(answer), WIDTH), "", *tables.split("\n"), ""]
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}  # paths
    for name in answer.more:
        lines += wrap(WHATIF_TABLES[name].line(answer), WIDTH, subsequent_indent="  ")
    notes = [
        line
        for note in (*answer_notes(answer), *rate_notes(answer), *source_notes(answer))
        for line in wrap(note, WIDTH, subsequent_indent="  ", **whole)
    ]
    room = max(SUMMARY_LINES - len(lines) - 2, FEWEST_NOTES)
    hidden = len(notes) - room
    if hidden > 0 and not has_all_notes:
        notes = [*notes[: room - 1], f"and {counted(hidden + 1, 'line')} more: --table {NOTES}"]
    options = "" if answer.is_fingerprint else "".join(f"--{name}, " for name in WHATIF_TABLES)
    more = MORE.format(options=options)
    return "\n".join([*lines, *notes, more])
