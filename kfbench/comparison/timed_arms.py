"""Match the timed arms of two runs: find the pairs that can be compared, and count those that cannot.

An arm is one timed operation in one format. A cell is one workload with its settings and codec. All arms of a cell are
timed in the same rounds. One of them is the base. The A/A arm times the base a second time (see kfbench.measure.cpu).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.measure.columns import StoredRow
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.noise import is_timed, spreads, timed_kind
from kfbench.measure.schema import ARM, IDENTITY_OF_KINDS, rounds_key, stored_rows
from kfbench.present.names import NEW

Key: TypeAlias = tuple[object, ...]  # the values of some columns of a row
Hosts: TypeAlias = tuple[str | None, str | None]  # of a timed call, in the first and in the second run

RESIDENT: Final = "resident"  # data is in the CPU's caches; the value for runs that have no column `cache` yet
AA: Final = "aa"
SIDE_BY_SIDE: Final = frozenset({NEW, *RESEARCH})  # formats whose ratios on two hosts are shown side by side


class TimedOperation(NamedTuple):
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


@dataclass(frozen=True, eq=False)
class TimedArm:
    """A timed call of one run, and the base that was timed in the same rounds.

    Args:
        row, base: the rows of the call and of its base. A base is its own base.
        spread: the spread between arms (`kfbench.measure.noise.spreads`), by which the interval is widened.
    """

    row: StoredRow
    base: StoredRow
    spread: float

    @property
    def operation(self) -> TimedOperation:
        return TimedOperation(self.row.kind, operation_words(self.row))

    @property
    def base_operation(self) -> TimedOperation:
        return TimedOperation(self.base.kind, operation_words(self.base))

    @property
    def is_aa(self) -> bool:
        return self.row.arm == AA

    @cached_property
    def median_ns(self) -> float:
        """The median CPU time per record in ns."""
        return float(np.median(_ns_per_record(self.row)))

    @cached_property
    def ratio(self) -> Interval:
        """The CPU time divided by the base's, with its interval. The division is done round by round."""
        return paired_ratio(_ns_per_record(self.row), _ns_per_record(self.base)).widened(self.spread)


def _ns_per_record(row: StoredRow) -> NDArray[np.float64]:
    """Return the CPU time per record in ns, float64[rounds]."""
    assert row.cpu_ns is not None and row.inner_loops and row.records  # a timed row has them
    return np.asarray(row.cpu_ns, np.float64) / row.inner_loops / row.records


class ArmPair(NamedTuple):
    """The same timed call in the first and in the second run."""

    before: TimedArm
    after: TimedArm


@dataclass(frozen=True, kw_only=True)
class MatchedArms:
    """The timed calls (arms) of two runs, matched.

    Args:
        pairs: arms that are compared by their ratio to the base, including the A/A arms, which time the base again.
        bases: the bases themselves.
        of_two_hosts: arms of the formats in SIDE_BY_SIDE that were measured on two hosts.
        arms: the number of arms in each run.
        hosts: for each pair of different hosts, the number of arms.
        resized: the number of arms whose number of records differs.
    """

    pairs: Mapping[GroupKey, Sequence[ArmPair]]
    bases: Mapping[TimedOperation, Sequence[ArmPair]]
    of_two_hosts: Mapping[GroupKey, Sequence[ArmPair]]
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


def match(first: Mapping[Key, TimedArm], second: Mapping[Key, TimedArm]) -> MatchedArms:
    """Match the timed calls of two runs, in the order of the first run.

    The random resampling that makes intervals depends on this order.
    """
    hosts: dict[Hosts, int] = defaultdict(int)
    resized = 0
    pairs: dict[GroupKey, list[ArmPair]] = defaultdict(list)
    bases: dict[TimedOperation, list[ArmPair]] = defaultdict(list)
    of_two_hosts: dict[GroupKey, list[ArmPair]] = defaultdict(list)
    for pair in (ArmPair(first[key], second[key]) for key in first if key in second):
        arm, before, after = pair.before, pair.before.row, pair.after.row
        key = GroupKey(arm.is_aa, *arm.operation, before.format)
        if before.host != after.host:
            hosts[before.host, after.host] += 1
            has_base = arm.base.format == pair.after.base.format == BASE_FORMAT
            if has_base and before.format in SIDE_BY_SIDE and not arm.is_aa and before.records == after.records:
                of_two_hosts[key].append(pair)
        elif before.records != after.records:
            resized += 1
        elif arm.base is before:
            bases[arm.operation].append(pair)
        else:
            pairs[key].append(pair)
    return MatchedArms(
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


def arms_of(table: pa.Table) -> dict[Key, TimedArm]:
    """Return every timed call (arm) once, with its base. Arms without a base are left out."""
    timed = table.filter(is_timed(table))
    rows = dict(zip(keys(timed, ARM), stored_rows(timed), strict=True))
    rounds: dict[Key, list[StoredRow]] = defaultdict(list)
    for row in rows.values():
        rounds[rounds_key(row)].append(row)
    bases = {key: base for key, together in rounds.items() if (base := _base_of(together)) is not None}
    of_kind = spreads(table)
    return {
        key: TimedArm(row, base, of_kind.get(timed_kind(row.kind, row.cache), 0.0))
        for key, row in rows.items()
        if (base := bases.get(rounds_key(row)))
    }


def _base_of(rows: Sequence[StoredRow]) -> StoredRow | None:
    """Return the base of these rows: the one that the A/A arm repeats.

    It is the last row that differs from it in nothing else.
    """
    repeated = next((row for row in rows if row.arm == AA), None)
    if repeated is None:
        return None
    same = _repeats(repeated)
    return next((row for row in reversed(rows) if row.arm != AA and _repeats(row) == same), None)


def _repeats(row: StoredRow) -> Key:
    return row.format, row.operation, *(row[name] for name in IDENTITY_OF_KINDS)


def operation_words(row: StoredRow) -> str:
    """Return an operation with its target, caches and contexts: "encode", "convert to v1", "encode, cold".

    The result is "" for a row without an operation.
    """
    words = (row.operation or "") + (f" to {row.to_format}" if row.to_format else "")
    words = words if row.cache in (None, RESIDENT) else f"{words}, {row.cache}"
    return f"{words}, new contexts" if row["context"] == "new" else words
