"""Writes into docs/methodology.md, between two markers, how often intervals of a median hold the true one.

usage: intervals_page.py

Simulated, with fixed seeds, in half a minute: rounds of a known median, and what kfbench.measure.cpu.paired_ratio,
three of scipy's bootstraps and interpolated order statistics make of them. tests/tools/test_intervals_page.py holds
what stands there against the binomial distribution, and against other draws.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap

from kfbench.measure.cpu import CONFIDENCE, RESAMPLES, paired_ratio
from tools.block import Block

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "methodology.md"
BLOCK: Final = Block(page=PAGE, name="intervals", by="`make intervals`")
ROUNDS: Final = {9: "broker", 19: "cold CPU", 67: "CPU, prefix"}
CELLS: Final = 30_000
BOOTSTRAP_CELLS: Final = 1_000

Samples: TypeAlias = NDArray[np.float64]  # [cells, rounds]
Ends: TypeAlias = tuple[Samples, Samples]

# Of median 0 and standard deviation 1.
DISTRIBUTIONS: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Samples]]] = {
    "normal": lambda random, shape: random.normal(0, 1, shape),
    "Laplace": lambda random, shape: random.laplace(0, 0.5**0.5, shape),
}


def ours(rounds: Samples) -> Ends:
    found = np.array([paired_ratio(each, np.ones(len(each))) for each in rounds])
    return found[:, 1], found[:, 2]


def order_statistics(rounds: Samples) -> Ends:
    """Hettmansperger and Sheather, Confidence intervals based on interpolated order statistics, Statistics and
    Probability Letters 4 (1986) 75."""
    n = rounds.shape[1]
    held = 1 - 2 * binom.cdf(np.arange(n // 2 + 1) - 1, n, 0.5)  # by the k-th of each side
    k = int(np.flatnonzero(held >= CONFIDENCE)[-1])
    part = (held[k] - CONFIDENCE) / (held[k] - held[k + 1])
    inward = (n - k) * part / (k + (n - 2 * k) * part)
    ordered = np.sort(rounds, axis=1)
    low = (1 - inward) * ordered[:, k - 1] + inward * ordered[:, k]
    high = (1 - inward) * ordered[:, n - k] + inward * ordered[:, n - k - 1]
    return low, high


def scipys(method: str) -> Callable[[Samples], Ends]:
    def ends(rounds: Samples) -> Ends:
        found = bootstrap(
            (rounds,), np.median, axis=1, method=method, n_resamples=RESAMPLES, batch=100, rng=np.random.default_rng(2)
        ).confidence_interval
        return found.low, found.high

    return ends


METHODS: Final[Mapping[str, tuple[Callable[[Samples], Ends], int]]] = {
    "Ours": (ours, CELLS),
    "Order statistics": (order_statistics, CELLS),
    "scipy percentile": (scipys("percentile"), BOOTSTRAP_CELLS),
    "scipy BCa": (scipys("BCa"), BOOTSTRAP_CELLS),
    "scipy basic": (scipys("basic"), BOOTSTRAP_CELLS),
}


def simulated(method: str, distribution: str, rounds: int, cells: int, seed: int = 1) -> tuple[float, float]:
    """(share of cells whose interval holds the true median, half the mean width in standard deviations of a round)."""
    samples = DISTRIBUTIONS[distribution](np.random.default_rng(seed), (cells, rounds))
    low, high = METHODS[method][0](samples)
    return float(np.mean((low <= 0) & (high >= 0))), float(np.mean(high - low)) / 2


def table() -> str:
    lines = [f"| Rounds | {' | '.join(METHODS)} |", "| --- |" + " --- |" * len(METHODS)]
    for rounds, what in ROUNDS.items():
        for distribution in DISTRIBUTIONS:
            found = (simulated(name, distribution, rounds, cells) for name, (_, cells) in METHODS.items())
            shown = (f"{100 * held:.1f} %, {width:.2f}" for held, width in found)
            lines.append(f"| {rounds} ({what}), {distribution} | {' | '.join(shown)} |")
    return "\n".join(["", *lines, ""])  # Markdown wants an empty line around a table within an item


def main() -> None:
    BLOCK.write(table())


if __name__ == "__main__":
    main()
