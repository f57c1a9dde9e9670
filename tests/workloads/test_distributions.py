"""Random draws follow their distribution: moments and quantiles within 2 %, and a Kolmogorov-Smirnov test."""

import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from kfbench.errors import InvalidConfig
from kfbench.workloads.named.distributions import (
    Choice,
    Distribution,
    Empirical,
    Fixed,
    GeneralisedExtremeValue,
    GeneralisedPareto,
    Lognormal,
    Mixture,
    Uniform,
    coarse,
    draw,
    lengths_table,
    mean,
    table,
)

SEED, PURPOSE = 20_260_101, 3
MANY = 2**21  # 2,097 of these draws are above the 99.9 % quantile
SAMPLE, SIGNIFICANCE = 400_000, 0.01
CRITICAL = float(stats.kstwobign.isf(SIGNIFICANCE)) / SAMPLE**0.5
BELOW_15 = (
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837, 0.00837, 0.08989, 0.00092,
    0.00326, 0.01980,
)  # fmt: skip

ETC_KEYS = GeneralisedExtremeValue(mu=30.7984, sigma=8.20449, k=0.078688)
ETC_TAIL = GeneralisedPareto(theta=15, sigma=214.476, k=0.348238, whole="floor")
ETC_VALUES = Mixture(
    weights=(sum(BELOW_15), 1 - sum(BELOW_15)), parts=(Choice(values=tuple(range(15)), weights=BELOW_15), ETC_TAIL)
)
ETC_GAPS = GeneralisedPareto(sigma=16.0292, k=0.154971)
MIXGRAPH = GeneralisedPareto(sigma=25.45, k=0.2615, whole="ceil")

# The same distributions in scipy. Each is also drawn as whole lengths.
MODELS: dict[str, tuple[Distribution, Any]] = {
    "uniform": (Uniform(low=3, high=1_000), stats.uniform(3, 997)),
    "lognormal by mean": (Lognormal(mean=212, sigma=0.9), stats.lognorm(0.9, scale=212 * np.exp(-0.405))),
    "lognormal by median": (Lognormal(median=300, sigma=0.4), stats.lognorm(0.4, scale=300)),
    "exponential": (GeneralisedPareto(theta=7, sigma=90, k=0), stats.expon(7, 90)),
    "a pareto that ends": (GeneralisedPareto(sigma=100, k=-0.5), stats.genpareto(-0.5, 0, 100)),
    "etc tail": (ETC_TAIL, stats.genpareto(0.348238, 15, 214.476)),
    "etc gaps": (ETC_GAPS, stats.genpareto(0.154971, 0, 16.0292)),
    "mixgraph values": (MIXGRAPH, stats.genpareto(0.2615, 0, 25.45)),
    "etc keys": (ETC_KEYS, stats.genextreme(-0.078688, 30.7984, 8.20449)),
    "gumbel": (GeneralisedExtremeValue(mu=200, sigma=20, k=0), stats.gumbel_r(200, 20)),
}


def distance(drawn: NDArray[Any], cdf: Callable[[Any], Any]) -> float:
    """Return the Kolmogorov-Smirnov distance of draws to `cdf`.

    For whole numbers, `cdf` is also compared just below each value.
    """
    values, counts = np.unique(drawn, return_counts=True)
    until = np.cumsum(counts) / counts.sum()
    at, below = cdf(values), cdf(np.nextafter(values, -np.inf))
    return float(max(np.abs(until - at).max(), np.abs(np.concatenate([[0], until[:-1]]) - below).max()))


@pytest.mark.parametrize("name", MODELS)
def test_moments_and_quantiles_of_the_model(name: str) -> None:
    d, model = MODELS[name]
    p = [0.5, 0.9, 0.99, 0.999]
    drawn = draw(table(d), SEED, PURPOSE, 0, MANY)
    assert drawn.mean() == pytest.approx(model.mean(), rel=0.02)
    assert np.quantile(drawn, p) == pytest.approx(model.ppf(p), rel=0.02)
    assert mean(d) == pytest.approx(model.mean(), rel=0.0005)
    assert np.quantile(table(d), p, method="hazen") == pytest.approx(model.ppf(p), rel=0.0005)


@pytest.mark.parametrize("name", MODELS)
def test_kolmogorov_smirnov(name: str) -> None:
    d, model = MODELS[name]
    assert distance(draw(table(d), SEED, PURPOSE, 0, SAMPLE), model.cdf) < CRITICAL


@pytest.mark.parametrize("name", MODELS)
def test_kolmogorov_smirnov_of_lengths(name: str) -> None:
    """A drawn length k stands for all real values that are rounded to k."""
    d, model = MODELS[name]
    up = {"round": 0.5, "floor": 1.0, "ceil": 0.0}[getattr(d, "whole", "round")]

    def cdf(value: NDArray[np.float64]) -> Any:
        if isinstance(d, Uniform):
            return np.clip((np.floor(value) + 1 - d.low) / (d.high - d.low + 1), 0, 1)
        return model.cdf(np.floor(value) + up)

    assert distance(draw(lengths_table(d), SEED, PURPOSE, 0, SAMPLE), cdf) < CRITICAL


def test_choice_follows_its_weights() -> None:
    assert np.unique(lengths_table(Choice(values=(5, 0, 9), weights=(3, 0, 1))), return_counts=True)[1].tolist() == [
        49_152, 16_384,
    ]  # fmt: skip
    alike = np.bincount(lengths_table(Choice(values=(4, 2, 7))), minlength=8)
    assert set(alike.tolist()) == {0, 21_845, 21_846}


def test_uniform_lengths_are_equally_likely_ends_included() -> None:
    counts = np.bincount(lengths_table(Uniform(low=1, high=10)), minlength=11)
    assert counts[0] == 0 and set(counts[1:].tolist()) <= {6_553, 6_554}
    assert set(lengths_table(Uniform(low=7, high=7)).tolist()) == {7}


@pytest.mark.parametrize(
    "points", [[(0.05, 19), (0.5, 39), (0.95, 80)], [(0.0, 4), (0.5, 84), (0.95, 1_344), (1, 9_000)]]
)
def test_empirical_quantiles_are_the_points(points: list[tuple[float, float]]) -> None:
    d = Empirical(points=tuple(points))
    p, values = np.array(points).T
    inner = (p > 0) & (p < 1)
    assert np.quantile(table(d), p[inner]) == pytest.approx(values[inner], rel=0.001)
    drawn = draw(lengths_table(d), SEED, PURPOSE, 0, MANY)
    assert np.quantile(drawn, p[inner]) == pytest.approx(values[inner], rel=0.02)
    between = np.log(np.quantile(table(d), (p[:-1] + p[1:]) / 2))
    assert between == pytest.approx((np.log(values[:-1]) + np.log(values[1:])) / 2, rel=0.001)


def test_an_empirical_tail_goes_on_as_the_segment_beside_it() -> None:
    d = Empirical(points=((0.1, 10), (0.9, 1_000)))
    step = 100 ** (1 / 8)
    assert table(d)[[0, -1]] == pytest.approx([10 / step, 1_000 * step], rel=0.001)
    assert table(Empirical(points=((0.1, 10), (0.9, 1_000)), cap=1_100))[-1] == 1_100


def test_empirical_from_zero_is_linear() -> None:
    zero = table(Empirical(points=((0.5, 0), (1.0, 8))))
    assert np.quantile(zero, [0.25, 0.75]) == pytest.approx([0, 4], abs=0.001)
    assert zero[0] == 0


def test_coarse_values_have_20_bits_and_forget_the_last_of_53() -> None:
    values = np.concatenate([[0.0], table(Lognormal(mean=1, sigma=9)) * np.pi])
    found = coarse(values)
    assert np.abs(found - values).max(where=values > 0, initial=0) <= values.max() * 2.0**-20
    assert np.all(np.abs(found - values) <= values * 2.0**-20)
    assert np.array_equal(np.ldexp(np.frexp(found)[0], 20) % 1, np.zeros(len(found)))
    for beside in (np.inf, -np.inf):
        assert np.array_equal(coarse(np.nextafter(values[1:], beside)), found[1:])


def test_low_and_cap_move_what_lies_outside() -> None:
    d = GeneralisedPareto(sigma=100, k=0.2, low=20, cap=300)
    plain, held = (table(each) for each in (GeneralisedPareto(sigma=100, k=0.2), d))
    assert np.array_equal(held, np.clip(plain, 20, 300))
    assert lengths_table(d)[[0, -1]].tolist() == [20, 300]
    assert lengths_table(GeneralisedPareto(sigma=100, k=0.2, low=0, whole="floor"))[0] == 0


DISTRIBUTIONS: tuple[Distribution, ...] = (
    Fixed(value=100), Uniform(low=0, high=9), Lognormal(mean=212, sigma=0.9), ETC_KEYS, ETC_VALUES, MIXGRAPH,
    Choice(values=(1, 5)), Empirical(points=((0.1, 10), (0.9, 1_000))),
)  # fmt: skip


@given(
    st.sampled_from(DISTRIBUTIONS), st.integers(0, 2**63 - 1), st.integers(0, 99), st.integers(0, 2**40),
    st.integers(0, 40), st.integers(0, 40),
)  # fmt: skip
def test_a_record_has_its_length_whatever_else_is_drawn(
    d: Distribution, seed: int, purpose: int, start: int, skipped: int, count: int
) -> None:
    whole = draw(lengths_table(d), seed, purpose, start, skipped + count)
    assert np.array_equal(whole[skipped:], draw(lengths_table(d), seed, purpose, start + skipped, count))
    gaps = draw(table(d), seed, purpose, start, skipped + count)
    assert np.array_equal(gaps[skipped:], draw(table(d), seed, purpose, start + skipped, count))


@pytest.mark.parametrize("d", DISTRIBUTIONS, ids=lambda d: type(d).__name__)
def test_a_distribution_is_a_value_and_comes_from_toml(d: Distribution) -> None:
    text = msgspec.json.encode(d)
    again = msgspec.json.decode(text, type=Distribution)
    assert again == d and hash(again) == hash(d)
    assert pickle.loads(pickle.dumps(d)) == d
    assert lengths_table(again) is lengths_table(d)
    with pytest.raises(ValueError, match="read-only"):
        table(d)[0] = 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('dist = "uniform"\nlow = 5\nhigh = 4', "low: 5.0 is above high, 4.0"),
        ('dist = "fixed"\nvalue = nan', "value: not a finite number"),
        ('dist = "lognormal"\nmean = 5\nsigma = 0', "sigma: 0.0 is not above 0"),
        ('dist = "lognormal"\nsigma = 1', "either mean or median"),
        ('dist = "lognormal"\nsigma = 1\nmean = 1\nmedian = 1', "either mean or median"),
        ('dist = "lognormal"\nsigma = 1\nmean = -1', "mean: not above 0"),
        ('dist = "generalised-pareto"\nsigma = 1\nk = 1', "k: 1.0 is not below 1"),
        ('dist = "generalised-pareto"\nsigma = -1\nk = 0.2', "sigma: -1.0 is not above 0"),
        ('dist = "generalised-pareto"\nsigma = 1\nk = 0.2\nlow = 9\ncap = 8', "low: 9.0 is above cap, 8.0"),
        ('dist = "generalised-extreme-value"\nmu = 0\nsigma = 1\nk = 2', "k: 2.0 is not below 1"),
        ('dist = "generalised-extreme-value"\nmu = 0\nsigma = 0\nk = 0', "sigma: 0.0 is not above 0"),
        ('dist = "choice"\nvalues = []', "values: empty"),
        ('dist = "choice"\nvalues = [1, 2]\nweights = [1]', "weights: 1 for 2"),
        ('dist = "choice"\nvalues = [1, inf]', "values: not a finite number"),
        ('dist = "choice"\nvalues = [1, 2]\nweights = [1, -1]', "weights: one is negative"),
        ('dist = "mixture"\nweights = []\nparts = []', "parts: empty"),
        ('dist = "mixture"\nweights = [0]\nparts = [{ dist = "fixed", value = 1 }]', "none is above 0"),
        ('dist = "empirical"\npoints = [[0.5, 1]]', "at least two"),
        ('dist = "empirical"\npoints = [[0.5, 1], [0.4, 2]]', "not rising probabilities"),
        ('dist = "empirical"\npoints = [[0.5, 3], [0.6, 2]]', "not rising values"),
        ('dist = "fixed"\nvalue = 1\nmean = 1', "unknown field `mean`"),
        ('dist = "normal"\nmean = 1', "Invalid value 'normal'"),
    ],
)
def test_invalid_distributions_are_refused(text: str, said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        msgspec.toml.decode(text, type=Distribution)


@pytest.mark.parametrize(
    "d",
    [Fixed(value=-1), Fixed(value=2**31), GeneralisedExtremeValue(mu=5, sigma=5, k=0), Lognormal(mean=1e9, sigma=3)],
)
def test_what_is_no_length(d: Distribution) -> None:
    with pytest.raises(InvalidConfig, match=r"lengths from .* 0 to 2147483647"):
        lengths_table(d)
    assert len(draw(table(d), SEED, PURPOSE, 0, 3)) == 3
