"""How far two runs agree on CPU: every arm's ratio to its base in both, and how far that moved.

Ratios are of the same rounds, so that a slower day does not move them. Another host does: formats gain differently from
another core or cache, and arms of two hosts are not compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import bdtrc

from kfbench.measure.change import OUTSIDE, Estimate, Verdict, change, together, verdict
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.schema import ARM, ROUNDS, ROUNDS_PREFIX

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]

RESIDENT: Final = "resident"  # what a run from before `cache` measured
AA: Final = "aa"
LEAST_CELLS: Final = 6  # the median of fewer may lie outside all of them in more than 5 of 100


class Moved(NamedTuple):
    """One arm of both runs: its ratio to the base of its rounds, and after / before."""

    row: Mapping[str, Any]
    before: Estimate
    after: Estimate
    change: Estimate
    verdict: Verdict

    @property
    def difference(self) -> float:
        return abs(self.change.median - 1)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The arms of one kind, operation and format, the least change first. change: of the median cell; None: too few.

    verdict: slower where the median cell is (among few cells: each of them), or where many more cells are slower than
    faster."""

    kind: str
    operation: str
    format: str
    is_aa: bool
    cells: tuple[Moved, ...]
    change: Estimate | None
    verdict: Verdict

    @cached_property
    def median_difference(self) -> float:
        return float(np.median([each.difference for each in self.cells]))

    def median(self, run: str) -> float:
        """Of the ratios `before` or `after`."""
        return float(np.median([getattr(each, run).median for each in self.cells]))


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """groups: A/A arms last. Not compared: hosts, (first, second) -> arms of two hosts; resized, arms of another number
    of records. base: kind and operation -> what the base itself took a record, after / before, the median cell."""

    groups: tuple[Group, ...]
    hosts: Mapping[tuple[str, str], int]
    resized: int
    base: Mapping[tuple[str, str], float]

    @property
    def judged(self) -> Iterator[Group]:
        return (group for group in self.groups if not group.is_aa)


def keys(table: pa.Table, names: Sequence[str]) -> list[Key]:
    """The values of these columns, row by row; caches are resident where nobody said otherwise."""
    columns = [
        pc.fill_null(table[name], RESIDENT).to_pylist() if name == "cache" else table[name].to_pylist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def agreement(before: pa.Table, after: pa.Table, threshold: float) -> Agreement:
    """Of the timed rows of two runs, kfbench.measure.schema.SCHEMA. threshold: of a ratio's change, .03 for 3 %."""
    first, second = _arms(before), _arms(after)
    hosts: dict[tuple[str, str], int] = defaultdict(int)
    resized = 0
    pairs: dict[tuple[bool, str, str, str], list[tuple[Row, Row]]] = defaultdict(list)
    base: dict[tuple[str, str], list[float]] = defaultdict(list)
    for key in first.keys() & second.keys():
        there, here = first[key], second[key]
        what = there["kind"], operation(there)
        if there["host"] != here["host"]:
            hosts[there["host"], here["host"]] += 1
        elif there["records"] != here["records"]:
            resized += 1
        elif there["base"] is there:
            base[what].append(float(np.median(_per_record_ns(here)) / np.median(_per_record_ns(there))))
        else:
            pairs[there["arm"] == AA, *what, there["format"]].append((there, here))
    arms = sum(len(found) for (is_aa, *_), found in pairs.items() if not is_aa)
    groups = sum(not is_aa for is_aa, *_ in pairs)

    def moved(there: Row, here: Row) -> Moved:
        before, after = (_ratio(row) for row in (there, here))
        found = change(before, after)
        return Moved(there, before, after, found, verdict(together(found, max(arms, 1)), threshold))

    def group(is_aa: bool, kind: str, words: str, name: str, found: list[tuple[Row, Row]]) -> Group:
        cells = sorted((moved(*pair) for pair in found), key=lambda each: each.change.median)
        return Group(
            kind=kind,
            operation=words,
            format=name,
            is_aa=is_aa,
            cells=tuple(cells),
            change=_of_all(cells) if len(cells) >= LEAST_CELLS else None,
            verdict=_verdict(cells, max(groups, 1), threshold),
        )

    return Agreement(
        groups=tuple(group(*name, found) for name, found in sorted(pairs.items(), key=itemgetter(0))),
        hosts=dict(sorted(hosts.items())),
        resized=resized,
        base={what: float(np.median(found)) for what, found in sorted(base.items())},
    )


def _verdict(cells: Sequence[Moved], groups: int, threshold: float) -> Verdict:
    """Of a group among `groups`. Single cells do not decide where there are several: between two runs of one code, some
    move far, in both directions."""
    seen = Counter(each.verdict for each in cells)
    if len(cells) < LEAST_CELLS:
        return cells[0].verdict if len(seen) == 1 else "unclear"
    found = verdict(together(_of_all(cells), groups), threshold)
    if found in ("within", "unclear"):
        ways: tuple[tuple[Verdict, Verdict], ...] = (("slower", "faster"), ("faster", "slower"))
        for one, other in ways:
            # As many of the one and as few of the other come by chance, if either is as likely, once in so many groups.
            if bdtrc(seen[one] - 1, seen[one] + seen[other], 0.5) < OUTSIDE / 2 / groups:
                return one
    return found


def _of_all(cells: Sequence[Moved]) -> Estimate:
    """The change of the median cell."""
    return Estimate(*paired_ratio([each.after.median for each in cells], [each.before.median for each in cells]))


def _ratio(row: Row) -> Estimate:
    return Estimate(*paired_ratio(_per_record_ns(row), _per_record_ns(row["base"])))


def operation(row: Mapping[str, Any]) -> str:
    """encode; convert to v1; encode, cold."""
    words = row["operation"] + (f" to {row['to_format']}" if row["to_format"] else "")
    return words if row["cache"] in (None, RESIDENT) else f"{words}, {row['cache']}"


def _arms(table: pa.Table) -> dict[Key, Row]:
    """Every arm once, with the row of its base in `base`; arms without a base are left out."""
    timed = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["arm"])))
    rows = dict(zip(keys(timed, ARM), timed.to_pylist(), strict=True))
    together: dict[Key, list[Row]] = defaultdict(list)
    for row in rows.values():
        names = ROUNDS_PREFIX if row["kind"] == "prefix" else ROUNDS
        together[tuple(row[name] for name in names)].append(row)
    for arms in together.values():
        again = next((row for row in arms if row["arm"] == AA), None)
        for row in arms:
            is_base = again and row["arm"] != AA and (row["format"], row["operation"]) == _named(again)
            if is_base:
                for each in arms:
                    each["base"] = row
    return {key: row for key, row in rows.items() if "base" in row}


def _named(row: Row) -> tuple[str, str]:
    return row["format"], row["operation"]


def _per_record_ns(row: Row) -> np.ndarray:
    found: np.ndarray = np.asarray(row["cpu_ns"], np.float64) / row["inner_loops"] / row["records"]
    return found
