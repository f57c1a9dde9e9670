"""Noise: check the disturbances of a run's CPU times against limits.

`checks` compares what `kfbench.measure.host_counters` counted, and the samples, with limits. A run that misses a limit
is noisy. Terms: docs/terms.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, log, sqrt
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.measure.columns import StoredRow
from kfbench.measure.cpu import CONFIDENCE, Interval, binomial_cdf, paired_ratio
from kfbench.measure.schema import SELF, stored_rows
from kfbench.text import percent

_BASE_ARMS: Final = ("measure", "each")  # the arms that an A/A arm is a second timing of
LEAST_INTERVALS: Final = 20  # with fewer intervals, the share that contains 1.0 says nothing
GOAL: Final = 0.94  # least share of intervals that should contain 1.0
LEAST_ROUNDS: Final = 9  # with fewer rounds, the method's own intervals hold less than 95 %
ROUNDING: Final = 1e-12  # the spread makes some interval end at 1.0, up to the rounding of its floats
CHANCE: Final = 0.05
WAITED: Final = 1.1  # a sample with this ratio of wall time to CPU time has waited for something
_WATCHED: Final = ("watched_ns", "others_cpu_ns", "stolen_ns", "yardstick_ns")


@dataclass(frozen=True, kw_only=True)
class NoiseCheck:
    """A comparison of one measured value of a run with its limit.

    Args:
        name: the name of the check.
        seen: the measured value.
        limit: the largest value that passes; with `at_least`, the smallest value that passes.
        words: the measured value as a sentence.
        at_least: the value must not be below the limit.
        goal: a stricter value to reach, if the limit leaves room for chance. Missing only the goal does not make a run
            noisy.
    """

    name: str
    seen: float
    limit: float
    words: str
    at_least: bool = False
    goal: float | None = None

    @property
    def passed(self) -> bool:
        return self._is_within(self.limit)

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self._is_within(self.goal)

    def _is_within(self, limit: float) -> bool:
        return self.seen >= limit if self.at_least else self.seen <= limit


def noise_facts(rows: pa.Table) -> dict[str, Any]:
    """Return the section `noise` of a run's manifest.

    It has three keys. noisy: True if a check failed. seen: the failed checks as sentences. hosts: all checks per host.
    """
    names = sorted(rows["host"].drop_null().unique().to_pylist())
    by_host = {host: made for host in names if (made := checks(rows.filter(pc.equal(rows["host"], host))))}
    seen = [
        check.words if len(by_host) == 1 else f"{host}: {check.words}"
        for host, made in by_host.items()
        for check in made
        if not check.passed
    ]
    hosts = {
        host: [asdict(check) | {"passed": check.passed, "met": check.met} for check in made]
        for host, made in by_host.items()
    }
    return {"noisy": bool(seen), "seen": seen, "hosts": hosts}


def checks(rows: pa.Table) -> list[NoiseCheck]:
    """Return the noise checks of one host. Only rows that were timed without an error count.

    The list is empty if there are no timed rows.
    """
    timed = rows.filter(is_timed(rows))
    if not len(timed):
        return []
    return [*_checks_of_base(timed), *_checks_of_host(timed), *_checks_of_samples(timed)]


def is_timed(rows: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the timed arms, whatever their kind. The size model has CPU time without an arm."""
    has_times = pc.and_(pc.is_valid(rows["arm"]), pc.is_valid(rows["cpu_ns"]))
    return pc.and_(pc.equal(rows["status"], "ok"), has_times)


def _checks_of_base(timed: pa.Table) -> list[NoiseCheck]:
    """Check the ratios of each base to its second timing (A/A). They should be 1.

    The list is empty if fewer than LEAST_INTERVALS bases were timed twice. Whether intervals contain 1.0 is checked for
    bases with LEAST_ROUNDS rounds or more.
    """
    every = base_pairs(timed)
    pairs = _with_rounds(every)
    if len(every) < LEAST_INTERVALS:
        return []
    of_kind = _spreads(pairs)
    ratios = [pair.ratio.widened(of_kind.get(pair.kind, 0.0)) for pair in every]
    half_width = float(np.median([ratio.high - ratio.low for ratio in ratios])) / 2
    width = NoiseCheck(
        name="A/A half-width",
        seen=half_width,
        limit=0.02,
        words=f"the median interval of a base against itself is 1 ± {percent(half_width, 2)}",
    )
    if len(pairs) < LEAST_INTERVALS:
        return [width]
    held = sum(held_out(pairs)) / len(pairs)
    widest = max(of_kind, key=lambda kind: of_kind[kind])
    return [
        NoiseCheck(
            name="A/A intervals that hold 1.0",
            seen=held,
            limit=least_that_hold(len(pairs)) / len(pairs),
            at_least=True,
            goal=GOAL,
            words=f"{percent(held)} of {len(pairs):,} 95 % intervals of a base against itself hold 1.0, "
            "each half of the cells widened by the spread of the other",
        ),
        width,
        NoiseCheck(
            name="A/A spread between arms",
            seen=of_kind[widest],
            limit=0.03,
            words=f"two arms of the same call differ by up to {percent(of_kind[widest], 2)} ({widest}), "
            "beyond what rounds show",
        ),
    ]


def least_that_hold(intervals: int) -> int:
    """Return how many of these confidence intervals must contain 1.0, at least.

    They are intervals of the ratio of a base to its second timing (A/A). Suppose that each contains 1.0 with
    probability CONFIDENCE. Then the probability that fewer intervals than the result contain 1.0 is below CHANCE
    (one-sided binomial test).
    """
    return int(np.searchsorted(binomial_cdf(intervals, CONFIDENCE), CHANCE))


@dataclass(frozen=True, eq=False)
class BasePair:
    """The CPU times of a base (such as v2), which was timed twice in each round.

    first_ns: int64[rounds], the first timing. second_ns: int64[rounds], the second timing (the A/A arm). row: the row
    of the second timing, without times.
    """

    second_ns: NDArray[np.int64]
    first_ns: NDArray[np.int64]
    row: StoredRow

    @cached_property
    def ratio(self) -> Interval:
        """The second timing divided by the first."""
        return paired_ratio(self.second_ns, self.first_ns)

    @property
    def kind(self) -> str:
        return timed_kind(self.row.kind, self.row.cache)


def base_pairs(timed: pa.Table) -> list[BasePair]:
    """Return the times of each base and of its second timing (the A/A arm).

    A measurement that several blocks of the sweep contain counts once.
    """
    arms: dict[str, dict[tuple[object, ...], StoredRow]] = {"aa": {}, "measure": {}}
    for row in stored_rows(timed.select([*SELF, "arm", "cpu_ns"])):
        of_arm = arms["measure" if row.arm in _BASE_ARMS else "aa"] if row.arm in (*_BASE_ARMS, "aa") else None
        if of_arm is not None:
            of_arm.setdefault(tuple(row[name] for name in SELF), row)
    return [
        BasePair(np.array(again.cpu_ns, np.int64), np.array(arms["measure"][key].cpu_ns, np.int64), again)
        for key, again in arms["aa"].items()
        if key in arms["measure"]
    ]


def timed_pairs(rows: pa.Table) -> list[BasePair]:
    """Return the pairs of rows that were timed without an error, in LEAST_ROUNDS rounds or more."""
    return _with_rounds(base_pairs(rows.filter(is_timed(rows))))


def _with_rounds(pairs: Iterable[BasePair]) -> list[BasePair]:
    """Return the pairs with LEAST_ROUNDS rounds or more. A time of 0 counts for none: the clock was too coarse."""
    return [pair for pair in pairs if len(pair.first_ns) >= LEAST_ROUNDS and min(*pair.first_ns, *pair.second_ns) > 0]


def timed_kind(kind: str, cache: str | None) -> str:
    """Return the kind of a timed row as spreads have it: "cpu, cold" is a kind of its own."""
    return f"{kind}, {cache}" if cache == "cold" else kind


def spreads(rows: pa.Table) -> dict[str, float]:
    """Return the spread between arms of each timed kind, from the A/A arms of these rows.

    Two arms of the same call may differ by more than their rounds show: each round has its own order of arms, and a
    call's time depends on the call before it. The spread is the half-width, on a log scale, that makes 95 % of the
    kind's A/A intervals hold 1.0 (`Interval.widened`). Kinds with fewer than LEAST_INTERVALS A/A arms have the
    spread of all such kinds together. It is 0 where these are too few, too. Arms with fewer than LEAST_ROUNDS rounds
    count for nothing.
    """
    return _spreads(timed_pairs(rows))


def _spreads(pairs: Iterable[BasePair]) -> dict[str, float]:
    of_kind: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        of_kind[pair.kind].append(_missing(pair.ratio))
    small = [each for found in of_kind.values() if len(found) < LEAST_INTERVALS for each in found]
    return {kind: _spread(found if len(found) >= LEAST_INTERVALS else small) for kind, found in of_kind.items()}


def _missing(ratio: Interval) -> float:
    """Return the spread that an interval needs to hold 1.0; 0 if it holds 1.0 without."""
    if ratio.low <= 1 <= ratio.high:
        return 0.0
    middle = log(ratio.median)
    return sqrt(middle**2 - (middle - log(ratio.low if middle > 0 else ratio.high)) ** 2)


def _spread(missing: Sequence[float]) -> float:
    """Return the spread that CONFIDENCE of the intervals need at most, and one more interval as well.

    That one more interval holds 1.0 with CONFIDENCE, if it is like these (split conformal prediction; Vovk, Gammerman
    and Shafer, Algorithmic Learning in a Random World, 2005).
    """
    rank = ceil((len(missing) + 1) * CONFIDENCE)
    return sorted(missing)[rank - 1] if rank <= len(missing) else 0.0


def held_out(pairs: Sequence[BasePair]) -> list[bool]:
    """Widen the A/A intervals of even cells by the spread of odd cells, and the other way round.

    Return for each pair whether its interval holds 1.0.
    """
    keys = [(pair.kind, pair.row.cell_id, pair.row.codec, str(pair.row.level)) for pair in pairs]
    half_of = {key: i % 2 for i, key in enumerate(sorted(set(keys)))}
    halves = [half_of[key] for key in keys]
    of_other: list[Mapping[str, float]] = [
        _spreads(pair for pair, half in zip(pairs, halves, strict=True) if half != own) for own in (0, 1)
    ]
    widened = [pair.ratio.widened(of_other[half].get(pair.kind, 0.0)) for pair, half in zip(pairs, halves, strict=True)]
    return [ratio.low - ROUNDING <= 1 <= ratio.high + ROUNDING for ratio in widened]


def _checks_of_host(timed: pa.Table) -> list[NoiseCheck]:
    """Check the CPU time of other processes, the time taken by the hypervisor, and changes of the host's speed.

    Rows of other tools may lack these columns. The list is empty if all rows lack them.
    """
    watched = timed.filter(pc.is_valid(timed["watched_ns"]))
    rows = watched.select(["cell_id", *_WATCHED]).to_pylist()
    cells = list({tuple(row.values()): row for row in rows}.values())  # all rows of a measurement have the same values
    if not cells:
        return []
    total_ns = sum(cell["watched_ns"] for cell in cells)
    others = sum(cell["others_cpu_ns"] for cell in cells) / total_ns
    stolen = sum(cell["stolen_ns"] or 0 for cell in cells) / total_ns
    slow, fast = np.percentile([cell["yardstick_ns"] for cell in cells], [95, 5])
    swing = float(slow / fast) - 1
    by_hypervisor = NoiseCheck(
        name="cores that the hypervisor took",
        seen=stolen,
        limit=0.01,
        words=f"the hypervisor gave {stolen:.3f} cores to others on average",
    )
    is_told = all(cell["stolen_ns"] is not None for cell in cells)
    return [
        NoiseCheck(
            name="cores that others used",
            seen=others,
            limit=0.2,
            words=f"other processes used {others:.2f} cores on average while cells were timed",
        ),
        *([by_hypervisor] if is_told else []),
        NoiseCheck(
            name="swing of the host's speed",
            seen=swing,
            limit=0.1,
            words=f"one and the same work took {percent(swing)} longer at the slowest twentieth of cells "
            "than the fastest",
        ),
    ]


def _checks_of_samples(timed: pa.Table) -> list[NoiseCheck]:
    """Check how many samples waited for something, and whether the first round was slower than the others."""
    cpu_ns, wall_ns = (timed[name].combine_chunks() for name in ("cpu_ns", "wall_ns"))
    cpu, wall = (column.flatten().to_numpy().astype(np.float64) for column in (cpu_ns, wall_ns))
    waited = float(np.mean(wall > WAITED * cpu))
    firsts = cpu[np.concatenate([[0], np.cumsum(pc.list_value_length(cpu_ns).to_numpy())[:-1]])]
    rest = np.array([np.median(samples[1:] or samples) for samples in cpu_ns.to_pylist()])
    first = float(np.median(firsts / np.maximum(rest, 1))) - 1
    return [
        NoiseCheck(
            name="samples that waited",
            seen=waited,
            limit=0.05,
            words=f"{percent(waited)} of the samples took {WAITED:.1f} times their CPU time or longer by the clock",
        ),
        NoiseCheck(
            name="first rounds above the rest",
            seen=first,
            limit=0.02,
            words=f"the first round of the median arm took {percent(first)} longer than its others",
        ),
    ]
