"""CPU time of classes of workloads in the report: means, intervals, ties, and reasons for missing times."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kfbench.report.data import class_times
from kfbench.report.data.arms import ties
from kfbench.report.data.classes import Untimed, Verdicts
from kfbench.report.topics import verdict
from kfbench.tables import Interval, Table, number
from tests.common import numbers_in
from tests.report.class_rows import (
    HEADERS,
    ONE,
    SMALL,
    appended,
    costs_of,
    detail,
    verdicts_of,
    whole_v1,
)
from tests.report.columns import column, row_of
from tests.report.workload_rows import CPU, Row, workload_rows


def untimed(verdicts: Verdicts) -> list[Untimed]:
    return verdicts.untimed(lambda each: each.smaller("none"))


def test_cpu_is_the_mean_of_paired_ratios_with_an_interval(verdicts: Verdicts) -> None:
    ratio = row_of(costs_of(verdicts), **{"workload class": ONE})["encode (× v2 CPU)"]
    wanted = CPU["v3"] / CPU["v2"] * np.sqrt(1.5)
    assert isinstance(ratio, Interval) and ratio.median == pytest.approx(wanted, rel=0.02)
    assert ratio.low <= ratio.median <= ratio.high and ratio.high - ratio.low < 0.05
    own = detail(verdicts, ONE, "v2")
    assert own["encode (× v2 CPU)"] == own["decode (× v2 CPU)"] == 1.0


def test_append_stands_where_it_was_timed(verdicts: Verdicts) -> None:
    table = costs_of(verdicts)
    appends = dict(zip(column(table, "workload class"), column(table, "append (× v2 CPU)"), strict=True))
    assert isinstance(appends[SMALL], Interval) and appends[SMALL].median == pytest.approx(1.0, rel=0.03)
    assert {name for name, ratio in appends.items() if ratio is None} == {ONE, HEADERS}  # v2 ties in forgotten
    again = {each.name: each.again.get("append") for each in verdicts.classes}
    assert [name for name, ratio in again.items() if ratio is not None] == [SMALL] and again[SMALL] != appends[SMALL]


def test_a_time_that_is_missing_has_its_reason(tmp_path: Path) -> None:
    none = verdicts_of(tmp_path / "none", workload_rows())
    every = tuple(each.name for each in none.classes if each.smaller("none"))
    assert untimed(none) == [(class_times.NOT_TIMED, every, ["append"])] and every == (ONE, SMALL, HEADERS)
    bare = verdicts_of(tmp_path / "bytes", [row for row in workload_rows() if row["kind"] == "bytes"])
    assert untimed(bare) == [(class_times.NOT_TIMED, every, ["encode", "decode", "append"])]
    found = verdict.verdict_table(bare)
    assert found is not None and set(column(found, "v3 encode (× v2 CPU)")) == {None}
    skipped: Row = {"status": "skipped", "error": "no control batches", "cpu_ns": None, "workload": "service-events"}
    some = verdicts_of(tmp_path / "skipped", [*workload_rows(), *appended(), *appended(cell_id="other", **skipped)])
    assert ("no control batches", (HEADERS,), ["append"]) in untimed(some)


def test_an_append_of_two_hosts_is_none(tmp_path: Path) -> None:
    both = [*workload_rows(), *appended(), *appended("elsewhere", cell_id="other")]
    found = costs_of(verdicts_of(tmp_path, both))
    assert set(column(found, "append (× v2 CPU)")) == {None}


def test_a_winner_only_under_zstd_has_no_cost_without_it(tmp_path: Path) -> None:
    """Without a codec v1 wins and takes 2.5 times v2's CPU time.

    Under zstd only v3 wins, and it was not timed under zstd.
    """
    found = verdicts_of(tmp_path, [row for row in whole_v1() if row["workload"] == "cluster-metadata"])
    table = costs_of(found)
    assert column(table, "winner (no codec)") == ["v1 †"]
    (cost,) = column(table, "encode (× v2 CPU)")
    assert cost.median == pytest.approx(2.5, rel=0.02)
    assert numbers_in(verdict.cost_sentence(found))[0] == round(cost.median, 2)


def test_what_v3_costs_stands_next_to_its_bytes(verdicts: Verdicts, table: Table) -> None:
    for each in verdicts.classes:
        row = row_of(table, **{"workload class": each.name})
        for operation in class_times.TIMED:
            time = each.cpu.get((operation, "v3"))
            assert row[f"v3 {operation} (× v2 CPU)"] == (time and time.mean)


@pytest.mark.parametrize(("low", "is_tie"), [(1.02, False), (1.0051, False), (1.0049, True), (0.99, True)])
def test_a_tie_is_one_as_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, low: float, is_tie: bool
) -> None:
    """An interval counts as a tie exactly if its lower end is printed as 1.00 or less."""
    found = verdicts_of(tmp_path, workload_rows())
    time = class_times.joined([Interval(median=1.03, low=low, high=1.05)])
    one = replace(found.classes[0], cpu={("encode", "v3"): time}, again={})
    monkeypatch.setattr(found, "classes", [one])
    cell = row_of(costs_of(found), **{"workload class": ONE})["encode (× v2 CPU)"]
    assert ("(1.00–" in number(cell) or "(0.99–" in number(cell)) == is_tie
    assert isinstance(cell, Interval) and ties(cell, found.noise.get("encode")) == is_tie


@pytest.mark.parametrize("status", ["ok", "error"])
def test_a_time_of_another_host_has_its_own_reason(tmp_path: Path, status: str) -> None:
    """A time of another host is missing for that reason.

    Skipped rows of a codec and errors of a variant are no reason.
    """
    rows = workload_rows()
    for row in rows:
        if row["kind"] == "cpu" and row["workload"] == "cluster-metadata":
            row["host"] = "there"
            if status == "error":
                row |= {"status": "error", "error": "it broke", "cpu_ns": None}
    (first, *_) = (row for row in workload_rows() if row["kind"] == "cpu" and row["workload"] == "cluster-metadata")
    other = first | {"format": "v3", "status": "skipped", "error": "v3 has no lz4", "codec": "lz4", "cpu_ns": None}
    variant = first | {
        "format": "v3",
        "status": "error",
        "error": "odd",
        "variant": "odd",
        "cell_id": "odd",
        "cpu_ns": None,
    }
    found = verdicts_of(tmp_path, [other, variant, *rows])
    why = {"ok": class_times.SEVERAL_HOSTS, "error": "error, it broke"}[status]
    assert (why, (ONE,), ["encode", "decode"]) in untimed(found)


def test_rounds_that_are_no_pairs_are_no_time_and_are_stated(tmp_path: Path) -> None:
    rows = workload_rows()
    for row in rows:
        if (row["kind"], row["format"], row["workload"]) == ("cpu", "v3", "cluster-metadata"):
            row["cpu_ns"] = row["cpu_ns"][:-2]
    found = verdicts_of(tmp_path, rows)
    assert (class_times.UNEQUAL, (ONE,), ["encode", "decode"]) in untimed(found)


def test_what_v2_against_itself_reads_is_a_tie(tmp_path: Path) -> None:
    """v3 takes 10 % more CPU time.

    That is a tie, because v2's second timing (the A/A arm) reads 20 % more in one workload.
    """
    rows = workload_rows()
    for row in rows:
        if row["workload"] == "forgotten" and row.get("arm") == "aa":
            row["cpu_ns"] = [int(ns * 1.2) for ns in row["cpu_ns"]]
    noisy, quiet = verdicts_of(tmp_path / "noisy", rows), verdicts_of(tmp_path / "quiet", workload_rows())
    assert noisy.noise["encode"][1] > 1.15 > 1.02 > quiet.noise["encode"][1]
    again = row_of(verdict.classes_table(noisy), **{"workload class": "forgotten"})["encode (× v2 CPU)"]
    assert again.median == pytest.approx(1.2, rel=0.03)


def test_a_noisy_operation_makes_no_ties_of_another(tmp_path: Path) -> None:
    """v3 takes 10 % more to encode and to decode.

    Only decode is a tie, because there v2's second timing reads 20 % more.
    """
    rows = workload_rows()
    for row in rows:
        if row.get("operation") == "decode" and row.get("arm") == "aa":
            row["cpu_ns"] = [int(ns * 1.2) for ns in row["cpu_ns"]]
    found = verdicts_of(tmp_path, rows)
    assert found.noise["encode"][1] < 1.02 < 1.15 < found.noise["decode"][1]
    more, of, low, high, tied = numbers_in(verdict.cpu_sentence(found))
    assert (more, of, tied) == (4, 4, 4) and low == pytest.approx(1.1, rel=0.02) == high
