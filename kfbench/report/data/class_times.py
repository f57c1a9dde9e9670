"""CPU time of a class of workloads relative to v2, its interval, and the reason for a missing time.

The ratio of a class is the geometric mean of its workloads' ratios. The ratio of a workload is the median over rounds
of
the format's time relative to v2's time in the same round.

The interval of a class joins the intervals of its workloads. On a log scale, the half-widths of each side are added in
quadrature and divided by their number. This is no bootstrap: rounds of two workloads are no pairs, and workloads may
differ in the number of rounds. The interval holds for these workloads only, not for other workloads of the class. Some
effects, such as a place in memory, do not vary from round to round. They show in the A/A arm, which is joined in the
same
way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import Arm, Band, paired
from kfbench.report.data.axes import GRID
from kfbench.report.data.named import NONE, Named, is_default_in_caches
from kfbench.report.data.paths import APPEND, Paths
from kfbench.report.data.results import Results, reasons
from kfbench.tables import Interval
from kfbench.workloads.catalogue import DEFAULT

TIMED: Final = (*OPERATIONS, APPEND)
NOT_TIMED: Final = "not timed on these workloads"
SEVERAL_HOSTS: Final = "timed on several hosts, whose times share no table"
UNEQUAL: Final = f"not timed in as many rounds as {BASE_FORMAT}"


@dataclass(frozen=True, kw_only=True)
class ClassTime:
    """CPU time relative to v2's. mean: geometric mean of the class; ends: range of its workloads' medians."""

    mean: Interval
    ends: Band


def joined(ratios: Sequence[Interval]) -> ClassTime:
    """Join the ratios of one or more workloads."""
    medians, lows, highs = np.log([(ratio.median, ratio.low, ratio.high) for ratio in ratios]).T
    mean = medians.mean()
    below, above = (np.sqrt(np.sum((medians - ends) ** 2)) / len(ratios) for ends in (lows, highs))
    median, low, high = (float(log) for log in np.exp([mean, mean - below, mean + above]))
    plain = [ratio.median for ratio in ratios]
    return ClassTime(mean=Interval(median=median, low=low, high=high), ends=Band(min(plain), max(plain)))


class Times:
    """Encode, decode and append without a codec, of the workloads' default variants, in the caches."""

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named, self._paths = results, named, paths

    def of(self, workloads: Sequence[str], formats: Sequence[str]) -> dict[tuple[str, str], ClassTime]:
        """Return (operation, format) -> time of the class, if each of these workloads has a time."""
        return {
            (operation, name): joined(ratios)
            for operation in TIMED
            for name in formats
            if (ratios := _all_or_none([self._ratios.get((workload, operation, name)) for workload in workloads]))
        }

    def again(self, workloads: Sequence[str]) -> dict[str, Interval]:
        """Return operation -> v2 relative to itself, if each of these workloads has a time."""
        return {
            operation: joined(ratios).mean
            for operation in TIMED
            if (ratios := _all_or_none([self._again.get((workload, operation)) for workload in workloads]))
        }

    def why(self, operation: str, workloads: Sequence[str], name: str) -> str:
        """Return the reason why a format has no time over these workloads."""
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
                return next(iter(reasons(own)), NOT_TIMED)
        return UNEQUAL

    @cached_property
    def _stored(self) -> pd.DataFrame:
        """The stored rows that could hold a time, including failures and other hosts' times."""
        rows = self._results.every
        is_plain = is_default_in_caches(rows) & (rows["codec"] == NONE)
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
        """Yield (workload, operation, format) and the ratio to v2's append on the same host in as many rounds."""
        for arm in arms if self._paths.one_host else ():
            is_plain = arm.workload != GRID and arm.variant == DEFAULT and arm.codec == NONE
            if not (is_plain and arm.is_ok and arm.operation == APPEND):
                continue
            base = self._paths.find(arm.cell_id, NONE, APPEND, BASE_FORMAT)
            if base is not None and base is not arm and len(arm.cpu_ns) == len(base.cpu_ns):
                yield (arm.workload, APPEND, arm.format), paired(arm, base)


def _all_or_none(ratios: Sequence[Interval | None]) -> list[Interval]:
    """Return all ratios, or an empty list if one is missing."""
    found = [ratio for ratio in ratios if ratio is not None]
    return found if len(found) == len(ratios) else []
