"""Cells of a table by the name of its column."""

from typing import Any, TypeVar

from kfbench.report.render.tables import Table

T = TypeVar("T")


def column(table: Table, name: str) -> list[Any]:
    at = [c.name for c in table.columns].index(name)
    return [row[at] for row in table.rows]


def some(value: T | None) -> T:
    """Return what a run has rows for."""
    assert value is not None
    return value
