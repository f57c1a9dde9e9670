"""Make the scripts and the tables of a page smaller without a change that a reader can see."""

import re
from typing import Final

_COMMENT: Final = re.compile(r"^\s*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)  # only those that have lines of their own


def compact_script(script: str) -> str:
    """Remove indentation, and comments that have lines of their own."""
    return re.sub(r"^[ \t]+|\n(?=\n)", "", _COMMENT.sub("", script), flags=re.MULTILINE)


def compact_tables(page: str) -> str:
    """Remove line breaks between the tags of tables."""
    return re.sub(r">\n(?=</?(?:caption|t[rdh]|table|thead|tbody)\b)", ">", page)
