"""Write two tables into docs/methodology.md: how often an interval contains what it should, simulated and stored.

usage: intervals_page.py

Measurements with a known median are simulated with fixed seeds, which takes half a minute. Their intervals are computed
by kfbench.measure.cpu.paired_ratio, by three of scipy's bootstraps, and from interpolated order statistics.
tests/tools/test_intervals_page.py compares the page with the binomial distribution and with other random draws.

The second table has the A/A arms of stored runs: the share of intervals that contain 1.0, from the rounds alone and
widened by the spread between arms (kfbench.measure.noise.spreads).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, bootstrap

from kfbench.measure.cpu import CONFIDENCE, RESAMPLES, paired_ratio
from kfbench.measure.noise import LEAST_INTERVALS, HeldOut, held_out, spreads, timed_pairs
from kfbench.store import open_run
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "methodology.md"
STORED: Final = Block(page=PAGE, name="coverage", by="`make intervals`")
RUNS: Final = ("reports/2026-11-24.20", "reports/2026-11-24.1", "reports/2026-11-23.4", "datasets/joined/dictionary")
BLOCK: Final = Block(page=PAGE, name="intervals", by="`make intervals`")
ROUNDS: Final = {9: "broker", 19: "cold CPU", 67: "CPU, prefix"}
CELLS: Final = 30_000
BOOTSTRAP_CELLS: Final = 1_000

Samples: TypeAlias = NDArray[np.float64]  # [cells, rounds]: simulated results; a cell is one simulated measurement


class Ends(NamedTuple):
    low: NDArray[np.float64]  # [cells], the lower end of each interval
    high: NDArray[np.float64]  # [cells], the upper end


class Simulated(NamedTuple):
    share: float  # the share of intervals that contain the true median
    half_width: float  # half of the mean width of an interval, in standard deviations of a round


# Distributions with median 0 and standard deviation 1.
DISTRIBUTIONS: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Samples]]] = {
    "normal": lambda random, shape: random.normal(0, 1, shape),
    "Laplace": lambda random, shape: random.laplace(0, 0.5**0.5, shape),
}


def ours(rounds: Samples) -> Ends:
    found = np.array([paired_ratio(each, np.ones(len(each))) for each in rounds])
    return Ends(found[:, 1], found[:, 2])


def order_statistics(rounds: Samples) -> Ends:
    """Compute the interval of each row's median from interpolated order statistics.

    Source: Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics" (Statistics and
    Probability Letters 4 (1986) 75).
    """
    n = rounds.shape[1]
    # The probability that the k-th smallest and the k-th largest value enclose the median, for each k.
    coverage = 1 - 2 * binom.cdf(np.arange(n // 2 + 1) - 1, n, 0.5)
    k = int(np.flatnonzero(coverage >= CONFIDENCE)[-1])
    part = (coverage[k] - CONFIDENCE) / (coverage[k] - coverage[k + 1])
    inward = (n - k) * part / (k + (n - 2 * k) * part)
    ordered = np.sort(rounds, axis=1)
    low = (1 - inward) * ordered[:, k - 1] + inward * ordered[:, k]
    high = (1 - inward) * ordered[:, n - k] + inward * ordered[:, n - k - 1]
    return Ends(low, high)


def scipys(method: str) -> Callable[[Samples], Ends]:
    def ends(rounds: Samples) -> Ends:
        found = bootstrap(
            (rounds,), np.median, axis=1, method=method, n_resamples=RESAMPLES, batch=100, rng=np.random.default_rng(2)
        ).confidence_interval
        return Ends(found.low, found.high)

    return ends


METHODS: Final[Mapping[str, tuple[Callable[[Samples], Ends], int]]] = {
    "Ours": (ours, CELLS),
    "Order statistics": (order_statistics, CELLS),
    "scipy percentile": (scipys("percentile"), BOOTSTRAP_CELLS),
    "scipy BCa": (scipys("BCa"), BOOTSTRAP_CELLS),
    "scipy basic": (scipys("basic"), BOOTSTRAP_CELLS),
}


def simulated(method: str, distribution: str, rounds: int, cells: int, seed: int = 1) -> Simulated:
    samples = DISTRIBUTIONS[distribution](np.random.default_rng(seed), (cells, rounds))
    low, high = METHODS[method][0](samples)
    return Simulated(float(np.mean((low <= 0) & (high >= 0))), float(np.mean(high - low)) / 2)


def table() -> str:
    lines = [f"| Rounds | {' | '.join(METHODS)} |", "| --- |" + " --- |" * len(METHODS)]
    for rounds, what in ROUNDS.items():
        for distribution in DISTRIBUTIONS:
            found = (simulated(name, distribution, rounds, cells) for name, (_, cells) in METHODS.items())
            shown = (f"{100 * each.share:.1f} %, {each.half_width:.2f}" for each in found)
            lines.append(f"| {rounds} ({what}), {distribution} | {' | '.join(shown)} |")
    return "\n".join(["", *lines, ""])  # in a list item, Markdown needs empty lines around a table


def stored_table() -> str:
    """Return the shares of A/A intervals that contain 1.0, by run and kind. Kinds with few arms share a row."""
    lines = ["| Run | Kind | Arms | Rounds alone | Even cells | Odd cells | All | Chance | Spread |"]
    lines.append("| --- | --- |" + " ---: |" * 7)
    for run in RUNS:
        rows = open_run(ROOT / run).table
        found, of_kind = held_out(timed_pairs(rows)), spreads(rows)
        counts = Counter(each.pair.kind for each in found)
        small = [kind for kind, count in counts.items() if count < LEAST_INTERVALS]
        groups = [[kind] for kind in counts if kind not in small] + ([small] if small else [])
        for kinds in groups:
            of_kinds = [each for each in found if each.pair.kind in kinds]
            lines.append(_stored_row(run, "; ".join(kinds), of_kinds, f"{100 * of_kind[kinds[0]]:.2f} %"))
        if len(groups) > 1:
            lines.append(_stored_row(run, "all kinds", found, ""))
    return "\n".join(["", *lines, ""])


def _stored_row(run: str, kind: str, found: Sequence[HeldOut], spread: str) -> str:
    alone = [each.pair.ratio.low <= 1 <= each.pair.ratio.high for each in found]
    halves = [[each.holds for each in found if each.half == half] for half in (0, 1)]
    shares = (f"{100 * np.mean(holding):.1f} %" for holding in (alone, *halves, [each.holds for each in found]))
    least, most = (100 * count / len(found) for count in binom.interval(0.95, len(found), CONFIDENCE))
    chance = f"{least:.1f}–{most:.1f} %"
    return f"| {Path(run).name} | {kind} | {len(found):,} | {' | '.join(shares)} | {chance} | {spread} |"


def main() -> None:
    BLOCK.write(table())
    STORED.write(stored_table())


if __name__ == "__main__":
    main()
