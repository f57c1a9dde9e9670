"""Cells of a table by the name of its column."""

from typing import Any

from kfbench.report.render.tables import Table


def column(table: Table, name: str) -> list[Any]:
    at = [c.name for c in table.columns].index(name)
    return [row[at] for row in table.rows]
