"""Compare two runs: bytes exactly, CPU by interval against a threshold.

A cell is one workload with its settings and codec. An arm is one timed call in a cell. The base is the arm that the
others are divided by.

Laws (tests/comparison/test_compare.py):
1. Exact columns (kfbench.measure.schema.DETERMINISTIC) must be equal in both runs. Any other number is a regression,
   even a smaller one. The text of an error and the version of a codec library are not compared.
2. A row that was a number and is now an error is a regression. A row that was an error and is now a number is not.
3. CPU times are compared as ratios to the base of the same rounds, on one host (see `agreement`). A host with the same
   name and other hardware is another host. A change counts if its whole interval lies beyond the threshold. Each
   operation of a format gets a verdict, not its single cells. The base gets a verdict by its own time, if other arms
   show that the machine did not change.
4. Cells of only one run are listed. A cell that the second run lacks is a regression if both runs have the same
   request.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.comparison.agreement import Agreement, ArmChange, ArmGroup, BaseChange, agreement
from kfbench.comparison.timed_arms import Key, keys
from kfbench.errors import RunError
from kfbench.measure.columns import StoredRow
from kfbench.measure.environment import HARDWARE
from kfbench.measure.schema import (
    CELL,
    DETERMINISTIC,
    IDENTITY,
    WORKLOAD_COLUMNS,
    stored_rows,
)
from kfbench.present.names import in_order
from kfbench.present.table import listed
from kfbench.store import Run, open_run

AXES: Final = tuple(column.name for column in WORKLOAD_COLUMNS)
NOT_JUDGED: Final = ("error", "codec_version")
REQUEST: Final = ("profile_text", "seed", "filter")  # the fields of a manifest with the user's request
TRANSIENT: Final = ("load_1_min", "host")  # facts of the environment; hosts are compared row by row

Value: TypeAlias = str | int | float | Sequence[int] | None  # the value of a column


class Fact(NamedTuple):
    """A fact about code, libraries or host that differs between the runs, such as `packages.numpy`."""

    name: str
    before: Any  # as JSON stores it
    after: Any


class ChangedValue(NamedTuple):
    """A value that differs between the runs although it must not. row: the row of the second run."""

    row: StoredRow
    column: str
    before: Value
    after: Value


class LoneCell(NamedTuple):
    """A cell, or some of its formats, that only one run has.

    row: one of its rows. rows: the number of its rows.
    """

    row: StoredRow
    formats: tuple[str, ...]
    rows: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of the function `compare`. A cell is one workload with its settings and codec.

    Args:
        threshold: the smallest change of a CPU ratio that counts, 0.03 for 3 %.
        rows: the number of rows that are compared. Both runs have them.
        has_same_request: profile, seed and filter are equal in both runs.
        changed: values that differ although they must not.
        mended: rows that were errors in the first run and are numbers in the second.
        lone: the cells that only the first run has, then the cells that only the second run has.
        resized: the number of rows that are not compared because their number of records differs.
        facts: differences in code, libraries and hosts.
        cpu: the comparison of CPU times.
    """

    runs: tuple[Run, Run]
    threshold: float
    rows: int
    has_same_request: bool
    changed: tuple[ChangedValue, ...]
    mended: tuple[StoredRow, ...]
    lone: tuple[tuple[LoneCell, ...], tuple[LoneCell, ...]]
    resized: int
    facts: tuple[Fact, ...]
    cpu: Agreement

    @property
    def missing(self) -> tuple[LoneCell, ...]:
        """The cells that the second run lacks; none if the runs have different requests."""
        return self.lone[0] if self.has_same_request else ()

    @property
    def cpu_left_out(self) -> str | None:
        """The reason why no CPU time was compared; None if some were compared."""
        if any(self.cpu.judged):
            return None
        without = [name for name, arms in zip("AB", self.cpu.matched.arms, strict=True) if not arms]
        if without:
            return "neither run has any" if len(without) == 2 else f"{without[0]} has none"
        if self.cpu.matched.hosts:
            return "those of A and of B are of two hosts"
        return "not one arm is of the same records in both"

    @property
    def slower_bases(self) -> list[BaseChange]:
        return [base for base in self.cpu.bases if base.verdict == "slower"]

    @property
    def slower_groups(self) -> list[ArmGroup]:
        return [group for group in self.cpu.judged if group.verdict == "slower"]

    @property
    def slower_cells(self) -> list[ArmChange]:
        """The timed calls that are slower in the second run. The one with the largest change comes first."""
        found = [each for group in self.cpu.judged for each in group.cells if each.verdict == "slower"]
        return sorted(found, key=lambda each: each.change.median, reverse=True)

    @property
    def is_regression(self) -> bool:
        return bool(self.changed or self.missing or self.slower_groups or self.slower_bases)

    def to_dict(self) -> dict[str, Any]:
        """Return values for --json."""
        matched = self.cpu.matched
        return {
            "runs": [about(run) for run in self.runs],
            "is_regression": self.is_regression,
            "asked_the_same": self.has_same_request,
            "facts": {fact.name: [fact.before, fact.after] for fact in self.facts},
            "rows": self.rows,
            "changed": [
                _place(each.row) | {"column": each.column, "before": each.before, "after": each.after}
                for each in self.changed
            ],
            "mended": [_place(row) for row in self.mended],
            **{
                name: [_place(each.row, CELL) | {"formats": list(each.formats), "rows": each.rows} for each in cells]
                for name, cells in zip(("only_in_first", "only_in_second"), self.lone, strict=True)
            },
            "resized_rows": self.resized,
            "unrecorded_columns": [],  # all runs that are read have all columns
            "cpu": {
                "threshold": self.threshold,
                "left_out": self.cpu_left_out,
                "arms": list(matched.arms),
                "resized_arms": matched.resized,
                "arms_of_two_hosts": [{"hosts": list(hosts), "arms": arms} for hosts, arms in matched.hosts.items()],
                "ratios_of_two_hosts": [each._asdict() for each in self.cpu.host_ratios],
                "bases": [asdict(base) for base in self.cpu.bases],
                "groups": [_group(group) for group in self.cpu.groups],
            },
        }


def compare(first: str | Path, second: str | Path, threshold: float) -> Comparison:
    """Compare two runs. threshold: the smallest growth of a CPU ratio that counts, 0.03 for 3 %.

    Raises RunError for a run that is unfinished, incomplete or of another schema, and if the runs have no common cell.
    """
    runs = open_run(first), open_run(second)
    first_rows, second_rows = map(_row_numbers, runs)
    common = [key for key in first_rows if key in second_rows]
    if not common:
        without_seed = [name for name in IDENTITY if name != "seed"]
        are_alike = not {*keys(runs[0].table, without_seed)}.isdisjoint(keys(runs[1].table, without_seed))
        but_for = ", but for other seeds" if are_alike else ""
        raise RunError(f"{runs[1].path}: not one cell that {runs[0].path} has too{but_for}")
    before, after = (
        run.table.take(pa.array([rows[key] for key in common]))
        for run, rows in zip(runs, (first_rows, second_rows), strict=True)
    )
    has_same_request = runs[0].manifest.get("profile_text") is not None and all(
        runs[0].manifest.get(name) == runs[1].manifest.get(name) for name in REQUEST
    )
    compared = np.ones(len(common), np.bool_)
    if not has_same_request:  # rows of another number of records are left out
        has_records = pc.and_(pc.is_valid(before["records"]), pc.is_valid(after["records"]))
        compared = ~(_differs(before, after, "records") & np.asarray(has_records, np.bool_))
    mended = compared & _is_ok(after) & ~_is_ok(before)
    judged = [name for name in DETERMINISTIC if name not in (*IDENTITY, *NOT_JUDGED)]
    lone = (
        runs[0].table.take(pa.array([n for key, n in first_rows.items() if key not in second_rows], pa.int64())),
        runs[1].table.take(pa.array([n for key, n in second_rows.items() if key not in first_rows], pa.int64())),
    )
    one, other = (dict(_flat("", run.manifest["environment"])) for run in runs)
    return Comparison(
        runs=runs,
        threshold=threshold,
        rows=int(np.count_nonzero(compared)),
        has_same_request=has_same_request,
        changed=(*_changed_values(before, after, judged, compared & ~mended), *_broken_cells(runs[0].table, lone[1])),
        mended=tuple(stored_rows(after.filter(pa.array(mended)))),
        lone=(_cells(lone[0]), _cells(lone[1])),
        resized=int(np.count_nonzero(~compared)),
        facts=tuple(
            Fact(name, one.get(name), other.get(name))
            for name in sorted(one.keys() | other.keys())
            if name.rpartition(".")[2] not in TRANSIENT and one.get(name) != other.get(name)
        ),
        cpu=agreement(runs[0].table, _with_hosts_renamed(*runs), threshold),
    )


def _with_hosts_renamed(first: Run, second: Run) -> pa.Table:
    """Return the rows of the second run. A host gets another name if its hardware differs from the first run's.

    Only facts about the hardware that both runs have are compared.
    """
    then, now = (run.manifest.get("host_facts", {}) for run in (first, second))
    table, hosts = second.table, second.table["host"].to_pylist()
    renamed = {}
    for host in then.keys() & now.keys():
        known = [name for name in HARDWARE if name in then[host] and name in now[host]]
        if other := [name for name in known if then[host][name] != now[host][name]]:
            renamed[host] = f"{host}, of another {listed(other)}"
    column = pa.array([renamed.get(host, host) for host in hosts], pa.string())
    return table.set_column(table.schema.get_field_index("host"), table.schema.field("host"), column)


def about(run: Run) -> dict[str, Any]:
    """Return the path of a run and the facts that identify it."""
    manifest = run.manifest
    names = ("profile", "started", "git_revision", "hosts", "noise")
    return {"path": str(run.path)} | {name: manifest.get(name) for name in names}


def _row_numbers(run: Run) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for number, key in enumerate(keys(run.table, IDENTITY)):
        if found.setdefault(key, number) != number:
            words = ", ".join(str(value) for value in key if value is not None)
            raise RunError(f"{run.path}: measurements: two rows have the same identity: {words}")
    return found


def _is_ok(table: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(table["status"], "ok"))


def _differs(before: pa.Table, after: pa.Table, name: str) -> NDArray[np.bool_]:
    """Return for each row True if a column differs. A null differs from every value, but not from a null."""
    one, other = before[name], after[name]
    if pa.types.is_list(one.type):  # Arrow compares no lists
        one, other = (pc.binary_join(column.cast(pa.list_(pa.string())), " ") for column in (one, other))
    equal = pc.fill_null(pc.equal(one, other), False)
    differs: NDArray[np.bool_] = ~np.asarray(pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other))))
    return differs


def _changed_values(
    before: pa.Table, after: pa.Table, names: Sequence[str], rows: NDArray[np.bool_]
) -> Iterator[ChangedValue]:
    for name in names:
        places = pa.array(np.flatnonzero(_differs(before, after, name) & rows))
        values = before[name].take(places).to_pylist(), after[name].take(places).to_pylist()
        for row, *both in zip(stored_rows(after.take(places)), *values, strict=True):
            yield ChangedValue(row, name, *both)


def _broken_cells(before: pa.Table, lone: pa.Table) -> Iterator[ChangedValue]:
    """Yield errors of the second run that replace several rows of the first.

    If a workload fails before its operations are known, it has a single row, without an operation.
    """
    unit = (*CELL, "to_format", "format")
    sound = set(keys(before.filter(pa.array(_is_ok(before))), unit))
    failed = lone.filter(pa.array(~_is_ok(lone) & lone["operation"].is_null().to_numpy()))
    for key, row in zip(keys(failed, unit), stored_rows(failed), strict=True):
        if key in sound:
            yield ChangedValue(row, "status", "ok", row.status)


def _cells(rows: pa.Table) -> tuple[LoneCell, ...]:
    found: dict[Key, list[StoredRow]] = defaultdict(list)
    for key, row in zip(keys(rows, CELL), stored_rows(rows), strict=True):
        found[key].append(row)
    return tuple(LoneCell(each[0], tuple(in_order(row.format for row in each)), len(each)) for each in found.values())


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else key, each)
    else:
        yield name, value


def filled_columns(row: StoredRow, names: Iterable[str] = AXES) -> dict[str, Any]:
    """Return the values of these columns by name. Columns whose value is null are left out."""
    return {name: value for name in names if (value := row[name]) is not None}


def _place(row: StoredRow, names: Iterable[str] = IDENTITY) -> dict[str, Any]:
    return filled_columns(row, (*names, "workload", "variant", *AXES))


def _group(group: ArmGroup) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "operation": group.operation,
        "format": group.format,
        "arm": "aa" if group.is_aa else "measure",
        "before": group.median_before,
        "after": group.median_after,
        "change": group.change and group.change._asdict(),
        "median_difference": group.median_difference,
        "verdict": group.verdict,
        "cells": [
            _place(each.row)
            | {name: getattr(each, name)._asdict() for name in ("before", "after", "change")}
            | {"verdict": each.verdict}
            for each in group.cells
        ],
    }
