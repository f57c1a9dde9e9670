"""Arrival times of records follow the named random process in each block, and never go down from block to block."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from kfbench.errors import InvalidConfig
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.named.arrivals import (
    MAX_US,
    Arrival,
    Bursts,
    Constant,
    GeneralisedParetoGaps,
    Poisson,
    Sine,
    block_us,
    burst_starts,
    start_us,
    times_us,
)
from kfbench.workloads.named.distributions import (
    Empirical,
    FixedValue,
    GeneralisedPareto,
    Uniform,
    WeightedChoice,
    mean,
)

SEED, SIGNIFICANCE = 77, 0.01
KOLMOGOROV = float(stats.kstwobign.isf(SIGNIFICANCE))
ETC = GeneralisedParetoGaps(sigma_us=16.0292, k=0.154971)
SLOW_ETC = GeneralisedParetoGaps(sigma_us=16_029.2, k=0.154971)  # so slow that rounding to microseconds does not matter
MIXGRAPH = Sine(rate_per_s=4_500, amplitude_per_s=1_000, radians_per_s=0.000073)
FAST_SINE = Sine(rate_per_s=4_500, amplitude_per_s=4_000, radians_per_s=0.1, phase_radians=1.0)
BURSTS = Bursts(
    length=Uniform(low=1, high=99), pause_us=GeneralisedPareto(sigma=2_000_000, k=0), gap_us=Uniform(low=0, high=500)
)
PROCESSES: tuple[Arrival, ...] = (
    Constant(rate_per_s=3), Poisson(rate_per_s=1_000), ETC, MIXGRAPH, FAST_SINE, BURSTS,
    Bursts(
        length=WeightedChoice(values=(1, 56), weights=(0.97, 0.03)),
        pause_us=FixedValue(value=500_000), gap_us=FixedValue(value=0),
    ),
)  # fmt: skip
BLOCKS = (0, 1, 2, 3)


def gaps_us(a: Arrival, blocks: tuple[int, ...] = BLOCKS) -> NDArray[np.int64]:
    return np.diff(np.concatenate([times_us(a, SEED, block) for block in blocks]))


@pytest.mark.parametrize("a", PROCESSES, ids=lambda a: type(a).__name__)
def test_blocks_fill_their_windows_and_do_not_overlap(a: Arrival) -> None:
    for block in (0, 1, 2, 15_000):
        first, last = (start_us(a, number) for number in (block, block + 1))
        times = times_us(a, SEED, block)
        assert times.dtype == np.int64 and len(times) == BLOCK_RECORDS
        assert np.all(np.diff(times) >= 0)
        assert first <= times[0] and times[-1] <= last
        assert start_us(a, block + 1) == last
        if not isinstance(a, Constant):
            assert times[-1] >= last - 1
    assert start_us(a, 0) == 0


@pytest.mark.parametrize("a", PROCESSES, ids=lambda a: type(a).__name__)
def test_blocks_are_the_same_again_and_differ_from_each_other(a: Arrival) -> None:
    assert np.array_equal(
        times_us(a, SEED, 3), times_us(msgspec.json.decode(msgspec.json.encode(a), type=Arrival), SEED, 3)
    )
    if not isinstance(a, Constant):
        one, other, another = (np.diff(times_us(a, *key)) for key in ((1, 0), (2, 0), (1, 1)))
        assert np.any(one != other) and np.any(one != another)


def test_constant() -> None:
    assert times_us(Constant(rate_per_s=2), SEED, 0)[:4].tolist() == [0, 500_000, 1_000_000, 1_500_000]
    gaps = gaps_us(Constant(rate_per_s=3))
    assert set(gaps.tolist()) == {333_333, 333_334}
    assert gaps.mean() == pytest.approx(1e6 / 3, abs=0.01)


@pytest.mark.parametrize(
    ("a", "model"),
    [
        (Poisson(rate_per_s=10), stats.expon(0, 100_000)),
        (SLOW_ETC, stats.genpareto(0.154971, 0, 16_029.2)),
    ],
    ids=["poisson", "generalised-pareto"],
)
def test_gaps_of_a_renewal_process(a: Arrival, model: Any) -> None:
    gaps = gaps_us(a, tuple(range(64)))
    p = [0.5, 0.9, 0.99, 0.999]
    assert gaps.mean() == pytest.approx(model.mean(), rel=0.001)
    assert np.quantile(gaps, p) == pytest.approx(model.ppf(p), rel=0.02)
    few = gaps[: 4 * BLOCK_RECORDS]
    assert stats.ks_1samp(few, model.cdf).statistic < KOLMOGOROV / len(few) ** 0.5
    assert abs(np.corrcoef(few[1:], few[:-1])[0, 1]) < 5 / len(few) ** 0.5


def expected(sine: Sine, t_s: NDArray[np.float64]) -> NDArray[np.float64]:
    a, b, c, d = sine.amplitude_per_s, sine.radians_per_s, sine.phase_radians, sine.rate_per_s
    found: NDArray[np.float64] = d * t_s + a / b * (np.cos(c) - np.cos(b * t_s + c))
    return found


@pytest.mark.parametrize("sine", [MIXGRAPH, FAST_SINE], ids=["mixgraph", "fast"])
def test_sine(sine: Sine) -> None:
    """Measured in expected arrivals in place of time, the process is Poisson with rate 1."""
    for block in (0, 1, 7, 3_000):
        own = expected(sine, times_us(sine, SEED, block) / 1e6)
        assert stats.ks_1samp((own / BLOCK_RECORDS) - block, stats.uniform.cdf).statistic < KOLMOGOROV / 256
        gaps = np.diff(own)
        assert stats.ks_1samp(gaps, stats.expon.cdf).statistic < 2 * KOLMOGOROV / 256  # times are whole microseconds
    assert block_us(sine) == round(BLOCK_RECORDS / sine.rate_per_s * 1e6)


@pytest.mark.parametrize("a", [a for a in PROCESSES if isinstance(a, Bursts)], ids=["drawn", "fixed"])
def test_bursts(a: Bursts) -> None:
    blocks = range(48)
    lengths, pauses, gaps = [], [], []
    for block in blocks:
        starts, times = burst_starts(a, SEED, block), times_us(a, SEED, block)
        assert starts[0] == 0 and np.all(np.diff(starts) > 0) and starts[-1] < BLOCK_RECORDS
        lengths.append(np.diff(starts))
        steps = np.diff(times, prepend=start_us(a, block))
        pauses.append(steps[starts])
        gaps.append(np.delete(steps, starts))
    p = [0.5, 0.9, 0.99]
    for found, model in ((lengths, a.length), (pauses, a.pause_us), (gaps, a.gap_us)):
        together = np.concatenate(found)
        assert together.mean() == pytest.approx(mean(model), rel=0.02)
        wanted = [float(np.quantile(model.quantiles(65_536), each)) for each in p]
        assert np.quantile(together, p) == pytest.approx(wanted, rel=0.02, abs=1)


def test_bursts_of_every_length() -> None:
    for length in (
        FixedValue(value=1),
        FixedValue(value=65_536),
        FixedValue(value=10**6),
        WeightedChoice(values=(1, 60_000)),
    ):
        a = Bursts(length=length, pause_us=FixedValue(value=10), gap_us=FixedValue(value=2))
        times = times_us(a, SEED, 1)
        assert np.all(np.diff(times) >= 0) and start_us(a, 1) <= times[0] and times[-1] <= start_us(a, 2)
    still = Bursts(length=FixedValue(value=9), pause_us=FixedValue(value=0), gap_us=FixedValue(value=0))
    assert set(times_us(still, SEED, 4).tolist()) == {0}


@settings(max_examples=30)
@given(st.floats(0.01, 1e8), st.floats(0, 0.999), st.floats(1e-6, 1e3), st.integers(0, 10_000))
def test_any_sine_rises(rate: float, share: float, radians: float, block: int) -> None:
    sine = Sine(rate_per_s=rate, amplitude_per_s=share * rate, radians_per_s=radians)
    first, last = (start_us(sine, number) for number in (block, block + 1))
    times = times_us(sine, SEED, block)
    assert np.all(np.diff(times) >= 0) and first <= times[0] and last - 1 - last // 10**12 <= times[-1] <= last
    assert start_us(sine, block + 1) == last
    middle = (block + 0.5) * BLOCK_RECORDS / rate
    assert abs((first + last) / 2e6 - middle) <= 2 * np.pi / radians + BLOCK_RECORDS / rate


@pytest.mark.parametrize("a", [Constant(rate_per_s=0.01), Poisson(rate_per_s=0.01)], ids=["constant", "poisson"])
def test_blocks_that_no_clock_holds(a: Arrival) -> None:
    last = MAX_US // block_us(a) - 1
    assert 0 < times_us(a, SEED, last)[-1] <= MAX_US
    with pytest.raises(InvalidConfig, match=f"block {last + 1} ends [0-9]+ µs"):
        times_us(a, SEED, last + 1)


def test_gaps_of_an_empirical_burst_stay_as_they_were_measured() -> None:
    measured = Empirical(points=((0.5, 0), (0.95, 7_000)))
    a = Bursts(length=Uniform(low=100, high=2_000), pause_us=FixedValue(value=3_000_000), gap_us=measured)
    steps = [np.delete(np.diff(times_us(a, SEED, block), prepend=0), burst_starts(a, SEED, block)) for block in BLOCKS]
    assert np.quantile(np.concatenate(steps), [0.25, 0.95]) == pytest.approx([0, 7_000], rel=0.02, abs=1)
