"""Compare the CPU times of two runs: the ratio of every arm to its base in both runs, and the change of this ratio.

- An arm is one timed call, such as encode in one format. The base is the arm that others are divided by. An A/A arm is
  the base timed a second time.
- A cell is one workload with its settings and codec. A group is all cells of one kind, operation and format.
- A ratio and its base come from the same rounds, so a slower day does not change the ratio.
- Another host does change it: formats gain differently from another core or cache. So arms of two hosts are not
  compared. For the formats in SIDE_BY_SIDE both ratios are shown without a verdict.
- If the base gets slower, all other arms look faster. So the base is judged by its own time, too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, hypot, log
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.comparison.timed_arms import ArmPair, GroupKey, MatchedArms, TimedOperation, arms_of, match
from kfbench.measure.columns import StoredRow
from kfbench.measure.cpu import CONFIDENCE, Interval, binomial_cdf, paired_ratio

Verdict = Literal["slower", "faster", "within", "unclear"]
OUTSIDE: Final = 1 - CONFIDENCE  # the probability that the true value lies outside an interval
LEAST_CELLS: Final = 6  # with fewer cells, the true value is outside the median's interval in more than 5 of 100 cases
USUAL: Final = 95  # percentile of the changes of A/A arms: a smaller change is noise


def change(before: Interval, after: Interval) -> Interval:
    """Return after / before, with its interval. The errors are independent, so it follows from both intervals.

    The logarithm of after / before is a difference. Its distance to its lower limit is the square root of a² + b²: a is
    the distance of `after` to its lower limit, b of `before` to its upper limit. The upper limit follows in the same
    way from the other two limits. Source: Zou and Donner, Construction of confidence limits about effect measures: a
    general approach, Statistics in Medicine 27 (2008) 1693.
    """
    moved = log(after.median / before.median)
    down = hypot(log(after.median / after.low), log(before.high / before.median))
    up = hypot(log(after.high / after.median), log(before.median / before.low))
    return Interval(exp(moved), exp(moved - down), exp(moved + up))


def together(found: Interval, number: int) -> Interval:
    """Widen an interval so that `number` intervals hold together with the probability CONFIDENCE.

    The method is Bonferroni's, with normal tails.
    """
    factor = _quantile(number) / _quantile(1)
    low, high = (found.median * (end / found.median) ** factor for end in (found.low, found.high))
    return Interval(found.median, low, high)


@lru_cache(maxsize=64)
def _quantile(number: int) -> float:
    return NormalDist().inv_cdf(1 - OUTSIDE / 2 / number)


def verdict(found: Interval, threshold: float) -> Verdict:
    """Give a verdict on an interval. threshold: 0.03 for 3 %.

    "slower" or "faster": the whole interval is beyond the threshold. "within": the whole interval is inside. "unclear":
    neither.
    """
    least, most = 1 / (1 + threshold), 1 + threshold
    if found.low > most:
        return "slower"
    if found.high < least:
        return "faster"
    return "within" if found.low >= least and found.high <= most else "unclear"


class ArmChange(NamedTuple):
    """An arm that both runs have, and the change of its CPU time.

    Args:
        row: the arm's row in the first run.
        base: the operation of the base arm.
        before, after: its CPU time divided by that of the base arm, in the first and in the second run.
        change: after / before.
    """

    row: StoredRow
    base: TimedOperation
    before: Interval
    after: Interval
    change: Interval
    verdict: Verdict

    @property
    def difference(self) -> float:
        return abs(self.change.median - 1)


@dataclass(frozen=True, kw_only=True)
class ArmGroup:
    """All timed calls (arms) of one kind, operation and format.

    Args:
        is_aa: these are A/A arms: they time the base a second time, so their ratio must be 1.
        cells: the arms, one per workload and codec (a cell), sorted by their change, the smallest first.
        change: the change of the median cell; None for fewer than LEAST_CELLS cells.
        verdict: "slower" if the median cell is slower. With fewer than LEAST_CELLS cells, each must be slower. Also
            "slower" if far more cells are slower than faster. For this count a cell must have moved further than A/A
            arms do.
    """

    kind: str
    operation: str
    format: str
    is_aa: bool
    cells: tuple[ArmChange, ...]
    change: Interval | None
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


class UnchangedArm(NamedTuple):
    """A format and operation whose own time did not change, although the ratio to the base got smaller."""

    format: str
    operation: str


@dataclass(frozen=True, kw_only=True)
class BaseChange:
    """The comparison of the CPU time of a base, the timed call (arm) by which the times of the others are divided.

    Args:
        formats: the formats of the base.
        change: ns per record, after / before, in the median cell.
        yardstick: the time of a fixed piece of work on the host, after / before; None unless both runs have it.
        unmoved: arms whose own time did not change. They show that the base changed, not the machine.
        verdict: "slower" if change / yardstick is slower and there are unmoved arms. Without unmoved arms another
            process may be the cause: it slows one format more than another.
    """

    kind: str
    operation: str
    formats: tuple[str, ...]
    change: float
    yardstick: float | None
    unmoved: tuple[UnchangedArm, ...]
    verdict: Verdict


class HostRatio(NamedTuple):
    """The CPU time of a format divided by v2's, on two hosts. It is shown without a verdict.

    Args:
        cells: number of cells.
        before, after: the ratio of the median cell in the first and in the second run.
    """

    kind: str
    operation: str
    format: str
    cells: int
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The result of the function `agreement`. An arm is one timed call.

    Args:
        groups: groups with a verdict. Groups of A/A arms, which time the base a second time, come last.
        matched: the arms of both runs, and the number of those that are not compared.
        bases: the comparison of each base's own time.
        host_ratios: ratios of arms that were measured on two hosts.
    """

    groups: tuple[ArmGroup, ...]
    matched: MatchedArms
    bases: tuple[BaseChange, ...]
    host_ratios: tuple[HostRatio, ...]

    @property
    def judged(self) -> Iterator[ArmGroup]:
        return (group for group in self.groups if not group.is_aa)


def agreement(before: pa.Table, after: pa.Table, threshold: float) -> Agreement:
    """Compare the CPU times of two runs (rows of kfbench.measure.schema.SCHEMA).

    threshold: the smallest change that counts, 0.03 for 3 %.
    """
    matched = match(arms_of(before), arms_of(after))
    groups = _groups(matched, threshold)
    return Agreement(
        groups=groups,
        matched=matched,
        bases=tuple(_bases(matched, groups, threshold)),
        host_ratios=tuple(_host_ratio(key, pairs) for key, pairs in matched.of_two_hosts.items()),
    )


def _groups(matched: MatchedArms, threshold: float) -> tuple[ArmGroup, ...]:
    cells = {
        key: sorted(
            (_arm_change(pair, matched.judged_arms, threshold) for pair in pairs), key=lambda each: each.change.median
        )
        for key, pairs in matched.pairs.items()
    }
    noise = _noise(cells)
    return tuple(
        ArmGroup(
            kind=key.kind,
            operation=key.operation,
            format=key.format,
            is_aa=key.is_aa,
            cells=tuple(moved),
            change=_median_cell(moved) if len(moved) >= LEAST_CELLS else None,
            verdict=_group_verdict(moved, matched.judged_groups, threshold, noise.get(moved[0].base)),
        )
        for key, moved in cells.items()
    )


def _arm_change(pair: ArmPair, arms: int, threshold: float) -> ArmChange:
    """Compare one timed call (arm) of two runs.

    arms: the number of all arms that get a verdict. More arms widen the interval.
    """
    before, after = pair.before.ratio, pair.after.ratio
    found = change(before, after)
    judged = verdict(together(found, arms), threshold)
    return ArmChange(pair.before.row, pair.before.base_operation, before, after, found, judged)


def _median_cell(cells: Sequence[ArmChange]) -> Interval:
    return paired_ratio([each.after.median for each in cells], [each.before.median for each in cells])


def _noise(cells: Mapping[GroupKey, Sequence[ArmChange]]) -> dict[TimedOperation, float]:
    """Return how far the ratios of A/A arms differ between the runs, although they should all be 1.

    An A/A arm times the base a second time. The result is the USUAL percentile of abs(log(change)), by operation of the
    base.
    """
    distances: dict[TimedOperation, list[float]] = defaultdict(list)
    for key, moved in cells.items():
        if key.is_aa:
            distances[moved[0].base] += [_distance(each) for each in moved]
    return {operation: float(np.percentile(found, USUAL, method="higher")) for operation, found in distances.items()}


def _distance(each: ArmChange) -> float:
    return abs(log(each.change.median))


def _group_verdict(cells: Sequence[ArmChange], groups: int, threshold: float, noise: float | None) -> Verdict:
    """Give a verdict on one group.

    A cell is one workload and codec. Between two runs of the same code some cells move far, in both directions. So
    single cells decide only if there are fewer than LEAST_CELLS.

    Args:
        groups: the number of all groups that get a verdict.
        noise: see `_noise`; None: the base was not timed twice, so slower and faster cells are not counted.
    """
    verdicts = Counter(each.verdict for each in cells)
    if len(cells) < LEAST_CELLS:
        return cells[0].verdict if len(verdicts) == 1 else "unclear"
    found = verdict(together(_median_cell(cells), groups), threshold)
    if found in ("within", "unclear") and noise is not None:
        far = Counter(each.verdict for each in cells if _distance(each) > noise)
        directions: tuple[tuple[Verdict, Verdict], ...] = (("slower", "faster"), ("faster", "slower"))
        for one, other in directions:
            # Sign test: if both directions were equally likely, such unequal counts would be rare enough.
            if binomial_cdf(far[one] + far[other], 0.5)[far[other]] < OUTSIDE / 2 / groups:
                return one
    return found


def _host_ratio(key: GroupKey, pairs: Sequence[ArmPair]) -> HostRatio:
    before, after = (float(np.median([arm.ratio.median for arm in arms])) for arms in zip(*pairs, strict=True))
    return HostRatio(key.kind, key.operation, key.format, len(pairs), before, after)


def _bases(matched: MatchedArms, groups: Sequence[ArmGroup], threshold: float) -> Iterator[BaseChange]:
    """Give a verdict on each base by its own time. groups: those of `matched.pairs`, in the same order."""
    for operation, pairs in matched.bases.items():
        yardstick = _yardstick_change(pairs)
        # An arm with a wide interval does not count: on a noisy day it may have slowed down too.
        unmoved = tuple(
            UnchangedArm(group.format, group.operation)
            for group, arms in zip(groups, matched.pairs.values(), strict=True)
            if group.verdict == "faster"
            and not group.is_aa  # an A/A arm repeats the base, so it shows no other change
            and arms[0].before.base_operation == operation
            and _own_verdict(arms, yardstick, matched.judged_groups, threshold) == "within"
        )
        found = _own_verdict(pairs, yardstick, matched.judged_groups, threshold)
        yield BaseChange(
            kind=operation.kind,
            operation=operation.operation,
            formats=tuple(sorted({pair.before.row.format for pair in pairs})),
            change=float(np.median([pair.after.median_ns / pair.before.median_ns for pair in pairs])),
            yardstick=yardstick,
            unmoved=unmoved,
            verdict="unclear" if found == "slower" and not unmoved else found,
        )


def _yardstick_change(pairs: Sequence[ArmPair]) -> float | None:
    """Return the median time of the hosts' yardstick (a fixed piece of work), after / before.

    None unless both runs have it.
    """
    before = [ns for pair in pairs if (ns := pair.before.row.yardstick_ns) is not None]
    after = [ns for pair in pairs if (ns := pair.after.row.yardstick_ns) is not None]
    return float(np.median(after) / np.median(before)) if before and after else None


def _own_verdict(pairs: Sequence[ArmPair], yardstick: float | None, groups: int, threshold: float) -> Verdict:
    """Give a verdict on CPU times that are not divided by a base's.

    The times of the first run are corrected by the change of the yardstick (the time of a fixed piece of work).
    """
    before = [pair.before.median_ns * (yardstick or 1.0) for pair in pairs]
    after = [pair.after.median_ns for pair in pairs]
    if len(pairs) < LEAST_CELLS:
        ratios = [new / old for old, new in zip(before, after, strict=True)]
        verdicts = {verdict(Interval(ratio, ratio, ratio), threshold) for ratio in ratios}
        return verdicts.pop() if len(verdicts) == 1 else "unclear"
    return verdict(together(paired_ratio(after, before), groups), threshold)
