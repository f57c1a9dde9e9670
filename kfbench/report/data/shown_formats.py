"""Choose and sort the formats for tables and pictures of a report."""

from collections.abc import Iterable
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT, SHIPPED

NEW: Final = "v3"  # the proposal that sentences compare with BASE_FORMAT
HEADERS_FIRST: Final = f"{NEW}-headers-first"  # KIP-931's additional proposal
MAIN: Final = (*sorted(SHIPPED), NEW)  # a table has a column for each, even if it contains only dashes
OLD: Final = MAIN[: MAIN.index(BASE_FORMAT)]
# Pictures and sentences show only these, because fourteen lines are too many. Tables show every format.
PICTURED: Final = (*MAIN, f"{NEW}-attributes-only", f"{NEW}-header-only")


def in_order(names: Iterable[str]) -> list[str]:
    """Return the formats in the order of the report: v0, v1, v2, v3, then all others by name."""
    return sorted(set(names), key=lambda name: (len(name) > 2, name))


def worth_a_column(table: pd.DataFrame) -> list[str]:
    """Return the formats of a table that were measured in at least half of its rows.

    table: one column per format. The formats of MAIN always stay. So a dash can show that v0 cannot carry headers.
    """
    return [name for name in in_order(table.columns) if name in MAIN or table[name].count() * 2 >= len(table)]


def pictured(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the formats that pictures and sentences show (PICTURED)."""
    return table[[name for name in table.columns if name in PICTURED]]
