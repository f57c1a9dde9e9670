"""The smallest formats on made-up rows: by class of workloads, on maps of the grid, on fronts of bytes and CPU time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from kfbench.bracket import Bracket
from kfbench.measure.cpu import paired_ratio
from kfbench.present.table import Interval
from kfbench.report.sources.pareto import pareto
from kfbench.report.sources.verdict import CLASS_ORDER, joined, verdict
from kfbench.report.sources.winners import TIE, bracket_words, break_even, first_smaller, smallest, winners
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from tests.present.made import counted, failed, runs_of, timed
from tests.report.broker_rows import broker_rows
from tests.report.workload_rows import CPU, Row, size_bytes, workload_rows

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


def test_bytes_and_times_of_a_class_are_geometric_means_of_its_workloads() -> None:
    rows = workload_rows()
    found = by_class([*rows, *beside(rows, "connect-internal", "cluster-metadata", 4, 1.5)])
    one = size_bytes("v2", 1, "none") / 1_000
    assert found[ONE, "v2"]["bytes"] == pytest.approx(np.sqrt(one * 4 * one))
    v3 = found[ONE, "v3"]
    assert v3["ratio"] == pytest.approx(size_bytes("v3", 1, "none") / size_bytes("v2", 1, "none"))
    assert v3["encode"].median == pytest.approx(CPU["v3"] * 1.5**0.5, rel=0.02)
    assert v3["saving"] == pytest.approx(1 - v3["ratio"])
    assert list(dict.fromkeys(name for name, _ in found)) == [ONE, SMALL, HEADERS, "forgotten"]


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


def test_v2_within_a_percent_is_a_tie() -> None:
    found = by_class(workload_rows())
    assert found["forgotten", "v3"]["winner"] == "tie with v2"  # v3 takes 0.9 % less


def test_rounds_that_are_no_pairs_have_no_ratio() -> None:
    rows = workload_rows()
    for row in rows:
        if (row["kind"], row["format"], row["workload"]) == ("cpu", "v3", "user-activity"):
            row["cpu_ns"] = row["cpu_ns"][:-2]
    found = by_class(rows)
    assert found[SMALL, "v3"]["encode"] is None and isinstance(found[SMALL, "v1"]["encode"], Interval)


@pytest.mark.parametrize("hosts", [["here"], ["here", "there"]])
def test_appends_count_only_if_all_were_timed_on_one_host(hosts: list[str]) -> None:
    of = {"workload": "user-activity", "variant": "default", "cell_id": "append", "batch_size": None}
    appends = [row | of for row in broker_rows() if row["operation"] == "append" and row["codec"] == "none"
               and row["batch_size"] == 10]  # fmt: skip
    elsewhere = [row | {"cell_id": "other", "workload": "forgotten", "host": hosts[-1]} for row in appends]
    found = by_class([*workload_rows(), *appends, *elsewhere])[SMALL, "v3"]["append"]
    assert (found is None) == (len(hosts) > 1)
    assert found is None or found.median == pytest.approx(1.0, rel=0.02)


def test_the_interval_of_a_class_holds_the_mean_as_often_as_it_says() -> None:
    """About 95 % of the intervals of 1,000 simulated classes contain the true mean 1 (standard error 0.7 %)."""
    random, held = np.random.default_rng(5), 0
    for _ in range(1_000):
        times = (np.exp(random.normal(0, spread, 19)) for spread in np.linspace(0.02, 0.08, 5))
        ratios = [paired_ratio(each, np.ones(19)) for each in times]
        held += joined([Interval(median=each.median, low=each.low, high=each.high) for each in ratios]).holds(1.0)
    assert 0.93 <= held / 1_000 <= 0.985


FIXED, SHARED = {"v0": 26, "v1": 34, "v2": 9, "v3": 8}, {"v0": 0, "v1": 0, "v2": 61, "v3": 49}
LOSSES: Final = {"v0": '{"timestamps":10}'}


def plane(batches: Sequence[int] = (1, 10, 100), values: Sequence[int] = (-1, 10, 1_000)) -> list[Row]:
    """Return sizes with these bytes per record and per batch, for values of several sizes (-1 is null)."""
    return [
        counted(name, 1000 * max(value, 0) + 1000 * FIXED[name] + 1000 // batch * SHARED[name], batch, records=1000,
                batches=1000 // batch, value_bytes=value, losses=LOSSES.get(name, "{}"))
        for batch in batches for value in values for name in FIXED
    ]  # fmt: skip


def test_each_cell_of_a_map_has_its_smallest_and_what_it_saves() -> None:
    found = winners(runs_of(plane())).set_index(["batch_size", "value"])
    assert len(found) == 9 and set(found["with_codec"]) == {"none"}
    assert (found["words"][1, "null"], found["format"][1, "null"]) == (
        "v1 −51 %",
        "v1",
    )  # 34 bytes of 70; v0 has no times
    assert found["saving"][1, "null"] == pytest.approx(36 / 70) and found["words"][10, "null"] == "v3 −15 %"
    ties = found[found["words"] == "tie"]
    assert list(ties.index) == [(10, "1,000"), (100, "1,000")] and set(ties["winners"]) == {"v3 and v2"}
    assert {cell.rank for cell in ties["words"]} == {0.0} and found["words"][1, "null"].rank == pytest.approx(-36 / 70)
    assert winners(runs_of(workload_rows())).empty


@pytest.mark.parametrize(
    ("smaller_from", "bracket", "words"),
    [(1, (None, 1), "1 (always)"), (3, (2, 3), "3"), (5, (3, 5), "4–5"), (99, (10, None), "never")],
)
def test_break_even_is_the_first_size_from_which_a_format_is_always_smaller(
    smaller_from: int, bracket: Bracket, words: str
) -> None:
    sizes = pd.DataFrame({"v2": 10.0, "v0": [9.0 if n < smaller_from else 11.0 for n in (1, 2, 3, 5, 10)]})
    found = first_smaller(sizes.set_axis([1, 2, 3, 5, 10]), "v2", "v0")
    assert found == bracket and bracket_words(found) == words and bracket_words(found).rank == bracket[1]


def test_a_tie_is_not_smaller_and_a_relapse_counts() -> None:
    sizes = pd.DataFrame({"v2": [5.0, 10.0, 5.0], "v0": [6.0, 10.0, 6.0]}, index=[1, 2, 3])
    assert first_smaller(sizes, "v2", "v0") == (2, 3)


def test_break_even_is_between_two_measured_batch_sizes() -> None:
    found = break_even(runs_of(plane((1, 2, 3, 5, 10), [100]))).set_index(["format", "smaller_than"])
    assert list(found.loc["v2", "v0"]) == ["4–5", 3, 5]  # 9 + 61 / n < 26 from n = 3.6 on
    assert found["start"]["v2", "v1"] == "3" and found["start"]["v3", "v2"] == "1 (always)"


def fronts(*formats: tuple[str, int, float, str]) -> dict[str, Any]:
    """Return the place on the front of encode of formats: name, bytes, time relative to v2, losses."""
    random = np.random.default_rng(1).permutation(np.linspace(0.999, 1.001, 19))
    rows = [counted(name, size, losses=losses) for name, size, _, losses in formats]
    rows += [timed(name, [int(1e6 * time * each) for each in random]) for name, _, time, _ in formats]
    return dict(pareto(runs_of(rows)).set_index("format")["encode_front"])


def test_a_format_is_on_the_front_if_it_takes_less_time_than_all_with_fewer_bytes() -> None:
    found = fronts(
        ("v1", 1000, 2.0, "{}"), ("kip98", 1500, 3.0, "{}"), ("v2", 2000, 1.0, "{}"), ("v3", 2100, 1.0, "{}")
    )
    assert found == {"v1": "yes", "v2": "yes", "kip98": "no", "v3": "no"}


def test_what_loses_something_is_on_no_front_and_beats_nobody() -> None:
    assert fronts(("v0", 900, 0.5, LOSSES["v0"]), ("v2", 2000, 1.0, "{}")) == {"v0": "not compared", "v2": "yes"}


def test_without_times_or_without_v2_there_is_no_front() -> None:
    assert pareto(runs_of([counted("v2", 2000), counted("v3", 1900)])).empty
    assert not fronts(("v1", 1000, 2.0, "{}"), ("v3", 2000, 1.0, "{}"))
