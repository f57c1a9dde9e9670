"""The table of intervals in docs/methodology.md agrees with the binomial distribution and with a simulation."""

import re
from math import sqrt
from textwrap import dedent

import numpy as np
import pytest
from scipy.stats import binom

from kfbench.measure.cpu import paired_ratio
from tools.block import Block
from tools.intervals_page import (
    BLOCK,
    CELLS,
    DISTRIBUTIONS,
    METHODS,
    PAGE,
    ROUNDS,
    STORED,
    Simulated,
    simulated,
    stored_table,
)

TEXT = PAGE.read_text(encoding="utf-8")
HERE = 3_000  # simulated cells


def on_page(method: str, distribution: str, rounds: int) -> Simulated:
    (names,) = re.findall(r"^  \| Rounds \| (.*) \|$", TEXT, re.MULTILINE)
    (row,) = re.findall(rf"^  \| {rounds} \([\w, ]*\), {distribution} \| (.*) \|$", TEXT, re.MULTILINE)
    found = dict(zip(names.split(" | "), row.split(" | "), strict=True))[method]
    share, width = re.fullmatch(r"([\d.]+) %, ([\d.]+)", found).groups()  # type: ignore[union-attr]
    return Simulated(float(share) / 100, float(width))


def exact(rounds: int) -> float:
    """Return the probability that the interval contains the true median, from the binomial distribution."""
    _, low, high = paired_ratio(np.arange(1, rounds + 1), np.ones(rounds))
    return float(binom.cdf(high - 1, rounds, 0.5) - binom.cdf(low - 1, rounds, 0.5))


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_table_is_what_other_draws_give(distribution: str, rounds: int) -> None:
    for method in ("Ours", "Order statistics"):
        found = simulated(method, distribution, rounds, HERE, seed=5)
        share, half_width = on_page(method, distribution, rounds)
        assert abs(found.share - share) < 4 * sqrt(share * (1 - share) * (1 / HERE + 1 / CELLS))
        assert found.half_width == pytest.approx(half_width, rel=0.04)
    share = on_page("Ours", distribution, rounds).share
    assert abs(share - exact(rounds)) < 4 * sqrt(share * (1 - share) / CELLS)


@pytest.mark.parametrize("method", [name for name in METHODS if name.startswith("scipy")])
def test_scipys_bootstraps_are_within_their_error(method: str) -> None:
    found, share = simulated(method, "normal", 9, 200, seed=5).share, on_page(method, "normal", 9).share
    assert abs(found - share) < 4 * sqrt(share * (1 - share) * (1 / 200 + 1 / METHODS[method][1]))


def test_the_text_has_the_right_ends_and_chances() -> None:
    assert all(f"{100 * exact(rounds):.1f}" in TEXT for rounds in ROUNDS)
    assert "2nd and the 8th of 9" in TEXT and paired_ratio(np.arange(1, 10), np.ones(9)) == (5, 2, 8)
    assert "6th and the 14th of 19" in TEXT and paired_ratio(np.arange(1, 20), np.ones(19)) == (10, 6, 14)


@pytest.mark.parametrize("block", [BLOCK, STORED])
def test_the_table_has_its_place_on_the_page(block: Block) -> None:
    (found,) = re.findall(
        rf"^  {re.escape(block.begin)}\n(.*)\n  {re.escape(block.end)}$", TEXT, re.DOTALL | re.MULTILINE
    )
    assert block.spliced(TEXT, dedent(found)) == TEXT


def test_the_shares_of_stored_runs_are_those_of_their_rows() -> None:
    assert STORED.spliced(TEXT, stored_table()) == TEXT
