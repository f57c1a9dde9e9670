"""Generate arrival times of records from a TOML table, such as `{ process = "poisson", rate_per_s = 1000 }`.

Times are generated for one block of 65,536 records at a time. The records of a block fill a fixed window of time: gaps
between records are drawn, added up, and scaled to fit the window. Scaling changes the gaps little (by 0.4 % for
Poisson). A scaled Poisson process is still exact: it is the Poisson process under the condition of its number of
arrivals. Times never fall, also from one block to the next. All blocks have the same duration, except with the process
`sine`. No block depends on another.
"""

import math
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.kernels.workload import waits
from kfbench.kernels.workload.waits import periodic_times, stratified
from kfbench.workloads.base import BLOCK_RECORDS
from kfbench.workloads.named.distributions import (
    Distribution,
    Floats,
    GeneralisedPareto,
    draw,
    lengths_table,
    mean,
    mean_length,
    require,
    table,
)

GAPS, BURSTS, MORE_BURSTS, PAUSES = range(1_001, 1_005)  # numbers of streams of random draws, after KEY_IDS
SECOND_US: Final = 1_000_000
MAX_US: Final = 2**62
PERIOD_CELLS: Final = 2**16
MAX_BLOCK_US: Final = 2**43  # 101 days per block, so the times of 2**35 records are within MAX_US


class _Arrival(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="process"):
    pass


class _AtRate(_Arrival, frozen=True, kw_only=True):
    rate_per_s: float

    def __post_init__(self) -> None:
        require(0 < self.rate_per_s < math.inf, f"rate_per_s: {self.rate_per_s} is not above 0")


class Constant(_AtRate, tag="constant", frozen=True, kw_only=True):
    """Equal gaps between records. The first record arrives at time 0."""


class Poisson(_AtRate, tag="poisson", frozen=True, kw_only=True):
    """Independent exponential gaps."""


class GeneralisedParetoGaps(_Arrival, tag="generalised-pareto", frozen=True, kw_only=True):
    """Independent gaps with a generalised Pareto distribution, in microseconds.

    A gap is theta_us + sigma_us · (u^-k - 1) / k, where u is uniform in (0, 1).
    """

    sigma_us: float
    k: float
    theta_us: float = 0.0

    def __post_init__(self) -> None:
        require(self.theta_us >= 0, f"theta_us: {self.theta_us} is negative")
        _ = self.gap_us  # it checks the other fields

    @property
    def gap_us(self) -> GeneralisedPareto:
        return GeneralisedPareto(theta=self.theta_us, sigma=self.sigma_us, k=self.k)


class Sine(_AtRate, tag="sine", frozen=True, kw_only=True):
    """Poisson arrivals at the rate rate_per_s + amplitude_per_s · sin(radians_per_s · t + phase_radians), t in seconds.

    Source: db_bench's mixgraph (Cao et al., FAST 2020), where the parameters are called d, a, b and c in this order.
    Mixgraph changes its rate at every interval; this rate changes continuously.
    """

    amplitude_per_s: float
    radians_per_s: float
    phase_radians: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        within = 0 <= self.amplitude_per_s < self.rate_per_s
        require(within, f"amplitude_per_s: {self.amplitude_per_s} is not within 0 to below rate_per_s")
        require(0 < self.radians_per_s < math.inf, f"radians_per_s: {self.radians_per_s} is not above 0")
        require(math.isfinite(self.phase_radians), f"phase_radians: {self.phase_radians} is not finite")


class Bursts(_Arrival, tag="bursts", frozen=True, kw_only=True):
    """Bursts of records with short gaps inside a burst and longer pauses between bursts.

    The last burst of a block of 65,536 records ends with the block. Only pauses are stretched or shortened, so that the
    block fills its window of time.

    Args:
        length: the number of records in a burst.
        pause_us: the time between two bursts, in microseconds.
        gap_us: the time between two records of a burst, in microseconds.
    """

    length: Distribution
    pause_us: Distribution
    gap_us: Distribution

    def __post_init__(self) -> None:
        require(int(lengths_table(self.length)[0]) >= 1, "length: a burst has at least 1 record")
        for name in ("pause_us", "gap_us"):
            require(table(getattr(self, name))[0] >= 0, f"{name}: it has negative values")


Arrival = Constant | Poisson | GeneralisedParetoGaps | Sine | Bursts


@lru_cache(maxsize=64)
def block_us(a: Arrival) -> int:
    """Return the duration of a block of 65,536 records, in whole µs. For `Sine`, it is the mean duration of all blocks.

    Raises InvalidConfig for a duration above MAX_BLOCK_US.
    """
    match a:
        case GeneralisedParetoGaps():
            length = BLOCK_RECORDS * mean(a.gap_us)
        case Bursts():
            bursts = BLOCK_RECORDS / mean_length(a.length)
            length = bursts * mean(a.pause_us) + (BLOCK_RECORDS - bursts) * mean(a.gap_us)
        case Constant() | Poisson() | Sine():
            length = BLOCK_RECORDS / a.rate_per_s * SECOND_US
    require(length <= MAX_BLOCK_US, f"{a}: a block of {BLOCK_RECORDS:,} records would take {length / SECOND_US:.3g} s")
    return round(length)


def start_us(a: Arrival, block: int) -> int:
    """Return the time at which a block of 65,536 records starts, in µs since the start of the workload.

    A block ends when the next block starts.
    """
    return int(_sine_times(a, block, np.zeros(1), MAX_US)[0]) if isinstance(a, Sine) else block * block_us(a)


def times_us(a: Arrival, seed: int, block: int) -> Int64:
    """Return the arrival times of a block's records: int64[65_536], never falling, in µs since the workload's start.

    block: the number of the block of 65,536 records, from 0. Raises InvalidConfig if the block ends after 2**62 µs
    (146,000 years).
    """
    until_us = (block + 1) * block_us(a)
    require(
        until_us <= MAX_US, f"{a}: block {block} ends {until_us} µs after the start; at most {MAX_US} µs are possible"
    )
    first, last = start_us(a, block), start_us(a, block + 1)
    if isinstance(a, Constant):
        return first + (np.arange(BLOCK_RECORDS) * ((last - first) / BLOCK_RECORDS)).astype(np.int64)
    waited = _gaps(a, seed, block)
    longest = waits.add_up(waited)
    if not longest:
        return np.full(BLOCK_RECORDS, first)
    if isinstance(a, Sine):
        waited *= BLOCK_RECORDS / longest
        return _sine_times(a, block, waited, last)
    times = waited.view(np.int64)
    waits.scale(waited, (last - first) / longest, first, times)
    return times


def burst_starts(a: Bursts, seed: int, block: int) -> Int64:
    """Return the index of each burst's first record in the block of 65,536 records: int64[bursts], ascending from 0."""
    size, number = mean_length(a.length), block * BLOCK_RECORDS
    expected = max(round(BLOCK_RECORDS / size), 1)
    lengths = _evenly(lengths_table(a.length), expected, seed, BURSTS, block)
    while True:
        starts = np.empty(len(lengths), np.int64)
        count, end = waits.begin(lengths, BLOCK_RECORDS, starts)
        if end >= BLOCK_RECORDS:
            return starts[:count]
        more = int((BLOCK_RECORDS - end) / size) + 16
        lengths = np.concatenate([lengths, draw(lengths_table(a.length), seed, MORE_BURSTS, number, more)])
        number += more


def _evenly(quantiles: NDArray[Any], count: int, seed: int, purpose: int, block: int) -> NDArray[Any]:
    """Draw `count` values, one from each of `count` equal parts of the quantiles, and return them in random order.

    So all blocks have about the same number of long bursts and long pauses. Independent draws would give some blocks
    unusual bursts, and their pauses would be stretched or shortened more.

    Args:
        quantiles: equally likely values in ascending order.
        purpose: the number of a stream of random draws.
    """
    if quantiles[0] == quantiles[-1]:
        return np.full(count, quantiles[0])
    found = np.empty(count, quantiles.dtype)
    stratified(seed, purpose, block, quantiles, found)
    return found


_EXPONENTIAL: Final = GeneralisedPareto(sigma=1, k=0)


def _gaps(a: Poisson | GeneralisedParetoGaps | Sine | Bursts, seed: int, block: int) -> Floats:
    """Return the gap before each record of the block of 65,536 records, before scaling: float64[65_536].

    The unit is 1 µs. For Poisson and Sine, the unit is the mean gap.
    """
    gap = a.gap_us if isinstance(a, GeneralisedParetoGaps | Bursts) else _EXPONENTIAL
    gaps = draw(table(gap), seed, GAPS, block * BLOCK_RECORDS, BLOCK_RECORDS)
    if isinstance(a, Bursts):
        starts = burst_starts(a, seed, block)
        pauses = _evenly(table(a.pause_us), len(starts), seed, PAUSES, block)
        waits.pause(starts, pauses, block_us(a), gaps)
    return gaps


def _sine_times(sine: Sine, block: int, waited: Floats, last_us: int) -> Int64:
    """Return the times at which given numbers of arrivals are expected: int64[n], in µs since the workload's start.

    Args:
        waited: float64[n], numbers of arrivals since the start of the block of 65,536 records.
        last_us: the largest time that is returned.
    """
    period_us = 2 * math.pi / sine.radians_per_s * SECOND_US
    arrivals = sine.rate_per_s * period_us / SECOND_US
    past, share = divmod(block * BLOCK_RECORDS / arrivals, 1.0)
    starts_us, lengths_us = _period_cells(sine)
    count = len(starts_us)
    times_us = np.empty(len(waited), np.int64)
    periodic_times(
        waited, count / arrivals, share * count, starts_us, lengths_us, period_us, past * period_us,
        last_us, times_us,
    )  # fmt: skip
    return times_us


@lru_cache(maxsize=8)
def _period_cells(sine: Sine) -> Floats:
    """Divide a period of the sine into 65,536 intervals with the same number of expected arrivals.

    Return float64[2, 65_536]: the start of each interval in µs since the start of the period, and its length in µs.
    """
    a, b, c, d = sine.amplitude_per_s, sine.radians_per_s, sine.phase_radians, sine.rate_per_s
    t = np.arange(2**18 + 1, dtype=np.float64) * (2 * math.pi / b / 2**18)
    wave = _cosine(b * t + c)
    expected = np.maximum.accumulate(d * t + a / b * (wave[0] - wave))
    wanted = np.arange(PERIOD_CELLS + 1) * (expected[-1] / PERIOD_CELLS)
    after = np.clip(np.searchsorted(expected, wanted, side="right"), 1, len(t) - 1)
    # The step may be 0 where hardly any record arrives.
    step = np.maximum(expected[after] - expected[after - 1], 1e-300)
    share = np.clip((wanted - expected[after - 1]) / step, 0, 1)
    when_us = (t[after - 1] + share * (t[after] - t[after - 1])) * SECOND_US
    return np.stack([when_us[:-1], np.diff(when_us)])


def _cosine(x: Floats) -> Floats:
    """Compute the cosine by its power series. The result is the same on every processor, unlike NumPy's cosine."""
    turned = x - np.rint(x / (2 * math.pi)) * (2 * math.pi)
    square, found = turned * turned, np.ones(len(x))
    for n in range(30, 0, -2):  # up to the 30th power: pi**32 / 32! is below 10**-19
        found = 1 - found * square / (n * (n - 1))
    return found
