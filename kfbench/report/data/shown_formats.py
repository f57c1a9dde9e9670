"""The formats that a report shows: their order, and the columns of tables and lines of pictures."""

from collections.abc import Iterable
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT, SHIPPED

NEW: Final = "v3"  # the proposal that sentences compare with BASE_FORMAT
HEADERS_FIRST: Final = f"{NEW}-headers-first"  # KIP-931's additional proposal
MAIN: Final = (*sorted(SHIPPED), NEW)  # a table has a column for each, even of dashes
OLD: Final = MAIN[: MAIN.index(BASE_FORMAT)]
# Pictures and sentences show these: fourteen lines are no picture. Tables show every format.
PICTURED: Final = (*MAIN, f"{NEW}-attributes-only", f"{NEW}-header-only")


def in_order(names: Iterable[str]) -> list[str]:
    """Return formats in reading order: v0, v1, v2, v3, then the variants of v3, then the others."""
    return sorted(set(names), key=lambda name: (len(name) > 2, name))


def worth_a_column(table: pd.DataFrame) -> list[str]:
    """Return the formats of a pivot, in order, without variants that were measured at less than half of its rows.

    The formats of MAIN always stay. A dash shows that v0 has no headers.
    """
    return [name for name in in_order(table.columns) if name in MAIN or table[name].count() * 2 >= len(table)]


def pictured(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the formats in pictures and sentences."""
    return table[[name for name in table.columns if name in PICTURED]]
