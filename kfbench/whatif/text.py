"""The answer of `kfbench what-if` for a terminal."""

from kfbench.whatif.answer import WhatIf
from kfbench.whatif.tables import headline_table, sections


def render_text(answer: WhatIf) -> str:
    """Return the headline with its notes, then all tables, separated by empty lines."""
    tables = [headline_table(answer), *(table for section in sections(answer) for table in section.tables)]
    return "\n\n".join(table.to_text() for table in tables)
