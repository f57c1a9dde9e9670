"""CPU timing: measure CPU time and wall time, with the samples of all formats interleaved.

CPU time is that of the calling thread, unless another clock is given. All raw samples are stored. A sample is the time
of one or more calls of an arm in a row.

Each round has its own random order of arms. So changes of the clock, of neighbours and of the caches affect all arms
alike. In a fixed order, each arm would always find the data of the same other arm in the caches. Each measurement draws
its own order, because a call is up to some percent faster after itself than after another one. The error of the A/A
arm's ratio shows how far the other ratios can be trusted.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, hypot, inf, log, log1p
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.kernels.jit import compiled_only, no_garbage_collection

Operation = Literal["encode", "decode", "decode-metadata", "read-times", "fetch-record", "sizes"]
OPERATIONS: Final[tuple[Operation, ...]] = ("encode", "decode")
LEAST_WARM_UP_CALLS: Final = 3
MOST_WARM_UP_CALLS: Final = 30
MOST_WARM_UP_NS: Final = 200_000_000
STILL_FASTER: Final = 0.02
MAX_INNER_LOOPS: Final = 10_000
ONE_CALL: Final = 1  # a value for sample_ns: each sample is one call
CONFIDENCE: Final = 0.95
RESAMPLES: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The samples of one timed call (arm). Item i is from round i; a round has one sample of each arm.

    Args:
        inner_loops: the number of calls per sample.
        cpu_ns: int64[rounds], the CPU time of each sample (all its calls together).
        wall_ns: int64[rounds], the wall time of each sample (all its calls together).
    """

    inner_loops: int
    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A function to time, with its preparation and its check.

    Args:
        call: the function that is timed.
        before: is called before each sample, outside of the timing.
        verify: raises Unverified if `call` gives a wrong result or changes its input.
    """

    call: Callable[[], object]
    before: Callable[[], object] = _nothing
    verify: Callable[[], None] = _nothing


Clock = Callable[[], int]  # CPU time in ns, such as time.thread_time_ns


class CallTimes(NamedTuple):
    """The CPU time and the wall time for one or more calls together."""

    cpu_ns: int
    wall_ns: int


def warm_up(arm: Arm, clock: Clock | None = None) -> int:
    """Call an arm until it gets no faster, then verify its result. Return the number of calls.

    Calls still get faster if one of the last two takes over STILL_FASTER (2 %) less time than the fastest call before
    both. Warming up ends early after MOST_WARM_UP_CALLS calls or MOST_WARM_UP_NS nanoseconds. Raises Unverified if the
    result is wrong.
    """
    times_ns: list[int] = []
    while len(times_ns) < LEAST_WARM_UP_CALLS or _still_faster(times_ns):
        arm.before()
        times_ns.append(timed(arm.call, 1, clock).cpu_ns)
    arm.verify()
    return len(times_ns)


def _still_faster(times_ns: Sequence[int]) -> bool:
    if len(times_ns) == MOST_WARM_UP_CALLS or sum(times_ns) > MOST_WARM_UP_NS:
        return False
    return min(times_ns[-2:]) < (1 - STILL_FASTER) * min(times_ns[:-2])


def measure(arms: Sequence[Arm], base: int, rounds: int, sample_ns: int, clock: Clock | None = None) -> list[Samples]:
    """Time all functions (arms) in `rounds` rounds. Return the samples of each arm, in the order of `arms`.

    The arms must be warmed up. One extra round comes first and is not counted. In this round, the arms evict each
    other's data from the caches, because they were warmed up one after another.

    Args:
        base: the index of the arm that all others are compared with. The number of calls per sample is chosen so that
            the base takes about `sample_ns`. All arms use this number of calls.
        sample_ns: the wall time of one sample. ONE_CALL: each sample is one call, because a call may change its input.
        clock: the CPU clock; None: time.thread_time_ns. time.process_time_ns includes a library's own threads.
    """
    cpu_ns, wall_ns = (np.zeros((len(arms), rounds), np.int64) for _ in range(2))
    random = np.random.default_rng()  # without a seed: measurements in the same order would share its error
    with no_garbage_collection():
        arms[base].before()
        inner_loops = _calibrate(arms[base].call, sample_ns)
        for i in range(-1, rounds):
            for j in random.permutation(len(arms)).tolist():
                arms[j].before()
                found = timed(arms[j].call, inner_loops, clock)
                cpu_ns[j, i], wall_ns[j, i] = found  # -1: overwritten by the last round
    return [Samples(inner_loops=inner_loops, cpu_ns=cpu_ns[j], wall_ns=wall_ns[j]) for j in range(len(arms))]


def timed(call: Callable[[], object], inner_loops: int, clock: Clock | None = None) -> CallTimes:
    """Run `inner_loops` calls in a row, and return their total time. Kernels run compiled."""
    loops, clock = range(inner_loops), clock or time.thread_time_ns
    with compiled_only():
        wall, cpu = time.perf_counter_ns(), clock()
        for _ in loops:
            call()
        return CallTimes(clock() - cpu, time.perf_counter_ns() - wall)


def _calibrate(call: Callable[[], object], sample_ns: int) -> int:
    """Return the number of calls that take about `sample_ns`: at least 1, at most MAX_INNER_LOOPS."""
    if sample_ns == ONE_CALL:
        return 1
    once_ns = min(timed(call, 1).wall_ns for _ in range(5))
    return int(np.clip(-(-sample_ns // max(once_ns, 1)), 1, MAX_INNER_LOOPS))


class Interval(NamedTuple):
    """A middle value, such as the median over all rounds, and the ends of its confidence interval, in one unit.

    Most are ratios: the CPU time of an arm divided by that of the base of its rounds.
    """

    median: float
    low: float
    high: float

    def holds(self, value: float, within: float = 0.0) -> bool:
        """Return whether `value` is inside the interval, or at most `within` (in its unit) outside."""
        return self.low - within <= value <= self.high + within

    def widened(self, spread: float) -> "Interval":
        """Add the spread between arms (`kfbench.measure.noise.spreads`) to the interval.

        On a log scale, the half-width of each side becomes the square root of its square plus that of the spread.
        """
        if not spread or not 0 < self.low <= self.high < inf:
            return self
        down, up = hypot(log(self.median / self.low), spread), hypot(log(self.high / self.median), spread)
        return Interval(self.median, self.median * exp(-down), self.median * exp(up))


def paired_ratio(arm_ns: ArrayLike, base_ns: ArrayLike, seed: int = 0) -> Interval:
    """Divide arm_ns by base_ns in each round. Return the median of these ratios and its confidence interval.

    Both samples of a round have the same disturbances, which cancel in the ratio of this round. In a ratio of two
    medians they would not cancel. The interval is the percentile bootstrap of scipy.stats.bootstrap. For an odd number
    of rounds it is computed exactly, so `seed` matters only for an even number.
    """
    ratios = np.sort(np.asarray(arm_ns, np.float64) / np.asarray(base_ns, np.float64))
    if len(ratios) % 2:
        low, high = ratios[list(_ranks(len(ratios)))]
        return Interval(float(ratios[len(ratios) // 2]), float(low), float(high))
    medians = np.median(ratios[_resamples(len(ratios), seed)], axis=1)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(np.median(ratios)), float(low), float(high))


@lru_cache(maxsize=64)
def _ranks(rounds: int) -> tuple[int, int]:
    """Return the indices of the two ends of the median's bootstrap interval in the sorted ratios.

    `rounds`, the number of ratios, is odd. The median of a resample is at most the k-th ratio if more than half of the
    resample's ratios are, so if at most half are above. Each of them is above the k-th with probability 1 - k / rounds.
    """

    def at_most_half_above(k: int) -> float:
        return float(binomial_cdf(rounds, 1 - k / rounds)[rounds // 2])

    ends = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    low, high = (bisect_left(range(1, rounds), end, key=at_most_half_above) for end in ends)
    return low, high


def binomial_cdf(trials: int, chance: float) -> NDArray[np.float64]:
    """Return the probability of at most k successes in so many trials, for k = 0 to `trials`. 0 < chance < 1."""
    k = np.arange(1, trials + 1)
    growth = np.log((trials + 1 - k) / k) + (log(chance) - log1p(-chance))  # from k - 1 to k successes
    return np.cumsum(np.exp(np.cumsum([trials * log1p(-chance), *growth])))


@lru_cache(maxsize=8)
def _resamples(rounds: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
