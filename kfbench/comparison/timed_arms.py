"""The timed arms of two runs, matched: those that can be compared, and the number of those that cannot."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.comparison.change import Estimate
from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.schema import ARM, ROUNDS, ROUNDS_PREFIX

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = Mapping[str, Any]  # of kfbench.measure.schema.SCHEMA

RESIDENT: Final = "resident"  # the caches of runs from before the column `cache`
AA: Final = "aa"
BESIDE: Final = ("v3", "columnar")  # formats whose ratios on two hosts are shown side by side


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


class Hosts(NamedTuple):
    """The hosts of an arm in both runs."""

    first: str
    second: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm:
    """A timed arm. ns_per_record: float64[rounds]. yardstick_ns: the host's, None where it was not measured."""

    row: Row
    kind: str
    operation: str
    format: str
    is_aa: bool
    host: str
    records: int
    ns_per_record: NDArray[np.float64]
    yardstick_ns: float | None

    @property
    def key(self) -> Operation:
        return Operation(self.kind, self.operation)

    @property
    def median_ns(self) -> float:
        return float(np.median(self.ns_per_record))


class Timed(NamedTuple):
    """An arm and the base of its rounds, in one run."""

    arm: Arm
    base: Arm

    @property
    def ratio(self) -> Estimate:
        """The ratio to the base, round by round, with its interval."""
        return Estimate(*paired_ratio(self.arm.ns_per_record, self.base.ns_per_record))

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
        of_two_hosts: arms of BESIDE that were measured on two hosts, by kind, operation and format.
        arms: the number of arms in each run.
        hosts: the number of arms by pair of different hosts.
        resized: the number of arms with another number of records.
    """

    pairs: Mapping[GroupKey, Sequence[Pair]]
    bases: Mapping[Operation, Sequence[Pair]]
    of_two_hosts: Mapping[tuple[str, str, str], Sequence[Pair]]
    arms: tuple[int, int]
    hosts: Mapping[Hosts, int]
    resized: int

    @property
    def judged_groups(self) -> int:
        """The number of groups that get a verdict, at least 1; chance is allowed for."""
        return max(sum(not key.is_aa for key in self.pairs), 1)

    @property
    def judged_arms(self) -> int:
        return max(sum(len(pairs) for key, pairs in self.pairs.items() if not key.is_aa), 1)


def match(first: Mapping[Key, Timed], second: Mapping[Key, Timed]) -> Matched:
    """Match the arms of two runs, in the order of the first. Resamples of cells depend on this order."""
    hosts: dict[Hosts, int] = defaultdict(int)
    resized = 0
    pairs: dict[GroupKey, list[Pair]] = defaultdict(list)
    bases: dict[Operation, list[Pair]] = defaultdict(list)
    of_two_hosts: dict[tuple[str, str, str], list[Pair]] = defaultdict(list)
    for key in [key for key in first if key in second]:
        pair = Pair(first[key], second[key])
        then, now = pair.before.arm, pair.after.arm
        if then.host != now.host:
            hosts[Hosts(then.host, now.host)] += 1
            has_base = pair.before.base.format == pair.after.base.format == BASE_FORMAT
            if has_base and then.format in BESIDE and not then.is_aa and then.records == now.records:
                of_two_hosts[*then.key, then.format].append(pair)
        elif then.records != now.records:
            resized += 1
        elif pair.before.base is then:
            bases[then.key].append(pair)
        else:
            pairs[GroupKey(then.is_aa, *then.key, then.format)].append(pair)
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
    arms = dict(zip(keys(rows, ARM), map(_arm, rows.to_pylist()), strict=True))
    rounds: dict[Key, list[Arm]] = defaultdict(list)
    for arm in arms.values():
        rounds[_rounds_key(arm)].append(arm)
    bases = {key: base for key, together in rounds.items() if (base := _base_of(together)) is not None}
    return {key: Timed(arm, bases[_rounds_key(arm)]) for key, arm in arms.items() if _rounds_key(arm) in bases}


def _arm(row: Row) -> Arm:
    return Arm(
        row=row,
        kind=row["kind"],
        operation=operation_words(row),
        format=row["format"],
        is_aa=row["arm"] == AA,
        host=row["host"],
        records=row["records"],
        ns_per_record=np.asarray(row["cpu_ns"], np.float64) / row["inner_loops"] / row["records"],
        yardstick_ns=row["yardstick_ns"],
    )


def _rounds_key(arm: Arm) -> Key:
    """Return the key that arms of the same rounds share."""
    return tuple(arm.row[name] for name in (ROUNDS_PREFIX if arm.kind == "prefix" else ROUNDS))


def _base_of(together: Sequence[Arm]) -> Arm | None:
    """Return the last arm with the format and operation of the A/A arm, which repeats the base."""
    repeated = next((arm.row for arm in together if arm.is_aa), None)
    if repeated is None:
        return None
    same = [arm for arm in together if not arm.is_aa and _is_same(arm.row, repeated)]
    return same[-1] if same else None


def _is_same(row: Row, other: Row) -> bool:
    return (row["format"], row["operation"]) == (other["format"], other["operation"])


def operation_words(row: Row) -> str:
    """Return an operation with its target and caches: encode; convert to v1; encode, cold."""
    words = row["operation"] + (f" to {row['to_format']}" if row["to_format"] else "")
    return words if row["cache"] in (None, RESIDENT) else f"{words}, {row['cache']}"
