"""The schema of the result table: the shared columns, then those of each kind of measurement.

A row has the result of one arm of one cell. The table stores integers and raw samples. The report computes ratios,
medians and readable units.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

import pyarrow as pa

from kfbench.measure.columns import ResultColumn, StoredRow
from kfbench.measure.kinds import KINDS, REMOVED_KINDS, stored_kind
from kfbench.measure.kinds.base import DIFFER_IN_A_ROUND, Kind, RemovedKind
from kfbench.plugins import PluginClash

# A reader refuses a run with another version, and an older run that lacks a column. Columns in ADDED may be missing.
SCHEMA_VERSION: Final = 1


def _columns() -> tuple[ResultColumn, ...]:
    """Return all columns. The meaning of a shared column ends with what it means for single kinds.

    Raises PluginClash if two kinds declare a column in different ways, or one has the name of a removed kind.
    """
    kinds: list[Kind | RemovedKind] = [*KINDS.values(), *REMOVED_KINDS.values()]
    shared = [ResultColumn(name=each.name, **each.metadata) for each in fields(StoredRow) if each.metadata]
    meanings = {
        column.name: [f"{kind.name}: {words}" for kind in kinds if (words := kind.meanings.get(column.name))]
        for column in shared
    }
    meanings["kind"] = [", ".join(KINDS), f"older runs also {', '.join(REMOVED_KINDS)}"]
    if taken := KINDS.keys() & REMOVED_KINDS.keys():
        raise PluginClash(f"{min(taken)}: {KINDS.package(min(taken))} registers the name of a removed kind")
    of_kinds: dict[str, ResultColumn] = {column.name: column for column in shared}
    for each in kinds:
        for column in each.columns:
            if of_kinds.setdefault(column.name, column) != column:
                raise PluginClash(f"{column.name}: the kind {each.name} declares this column unlike another one")
    return (
        *(replace(each, meaning="; ".join((each.meaning, *meanings[each.name]))) for each in shared),
        *list(of_kinds.values())[len(shared) :],
    )


COLUMNS: Final = _columns()
ADDED: Final = frozenset(column.name for column in COLUMNS if column.is_added)
WORKLOAD_COLUMNS: Final = tuple(column for column in COLUMNS if column.is_axis)
SCHEMA: Final = pa.schema(
    [
        pa.field(column.name, column.type, column.nullable, {"unit": column.unit, "meaning": column.meaning})
        for column in COLUMNS
    ],
    {"kfbench_schema_version": str(SCHEMA_VERSION)},
)
IDENTITY_OF_KINDS: Final = tuple(column.name for column in COLUMNS if column.is_identity)
# The columns that identify a row within its run. `Run.table` sorts rows by these columns, in this order.
IDENTITY: Final = (
    "kind", "grid", "cell_id", "seed", "codec", "level", "operation", "to_format", "format", "arm", "cache", "start",
    *IDENTITY_OF_KINDS,
)  # fmt: skip


def _identity_without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in IDENTITY if name not in names)


ARM: Final = _identity_without("grid")  # without the block: a cell of several blocks is measured once
SELF: Final = _identity_without("grid", "arm")  # equal for a base and its A/A arm
CELL: Final = _identity_without("operation", "to_format", "format", "arm", "cache", *IDENTITY_OF_KINDS)
# The columns that are the same with any Spark master, partitioning and day, if the codec libraries are the same.
DETERMINISTIC: Final = tuple(column.name for column in COLUMNS if not column.is_measured)


def rounds_key(row: StoredRow) -> tuple[object, ...]:
    """Return the values that are equal for all arms that were timed in the same rounds."""
    kind = stored_kind(row.kind)
    differing = kind.differ_in_a_round if kind else DIFFER_IN_A_ROUND
    return tuple(row[name] for name in _identity_without("grid", *differing))


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the rows as an Arrow table with the schema SCHEMA. Raises KeyError for an unknown column."""
    rows = list(rows)
    for row in rows:
        if unknown := row.keys() - set(SCHEMA.names):
            raise KeyError(f"no column {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def stored_rows(rows: pa.Table) -> list[StoredRow]:
    """Return the rows of an Arrow table as objects. A column that the table lacks is None."""
    shared = {each.name for each in fields(StoredRow)}
    return [
        StoredRow(
            **{name: value for name, value in row.items() if name in shared},
            of_kind={name: value for name, value in row.items() if name not in shared},
        )
        for row in rows.to_pylist()
    ]
