"""Two runs held against each other: bytes exactly, CPU by interval against a threshold.

Laws (tests/comparison/test_compare.py):
1. What is the same on any day (kfbench.measure.schema.DETERMINISTIC) must be the same in both runs: one other number is
   a regression, be it smaller. Not judged: the words of an error, and a codec library's version, which is only named.
2. A row that was a number and is none is a regression; one that was none and is a number is not.
3. CPU is compared as ratios to the base of the same rounds, between runs of one host only: a name that stands for other
   hardware in the second run is another host. Ratios of two hosts are shown and not judged. A change counts where
   its whole interval lies beyond the threshold; a regression is one of an operation in a format, not of a single cell.
   The base is held by what it took itself, where others show that it was not the machine.
4. What only one of the runs has is listed. It is a regression where both asked the same and the second lacks it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.comparison.agreement import Agreement, Base, Group, Key, Moved, agreement, keys
from kfbench.errors import RunError
from kfbench.measure.environment import HARDWARE
from kfbench.measure.schema import CELL, DETERMINISTIC, IDENTITY, WORKLOAD_COLUMNS
from kfbench.report.data.shown_formats import in_order
from kfbench.report.render.tables import listed
from kfbench.store import Run, open_run

Row = Mapping[str, Any]

NOT_JUDGED: Final = ("error", "codec_version")
ASKED: Final = ("profile_text", "seed", "filter")  # of a manifest
TRANSIENT: Final = ("load_1_min", "host")  # of its environment; hosts are told apart row by row


class Changed(NamedTuple):
    """A value that must be the same in both runs, and is not."""

    row: Row
    column: str
    before: Any
    after: Any


class Lone(NamedTuple):
    """The formats of a cell that only one of the runs has."""

    row: Row
    formats: tuple[str, ...]
    rows: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """rows: that both have and that are compared. asked_the_same: profile, seed and filter are equal. mended: rows that
    were none and are numbers. lone: what only the first has, and only the second. resized: rows of another
    number of records. facts: what differs around the measurements."""

    runs: tuple[Run, Run]
    threshold: float
    rows: int
    asked_the_same: bool
    changed: tuple[Changed, ...]
    mended: tuple[Row, ...]
    lone: tuple[tuple[Lone, ...], tuple[Lone, ...]]
    resized: int
    facts: Mapping[str, tuple[Any, Any]]
    cpu: Agreement

    @property
    def missing(self) -> tuple[Lone, ...]:
        """What the second run should have and has not."""
        return self.lone[0] if self.asked_the_same else ()

    @property
    def cpu_left_out(self) -> str | None:
        """Why not one CPU time was compared; None where some were."""
        if any(self.cpu.judged):
            return None
        without = [name for name, arms in zip("AB", self.cpu.arms, strict=True) if not arms]
        if without:
            return "neither run has any" if len(without) == 2 else f"{without[0]} has none"
        if self.cpu.hosts:
            return "those of A and of B are of two hosts"
        return "not one arm is of the same records in both"

    @property
    def slower_bases(self) -> list[Base]:
        return [base for base in self.cpu.bases if base.verdict == "slower"]

    @property
    def slower_groups(self) -> list[Group]:
        return [group for group in self.cpu.judged if group.verdict == "slower"]

    @property
    def slower_cells(self) -> list[Moved]:
        """To be looked at, the largest change first."""
        found = [each for group in self.cpu.judged for each in group.cells if each.verdict == "slower"]
        return sorted(found, key=lambda each: each.change.median, reverse=True)

    @property
    def is_regression(self) -> bool:
        return bool(self.changed or self.missing or self.slower_groups or self.slower_bases)

    def to_dict(self) -> dict[str, Any]:
        """For --json: all of it, in plain values."""
        return {
            "runs": [about(run) for run in self.runs],
            "is_regression": self.is_regression,
            "asked_the_same": self.asked_the_same,
            "facts": {name: list(both) for name, both in self.facts.items()},
            "rows": self.rows,
            "changed": [_place(each.row) | _told(each) for each in self.changed],
            "mended": [_place(row) for row in self.mended],
            "only_in_first": [_place(each.row, CELL) | _counted(each) for each in self.lone[0]],
            "only_in_second": [_place(each.row, CELL) | _counted(each) for each in self.lone[1]],
            "resized_rows": self.resized,
            "unrecorded_columns": [],  # all runs that are read have all columns
            "cpu": {
                "threshold": self.threshold,
                "left_out": self.cpu_left_out,
                "arms": list(self.cpu.arms),
                "resized_arms": self.cpu.resized,
                "arms_of_two_hosts": [{"hosts": list(hosts), "arms": arms} for hosts, arms in self.cpu.hosts.items()],
                "ratios_of_two_hosts": [each._asdict() for each in self.cpu.beside],
                "bases": [asdict(base) for base in self.cpu.bases],
                "groups": [_group(group) for group in self.cpu.groups],
            },
        }


def compare(first: str | Path, second: str | Path, threshold: float) -> Comparison:
    """threshold: by how much a CPU ratio may grow, .03 for 3 %.

    Raises RunError for a run that is unfinished, of another schema or not whole, and for two with nothing in common.
    """
    runs = open_run(first), open_run(second)
    here, there = map(_numbered, runs)
    common = [key for key in here if key in there]
    if not common:
        raise RunError(f"{runs[1].path}: not one cell that {runs[0].path} has too{_but_for_seeds(*runs)}")
    before, after = (
        run.table.take(pa.array([rows[key] for key in common])) for run, rows in zip(runs, (here, there), strict=True)
    )
    asked_the_same = runs[0].manifest.get("profile_text") is not None and all(
        runs[0].manifest.get(name) == runs[1].manifest.get(name) for name in ASKED
    )
    compared = np.ones(len(common), np.bool_) if asked_the_same else ~_resized(before, after)
    mended = compared & _is_ok(after) & ~_is_ok(before)
    judged = [name for name in DETERMINISTIC if name not in (*IDENTITY, *NOT_JUDGED)]
    lone = (
        runs[0].table.take(pa.array([n for key, n in here.items() if key not in there], pa.int64())),
        runs[1].table.take(pa.array([n for key, n in there.items() if key not in here], pa.int64())),
    )
    return Comparison(
        runs=runs,
        threshold=threshold,
        rows=int(np.count_nonzero(compared)),
        asked_the_same=asked_the_same,
        changed=(*_changed(before, after, judged, compared & ~mended), *_broken(runs[0].table, lone[1])),
        mended=tuple(after.filter(pa.array(mended)).to_pylist()),
        lone=(_cells(lone[0]), _cells(lone[1])),
        resized=int(np.count_nonzero(~compared)),
        facts=dict(_differing(*runs)),
        cpu=agreement(runs[0].table, _told_apart(*runs), threshold),
    )


def _told_apart(first: Run, second: Run) -> pa.Table:
    """The rows of the second run, whose hosts have a name of their own where they are not the first one's hardware, by
    what both runs know of it."""
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
    manifest = run.manifest
    names = ("profile", "started", "git_revision", "hosts", "noise")
    return {"path": str(run.path)} | {name: manifest.get(name) for name in names}


def _numbered(run: Run) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for number, key in enumerate(keys(run.table, IDENTITY)):
        if found.setdefault(key, number) != number:
            said = ", ".join(str(value) for value in key if value is not None)
            raise RunError(f"{run.path}: measurements: two rows are one and the same: {said}")
    return found


def _but_for_seeds(*runs: Run) -> str:
    here, there = (set(keys(run.table, [name for name in IDENTITY if name != "seed"])) for run in runs)
    return ", but for other seeds" if here & there else ""


def _is_ok(table: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(table["status"], "ok"))


def _differs(before: pa.Table, after: pa.Table, name: str) -> NDArray[np.bool_]:
    """A null differs from every value, and from no null."""
    one, other = before[name], after[name]
    equal = pc.fill_null(pc.equal(one, other), False)
    differs: NDArray[np.bool_] = ~np.asarray(pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other))))
    return differs


def _resized(before: pa.Table, after: pa.Table) -> NDArray[np.bool_]:
    """Rows of another number of records, where both know one."""
    known = pc.and_(pc.is_valid(before["records"]), pc.is_valid(after["records"]))
    return _differs(before, after, "records") & np.asarray(known, np.bool_)


def _changed(before: pa.Table, after: pa.Table, names: Sequence[str], rows: NDArray[np.bool_]) -> Iterator[Changed]:
    for name in names:
        places = pa.array(np.flatnonzero(_differs(before, after, name) & rows))
        values = before[name].take(places).to_pylist(), after[name].take(places).to_pylist()
        for row, *both in zip(after.take(places).to_pylist(), *values, strict=True):
            yield Changed(row, name, *both)


def _broken(before: pa.Table, lone: pa.Table) -> Iterator[Changed]:
    """Errors that stand for several rows: what fails before its operations are known has one row instead of theirs."""
    unit = (*CELL, "to_format", "format")
    sound = set(keys(before.filter(pa.array(_is_ok(before))), unit))
    failed = lone.filter(pa.array(~_is_ok(lone)))
    for key, row in zip(keys(failed, unit), failed.to_pylist(), strict=True):
        if key in sound:
            yield Changed(row, "status", "ok", row["status"])


def _cells(rows: pa.Table) -> tuple[Lone, ...]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for key, row in zip(keys(rows, CELL), rows.to_pylist(), strict=True):
        found[key].append(row)
    return tuple(Lone(each[0], tuple(in_order(row["format"] for row in each)), len(each)) for each in found.values())


def _differing(first: Run, second: Run) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """What the manifests say of code, libraries and host that is not the same, `packages.numpy` and so on."""
    one, other = (dict(_flat("", run.manifest["environment"])) for run in (first, second))
    for name in sorted(one.keys() | other.keys()):
        if name.rpartition(".")[2] not in TRANSIENT and one.get(name) != other.get(name):
            yield name, (one.get(name), other.get(name))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else key, each)
    else:
        yield name, value


def _place(row: Row, names: Iterable[str] = IDENTITY) -> dict[str, Any]:
    """What tells the row from others, and where its workload stands; without what it has not."""
    wanted = (*names, "workload", "variant", *(column.name for column in WORKLOAD_COLUMNS))
    return {name: row[name] for name in wanted if row.get(name) is not None}


def _told(each: Changed) -> dict[str, Any]:
    return {"column": each.column, "before": each.before, "after": each.after}


def _counted(each: Lone) -> dict[str, Any]:
    return {"formats": list(each.formats), "rows": each.rows}


def _group(group: Group) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "operation": group.operation,
        "format": group.format,
        "arm": "aa" if group.is_aa else "measure",
        "before": group.median("before"),
        "after": group.median("after"),
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
