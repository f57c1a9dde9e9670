"""The spread between arms: intervals that are widened by it hold what they promise, on stored and on simulated rows."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from kfbench.comparison.timed_arms import arms_of
from kfbench.measure.cell import axes_of
from kfbench.measure.cpu import PairedRatio, paired_ratio
from kfbench.measure.noise import LEAST_INTERVALS, LEAST_ROUNDS, BasePair, base_pairs, held_out, spreads, timed_pairs
from kfbench.measure.schema import table
from kfbench.present.rows import Rows
from kfbench.report.sources.noise import to_base
from kfbench.store import open_run
from kfbench.sweep.definition.sweep_file import read
from kfbench.workloads.grid import GridPoint
from tests.runs import stored

ROOT = Path(__file__).parents[2]
RUNS = ("reports/2026-11-23.4", "reports/2026-11-24.1", "reports/2026-11-24.20", "datasets/joined/dictionary")
PROFILES = sorted(path.stem for path in (ROOT / "datasets" / "sweeps").glob("*.toml"))


@lru_cache
def pairs_of(run: str) -> list[BasePair]:
    return timed_pairs(open_run(ROOT / run).table)


def likely(holding: list[bool]) -> bool:
    """Return True if as many of so many 95 % intervals hold 1.0 with 95 % or more (two-sided binomial interval)."""
    least, most = binom.interval(0.95, len(holding), 0.95)
    return bool(least <= sum(holding) <= most)


@pytest.mark.parametrize("run", RUNS)
def test_intervals_of_stored_runs_hold_one_in_95_of_100_cells(run: str) -> None:
    """Each half of the cells is tested with the spread of the other half, over all kinds and for each kind."""
    pairs = pairs_of(run)
    found = held_out(pairs)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for pair, holds in zip(pairs, found, strict=True):
        by_kind[pair.kind].append(holds)
    assert len(found) > 700 and {kind for kind, holding in by_kind.items() if not likely(holding)} == set()
    assert likely(found)


def test_intervals_of_rounds_alone_hold_it_too_rarely() -> None:
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for each in pairs_of(RUNS[2]):
        _, low, high = each.ratio
        by_kind[each.kind].append(low <= 1 <= high)
    assert not likely(by_kind["prefix"]) and not likely([holds for each in by_kind.values() for holds in each])


def cells(
    count: int, bias: float, kind: str = "cpu", rounds: int = 19, seed: int = 1, **columns: Any
) -> Iterator[dict[str, Any]]:
    """Yield rows of v2, of v3 and of the A/A arm, whose arms differ by a random bias that no round shows."""
    random = np.random.default_rng(seed)
    common = {"kind": kind, "status": "ok", "grid": "g", "workload": "grid", "seed": seed, "codec": "none", "host": "h"}
    common |= {"operation": "encode", "cache": "resident", "records": 100, "inner_loops": 1, "batch_size": 10} | columns
    for i in range(count):
        for name, arm in (("v2", "measure"), ("v3", "measure"), ("v2", "aa")):
            cpu_ns = 1e6 * np.exp(random.normal(0, bias) + random.normal(0, 0.01, rounds))
            times = {"cpu_ns": cpu_ns.astype(np.int64).tolist(), "wall_ns": cpu_ns.astype(np.int64).tolist()}
            yield common | {"cell_id": f"{kind}{seed}-{i}", "format": name, "arm": arm} | times


def test_the_spread_of_some_cells_serves_others() -> None:
    (spread,) = spreads(table(cells(300, bias=0.02))).values()
    others = base_pairs(table(cells(400, bias=0.02, seed=2)))
    holding = [pair.ratio.widened(spread) for pair in others]
    assert 0.92 <= np.mean([low <= 1 <= high for _, low, high in holding]) <= 0.98
    assert np.mean([pair.ratio.low <= 1 <= pair.ratio.high for pair in others]) < 0.5
    assert spreads(table(cells(300, bias=0.0)))["cpu"] < 0.004  # 19 rounds alone hold 93.6 %


def test_kinds_with_few_arms_share_a_spread_and_kinds_without_have_none() -> None:
    few = LEAST_INTERVALS - 1
    rows = [*cells(LEAST_INTERVALS, 0.0), *cells(few, 0.05, "lookup"), *cells(few, 0.0, "record")]
    found = spreads(table(rows))
    assert found["lookup"] == found["record"] > 0.05 and found["cpu"] < 0.01
    assert spreads(table(cells(LEAST_INTERVALS // 2, 0.05))) == {"cpu": 0.0}
    assert spreads(table(cells(50, 0.05, rounds=LEAST_ROUNDS - 2))) == {}
    assert spreads(table(row for row in cells(50, 0.05) if row["arm"] != "aa")) == {}
    assert set(spreads(table([*cells(30, 0.05), *cells(30, 0.0, cache="cold", seed=2)]))) == {"cpu", "cpu, cold"}


def test_half_widths_add_in_quadrature() -> None:
    ratio = PairedRatio(1.1, 1.1 * np.exp(-0.03), 1.1 * np.exp(0.04))
    median, low, high = ratio.widened(0.03)
    assert (median, low, high) == pytest.approx((1.1, 1.1 * np.exp(-0.03 * 2**0.5), 1.1 * np.exp(0.05)))
    assert ratio.widened(0.0) == ratio
    assert PairedRatio(1.0, 0.0, 1.0).widened(0.1) == (1.0, 0.0, 1.0)  # a clock that stood still


def test_report_and_comparison_show_the_same_widened_interval(tmp_path: Path) -> None:
    run = stored(tmp_path, list(cells(40, bias=0.02, **axes_of(GridPoint()))))
    (spread,) = spreads(run.table).values()
    shown = to_base(Rows(run.measurements()), {"kind": "cpu", "format": "v3"}, {"format": "v2"})
    reported = dict(zip(shown["cell_id"], shown["ratio"], strict=True))
    compared = {timed.arm.row.cell_id: timed for timed in arms_of(run.table).values() if timed.arm.row.format == "v3"}
    assert reported.keys() == compared.keys() and len(reported) == 40 and spread > 0.02
    for cell, timed in compared.items():
        alone = paired_ratio(timed.arm.ns_per_record, timed.base.ns_per_record)
        wanted = pytest.approx(alone.widened(spread), abs=1e-4)
        for ratio in (timed.ratio, reported[cell]):
            assert (ratio.median, ratio.low, ratio.high) == wanted
        assert timed.ratio.high - timed.ratio.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_time_at_least_nine_rounds(name: str) -> None:
    file = read(name).file
    names = ("cpu", "broker", "dictionary", "rivals")
    settings = [getattr(of, name, None) for of in (file, *file.grid) for name in names]
    assert min(each.rounds for each in settings if each is not None) >= LEAST_ROUNDS
