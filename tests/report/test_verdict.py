"""Bytes, times and the smallest formats of each class of workloads, on made-up rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.report.sources.verdict import CLASS_ORDER, TIE, mean_ratio, smallest, verdict
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from tests.present.made import failed, runs_of, timed
from tests.report.workload_rows import Row, workload_rows

ONE, SMALL, HEADERS = "One record per batch", "Small batches", "Record headers"


def by_class(rows: Sequence[Row], codec: str = "none") -> Mapping[Any, Any]:
    """Return the verdict's rows by class and format."""
    frame = verdict(runs_of(rows))
    frame = frame[frame["with_codec"] == codec]
    found: dict[Any, Any] = frame.set_index(["workload_class", "format"]).to_dict("index")
    return found


def beside(rows: Sequence[Row], workload: str, like: str, bytes_by: int, cpu_by: float = 1.0) -> list[Row]:
    """Copy the rows of workload `like` to another workload, with a factor of all sizes, and of v3's CPU times."""
    found = []
    for row in (row for row in rows if row["workload"] == like and row["variant"] == "default"):
        other = row | {"workload": workload, "cell_id": f"{workload}-default"}
        if row["status"] == "ok" and row["kind"] == "bytes":
            other["size_bytes"] = row["size_bytes"] * bytes_by
        if row["status"] == "ok" and row["kind"] == "cpu" and row["format"] == "v3":
            other["cpu_ns"] = [int(ns * cpu_by) for ns in row["cpu_ns"]]
        found.append(other)
    return found


def test_each_workload_names_its_class_and_no_class_is_empty() -> None:
    """Without a class, a workload would be a row of its own."""
    classes = {name: workload.workload_class for name, workload in CATALOGUE.items()}
    assert not classes.keys() & set(classes.values())
    assert set(CLASS_ORDER) <= set(classes.values())


def test_a_format_that_cannot_carry_one_workload_of_a_class_has_no_number() -> None:
    rows = workload_rows()
    more = [
        failed(row, "skipped", "v0 has no room") if row["format"] == "v0" and row["kind"] == "bytes" else row
        for row in beside(rows, "cdc-debezium", "user-activity", 1)
    ]
    found = by_class([*rows, *more])
    assert (SMALL, "v0") not in found and (SMALL, "v1") in found
    assert (HEADERS, "v1") not in found and (HEADERS, "v3") in found


def test_a_lossy_format_cannot_win_and_one_that_loses_nothing_can() -> None:
    """In batches of one record v0 takes 126 bytes, v1 134 and v3 156. v0 loses times, v1 producer ids."""
    found = by_class(workload_rows())
    assert found[ONE, "v0"]["ratio"] < found[ONE, "v3"]["ratio"] and found[ONE, "v3"]["winner"] == "v3"
    whole = [row | {"losses": "{}"} if row["format"] == "v1" and "losses" in row else row for row in workload_rows()]
    assert by_class(whole)[ONE, "v1"]["winner"] == "v1 †"


@pytest.mark.parametrize("missing", ["v2", "v3"])
def test_without_v2_or_without_another_nobody_wins(missing: str) -> None:
    at = {"workload": "user-activity", "variant": "default", "format": missing, "codec": "zstd"}
    rows = [failed(row) if at.items() <= row.items() else row for row in workload_rows()]
    assert {row["winner"] for key, row in by_class(rows, "zstd 3").items() if key[0] == SMALL} == {None}
    assert by_class(rows)[SMALL, "v3"]["winner"] == "v3"


@pytest.mark.parametrize(
    ("of", "wins"),
    [
        ({"v2": 234.09, "v3": 232.59, "v3-a": 230.67}, ["v3-a", "v3"]),  # v3 also ties with v2
        ({"v2": 234.09, "v3": 233.09, "v3-a": 230.67}, ["v3-a"]),
        ({"v2": 100.0, "v3": 100.0 / (1 + TIE)}, ["v3", "v2"]),
        ({"v2": 99.5, "v3": 100.0}, ["v2", "v3"]),
        ({"v2": 101.1, "v3": 100.0}, ["v3"]),
        ({"v2": 90.0, "v3": 100.0}, ["v2"]),
        ({"v2": 100.0}, []),
        ({"v1": 100.0, "v3": 90.0}, []),
        ({"v0": 50.0, "v2": 100.0, "v3": 80.0}, ["v3"]),
        ({"v0": 50.0, "v2": 100.0}, []),
    ],
)
def test_who_is_within_a_percent_of_the_smallest_shares_its_place(of: dict[str, float], wins: list[str]) -> None:
    assert smallest(of, {"v0"}) == wins


def test_rounds_that_are_no_pairs_have_no_ratio() -> None:
    rows = workload_rows()
    for row in rows:
        if (row["kind"], row["format"], row["workload"]) == ("cpu", "v3", "user-activity"):
            row["cpu_ns"] = row["cpu_ns"][:-2]
    found = by_class(rows)
    assert found[SMALL, "v3"]["encode"] is None and isinstance(found[SMALL, "v1"]["encode"], Interval)


@pytest.mark.parametrize("hosts", [["here"], ["here", "there"]])
def test_appends_count_only_if_all_were_timed_on_one_host(hosts: list[str]) -> None:
    appends = [timed(name, [1_000] * 9, None, kind="broker", operation="append", workload="user-activity",
                     cell_id="append", variant="default") for name in ("v2", "v3")]  # fmt: skip
    elsewhere = [row | {"cell_id": "other", "workload": "forgotten", "host": hosts[-1]} for row in appends]
    found = by_class([*workload_rows(), *appends, *elsewhere])[SMALL, "v3"]["append"]
    assert (found is None) == (len(hosts) > 1)
    assert found is None or found.median == pytest.approx(1.0, rel=0.02)


def test_the_interval_of_a_class_holds_the_mean_as_often_as_it_says() -> None:
    """About 95 % of the intervals of 1,000 simulated classes contain the true mean 1 (standard error 0.7 %)."""
    random, held = np.random.default_rng(5), 0
    for _ in range(1_000):
        times = (np.exp(random.normal(0, spread, 19)) for spread in np.linspace(0.02, 0.08, 5))
        held += mean_ratio([paired_ratio(each, np.ones(19)) for each in times]).holds(1.0)
    assert 0.93 <= held / 1_000 <= 0.985
