"""CPU time of a class of workloads against v2's, how sure it is, and why a class has none.

The ratio of a class is the geometric mean of its workloads' ratios, each the median over rounds of the format's time
against v2's in the same round. The class's interval joins theirs: on a log scale, each side apart, the half-widths are
added in quadrature and divided by their number. Rounds of two workloads are no pairs, and are never averaged. It is no
bootstrap, for it needs no draws: of one workload it is that workload's own interval, and workloads may differ in
rounds. It holds for these workloads, as they are: what others of the class would take it does not say. What rounds do
not show, such as a place in memory that stays, shows in the A/A arm, which is joined the same way.
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
from kfbench.report.render.tables import Interval
from kfbench.report.topics.failures import reason
from kfbench.workloads.catalogue import DEFAULT

TIMED: Final = (*OPERATIONS, APPEND)
NOT_TIMED: Final = "not timed on these workloads"
SEVERAL_HOSTS: Final = "timed on several hosts, whose times share no table"
UNEQUAL: Final = f"not timed in as many rounds as {BASE_FORMAT}"


@dataclass(frozen=True, kw_only=True)
class ClassTime:
    """CPU time against v2's. mean: of the class; least, most: the medians of its workloads."""

    mean: Interval
    least: float
    most: float


def joined(ratios: Sequence[Interval]) -> ClassTime:
    """Of several workloads' ratios the class's. Errors: none but for no ratio at all."""
    medians, lows, highs = np.log([(each.median, each.low, each.high) for each in ratios]).T
    mean = medians.mean()
    below, above = (np.sqrt(np.sum((medians - ends) ** 2)) / len(ratios) for ends in (lows, highs))
    median, low, high = (float(each) for each in np.exp([mean, mean - below, mean + above]))
    plain = [each.median for each in ratios]
    return ClassTime(mean=Interval(median=median, low=low, high=high), least=min(plain), most=max(plain))


class Times:
    """Encode, decode and append without a codec, of workloads as they stand, in the caches."""

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named, self._paths = results, named, paths

    def of(self, workloads: Sequence[str], formats: Sequence[str]) -> dict[tuple[str, str], ClassTime]:
        """(operation, format) -> the class's time, where each of these workloads has one."""
        return {
            (operation, name): joined(there)
            for operation in TIMED
            for name in formats
            if (there := _every([self._ratios.get((workload, operation, name)) for workload in workloads]))
        }

    def again(self, workloads: Sequence[str]) -> dict[str, Interval]:
        """operation -> v2 against itself, where each of these workloads has it."""
        return {
            operation: joined(there).mean
            for operation in TIMED
            if (there := _every([self._again.get((workload, operation)) for workload in workloads]))
        }

    def why(self, operation: str, workloads: Sequence[str], name: str) -> str:
        """Why a format has no time over these workloads."""
        lacking = [each for each in workloads if (each, operation, name) not in self._ratios]
        return " and ".join(dict.fromkeys(self._why(operation, each, name) for each in lacking))

    def _why(self, operation: str, workload: str, name: str) -> str:
        rows = self._stored[self._stored["workload"] == workload]
        rows = rows[rows["kind"] == ("broker" if operation == APPEND else "cpu")]
        rows = rows[rows["operation"].isna() | (rows["operation"] == operation)]  # none: a cell that failed as a whole
        for each in (name, BASE_FORMAT):
            own = rows[rows["format"] == each]
            ok = own[own["status"] == "ok"]
            if len(ok) and (not ok.index.isin(self._results.all.index).any() or not self._is_told(operation)):
                return SEVERAL_HOSTS
            if ok.empty:
                return next((reason(row) for row in own.itertuples()), NOT_TIMED)
        return UNEQUAL

    def _is_told(self, operation: str) -> bool:
        return operation != APPEND or self._paths.one_host

    @cached_property
    def _stored(self) -> pd.DataFrame:
        """What a time could have come from, as stored: failures and other hosts' times among them."""
        rows = self._results.every
        return rows[rows["kind"].isin(["cpu", "broker"]) & (rows["arm"] != "aa") & _is_plain(rows)]

    @cached_property
    def _ratios(self) -> Mapping[tuple[str, str, str], Interval]:
        """(workload, operation, format) -> CPU time against v2's, round by round."""
        return self._named.cpu | dict(self._appends(self._paths.arms))

    @cached_property
    def _again(self) -> Mapping[tuple[str, str], Interval]:
        """(workload, operation) -> v2 against itself."""
        appends = dict(self._appends([arm for arm in self._paths.again if arm.format == BASE_FORMAT]))
        return self._named.again | {(workload, operation): ratio for (workload, operation, _), ratio in appends.items()}

    def _appends(self, arms: Sequence[Arm]) -> Iterator[tuple[tuple[str, str, str], Interval]]:
        """Yield (workload, operation, format) and the ratio to v2's own append, of one host and of as many rounds."""
        for arm in arms if self._paths.one_host else ():
            is_plain = arm.workload != GRID and arm.variant == DEFAULT and arm.codec == NONE
            if not (is_plain and arm.is_ok and arm.operation == APPEND):
                continue
            base = self._paths.find(arm.cell_id, NONE, APPEND, BASE_FORMAT)
            if base is not None and base is not arm and len(arm.cpu_ns) == len(base.cpu_ns):
                yield (arm.workload, APPEND, arm.format), paired(arm, base)


def _every(ratios: Sequence[Interval | None]) -> list[Interval]:
    """All of them, or none."""
    there = [each for each in ratios if each is not None]
    return there if len(there) == len(ratios) else []


def _is_plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Workloads as they stand, without a codec, in the caches."""
    return as_they_stand(rows) & (rows["codec"] == NONE)
