"""CPU times in reports: noise and control of a run, instructions beside times, and stored times of other programs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from kfbench.measure.cpu import Interval
from kfbench.measure.noise import ROUNDING, BasePair, base_pairs, held_out, noise_facts
from kfbench.present import stored_times
from kfbench.present.rows import Runs
from kfbench.present.stored_times import AA, AGAIN, CLAIMED, OUR_OPERATIONS, OWN
from kfbench.report.build import failures
from kfbench.report.sources import clients, noise
from kfbench.report.sources.instructions import instructions
from tests.measure.test_noise import rows as noise_rows
from tests.present.made import Row, counted, runs_of, timed
from tests.present.made import failed as broken
from tests.report.workload_rows import workload_rows

OTHER: Final = runs_of([counted("v2", 1000)])  # a run without times


def large(**times: float) -> list[Row]:
    """Return times of formats relative to v2 on values of 20,000 bytes, and of v2 a second time."""
    rows = [timed("v2", [1000] * 9, 5, value_bytes=20_000), timed("v2", [1001] * 9, 5, value_bytes=20_000, arm="aa")]
    return rows + [timed(name, [round(1000 * time)] * 9, 5, value_bytes=20_000) for name, time in times.items()]


def test_the_control_has_a_limit_and_names_the_checksum() -> None:
    rows = large(v0=2.0, v3=1.011, kip98=1.03)
    rows.append(rows[-1] | {"format": "v3-full", "cpu_ns": [1000] * 9})
    found = noise.control(runs_of(rows)).set_index("format")[["checksum", "verdict"]].to_dict("index")
    assert {name: tuple(row.values()) for name, row in found.items()} == {
        "v0": ("CRC-32", "differs, pays CRC-32"), "v3": ("CRC-32C", "within 2.0 %"), "kip98": ("CRC-32C", "differs"),
        "v3-full": ("CRC-32C", "ties"), "v2 (A/A)": ("CRC-32C", "ties"),
    }  # fmt: skip
    assert noise.control(runs_of([timed("v2", [1000] * 9), timed("v3", [1000] * 9)])).empty
    assert [noise.checksum_of(name) for name in ("enriched", "v3-of-tomorrow")] == ["CRC-32", "no known checksum"]


@pytest.mark.parametrize(("end", "held"), [(1 + ROUNDING / 2, 1), (1 - ROUNDING / 2, 1), (1 + 2 * ROUNDING, 0)])
def test_an_interval_that_ends_at_1_holds_it(end: float, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = Interval(median=1.1, low=end, high=1.2)
    monkeypatch.setattr(noise, "to_itself", lambda *_: pd.DataFrame({"operation": ["encode"], "ratio": [ratio]}))
    assert noise.aa(OTHER)["held"].tolist() == [held]


def test_v2_that_was_timed_once_is_not_counted() -> None:
    assert noise.aa(runs_of([timed("v2", [1000] * 9)])).empty


@pytest.mark.parametrize("seed", range(10))
def test_the_check_of_a_run_holds_whatever_the_rounding(seed: int) -> None:
    """All cells have the same times, so the spread of one half of them just suffices for the other half."""
    first_ns, second_ns = np.random.default_rng(seed).normal([[1e6], [0.98e6]], 1e3, (2, 19)).astype(np.int64)
    assert all(held_out([BasePair(second_ns, first_ns, each.row) for each in base_pairs(noise_rows())]))


def test_each_noise_check_stands_beside_its_limit() -> None:
    facts = noise_facts(noise_rows(noise=0.08))
    found = noise.checks(runs_of([counted("v2", 1000)], noise=facts)).set_index("check")
    assert list(found.loc["A/A half-width"])[2:] == ["≤ 2.0 %", "NO"]
    assert list(found.loc["cores that others used"])[1:] == ["0.010", "≤ 0.200", "passed"]
    assert list(found.loc["A/A intervals that hold 1.0"])[2:] == ["≥ 90.0 %", "passed; 94.0 % met"]
    assert noise.checks(runs_of([counted("v2", 1000)])).empty  # a run from before has none


def test_what_failed_or_was_timed_on_another_host_is_counted_by_reason() -> None:
    rows = workload_rows()
    for row in rows:
        if row["kind"] == "cpu" and row["workload"] == "cluster-metadata":
            row |= {"host": "there"} | (
                {"status": "error", "error": "it broke\nat a line", "cpu_ns": None} if row["format"] == "v3" else {}
            )
    found = failures(runs_of(rows))
    counts: Counter[str] = Counter()
    for status, count in zip(found["status"], found["rows"], strict=True):
        counts[status] += count
    skipped = sum(row["status"] == "skipped" for row in rows)
    assert counts == {"error": 2, "other host": 8, "skipped": skipped}  # encode and decode; four arms each
    assert {"it broke", "timed on there", "v0 has no zstd"} <= set(found["reason"])
    assert failures(runs_of([counted("v2", 1000)])).empty
    assert list(failures(runs_of([broken(counted("v2", 1000))]))["reason"]) == ["it broke"]


COUNTS: Final = {"v0": 90, "v2": 200, "v3": 240}  # instructions per record, ten of them Python's
NS: Final = {"v0": 400, "v2": 300, "v3": 250}  # v3 takes more instructions than v2 and less time, v0 the reverse
MISSES: Final = {"v0": 0, "v2": 10, "v3": 0}


def test_instructions_that_disagree_with_time_have_a_reason() -> None:
    """A call takes 1,000 instructions of Python whatever its records. These do not count."""
    rows = [timed(name, [ns * 10] * 9, 1) for name, ns in NS.items()]
    for row in rows[:]:
        count = {
            "kind": "instructions", "counted_records": [5, 10], "python_instructions": [1050, 1100],
            "kernel_instructions": [(COUNTS[row["format"]] - 10) * records for records in (5, 10)],
            "library_instructions": [0, 0], "last_level_misses": [0, 0],
            "l1_misses": [MISSES[row["format"]] * records for records in (5, 10)],
        }  # fmt: skip
        rows.append(row | dict.fromkeys(("cpu_ns", "wall_ns", "inner_loops")) | count)
    own = runs_of(rows)
    found = instructions(Runs(own=own.own, joined={"instructions": own.own}, manifests=own.manifests))
    found = found.set_index("format")
    assert dict(found["instructions"]) == COUNTS and dict(found["ns"]) == NS
    v3, v0 = found.loc["v3"], found.loc["v0"]
    assert (v3["to_v2"], v3["estimate_to_v2"]) == pytest.approx((240 / 200, 240 / 300)) and v3["disagrees"]
    assert v3["time_to_v2"].median == pytest.approx(250 / 300) and "caches" in v3["reason"]
    assert v0["disagrees"] and "caches" not in v0["reason"]
    assert instructions(own).empty  # a run that joins no counts


JAVA: Final = {"v2": 80.0, OWN: 100.0, AGAIN: 102.0, "v3": 90.0}  # ns per batch
KERNELS: Final = {"v2": 1000, "v3": 1100, AA: 1000}  # ns per sample


def jmh(java: float = 90.0, ours: int = 1100, spread: float = 0.01, **changes: Any) -> dict[str, Any]:
    """Return a run in Java with these times of v3. spread: formats differ from them by it, each in other rounds."""
    times, kernels = JAVA | {"v3": java}, KERNELS | {"v3": ours}
    at = {"codec": "none", "records": 50}
    rows = [
        at | {"operation": "write", "format": name, "bytes_per_record": 48.0, "noisy": spread > 0.1,
              "ns_per_op": ns, "ns_per_op_interval": [0.9 * ns, 1.1 * ns],
              "fork_ns": [ns * (1 + spread * ((fork + place) % 3 - 1)) for fork in range(7)]}
        for place, (name, ns) in enumerate(times.items())
    ]  # fmt: skip
    own = [
        at | {"operation": OUR_OPERATIONS["write"], "format": name, "records_per_sample": 100,
              "cpu_ns": [ns + drift for drift in range(-3, 4)]}
        for name, ns in kernels.items()
    ]  # fmt: skip
    head = {"kafka": "4.4.0", "cells": CLAIMED, "measured": "2026-11-26T10:00:00+00:00", "environment": {}}
    return head | {"rows": rows, "ours": own} | changes


@pytest.fixture
def opinions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes runs in Java to a file and compares them with ours."""

    def compare(*runs: dict[str, Any]) -> list[dict[str, Any]]:
        path = tmp_path / "jmh.json"
        path.write_text(json.dumps({"runs": runs}), encoding="utf-8")
        monkeypatch.setattr(clients, "jmh_runs", lambda: stored_times.jmh_runs(path))
        frame = clients.second_opinion(OTHER)
        assert not runs or frame.attrs["manifest"]["noise"]["noisy"] == runs[0]["rows"][0]["noisy"]
        found: list[dict[str, Any]] = frame.to_dict("records")
        return found

    return compare


@pytest.mark.parametrize(
    ("java", "ours", "spread", "word"),
    [
        (70.0, 900, 0.01, "agree"),
        (120.0, 1100, 0.01, "agree"),
        (70.0, 1100, 0.01, "differ"),
        (90.0, 900, 0.01, "undecided"),  # cheaper than v2 in the same code, dearer than Kafka's own
        (70.0, 1100, 0.3, "undecided (noisy)"),
        (70.0, 1000, 0.01, "undecided"),
    ],
)
def test_a_verdict_needs_intervals_and_both_bases(
    java: float, ours: int, spread: float, word: str, opinions: Any
) -> None:
    (v3,) = opinions(jmh(java, ours, spread))
    assert v3["verdict"] == word


def test_only_the_newest_kafka_is_compared_and_without_a_run_nothing(opinions: Any) -> None:
    (v3,) = opinions(jmh(kafka="4.10.0", spread=0.0), jmh(300.0, kafka="4.9.1"))
    assert v3["java"].median == pytest.approx(0.9)
    assert opinions() == [] and stored_times.jmh_runs(Path("absent.json")) == []


def test_codec_times_in_java_are_those_of_kafkas_own_v2_in_the_run_of_all_cells(opinions: Any) -> None:
    assert opinions(jmh(cells="all"), jmh(70.0)) != []
    (row,) = clients.java_codecs(OTHER).to_dict("records")
    assert (row["operation"], row["with_codec"], row["batch_size"]) == ("write", "none", 50)
    assert (row["ns"].median, row["ns"].low, row["ns"].high) == pytest.approx((1.6, 1.44, 1.76))
    assert opinions(jmh()) != [] and clients.java_codecs(OTHER).empty


def test_an_implementation_that_was_not_there_has_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "load_peers", lambda: stored_times.load_peers.__wrapped__(tmp_path / "absent.json"))
    assert clients.peers(OTHER).empty and clients.peer_differences(OTHER).empty
