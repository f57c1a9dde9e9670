"""The differences between the cells of two reports' tables.

A report is {table: {"columns": [text], "rows": [[number or text]]}}, as in tables.json. `compare` matches rows by the
key columns of kept.toml, and columns by their names. What is missing or differs by more than 0.006 % is a fault.
"""

# ruff: noqa: T201
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Table: TypeAlias = Mapping[str, Any]


def text(cell: object) -> str:
    return f"{cell:.10g}" if isinstance(cell, int | float) else str(cell)


def keyed(table: Table, keys: Sequence[str]) -> dict[tuple[Any, ...], object]:
    """Cells by (row key, column): the numbers, or all texts of a table without numbers."""
    columns = table["columns"]
    found: dict[tuple[Any, ...], object] = {}
    seen: dict[tuple[str, ...], int] = {}
    if missing := [key for key in keys if key not in columns]:
        return {("missing columns", *missing): None}
    values = [cell for row in table["rows"] for cell, column in zip(row, columns, strict=True) if column not in keys]
    only_text = not any(isinstance(cell, int | float) for cell in values)
    for row in table["rows"]:
        key = tuple(text(row[columns.index(name)]) for name in keys)
        seen[key] = seen.get(key, 0) + 1
        for column, cell in zip(columns, row, strict=True):
            if column not in keys and (only_text or isinstance(cell, int | float)):
                found[(*key, seen[key], column)] = cell
    return found


def same(before: object, after: object) -> bool:
    if isinstance(before, int | float):
        return isinstance(after, int | float) and abs(after - before) <= 6e-5 * abs(before) + 1e-9
    return text(before) == text(after)


def compare(old: Mapping[str, Table], new: Mapping[str, Table], kept: Mapping[str, Mapping[str, Any]]) -> int:
    faults = numbers = 0
    for name, moved in kept.items():
        after = new.get(moved.get("name", name))
        if name not in old or after is None:
            faults += 1
            print(f"{name}: missing")
            continue
        to = moved.get("columns", {})
        renamed = {**old[name], "columns": [to.get(column, column) for column in old[name]["columns"]]}
        keys = [to.get(key, key) for key in moved["rows"]]
        before, found = keyed(renamed, keys), keyed(after, keys)
        numbers += len(before)
        wrong = [key for key, value in before.items() if key not in found or not same(value, found[key])]
        if wrong:
            faults += 1
            example = f"{wrong[0]}: {before[wrong[0]]}, now {found.get(wrong[0])}"
            print(f"{name}: {len(wrong)} of {len(before)} cells differ or are missing, such as {example}")
    not_kept = old.keys() - kept.keys()
    print(f"{len(kept)} kept tables, {numbers} cells, {faults} tables with faults; not kept: {len(not_kept)}")
    return faults
