"""Tables of random draws have the quantiles of their distribution, and the popularity of keys follows Zipf's law.

Draws from a table are in tests/kernels/test_workload.py.
"""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from kfbench.workloads.named.distributions import (
    ALIKE,
    QUANTILES,
    Distribution,
    Empirical,
    GeneralisedExtremeValue,
    GeneralisedPareto,
    KeyDistribution,
    Lognormal,
    Mixture,
    Uniform,
    WeightedChoice,
    coarse,
    lengths_table,
    mean,
    table,
    zipf,
)

ETC_KEYS = GeneralisedExtremeValue(mu=30.7984, sigma=8.20449, k=0.078688)
ETC_TAIL = GeneralisedPareto(theta=15, sigma=214.476, k=0.348238, whole="floor")
ETC_GAPS = GeneralisedPareto(sigma=16.0292, k=0.154971)
MIXGRAPH = GeneralisedPareto(sigma=25.45, k=0.2615, whole="ceil")

# The same distributions in scipy. Each also makes whole lengths.
MODELS: dict[str, tuple[Any, Any]] = {
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


P = (np.arange(QUANTILES) + 0.5) / QUANTILES


@pytest.mark.parametrize("name", MODELS)
def test_quantiles_of_the_model(name: str) -> None:
    """Each value is within 2**-19 of scipy's, because of `coarse`. Beside zero only their difference is small."""
    d, model = MODELS[name]
    assert np.allclose(table(d), model.ppf(P), rtol=2.0**-19, atol=1e-9)
    assert mean(d) == pytest.approx(model.mean(), rel=0.0005)


@pytest.mark.parametrize("name", MODELS)
def test_quantiles_of_lengths(name: str) -> None:
    """A length is rounded as the distribution says. Of 10,000 quantiles, one may lie at the edge of two lengths."""
    d, model = MODELS[name]
    if isinstance(d, Uniform):
        expected = stats.randint(d.low, d.high + 1).ppf(P)
    else:
        expected = {"round": np.rint, "floor": np.floor, "ceil": np.ceil}[d.whole](model.ppf(P))
    off = np.abs(lengths_table(d) - expected)
    assert off.max() <= 1 and np.mean(off) <= 1e-4


def test_choice_follows_its_weights() -> None:
    lengths = lengths_table(WeightedChoice(values=(5, 0, 9), weights=(3, 0, 1)))
    assert np.unique(lengths, return_counts=True)[1].tolist() == [49_152, 16_384]
    alike = np.bincount(lengths_table(WeightedChoice(values=(4, 2, 7))), minlength=8)
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
    assert np.quantile(lengths_table(d), p[inner]) == pytest.approx(values[inner], rel=0.02)
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


def test_a_table_is_made_once_and_cannot_be_changed() -> None:
    d, again = (msgspec.toml.decode(b'dist = "uniform"\nlow = 3\nhigh = 9', type=Distribution) for _ in range(2))
    for made in (table, lengths_table):
        assert made(d) is made(again)
        with pytest.raises(ValueError, match="read-only"):
            made(d)[0] = 1


def test_a_mixture_has_the_tables_of_its_parts_by_weight() -> None:
    parts = WeightedChoice(values=(0, 7)), ETC_TAIL
    mixture = Mixture(weights=(3, 1), parts=parts)
    for quantiles, of_part in ((table(mixture), "quantiles"), (lengths_table(mixture), "whole_quantiles")):
        shares = (QUANTILES * 3 // 4, QUANTILES // 4)
        expected = [getattr(part, of_part)(share) for part, share in zip(parts, shares, strict=True)]
        assert np.array_equal(quantiles, np.sort(np.concatenate(expected)))


# Keys

SEED, MANY = 11, 2**22


def shares_of(table: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return the probability of each cell of the alias table.

    It is the cell's own share plus the shares that other cells give to it.
    """
    keep = (table >> np.uint64(32)).astype(np.float64) / 2**32
    other = (table & np.uint64(0xFFFFFFFF)).astype(np.int64)
    shares = keep + np.bincount(other, weights=1 - keep, minlength=len(table))
    return shares / len(table)


@pytest.mark.sampled
@pytest.mark.parametrize("skew", [0.0, 0.01, 0.5, 0.99, 1.0, 1.2, 2.68, 10.0])
@pytest.mark.parametrize("cardinality", [1, 2, 3, 1_000, 4_096, 100_003, 1_000_000])
def test_the_groups_have_the_law_in_them(cardinality: int, skew: float) -> None:
    groups = zipf(cardinality, skew)
    assert np.array_equal(groups.firsts, np.cumsum(groups.widths) - groups.widths)
    assert groups.widths.sum() == cardinality and len(groups.firsts) <= (2**17 if skew > 3 else 2**16)
    law = np.arange(1, cardinality + 1) ** -skew
    law /= math.fsum(law)
    of_groups = np.add.reduceat(law, groups.firsts)
    assert np.allclose(groups.shares, of_groups, rtol=1e-6, atol=0)
    assert np.allclose(np.repeat(groups.shares / groups.widths, groups.widths.astype(int)), law, rtol=ALIKE, atol=0)
    drawn = shares_of(groups.table)
    assert np.allclose(drawn[: len(of_groups)], of_groups, rtol=1e-6, atol=2.0**-32 / len(drawn))
    assert drawn[len(of_groups) :].sum() == 0


def test_more_keys_than_a_table_of_all_could_hold() -> None:
    """The share of the first million of 2**40 keys equals a formula.

    The n-th harmonic number is about ln n + Euler's constant + 1/2n.
    """
    few, all_keys = (math.log(n) + np.euler_gamma + 1 / (2 * n) for n in (1_000_000, 2**40))
    groups = zipf(2**40, 1.0)
    until = int(np.searchsorted(groups.firsts, 1_000_000))
    beyond = (groups.firsts[until] - 1_000_000) / groups.widths[until - 1] * groups.shares[until - 1]
    assert groups.shares[:until].sum() - beyond == pytest.approx(few / all_keys, rel=1e-6)
    ids = KeyDistribution(cardinality=2**40, skew=1.0).ids(SEED, 0, MANY)
    assert np.mean(ids < 1_000_000) == pytest.approx(few / all_keys, rel=0.002)
    assert 2**39 < ids.max() < 2**40


def test_without_a_cardinality_each_record_has_its_own_and_in_turn_they_come_round() -> None:
    assert KeyDistribution().ids(1, 5, 3).tolist() == [5, 6, 7]
    assert KeyDistribution(cardinality=3, in_turn=True).ids(1, 5, 5).tolist() == [2, 0, 1, 2, 0]
