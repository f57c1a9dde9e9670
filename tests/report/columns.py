"""Make results from made-up rows, find sections by name, and cells of a table by the names of its columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.section import Block, Section
from kfbench.tables import Table
from tests.runs import stored

T = TypeVar("T")


def some(value: T | None) -> T:
    assert value is not None
    return value


def column(table: Table, name: str) -> list[Any]:
    """Return the cells of the column whose label is `name`, or else whose name (the label without unit) is `name`."""
    labels, names = [c.label for c in table.columns], [c.name for c in table.columns]
    at = labels.index(name) if name in labels else names.index(name)
    return [row[at] for row in table.rows]


def row_of(table: Table, **wanted: Any) -> dict[str, Any]:
    """Return the only row that has the wanted cells. Keys are the labels of columns."""
    labels = [c.label for c in table.columns]
    rows = [dict(zip(labels, row, strict=True)) for row in table.rows]
    (found,) = [row for row in rows if wanted.items() <= row.items()]
    return found


def results_of(folder: Path, rows: Sequence[dict[str, Any]]) -> Results:
    return Results(stored(folder, list(rows)).measurements())


def sections_of(results: Results, *blocks: Block) -> dict[str, Section]:
    return {section.name: section for section in page(results, blocks).sections}
