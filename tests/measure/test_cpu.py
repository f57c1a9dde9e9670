"""CPU timing: samples are paired by round, only the call is timed, and the ratio's interval is scipy's."""

import gc
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, bootstrap

from kfbench.measure.cpu import (
    LEAST_WARM_UP_CALLS,
    MAX_INNER_LOOPS,
    MOST_WARM_UP_CALLS,
    Arm,
    binomial_cdf,
    measure,
    paired_ratio,
    warm_up,
)

ROUNDS = 8


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def arm(call: object, before: object = lambda: None) -> Arm:
    return Arm(call=call, before=before)  # type: ignore[arg-type]


def test_cpu_time_is_not_wall_time() -> None:
    work, sleep = measure([arm(lambda: busy(0.002)), arm(lambda: time.sleep(0.004))], 0, ROUNDS, 1)
    assert work.inner_loops == 1 and len(work.cpu_ns) == len(work.wall_ns) == ROUNDS
    assert np.all(work.cpu_ns >= 2_000_000)
    assert np.median(sleep.cpu_ns) < 1_000_000 and np.all(sleep.wall_ns >= 4_000_000)


class Clock:
    """A simulated clock that moves only during calls. Each call takes the next of these times, then always the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *times_ns: int) -> None:
        self.now_ns, self.times_ns = 0, [*times_ns]
        clock = SimpleNamespace(thread_time_ns=lambda: self.now_ns, perf_counter_ns=lambda: self.now_ns)
        monkeypatch.setattr("kfbench.measure.cpu.time", clock)

    def call(self) -> None:
        self.now_ns += self.times_ns.pop(0) if len(self.times_ns) > 1 else self.times_ns[0]


@pytest.mark.parametrize(("call_ns", "loops"), [(500_000, 10), (499_999, 11), (5_000_001, 1), (1, MAX_INNER_LOOPS)])
def test_samples_are_integers_and_loops_fill_the_time_asked_for(
    monkeypatch: pytest.MonkeyPatch, call_ns: int, loops: int
) -> None:
    """The first call takes ten times as long. It does not count for the number of loops."""
    (samples,) = measure([arm(Clock(monkeypatch, 10 * call_ns, call_ns).call)], 0, ROUNDS, 5_000_000)
    assert samples.cpu_ns.dtype == samples.wall_ns.dtype == np.int64
    assert samples.inner_loops == loops
    assert samples.cpu_ns.tolist() == samples.wall_ns.tolist() == [call_ns * loops] * ROUNDS


def test_the_first_time_that_arms_meet_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1_000, 1_000, 1_000, 100)
    found = measure([arm(clock.call)] * 3, 0, ROUNDS, 1)
    assert [each.cpu_ns.tolist() for each in found] == [[100] * ROUNDS] * 3


@pytest.mark.parametrize(
    ("times", "calls"),
    [
        ([5, 5, 5], LEAST_WARM_UP_CALLS),
        ([9, 5, 5, 5, 5], 4),  # the first call was slow; the next two got no faster
        ([9, 8, 7, 6, 5, 5, 5], 7),
        ([9, 5, 5, 3, 3, 3, 3], 6),  # gets faster once more, just before the warm-up would end
        ([*range(60, 0, -1)], MOST_WARM_UP_CALLS),  # never stops getting faster, so the limit ends the warm-up
        ([1500, 1000, 100, 100], LEAST_WARM_UP_CALLS),  # these calls take too long for more of them
    ],
)
def test_warm_up_ends_when_calls_get_no_faster(monkeypatch: pytest.MonkeyPatch, times: list[int], calls: int) -> None:
    clock = Clock(monkeypatch, *(100_000 * each for each in times))
    assert warm_up(arm(clock.call), lambda: clock.now_ns) == calls


def test_every_round_has_every_arm_once_in_a_fresh_order() -> None:
    calls: list[int] = []
    arms = [arm(lambda i=i: calls.append(i)) for i in range(4)]
    measure(arms, 0, ROUNDS, 1)
    once, calls[:] = list(calls), []
    measure(arms, 0, ROUNDS, 1)
    assert calls != once  # measurements in the same order would share its error
    rounds = np.array(calls).reshape(ROUNDS + 1, 4)  # the first round is not counted
    assert [sorted(each) for each in rounds.tolist()] == [[0, 1, 2, 3]] * (ROUNDS + 1)
    assert len({tuple(each) for each in rounds.tolist()}) > ROUNDS / 2


def test_what_comes_before_a_sample_is_not_timed() -> None:
    (samples,) = measure([arm(lambda: None, before=lambda: busy(0.002))], 0, ROUNDS, 1)
    assert np.all(samples.cpu_ns < 2_000_000)


def test_no_garbage_is_collected_while_it_runs() -> None:
    seen: set[bool] = set()
    measure([arm(lambda: seen.add(gc.isenabled()))], 0, 2, 1)
    assert seen == {False}
    assert gc.isenabled()

    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure([arm(broken)], 0, 2, 1)
    assert gc.isenabled()


def test_paired_ratio_cancels_what_a_round_has_in_common() -> None:
    random = np.random.default_rng(5)
    drift = random.uniform(1, 3, 41)
    base = (1e6 * drift).astype(np.int64)
    median, low, high = paired_ratio((1.2e6 * drift).astype(np.int64), base, seed=1)
    assert median == pytest.approx(1.2, rel=1e-5) and low == pytest.approx(1.2, rel=1e-5)
    assert low <= median <= high
    unpaired = np.median(random.permutation(1.2e6 * drift) / base)
    assert abs(unpaired - 1.2) > 0.01


@pytest.mark.parametrize("rounds", [5, 7, 11, 19, 49])
def test_interval_is_what_scipys_bootstrap_comes_to(rounds: int) -> None:
    """Our interval ends equal those of scipy's bootstrap with many resamples, or a neighbouring sorted ratio."""
    random = np.random.default_rng(rounds)
    for _ in range(3):
        ratios = np.sort(random.lognormal(0, 0.1, rounds))
        found = bootstrap((ratios,), np.median, method="percentile", n_resamples=20_000, rng=random).confidence_interval
        median, *ends = paired_ratio(ratios, np.ones(rounds))
        assert median == np.median(ratios)
        for end, scipys in zip(ends, found, strict=True):
            at = int(np.searchsorted(ratios, end))
            assert ratios[max(at - 1, 0)] <= scipys <= ratios[min(at + 1, rounds - 1)]


@pytest.mark.parametrize(("rounds", "low", "high", "percent"), [(9, 2, 8, 96.1), (19, 6, 14, 93.6), (67, 26, 42, 95.0)])
def test_the_ends_are_the_ranks_of_the_methodology(rounds: int, low: int, high: int, percent: float) -> None:
    """The interval runs from the `low`-th to the `high`-th sorted ratio, as docs/methodology.md says.

    By the binomial distribution it contains the true median in `percent` % of cases.
    """
    assert paired_ratio(np.arange(1, rounds + 1), np.ones(rounds)) == ((rounds + 1) // 2, low, high)
    held = binom.cdf(high - 1, rounds, 0.5) - binom.cdf(low - 1, rounds, 0.5)
    assert round(100 * float(held), 1) == percent


@pytest.mark.parametrize("trials", [0, 1, 7, 60, 1_054, 20_000])
@pytest.mark.parametrize("chance", [0.5, 0.95, 2 / 67])
def test_binomial_probabilities_are_scipys(trials: int, chance: float) -> None:
    found = binomial_cdf(trials, chance)
    assert found == pytest.approx(binom.cdf(np.arange(trials + 1), trials, chance), rel=1e-9, abs=1e-15)


def test_an_even_number_of_rounds_is_resampled_as_scipy_does() -> None:
    ratios = np.sort(np.random.default_rng(2).lognormal(0, 0.1, 20))
    found = bootstrap((ratios,), np.median, method="percentile", n_resamples=2_000, rng=np.random.default_rng(6))
    assert paired_ratio(ratios, np.ones(20), seed=6)[1:] == pytest.approx(tuple(found.confidence_interval), rel=1e-12)
