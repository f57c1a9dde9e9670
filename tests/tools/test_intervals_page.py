"""How often intervals hold the true median: docs/methodology.md against the binomial distribution and other draws."""

import re
from math import sqrt
from textwrap import dedent

import numpy as np
import pytest
from scipy.stats import binom

from kfbench.measure.cpu import paired_ratio
from tools.intervals_page import BLOCK, CELLS, DISTRIBUTIONS, METHODS, PAGE, ROUNDS, simulated

TEXT = PAGE.read_text(encoding="utf-8")
HERE = 3_000  # cells


def told(method: str, distribution: str, rounds: int) -> tuple[float, float]:
    """Share and half-width that the page tells."""
    (names,) = re.findall(r"^  \| Rounds \| (.*) \|$", TEXT, re.MULTILINE)
    (row,) = re.findall(rf"^  \| {rounds} \([\w, ]*\), {distribution} \| (.*) \|$", TEXT, re.MULTILINE)
    found = dict(zip(names.split(" | "), row.split(" | "), strict=True))[method]
    share, width = re.fullmatch(r"([\d.]+) %, ([\d.]+)", found).groups()  # type: ignore[union-attr]
    return float(share) / 100, float(width)


def exact(rounds: int) -> float:
    """The chance that as many rounds lie below the true median as keep it within the interval."""
    _, low, high = paired_ratio(np.arange(1, rounds + 1), np.ones(rounds))
    return float(binom.cdf(high - 1, rounds, 0.5) - binom.cdf(low - 1, rounds, 0.5))


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_table_is_what_other_draws_give(distribution: str, rounds: int) -> None:
    for method in ("Ours", "Order statistics"):
        held, width = simulated(method, distribution, rounds, HERE, seed=5)
        share, told_width = told(method, distribution, rounds)
        assert abs(held - share) < 4 * sqrt(share * (1 - share) * (1 / HERE + 1 / CELLS))
        assert width == pytest.approx(told_width, rel=0.04)
    share, _ = told("Ours", distribution, rounds)
    assert abs(share - exact(rounds)) < 4 * sqrt(share * (1 - share) / CELLS)


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("scipy")])
def test_scipys_bootstraps_are_within_their_error(method: str) -> None:
    held, _ = simulated(method, "normal", 9, 200, seed=5)
    share, _ = told(method, "normal", 9)
    assert abs(held - share) < 4 * sqrt(share * (1 - share) * (1 / 200 + 1 / METHODS[method][1]))


def test_what_the_text_says_of_the_ends_is_so() -> None:
    assert all(f"{100 * exact(rounds):.1f}" in TEXT for rounds in ROUNDS)
    assert "2nd and the 8th of 9" in TEXT and paired_ratio(np.arange(1, 10), np.ones(9)) == (5, 2, 8)
    assert "6th and the 14th of 19" in TEXT and paired_ratio(np.arange(1, 20), np.ones(19)) == (10, 6, 14)


def test_the_table_has_its_place_on_the_page() -> None:
    (found,) = re.findall(
        rf"^  {re.escape(BLOCK.begin)}\n(.*)\n  {re.escape(BLOCK.end)}$", TEXT, re.DOTALL | re.MULTILINE
    )
    assert BLOCK.spliced(TEXT, dedent(found)) == TEXT
