"""The timed arms of two runs, matched: the pairs that can be compared, and the numbers of those that cannot.

An arm is one timed operation in one format. All arms of a cell are timed in the same rounds. One of them is the base,
and the A/A arm times the base a second time (see kfbench.measure.cpu).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.measure.cpu import PairedRatio, paired_ratio
from kfbench.measure.schema import ARM, ROUNDS, ROUNDS_PREFIX, StoredRow, stored_rows
from kfbench.report.data.shown_formats import NEW

Key: TypeAlias = tuple[object, ...]  # the values of some columns of a row

RESIDENT: Final = "resident"  # the caches of runs from before the column `cache`
AA: Final = "aa"
SIDE_BY_SIDE: Final = frozenset({NEW, *RESEARCH})  # formats whose ratios on two hosts are shown side by side


class Operation(NamedTuple):
    """A kind of measurement and its operation in words: cpu and "encode, cold"."""

    kind: str
    operation: str


class GroupKey(NamedTuple):
    """The arms that are judged together. They sort with the A/A arms last."""

    is_aa: bool
    kind: str
    operation: str
    format: str


class FormatKey(NamedTuple):
    """The arms of one kind, operation and format."""

    kind: str
    operation: str
    format: str


class Hosts(NamedTuple):
    """The hosts of an arm in both runs."""

    first: str | None
    second: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm:
    """A timed arm. ns_per_record: CPU time, float64[rounds]."""

    row: StoredRow
    ns_per_record: NDArray[np.float64]

    @property
    def key(self) -> Operation:
        return Operation(self.row.kind, operation_words(self.row))

    @property
    def is_aa(self) -> bool:
        return self.row.arm == AA

    @property
    def median_ns(self) -> float:
        """The median CPU time per record."""
        return float(np.median(self.ns_per_record))


class Timed(NamedTuple):
    """An arm and the base of its rounds, in one run."""

    arm: Arm
    base: Arm

    @property
    def ratio(self) -> PairedRatio:
        """The ratio to the base, round by round, with its interval."""
        return paired_ratio(self.arm.ns_per_record, self.base.ns_per_record)

    @property
    def median_ratio(self) -> float:
        """The median of `ratio`, without its interval."""
        return float(np.median(self.arm.ns_per_record / self.base.ns_per_record))


class Pair(NamedTuple):
    """The same arm in the first and in the second run."""

    before: Timed
    after: Timed


@dataclass(frozen=True, kw_only=True)
class Matched:
    """The arms of two runs.

    Args:
        pairs: A/A and other arms, to be judged against their base.
        bases: the bases themselves.
        of_two_hosts: arms of SIDE_BY_SIDE that were measured on two hosts.
        arms: the number of arms in each run.
        hosts: the number of arms by pair of different hosts.
        resized: the number of arms with another number of records.
    """

    pairs: Mapping[GroupKey, Sequence[Pair]]
    bases: Mapping[Operation, Sequence[Pair]]
    of_two_hosts: Mapping[FormatKey, Sequence[Pair]]
    arms: tuple[int, int]
    hosts: Mapping[Hosts, int]
    resized: int

    @property
    def judged_groups(self) -> int:
        """The number of groups that get a verdict, at least 1. Intervals are widened for it (`together`)."""
        return max(sum(not key.is_aa for key in self.pairs), 1)

    @property
    def judged_arms(self) -> int:
        """The number of arms in these groups, at least 1."""
        return max(sum(len(pairs) for key, pairs in self.pairs.items() if not key.is_aa), 1)


def match(first: Mapping[Key, Timed], second: Mapping[Key, Timed]) -> Matched:
    """Match the arms of two runs, in the order of the first run. The bootstrap of intervals depends on this order."""
    hosts: dict[Hosts, int] = defaultdict(int)
    resized = 0
    pairs: dict[GroupKey, list[Pair]] = defaultdict(list)
    bases: dict[Operation, list[Pair]] = defaultdict(list)
    of_two_hosts: dict[FormatKey, list[Pair]] = defaultdict(list)
    for pair in (Pair(first[key], second[key]) for key in first if key in second):
        arm, before, after = pair.before.arm, pair.before.arm.row, pair.after.arm.row
        if before.host != after.host:
            hosts[Hosts(before.host, after.host)] += 1
            has_base = pair.before.base.row.format == pair.after.base.row.format == BASE_FORMAT
            if has_base and before.format in SIDE_BY_SIDE and not arm.is_aa and before.records == after.records:
                of_two_hosts[FormatKey(*arm.key, before.format)].append(pair)
        elif before.records != after.records:
            resized += 1
        elif pair.before.base is arm:
            bases[arm.key].append(pair)
        else:
            pairs[GroupKey(arm.is_aa, *arm.key, before.format)].append(pair)
    return Matched(
        pairs=dict(sorted(pairs.items(), key=itemgetter(0))),
        bases=dict(sorted(bases.items(), key=itemgetter(0))),
        of_two_hosts=dict(sorted(of_two_hosts.items(), key=itemgetter(0))),
        arms=(len(first), len(second)),
        hosts=dict(sorted(hosts.items())),
        resized=resized,
    )


def keys(table: pa.Table, names: Sequence[str]) -> list[Key]:
    """Return the values of these columns, row by row. Caches are resident where the column is null."""
    columns = [
        pc.fill_null(table[name], RESIDENT).to_pylist() if name == "cache" else table[name].to_pylist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def arms_of(table: pa.Table) -> dict[Key, Timed]:
    """Return every timed arm once, with its base. Arms without a base are left out."""
    rows = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["arm"])))
    arms = dict(zip(keys(rows, ARM), map(_arm, stored_rows(rows)), strict=True))
    rounds: dict[Key, list[Arm]] = defaultdict(list)
    for arm in arms.values():
        rounds[_rounds_key(arm.row)].append(arm)
    bases = {key: base for key, arms_together in rounds.items() if (base := _base_of(arms_together)) is not None}
    return {key: Timed(arm, base) for key, arm in arms.items() if (base := bases.get(_rounds_key(arm.row)))}


def _arm(row: StoredRow) -> Arm:
    assert row.cpu_ns is not None and row.inner_loops and row.records  # a timed row has them
    return Arm(row=row, ns_per_record=np.asarray(row.cpu_ns, np.float64) / row.inner_loops / row.records)


def _rounds_key(row: StoredRow) -> Key:
    return tuple(getattr(row, name) for name in (ROUNDS_PREFIX if row.kind == "prefix" else ROUNDS))


def _base_of(arms: Sequence[Arm]) -> Arm | None:
    """Return the last arm with the format and operation of the A/A arm, which repeats the base."""
    repeated = next((arm.row for arm in arms if arm.is_aa), None)
    if repeated is None:
        return None
    same = (repeated.format, repeated.operation)
    return next((arm for arm in reversed(arms) if not arm.is_aa and (arm.row.format, arm.row.operation) == same), None)


def operation_words(row: StoredRow) -> str:
    """Return an operation with its target and caches: "encode", "convert to v1", "encode, cold"; "" without one."""
    words = (row.operation or "") + (f" to {row.to_format}" if row.to_format else "")
    return words if row.cache in (None, RESIDENT) else f"{words}, {row.cache}"
