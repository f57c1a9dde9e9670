"""The agreement of two runs on CPU time: the ratio of every arm to its base in both, and how far it moved.

Ratios are of the same rounds, so a slower day does not move them. Another host does: formats gain differently from
another core or cache. Arms of two hosts are therefore not compared; the ratios of BESIDE are shown side by side. A base
that got slower makes all other arms look faster, so the base's own time is judged too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import bdtrc

from kfbench.comparison.change import OUTSIDE, Estimate, Verdict, change, together, verdict
from kfbench.comparison.timed_arms import GroupKey, Hosts, Matched, Operation, Pair, Row, arms_of, match
from kfbench.measure.cpu import paired_ratio

LEAST_CELLS: Final = 6  # the median of fewer may lie outside all of them in more than 5 of 100
USUAL: Final = 95  # of 100 A/A arms moved no further; a change within that is noise


class Moved(NamedTuple):
    """An arm of both runs: its ratio to the base of its rounds in each, and after / before. row: of the first run."""

    row: Row
    before: Estimate
    after: Estimate
    change: Estimate
    verdict: Verdict

    @property
    def difference(self) -> float:
        return abs(self.change.median - 1)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The arms of one kind, operation and format, the least change first.

    Args:
        change: of the median cell; None where there are too few cells.
        verdict: slower where the median cell is (among few cells: each of them). Also slower where many more cells are
            slower than faster, of those that moved further than A/A arms do.
    """

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

    @property
    def median_before(self) -> float:
        return float(np.median([each.before.median for each in self.cells]))

    @property
    def median_after(self) -> float:
        return float(np.median([each.after.median for each in self.cells]))


class Unmoved(NamedTuple):
    """Arms that read faster against a base although they took as long as before."""

    format: str
    operation: str


@dataclass(frozen=True, kw_only=True)
class Base:
    """The CPU time of a base itself.

    Args:
        change: ns per record, after / before, the median cell.
        yardstick: the same of the host's yardstick; None unless both runs have it.
        unmoved: arms that show that the base, not the machine, changed.
        verdict: slower where change / yardstick is and there are unmoved arms. Without these it may be the machine's
            day: a busy neighbour slows one format more than another.
    """

    kind: str
    operation: str
    formats: tuple[str, ...]
    change: float
    yardstick: float | None
    unmoved: tuple[Unmoved, ...]
    verdict: Verdict


class Beside(NamedTuple):
    """A format's time over v2's on two hosts, shown and not judged. before, after: the median cell in each run."""

    kind: str
    operation: str
    format: str
    cells: int
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The result.

    Args:
        groups: A/A arms last.
        arms: the number of arms in each run, bases and A/A among them.
        hosts: the number of arms that are not compared, by pair of hosts.
        resized: the number of arms with another number of records, which are not compared.
        beside: ratios of arms of two hosts.
    """

    groups: tuple[Group, ...]
    arms: tuple[int, int]
    hosts: Mapping[Hosts, int]
    resized: int
    bases: tuple[Base, ...]
    beside: tuple[Beside, ...]

    @property
    def judged(self) -> Iterator[Group]:
        return (group for group in self.groups if not group.is_aa)


def agreement(before: pa.Table, after: pa.Table, threshold: float) -> Agreement:
    """Compare the rows of two runs (kfbench.measure.schema.SCHEMA). threshold: of a ratio's change, .03 for 3 %."""
    matched = match(arms_of(before), arms_of(after))
    groups = _groups(matched, threshold)
    return Agreement(
        groups=groups,
        arms=matched.arms,
        hosts=matched.hosts,
        resized=matched.resized,
        bases=_bases(matched, groups, threshold),
        beside=tuple(_beside(*key, pairs) for key, pairs in matched.of_two_hosts.items()),
    )


def _groups(matched: Matched, threshold: float) -> tuple[Group, ...]:
    cells = {
        key: sorted(
            (_moved(pair, matched.judged_arms, threshold) for pair in pairs), key=lambda each: each.change.median
        )
        for key, pairs in matched.pairs.items()
    }
    noise = _noise(matched, cells)
    return tuple(
        Group(
            kind=key.kind,
            operation=key.operation,
            format=key.format,
            is_aa=key.is_aa,
            cells=tuple(moved),
            change=_median_cell(moved) if len(moved) >= LEAST_CELLS else None,
            verdict=_group_verdict(moved, matched.judged_groups, threshold, noise.get(_base_operation(matched, key))),
        )
        for key, moved in cells.items()
    )


def _base_operation(matched: Matched, key: GroupKey) -> Operation:
    return matched.pairs[key][0].before.base.key


def _moved(pair: Pair, arms: int, threshold: float) -> Moved:
    """Judge one of so many arms."""
    before, after = pair.before.ratio, pair.after.ratio
    found = change(before, after)
    return Moved(pair.before.arm.row, before, after, found, verdict(together(found, arms), threshold))


def _median_cell(cells: Sequence[Moved]) -> Estimate:
    """Return the change of the median cell."""
    return Estimate(*paired_ratio([each.after.median for each in cells], [each.before.median for each in cells]))


def _noise(matched: Matched, cells: Mapping[GroupKey, Sequence[Moved]]) -> dict[Operation, float]:
    """Return by operation of the base how far all but a few of its A/A arms moved at most, as a logarithm."""
    distances: dict[Operation, list[float]] = defaultdict(list)
    for key, moved in cells.items():
        if key.is_aa:
            distances[_base_operation(matched, key)] += [_distance(each) for each in moved]
    return {operation: float(np.percentile(found, USUAL, method="higher")) for operation, found in distances.items()}


def _distance(each: Moved) -> float:
    return abs(log(each.change.median))


def _group_verdict(cells: Sequence[Moved], groups: int, threshold: float, noise: float | None) -> Verdict:
    """Judge one of so many groups.

    A single cell decides only where there are few: between two runs of the same code some cells move far, in both
    directions. noise: see `_noise`; None: there is no A/A arm to count cells by.
    """
    verdicts = Counter(each.verdict for each in cells)
    if len(cells) < LEAST_CELLS:
        return cells[0].verdict if len(verdicts) == 1 else "unclear"
    found = verdict(together(_median_cell(cells), groups), threshold)
    if found in ("within", "unclear") and noise is not None:
        far = Counter(each.verdict for each in cells if _distance(each) > noise)
        directions: tuple[tuple[Verdict, Verdict], ...] = (("slower", "faster"), ("faster", "slower"))
        for one, other in directions:
            # If both were as likely, chance would give so many of one and so few of the other once in so many groups.
            if bdtrc(far[one] - 1, far[one] + far[other], 0.5) < OUTSIDE / 2 / groups:
                return one
    return found


def _beside(kind: str, operation: str, name: str, pairs: Sequence[Pair]) -> Beside:
    before = float(np.median([pair.before.median_ratio for pair in pairs]))
    after = float(np.median([pair.after.median_ratio for pair in pairs]))
    return Beside(kind, operation, name, len(pairs), before, after)


def _bases(matched: Matched, groups: Sequence[Group], threshold: float) -> tuple[Base, ...]:
    faster: dict[Operation, dict[Unmoved, Sequence[Pair]]] = defaultdict(dict)
    for group in groups:
        if group.verdict == "faster" and not group.is_aa:  # an A/A arm cannot tell the base from the machine's day
            key = GroupKey(group.is_aa, group.kind, group.operation, group.format)
            faster[_base_operation(matched, key)][Unmoved(group.format, group.operation)] = matched.pairs[key]
    return tuple(
        _base(operation, pairs, faster[operation], matched.judged_groups, threshold)
        for operation, pairs in matched.bases.items()
    )


def _base(
    operation: Operation,
    pairs: Sequence[Pair],
    faster: Mapping[Unmoved, Sequence[Pair]],
    groups: int,
    threshold: float,
) -> Base:
    """Judge a base by its own time. faster: the arms that read faster against it."""
    yardstick = _yardstick_change(pairs)
    # An arm whose interval is too wide does not count: on a noisy day it slowed down as well, if by less.
    unmoved = [name for name, arms in faster.items() if _own_verdict(arms, yardstick, groups, threshold) == "within"]
    found = _own_verdict(pairs, yardstick, groups, threshold)
    return Base(
        kind=operation.kind,
        operation=operation.operation,
        formats=tuple(sorted({pair.before.arm.format for pair in pairs})),
        change=float(np.median([pair.after.arm.median_ns / pair.before.arm.median_ns for pair in pairs])),
        yardstick=yardstick,
        unmoved=tuple(unmoved),
        verdict="unclear" if found == "slower" and not unmoved else found,
    )


def _yardstick_change(pairs: Sequence[Pair]) -> float | None:
    """Return the host's yardstick before the cells, after / before; None unless both runs have it."""
    before = [ns for pair in pairs if (ns := pair.before.arm.yardstick_ns) is not None]
    after = [ns for pair in pairs if (ns := pair.after.arm.yardstick_ns) is not None]
    return float(np.median(after) / np.median(before)) if before and after else None


def _own_verdict(pairs: Sequence[Pair], yardstick: float | None, groups: int, threshold: float) -> Verdict:
    """Judge the arms' own times, corrected by the yardstick's change."""
    before = [pair.before.arm.median_ns * (yardstick or 1.0) for pair in pairs]
    after = [pair.after.arm.median_ns for pair in pairs]
    if len(pairs) < LEAST_CELLS:
        ratios = [new / old for old, new in zip(before, after, strict=True)]
        verdicts = {verdict(Estimate(ratio, ratio, ratio), threshold) for ratio in ratios}
        return verdicts.pop() if len(verdicts) == 1 else "unclear"
    return verdict(together(Estimate(*paired_ratio(after, before)), groups), threshold)
