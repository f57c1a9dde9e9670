"""Match the timed arms of two runs: find the pairs that can be compared, and count those that cannot.

An arm is one timed operation in one format. A cell is one workload with its settings and codec. All arms of a cell are
timed in the same rounds. One of them is the base. The A/A arm times the base a second time (see kfbench.measure.cpu).
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
from kfbench.measure.columns import StoredRow
from kfbench.measure.cpu import PairedRatio, paired_ratio
from kfbench.measure.noise import is_timed, spreads, timed_kind
from kfbench.measure.schema import ARM, IDENTITY_OF_KINDS, rounds_key, stored_rows
from kfbench.present.names import NEW

Key: TypeAlias = tuple[object, ...]  # the values of some columns of a row
Hosts: TypeAlias = tuple[str | None, str | None]  # of a timed call, in the first and in the second run

RESIDENT: Final = "resident"  # data is in the CPU's caches; the value for runs that have no column `cache` yet
AA: Final = "aa"
SIDE_BY_SIDE: Final = frozenset({NEW, *RESEARCH})  # formats whose ratios on two hosts are shown side by side


class Operation(NamedTuple):
    """A kind of measurement, and its operation in words. Example: "cpu" and "encode, cold"."""

    kind: str
    operation: str


class GroupKey(NamedTuple):
    """The key of timed calls (arms) that get one verdict together.

    Keys sort with the A/A arms last, which time the base a second time.
    """

    is_aa: bool
    kind: str
    operation: str
    format: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm:
    """A timed call. ns_per_record: CPU time per record in ns, float64[rounds]."""

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
        """The median CPU time per record in ns."""
        return float(np.median(self.ns_per_record))


class Timed(NamedTuple):
    """An arm of one run, and the base arm that was timed in the same rounds.

    spread: the spread between arms (`kfbench.measure.noise.spreads`), by which the interval is widened.
    """

    arm: Arm
    base: Arm
    spread: float

    @property
    def ratio(self) -> PairedRatio:
        """The CPU time divided by the base's, with its interval. The division is done round by round."""
        return paired_ratio(self.arm.ns_per_record, self.base.ns_per_record).widened(self.spread)

    @property
    def median_ratio(self) -> float:
        """The median of the arm's time divided by the base's, without an interval."""
        return float(np.median(self.arm.ns_per_record / self.base.ns_per_record))


class Pair(NamedTuple):
    """The same timed call in the first and in the second run."""

    before: Timed
    after: Timed


@dataclass(frozen=True, kw_only=True)
class Matched:
    """The timed calls (arms) of two runs, matched.

    Args:
        pairs: arms that are compared by their ratio to the base, including the A/A arms, which time the base again.
        bases: the bases themselves.
        of_two_hosts: arms of the formats in SIDE_BY_SIDE that were measured on two hosts.
        arms: the number of arms in each run.
        hosts: for each pair of different hosts, the number of arms.
        resized: the number of arms whose number of records differs.
    """

    pairs: Mapping[GroupKey, Sequence[Pair]]
    bases: Mapping[Operation, Sequence[Pair]]
    of_two_hosts: Mapping[GroupKey, Sequence[Pair]]
    arms: tuple[int, int]
    hosts: Mapping[Hosts, int]
    resized: int

    @property
    def judged_groups(self) -> int:
        """The number of groups that get a verdict, at least 1. More groups widen the intervals (see `together`)."""
        return max(sum(not key.is_aa for key in self.pairs), 1)

    @property
    def judged_arms(self) -> int:
        """The number of timed calls in the groups that get a verdict, at least 1."""
        return max(sum(len(pairs) for key, pairs in self.pairs.items() if not key.is_aa), 1)


def match(first: Mapping[Key, Timed], second: Mapping[Key, Timed]) -> Matched:
    """Match the timed calls of two runs, in the order of the first run.

    The random resampling that makes intervals depends on this order.
    """
    hosts: dict[Hosts, int] = defaultdict(int)
    resized = 0
    pairs: dict[GroupKey, list[Pair]] = defaultdict(list)
    bases: dict[Operation, list[Pair]] = defaultdict(list)
    of_two_hosts: dict[GroupKey, list[Pair]] = defaultdict(list)
    for pair in (Pair(first[key], second[key]) for key in first if key in second):
        arm, before, after = pair.before.arm, pair.before.arm.row, pair.after.arm.row
        if before.host != after.host:
            hosts[before.host, after.host] += 1
            has_base = pair.before.base.row.format == pair.after.base.row.format == BASE_FORMAT
            if has_base and before.format in SIDE_BY_SIDE and not arm.is_aa and before.records == after.records:
                of_two_hosts[GroupKey(arm.is_aa, *arm.key, before.format)].append(pair)
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
    """Return the values of these columns, row by row. A null in the column `cache` becomes RESIDENT."""
    columns = [
        pc.fill_null(table[name], RESIDENT).to_pylist() if name == "cache" else table[name].to_pylist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def arms_of(table: pa.Table) -> dict[Key, Timed]:
    """Return every timed call (arm) once, with its base. Arms without a base are left out."""
    rows = table.filter(is_timed(table))
    arms = dict(zip(keys(rows, ARM), map(_arm, stored_rows(rows)), strict=True))
    rounds: dict[Key, list[Arm]] = defaultdict(list)
    for arm in arms.values():
        rounds[rounds_key(arm.row)].append(arm)
    bases = {key: base for key, arms_together in rounds.items() if (base := _base_of(arms_together)) is not None}
    of_kind = spreads(table)
    return {
        key: Timed(arm, base, of_kind.get(timed_kind(arm.row.kind, arm.row.cache), 0.0))
        for key, arm in arms.items()
        if (base := bases.get(rounds_key(arm.row)))
    }


def _arm(row: StoredRow) -> Arm:
    assert row.cpu_ns is not None and row.inner_loops and row.records  # a timed row has them
    return Arm(row=row, ns_per_record=np.asarray(row.cpu_ns, np.float64) / row.inner_loops / row.records)


def _base_of(arms: Sequence[Arm]) -> Arm | None:
    """Return the base of the given arms: the one that the A/A arm repeats.

    It is the last arm that differs from it in nothing else.
    """
    repeated = next((arm.row for arm in arms if arm.is_aa), None)
    if repeated is None:
        return None
    same = _repeats(repeated)
    return next((arm for arm in reversed(arms) if not arm.is_aa and _repeats(arm.row) == same), None)


def _repeats(row: StoredRow) -> Key:
    return row.format, row.operation, *(row[name] for name in IDENTITY_OF_KINDS)


def operation_words(row: StoredRow) -> str:
    """Return an operation with its target, caches and contexts: "encode", "convert to v1", "encode, cold".

    The result is "" for a row without an operation.
    """
    words = (row.operation or "") + (f" to {row.to_format}" if row.to_format else "")
    words = words if row.cache in (None, RESIDENT) else f"{words}, {row.cache}"
    return f"{words}, new contexts" if row["context"] == "new" else words
