"""Read the tables of a Markdown page as lists of rows."""

import re

Table = list[list[str]]


def tables(page: str, heading: str | None = None) -> list[Table]:
    """Return the tables below a heading, without their head rows.

    An empty heading means the part before the first one.
    """
    before, _, _ = page.partition("\n## ")
    part = before if heading is None else page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]] for block in blocks
    ]


def mask_of(bits: str) -> int:
    """Return the bit mask of one bit ("3") or of a range of bits ("0-2")."""
    low, _, high = bits.partition("-")
    return sum(1 << bit for bit in range(int(low), int(high or low) + 1))
