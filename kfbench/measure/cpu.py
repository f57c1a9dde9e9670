"""CPU timing: thread time beside wall time, all formats of a cell interleaved, raw samples kept.

- Arm: one timed call, such as encode in one format.
- Sample: the time of some calls of an arm in a row.
- Round: one sample of each arm, in a new random order. So changes of the clock, of neighbours and of the caches affect
  all arms alike. In a fixed order, each arm would always find the data of the same other arm in the caches.
- Base: the arm that all others are compared with.
- A/A arm: the base a second time. Its ratio to the base must be 1.0. Its error shows how far the other ratios can be
  trusted.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Operation = Literal["encode", "decode", "decode-metadata", "read-times", "fetch-record"]
OPERATIONS: Final[tuple[Operation, ...]] = ("encode", "decode")
# The kinds of cells that time a reader of a part of a log, and the operation that each kind times.
READINGS: Final[Mapping[str, Operation]] = {
    "metadata": "decode-metadata",
    "lookup": "read-times",
    "record": "fetch-record",
}
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
    """The samples of one arm. Item i was measured in round i, which is the same round for all arms.

    Args:
        inner_loops: the number of calls per sample.
        cpu_ns: int64[rounds], the CPU time of each sample.
        wall_ns: int64[rounds], the wall time of each sample.
    """

    inner_loops: int
    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A timed call with its preparation and its check.

    Args:
        call: the call that is timed.
        before: called before each sample, not timed.
        verify: raises Unverified if the timed call gives a wrong result or changes the bytes that it reads.
    """

    call: Callable[[], object]
    before: Callable[[], object] = _nothing
    verify: Callable[[], None] = _nothing


class CallTimes(NamedTuple):
    """The CPU time of this thread and the wall time that some calls took."""

    cpu_ns: int
    wall_ns: int


def warm_up(arm: Arm) -> int:
    """Call the arm until it gets no faster, then verify it. Return the number of calls. Raises Unverified.

    An arm still gets faster if one of its last two calls took over STILL_FASTER (2 %) less than the fastest call before
    these two. Warming up ends early after MOST_WARM_UP_CALLS or MOST_WARM_UP_NS.
    """
    times_ns: list[int] = []
    while len(times_ns) < LEAST_WARM_UP_CALLS or _still_faster(times_ns):
        arm.before()
        times_ns.append(timed(arm.call, 1).cpu_ns)
    arm.verify()
    return len(times_ns)


def _still_faster(times_ns: Sequence[int]) -> bool:
    if len(times_ns) == MOST_WARM_UP_CALLS or sum(times_ns) > MOST_WARM_UP_NS:
        return False
    return min(times_ns[-2:]) < (1 - STILL_FASTER) * min(times_ns[:-2])


def measure(arms: Sequence[Arm], base: int, rounds: int, sample_ns: int, seed: int) -> list[Samples]:
    """Time all arms in `rounds` rounds. Return the samples of each arm, in the order of `arms`.

    The arms must be warm. One more round comes first and is not counted: the arms were warmed up one after another, so
    in this round they evict each other's data.

    Args:
        base: the index of the base. The number of calls that take about `sample_ns` is measured on the base; the
            samples of all arms have this number of calls.
        sample_ns: the wall time of one sample. ONE_CALL: each sample is one call, because a call may change its input.
        seed: seeds the order of the arms in each round.
    """
    cpu_ns, wall_ns = (np.zeros((len(arms), rounds), np.int64) for _ in range(2))
    random = np.random.default_rng(seed)
    with no_garbage_collection():
        arms[base].before()
        inner_loops = _calibrate(arms[base].call, sample_ns)
        for i in range(-1, rounds):
            for j in random.permutation(len(arms)).tolist():
                arms[j].before()
                cpu_ns[j, i], wall_ns[j, i] = timed(arms[j].call, inner_loops)  # -1: overwritten by the last round
    return [Samples(inner_loops=inner_loops, cpu_ns=cpu_ns[j], wall_ns=wall_ns[j]) for j in range(len(arms))]


def timed(call: Callable[[], object], inner_loops: int) -> CallTimes:
    """Return the time that `inner_loops` calls take together."""
    loops = range(inner_loops)
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    for _ in loops:
        call()
    return CallTimes(time.thread_time_ns() - cpu, time.perf_counter_ns() - wall)


def _calibrate(call: Callable[[], object], sample_ns: int) -> int:
    """Return the number of calls that take about sample_ns. All arms use it, so their samples are comparable."""
    if sample_ns == ONE_CALL:
        return 1
    once_ns = min(timed(call, 1).wall_ns for _ in range(5))
    return int(np.clip(-(-sample_ns // max(once_ns, 1)), 1, MAX_INNER_LOOPS))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn garbage collection off. No collection is forced before, because it would take longer than all samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class PairedRatio(NamedTuple):
    """The median over all rounds of the ratio arm / base, and the ends of the median's interval of CONFIDENCE."""

    median: float
    low: float
    high: float


def paired_ratio(arm_ns: ArrayLike, base_ns: ArrayLike, seed: int = 0) -> PairedRatio:
    """Return the median of the ratios arm_ns / base_ns, which are taken round by round, and its interval.

    Both samples of a round share the same disturbances, which cancel in the round's ratio. They would not cancel in the
    ratio of two medians. The interval is the percentile bootstrap of scipy.stats.bootstrap. An odd number of rounds
    needs no resampling, so `seed` matters only for an even number.
    """
    ratios = np.sort(np.asarray(arm_ns, np.float64) / np.asarray(base_ns, np.float64))
    if len(ratios) % 2:
        low, high = ratios[list(_ranks(len(ratios)))]
        return PairedRatio(float(ratios[len(ratios) // 2]), float(low), float(high))
    medians = np.median(ratios[_resamples(len(ratios), seed)], axis=1)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return PairedRatio(float(np.median(ratios)), float(low), float(high))


@lru_cache(maxsize=64)
def _ranks(rounds: int) -> tuple[int, int]:
    """Return the positions, in an odd number of sorted ratios, of the two ends of the median's bootstrap interval.

    The median of a resample is at most the k-th ratio if more than half of the resample's ratios are at most the k-th.
    Each ratio of a resample is at most the k-th with probability k / rounds.
    """
    from scipy.special import bdtrc  # 0.1 s, which a worker does not need

    up_to = bdtrc(rounds // 2, rounds, np.arange(1, rounds + 1) / rounds)
    low, high = np.searchsorted(up_to, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return int(low), int(high)


@lru_cache(maxsize=8)
def _resamples(rounds: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
