"""CPU time of a class of workloads relative to v2, its interval, and why a class has none.

The ratio of a class is the geometric mean of its workloads' ratios. Each of these is the median over rounds of the
format's time relative to v2's in the same round. The interval of the class joins those of its workloads: on a log
scale, for each side, the half-widths are added in quadrature and divided by their number. Rounds of two workloads are
no pairs and are never averaged. It is no bootstrap: the interval of one workload stays what it is, and workloads may
differ in rounds. It holds for these workloads only, and says nothing of others of the class. Effects that rounds do not
show, such as a place in memory, show in the A/A arm, which is joined the same way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import Arm, paired
from kfbench.report.data.axes import GRID
from kfbench.report.data.named import NONE, Named, as_they_stand
from kfbench.report.data.paths import APPEND, Paths
from kfbench.report.data.results import Results
from kfbench.report.topics.failures import reason
from kfbench.tables import Interval
from kfbench.workloads.catalogue import DEFAULT

TIMED: Final = (*OPERATIONS, APPEND)
NOT_TIMED: Final = "not timed on these workloads"
SEVERAL_HOSTS: Final = "timed on several hosts, whose times share no table"
UNEQUAL: Final = f"not timed in as many rounds as {BASE_FORMAT}"


@dataclass(frozen=True, kw_only=True)
class ClassTime:
    """CPU time relative to v2's. mean: that of the class; least, most: the medians of its workloads."""

    mean: Interval
    least: float
    most: float


def joined(ratios: Sequence[Interval]) -> ClassTime:
    """Join the ratios of one or more workloads."""
    medians, lows, highs = np.log([(ratio.median, ratio.low, ratio.high) for ratio in ratios]).T
    mean = medians.mean()
    below, above = (np.sqrt(np.sum((medians - ends) ** 2)) / len(ratios) for ends in (lows, highs))
    median, low, high = (float(log) for log in np.exp([mean, mean - below, mean + above]))
    plain = [ratio.median for ratio in ratios]
    return ClassTime(mean=Interval(median=median, low=low, high=high), least=min(plain), most=max(plain))


class Times:
    """Encode, decode and append without a codec, of workloads as they stand, in the caches."""

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named, self._paths = results, named, paths

    def of(self, workloads: Sequence[str], formats: Sequence[str]) -> dict[tuple[str, str], ClassTime]:
        """Return (operation, format) -> the class's time, where each of these workloads has one."""
        return {
            (operation, name): joined(ratios)
            for operation in TIMED
            for name in formats
            if (ratios := _all_or_none([self._ratios.get((workload, operation, name)) for workload in workloads]))
        }

    def again(self, workloads: Sequence[str]) -> dict[str, Interval]:
        """Return operation -> v2 relative to itself, where each of these workloads has it."""
        return {
            operation: joined(ratios).mean
            for operation in TIMED
            if (ratios := _all_or_none([self._again.get((workload, operation)) for workload in workloads]))
        }

    def why(self, operation: str, workloads: Sequence[str], name: str) -> str:
        """Say why a format has no time over these workloads."""
        untimed = [workload for workload in workloads if (workload, operation, name) not in self._ratios]
        return " and ".join(dict.fromkeys(self._why(operation, workload, name) for workload in untimed))

    def _why(self, operation: str, workload: str, name: str) -> str:
        rows = self._stored[self._stored["workload"] == workload]
        rows = rows[rows["kind"] == ("broker" if operation == APPEND else "cpu")]
        rows = rows[rows["operation"].isna() | (rows["operation"] == operation)]  # none: a cell that failed as a whole
        for each in (name, BASE_FORMAT):
            own = rows[rows["format"] == each]
            ok = own[own["status"] == "ok"]
            is_printed = operation != APPEND or self._paths.one_host
            if len(ok) and (not ok.index.isin(self._results.all.index).any() or not is_printed):
                return SEVERAL_HOSTS
            if ok.empty:
                return next((reason(row) for row in own.itertuples()), NOT_TIMED)
        return UNEQUAL

    @cached_property
    def _stored(self) -> pd.DataFrame:
        """The stored rows that a time could have come from, failures and other hosts' times among them."""
        rows = self._results.every
        is_plain = as_they_stand(rows) & (rows["codec"] == NONE)
        return rows[rows["kind"].isin(["cpu", "broker"]) & (rows["arm"] != "aa") & is_plain]

    @cached_property
    def _ratios(self) -> Mapping[tuple[str, str, str], Interval]:
        """(workload, operation, format) -> CPU time relative to v2's, round by round."""
        return self._named.cpu | dict(self._appends(self._paths.arms))

    @cached_property
    def _again(self) -> Mapping[tuple[str, str], Interval]:
        """(workload, operation) -> v2 relative to itself."""
        appends = self._appends([arm for arm in self._paths.again if arm.format == BASE_FORMAT])
        return self._named.again | {(workload, operation): ratio for (workload, operation, _), ratio in appends}

    def _appends(self, arms: Sequence[Arm]) -> Iterator[tuple[tuple[str, str, str], Interval]]:
        """Yield (workload, operation, format) and the ratio to v2's own append, of one host and of as many rounds."""
        for arm in arms if self._paths.one_host else ():
            is_plain = arm.workload != GRID and arm.variant == DEFAULT and arm.codec == NONE
            if not (is_plain and arm.is_ok and arm.operation == APPEND):
                continue
            base = self._paths.find(arm.cell_id, NONE, APPEND, BASE_FORMAT)
            if base is not None and base is not arm and len(arm.cpu_ns) == len(base.cpu_ns):
                yield (arm.workload, APPEND, arm.format), paired(arm, base)


def _all_or_none(ratios: Sequence[Interval | None]) -> list[Interval]:
    """Return the ratios; an empty list where one is missing."""
    found = [ratio for ratio in ratios if ratio is not None]
    return found if len(found) == len(ratios) else []
