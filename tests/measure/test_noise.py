"""Noise of a run's CPU times: checks that each see what breaks them, and the spread between arms of the same call."""

import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
from scipy.stats import binom, binomtest

from kfbench.comparison.timed_arms import arms_of
from kfbench.measure.cell import axes_of
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.host_counters import counted_since, host_counters, yardstick_ns
from kfbench.measure.noise import (
    LEAST_INTERVALS,
    LEAST_ROUNDS,
    BasePair,
    base_pairs,
    checks,
    held_out,
    least_that_hold,
    noise_facts,
    spreads,
    timed_pairs,
)
from kfbench.measure.schema import table
from kfbench.present.rows import Rows
from kfbench.report.sources.noise import to_base
from kfbench.store import open_run
from kfbench.sweep.definition.sweep_file import SWEEPS, read
from kfbench.workloads.grid import GridPoint
from tests.runs import stored

ROOT = Path(__file__).parents[2]
RUNS = ("reports/2026-11-23.4", "reports/2026-11-24.1", "reports/2026-11-24.20", "datasets/joined/dictionary")
CELLS = 60
QUIET = {"watched_ns": 300_000_000, "others_cpu_ns": 3_000_000, "stolen_ns": 0, "yardstick_ns": 70_000}


def rows(
    cells: int = CELLS, bias: float = 0.0, noise: float = 0.01, again: float = 1.0, rounds: int = 19, **columns: Any
) -> pa.Table:
    """Return timed rows of v2, v3, and v2 a second time (the A/A arm).

    Args:
        bias: how much arms differ, in a way that no round shows.
        again: CPU time of the second v2 divided by the first one's.
        columns: values that replace those of all rows.
    """
    given: dict[str, Any] = {"kind": "cpu", "seed": 1} | columns
    random = np.random.default_rng(given["seed"])
    common: dict[str, Any] = {
        "status": "ok",
        "grid": "g",
        "workload": "grid",
        "codec": "none",
        "host": "h",
        "operation": "encode",
    }
    common |= {"cache": "resident", "records": 100, "inner_loops": 1, "batch_size": 10} | QUIET | given
    found = []
    for i in range(cells):
        for name, arm, times in (("v2", "measure", 1.0), ("v3", "measure", 0.9), ("v2", "aa", again)):
            cpu_ns = 1e6 * times * np.exp(random.normal(0, bias) + random.normal(0, noise, rounds))
            row = common | {"cell_id": f"{given['kind']}{given['seed']}-{i}", "format": name, "arm": arm}
            found.append(row | {"cpu_ns": cpu_ns.astype(int).tolist(), "wall_ns": (cpu_ns * 1.01).astype(int).tolist()})
    return table(found)


def changed(found: pa.Table, change: Callable[[int, Any], Any], *names: str) -> pa.Table:
    """Return a table in which `change` gave the values of some columns, from their row's number and their value."""
    for name in names:
        at, field = found.schema.get_field_index(name), found.schema.field(name)
        values = [change(i, value) for i, value in enumerate(found[name].to_pylist())]
        found = found.set_column(at, field, pa.array(values, field.type))
    return found


def failed(found: pa.Table) -> list[str]:
    return [check.name for check in checks(found) if not check.passed]


# The host and its checks

TIMES = "cpu_ns", "wall_ns"
BROKEN = {
    "others": (rows(others_cpu_ns=90_000_000), ["cores that others used"], "0.30 cores"),
    "hypervisor": (rows(stolen_ns=6_000_000), ["cores that the hypervisor took"], "0.020 cores"),
    "second arm": (rows(again=1.05), ["A/A half-width", "A/A spread between arms"], "(cpu)"),
    "noise": (rows(noise=0.08), ["A/A half-width"], "1 ± "),
    "few rounds": (rows(noise=0.08, rounds=5), ["A/A half-width"], "1 ± "),  # they promise no 95 %
    "clock": (
        changed(rows(), lambda i, ns: ns * 2 if i > 100 else ns, "yardstick_ns"), ["swing of the host's speed"], "100"
    ),
    "waits": (
        changed(rows(), lambda i, ns: [2 * each if j % 10 == 0 else each for j, each in enumerate(ns)], "wall_ns"),
        ["samples that waited"], "1.1 times",
    ),
    "warm-up": (
        changed(rows(), lambda i, ns: [int(ns[0] * 1.05), *ns[1:]], *TIMES), ["first rounds above the rest"], "5",
    ),
}  # fmt: skip


def test_a_quiet_run_passes_all() -> None:
    assert len(checks(rows())) == 8 and failed(rows()) == []
    facts = noise_facts(rows())
    assert facts["noisy"] is False and facts["seen"] == [] and len(facts["hosts"]["h"]) == 8


@pytest.mark.parametrize("case", BROKEN)
def test_each_check_sees_what_breaks_it(case: str) -> None:
    found, names, words = BROKEN[case]
    facts = noise_facts(found)
    assert failed(found) == names
    assert facts["noisy"] and len(facts["seen"]) == len(names) and words in facts["seen"][-1]


def test_hosts_are_judged_apart() -> None:
    facts = noise_facts(pa.concat_tables([rows(), rows(others_cpu_ns=90_000_000, host="other")]))
    passed = {host: all(check["passed"] for check in found) for host, found in facts["hosts"].items()}
    assert passed == {"h": True, "other": False}


def test_few_cells_say_nothing_of_intervals_and_old_rows_nothing_of_the_host() -> None:
    names = [check.name for check in checks(rows(cells=3))]
    assert "A/A half-width" not in names and "samples that waited" in names
    unknown: dict[str, Any] = dict.fromkeys(QUIET)
    old = rows(**unknown)
    assert [check.name for check in checks(old)][3:] == ["samples that waited", "first rounds above the rest"]
    without_steal = rows(stolen_ns=None)
    assert len(checks(without_steal)) == 7 and failed(without_steal) == []
    untimed = changed(rows(cells=2), lambda i, _: None, "cpu_ns")
    assert checks(untimed) == [] and noise_facts(untimed) == {"noisy": False, "seen": [], "hosts": {}}


def test_a_cell_of_two_blocks_counts_once_and_other_seeds_and_caches_count() -> None:
    for columns, pairs in (({"grid": "other"}, 2), ({"seed": 2}, 4), ({"cache": "cold"}, 4)):
        assert len(base_pairs(pa.concat_tables([rows(cells=2), rows(cells=2, **columns)]))) == pairs


def test_another_process_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        before = host_counters()
        time.sleep(0.4)
        seen = counted_since(before)
        other.kill()
    assert seen["watched_ns"] is not None and seen["watched_ns"] >= 0.4e9
    assert seen["others_cpu_ns"] is not None and seen["others_cpu_ns"] > 0.1e9


@pytest.mark.parametrize(("own_s", "user_s"), [(0.0, 8.0), (2.0, 8.0), (5.0, 8.0), (5.0, 18.0)])
def test_our_own_cpu_time_is_not_counted_as_that_of_others(
    monkeypatch: pytest.MonkeyPatch, own_s: float, user_s: float
) -> None:
    """Each kind of CPU time grows by 1 s, that of users by more. `own_s` of all are ours, the rest is others'."""
    kinds = ("user", "nice", "system", "irq", "softirq")
    moments = iter([(dict.fromkeys(kinds, 7.0), 1.0), (dict.fromkeys(kinds, 8.0) | {"user": user_s}, 1 + own_s)])

    def moment() -> SimpleNamespace:  # without steal time
        times, own = next(moments)
        monkeypatch.setattr(time, "process_time_ns", lambda: round(own * 1e9))
        return SimpleNamespace(**times, idle=own)

    monkeypatch.setattr(psutil, "cpu_times", moment)
    seen = counted_since(host_counters())
    assert (seen["others_cpu_ns"], seen["stolen_ns"]) == (round((user_s - 3 - own_s) * 1e9), None)


def test_the_yardstick_is_the_fastest_of_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert yardstick_ns() > 1_000
    ticks = iter([0, 9, 10, 14, 20, 27, 30, 36, 40, 48])
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(ticks))
    assert yardstick_ns() == 4


# The share of A/A intervals that hold 1.0


@pytest.mark.parametrize("intervals", [20, 50, 60, 200, 1_054])
def test_a_share_is_too_low_where_a_binomial_test_says_so(intervals: int) -> None:
    least = least_that_hold(intervals)
    enough, fewer = (binomtest(held, intervals, 0.95, alternative="less").pvalue for held in (least, least - 1))
    assert enough >= 0.05 > fewer


def test_the_page_tells_the_limits_as_they_are() -> None:
    page = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"A/A arms that hold 1\.0,[^|]*\|([^|]*)\|", page)
    limits = [
        (int(least), int(intervals.replace(",", ""))) for least, intervals in re.findall(r"(\d+) of ([\d,]+)", row)
    ]
    assert len(limits) == 4 and all(least == least_that_hold(intervals) for least, intervals in limits)


@pytest.mark.parametrize(("held", "passed", "met"), [(57, True, True), (55, True, False), (53, False, False)])
def test_chance_may_miss_the_goal_but_not_the_limit(held: int, passed: bool, met: bool) -> None:
    """Some even cells are off by 1 %. Odd cells are not, so their spread does not help."""
    quiet = rows()
    first, cells = quiet["cpu_ns"].to_pylist(), quiet["cell_id"].to_pylist()
    off = sorted(set(cells))[::2][: CELLS - held]

    def again(i: int, samples: list[int]) -> list[int]:
        return samples if i % 3 < 2 else [round(each * (1.01 if cells[i] in off else 1)) for each in first[i - 2]]

    facts = noise_facts(changed(quiet, again, *TIMES))
    (check,) = (each for each in facts["hosts"]["h"] if each["name"] == "A/A intervals that hold 1.0")
    assert (check["limit"], check["goal"]) == (least_that_hold(CELLS) / CELLS, 0.94)
    assert (check["passed"], check["met"], facts["noisy"]) == (passed, met, not passed)
    assert {each["met"] for each in facts["hosts"]["h"] if each["goal"] is None} == {None}
    (check,) = (each for each in checks(quiet) if each.name == "A/A intervals that hold 1.0")
    assert replace(check, seen=check.limit).passed and not replace(check, seen=check.limit - 1 / CELLS).passed


@lru_cache
def pairs_of(run: str) -> list[BasePair]:
    return timed_pairs(open_run(ROOT / run).table)


def unlikely_kinds(pairs: list[BasePair], holding: list[bool]) -> set[str]:
    """Return the kinds whose 95 % intervals hold 1.0 too rarely or too often (two-sided binomial interval)."""
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for pair, holds in zip(pairs, holding, strict=True):
        by_kind[pair.kind].append(holds)
        by_kind["all"].append(holds)
    ends = {kind: binom.interval(0.95, len(held), 0.95) for kind, held in by_kind.items()}
    return {kind for kind, (least, most) in ends.items() if not least <= sum(by_kind[kind]) <= most}


@pytest.mark.parametrize("run", RUNS)
def test_intervals_of_stored_runs_hold_one_in_95_of_100_cells(run: str) -> None:
    """Each half of the cells is tested with the spread of the other half, over all kinds and for each kind."""
    pairs = pairs_of(run)
    assert len(pairs) > 700 and unlikely_kinds(pairs, held_out(pairs)) == set()


def test_intervals_of_rounds_alone_hold_it_too_rarely() -> None:
    pairs = pairs_of(RUNS[2])
    assert unlikely_kinds(pairs, [pair.ratio.low <= 1 <= pair.ratio.high for pair in pairs]) >= {"prefix", "all"}


# The spread between arms


def test_the_spread_of_some_cells_serves_others() -> None:
    (spread,) = spreads(rows(300, bias=0.02)).values()
    others = base_pairs(rows(400, bias=0.02, seed=2))
    holding = [pair.ratio.widened(spread) for pair in others]
    assert 0.92 <= np.mean([low <= 1 <= high for _, low, high in holding]) <= 0.98
    assert np.mean([pair.ratio.low <= 1 <= pair.ratio.high for pair in others]) < 0.5
    assert spreads(rows(300))["cpu"] < 0.004  # 19 rounds alone hold 93.6 %


def test_kinds_with_few_arms_share_a_spread_and_kinds_without_have_none() -> None:
    few = LEAST_INTERVALS - 1
    three = [rows(LEAST_INTERVALS), rows(few, bias=0.05, kind="lookup"), rows(few, kind="record")]
    found = spreads(pa.concat_tables(three))
    assert found["lookup"] == found["record"] > 0.05 and found["cpu"] < 0.01
    assert spreads(rows(LEAST_INTERVALS // 2, bias=0.05)) == {"cpu": 0.0}
    assert spreads(rows(50, bias=0.05, rounds=LEAST_ROUNDS - 2)) == {}
    assert spreads(rows(50, bias=0.05).filter(pa.compute.field("arm") != "aa")) == {}
    cold = rows(30, cache="cold", seed=2)
    assert set(spreads(pa.concat_tables([rows(30, bias=0.05), cold]))) == {"cpu", "cpu, cold"}


def test_half_widths_add_in_quadrature() -> None:
    ratio = Interval(1.1, 1.1 * np.exp(-0.03), 1.1 * np.exp(0.04))
    assert ratio.widened(0.03) == pytest.approx((1.1, 1.1 * np.exp(-0.03 * 2**0.5), 1.1 * np.exp(0.05)))
    assert ratio.widened(0.0) == ratio
    assert Interval(1.0, 0.0, 1.0).widened(0.1) == (1.0, 0.0, 1.0)  # a clock that stood still


def test_report_and_comparison_show_the_same_widened_interval(tmp_path: Path) -> None:
    run = stored(tmp_path, rows(40, bias=0.02, **axes_of(GridPoint())).to_pylist())
    (spread,) = spreads(run.table).values()
    shown = to_base(Rows(run.measurements()), {"kind": "cpu", "format": "v3"}, {"format": "v2"})
    reported = dict(zip(shown["cell_id"], shown["ratio"], strict=True))
    compared = {timed.row.cell_id: timed for timed in arms_of(run.table).values() if timed.row.format == "v3"}
    assert reported.keys() == compared.keys() and len(reported) == 40 and spread > 0.02
    for cell, timed in compared.items():
        alone = paired_ratio(timed.row.cpu_ns or (), timed.base.cpu_ns or ())
        wanted = pytest.approx(alone.widened(spread), abs=1e-4)
        for ratio in (timed.ratio, reported[cell]):
            assert (ratio.median, ratio.low, ratio.high) == wanted
        assert timed.ratio.high - timed.ratio.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize("name", sorted(path.stem for path in SWEEPS.glob("*.toml")))
def test_profiles_time_at_least_nine_rounds(name: str) -> None:
    file = read(name).file
    settings = [
        getattr(of, kind, None) for of in (file, *file.grid) for kind in ("cpu", "broker", "dictionary", "rivals")
    ]
    assert min(each.rounds for each in settings if each is not None) >= LEAST_ROUNDS
