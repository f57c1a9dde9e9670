"""CPU time of a class of workloads relative to v2, its interval, and the reason for a missing time.

The ratio of a class is the geometric mean of its workloads' ratios. The ratio of a workload is a median over rounds. In
each round, the format's time is divided by v2's time.

The interval of a class joins the intervals of its workloads. On a log scale, the half-widths of each side are added in
quadrature and divided by their number. A bootstrap is not possible: rounds of two workloads are no pairs, and workloads
may differ in the number of rounds. The interval holds for these workloads only, not for other workloads of the class.
Some effects, such as a place in memory, do not vary from round to round. They show in the A/A arm (v2 timed a second
time), which is joined in the same way.
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
    """The CPU time of a class of workloads relative to v2.

    mean: the geometric mean over the workloads, with its interval. ends: the least and the greatest ratio of a
    workload.
    """

    mean: Interval
    ends: Band


def joined(ratios: Sequence[Interval]) -> ClassTime:
    """Join the ratios of one or more workloads to the ratio of their class."""
    medians, lows, highs = np.log([(ratio.median, ratio.low, ratio.high) for ratio in ratios]).T
    mean = medians.mean()
    below, above = (np.sqrt(np.sum((medians - ends) ** 2)) / len(ratios) for ends in (lows, highs))
    median, low, high = (float(log) for log in np.exp([mean, mean - below, mean + above]))
    plain = [ratio.median for ratio in ratios]
    return ClassTime(mean=Interval(median=median, low=low, high=high), ends=Band(min(plain), max(plain)))


class Times:
    """The CPU times of encode, decode and append relative to v2, for classes of workloads.

    They are measured without a codec, with data in the caches, on the default variant of each workload.
    """

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named, self._paths = results, named, paths

    def of(self, workloads: Sequence[str], formats: Sequence[str]) -> dict[tuple[str, str], ClassTime]:
        """Return CPU times relative to v2 for a class of workloads. The keys are (operation, format).

        A key is absent if one of these workloads has no time.
        """
        return {
            (operation, name): joined(ratios)
            for operation in TIMED
            for name in formats
            if (ratios := _all_or_none([self._ratios.get((workload, operation, name)) for workload in workloads]))
        }

    def again(self, workloads: Sequence[str]) -> dict[str, Interval]:
        """Return the ratio of v2's second timing (A/A) to its first, for a class of workloads. The keys are operations.

        An operation is absent if one of these workloads has no time.
        """
        return {
            operation: joined(ratios).mean
            for operation in TIMED
            if (ratios := _all_or_none([self._again.get((workload, operation)) for workload in workloads]))
        }

    def why(self, operation: str, workloads: Sequence[str], name: str) -> str:
        """Return the reasons why a format has no time in a class of workloads."""
        untimed = [workload for workload in workloads if (workload, operation, name) not in self._ratios]
        return " and ".join(dict.fromkeys(self._why(operation, workload, name) for workload in untimed))

    def _why(self, operation: str, workload: str, name: str) -> str:
        rows = self._stored[self._stored["workload"] == workload]
        rows = rows[rows["kind"] == ("broker" if operation == APPEND else "cpu")]
        rows = rows[rows["operation"].isna() | (rows["operation"] == operation)]  # null: the whole cell failed
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
        """The stored rows of the timed workloads, including failures and the times of other hosts."""
        rows = self._results.every
        is_plain = is_default_in_caches(rows) & (rows["codec"] == NONE)
        return rows[rows["kind"].isin(["cpu", "broker"]) & (rows["arm"] != "aa") & is_plain]

    @cached_property
    def _ratios(self) -> Mapping[tuple[str, str, str], Interval]:
        """CPU time relative to v2, with its interval. The keys are (workload, operation, format)."""
        return self._named.cpu | dict(self._appends(self._paths.arms))

    @cached_property
    def _again(self) -> Mapping[tuple[str, str], Interval]:
        """The ratio of v2's second timing (A/A) to its first. The keys are (workload, operation)."""
        appends = self._appends([arm for arm in self._paths.again if arm.format == BASE_FORMAT])
        return self._named.again | {(workload, operation): ratio for (workload, operation, _), ratio in appends}

    def _appends(self, arms: Sequence[Arm]) -> Iterator[tuple[tuple[str, str, str], Interval]]:
        """Yield (workload, operation, format) and the CPU time of an append relative to v2's append.

        Both must have been timed on the same host and in the same number of rounds.
        """
        for arm in arms if self._paths.one_host else ():
            is_plain = arm.workload != GRID and arm.variant == DEFAULT and arm.codec == NONE
            if not (is_plain and arm.is_ok and arm.operation == APPEND):
                continue
            base = self._paths.find(arm.cell_id, NONE, APPEND, BASE_FORMAT)
            if base is not None and base is not arm and len(arm.cpu_ns) == len(base.cpu_ns):
                yield (arm.workload, APPEND, arm.format), paired(arm, base)


def _all_or_none(ratios: Sequence[Interval | None]) -> list[Interval]:
    """Return all ratios, or an empty list if one is None."""
    found = [ratio for ratio in ratios if ratio is not None]
    return found if len(found) == len(ratios) else []
