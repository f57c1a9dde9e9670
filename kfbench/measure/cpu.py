"""CPU timing: thread time beside wall time, all formats of a cell interleaved, raw samples kept.

Every round calls each arm once in a new random order. So drift of clock, neighbours and caches affects all arms alike.
A fixed rotation would keep each arm's predecessor, whose data are warm. One arm is the base again (A/A). Its ratio must
be 1.0, and its error shows how far the others can be trusted.
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
# The operation of each kind of cell that times a reader of a part of a log.
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
ONE_CALL: Final = 1  # as sample_ns: each sample is one call
CONFIDENCE: Final = 0.95
RESAMPLES: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The times of one arm: int64[rounds], each of `inner_loops` calls. Round i of all arms belongs together."""

    inner_loops: int
    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


def _nothing() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A timed call with its preparation and check.

    Args:
        before: prepares a sample, and is not timed.
        verify: raises Unverified unless the timed call itself leaves the verified bytes in the buffer.
    """

    call: Callable[[], object]
    before: Callable[[], object] = _nothing
    verify: Callable[[], None] = _nothing


class CallTimes(NamedTuple):
    """CPU time of this thread, and wall time, of some calls."""

    cpu_ns: int
    wall_ns: int


def warm_up(arm: Arm) -> int:
    """Call the arm until it gets no faster, verify its work, and return the number of calls. Raises Unverified.

    Calls get no faster when neither of the last two took STILL_FASTER less than the fastest before them.
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
    """Time every arm `rounds` times and return its samples, in the order of `arms`. Arms are warm already.

    The first round is not counted: arms warmed up one after another, and here they evict each other's data.

    Args:
        base: the index of the arm whose samples take `sample_ns`. The others make as many calls per sample.
        sample_ns: ONE_CALL: each sample is one call after its arm's `before`, because a call may change its input.
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
    """Time this number of calls."""
    loops = range(inner_loops)
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    for _ in loops:
        call()
    return CallTimes(time.thread_time_ns() - cpu, time.perf_counter_ns() - wall)


def _calibrate(call: Callable[[], object], sample_ns: int) -> int:
    """Return the number of calls that take sample_ns. All arms use it, so that samples compare directly."""
    if sample_ns == ONE_CALL:
        return 1
    once_ns = min(timed(call, 1).wall_ns for _ in range(5))
    return int(np.clip(-(-sample_ns // max(once_ns, 1)), 1, MAX_INNER_LOOPS))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn collections off. None is forced before, because it would take longer than all samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class PairedRatio(NamedTuple):
    """The median of arm / base over all rounds, and the interval that holds it with CONFIDENCE."""

    median: float
    low: float
    high: float


def paired_ratio(arm_ns: ArrayLike, base_ns: ArrayLike, seed: int = 0) -> PairedRatio:
    """Return the ratio arm / base, taken round by round.

    Pairing cancels what a round's samples have in common; the ratio of two medians does not. The interval is the
    percentile bootstrap of scipy.stats.bootstrap. An odd number of rounds needs no resampling, so `seed` matters only
    for an even number.
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
    """Return the two positions in sorted values where the bootstrap interval of their median ends.

    A resample's median is at most the k-th value if more than half of its values are. Each value is with probability
    k / rounds.
    """
    from scipy.special import bdtrc  # 0.1 s, which a worker does not need

    up_to = bdtrc(rounds // 2, rounds, np.arange(1, rounds + 1) / rounds)
    low, high = np.searchsorted(up_to, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return int(low), int(high)


@lru_cache(maxsize=8)
def _resamples(rounds: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
