"""The first screen: classes of workloads, their means, and what is said of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data.arms import ties
from kfbench.report.data.capability import lacking
from kfbench.report.data.named import TIE, Named
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.render.tables import Interval, Table, listed, number
from kfbench.report.topics import class_times, verdict
from kfbench.report.topics.classes import CLASS_ORDER, Untimed, Verdicts
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from tests.report.broker_rows import broker_rows
from tests.report.columns import column, row_of
from tests.report.workload_rows import CPU, Row, size_bytes, workload_rows
from tests.runs import stored

ONE, SMALL, HEADERS = "One record a batch", "Small batches", "Record headers"


def beside(rows: list[Row], workload: str, like: str, bytes_by: int, cpu_by: dict[str, float]) -> list[Row]:
    """The rows of `like`, once more as another workload with other sizes and times."""
    found = []
    for row in rows:
        if row["workload"] == like and row["variant"] == "default":
            other = row | {"workload": workload, "cell_id": f"{workload}-default"}
            if row["status"] == "ok" and row["kind"] == "bytes":
                other["size_bytes"] = row["size_bytes"] * bytes_by
            if row["status"] == "ok" and row["kind"] == "cpu":
                other["cpu_ns"] = [int(ns * cpu_by.get(row["format"], 1.0)) for ns in row["cpu_ns"]]
            found.append(other)
    return found


def appended(host: str = "here", **changed: Any) -> list[Row]:
    """Append without a codec, timed on user-activity's own batches."""
    return [
        row | {"workload": "user-activity", "variant": "default", "cell_id": "append", "grid": "named", "host": host}
        | {"batch_size": None} | changed
        for row in broker_rows()
        if row["operation"] == "append" and row["codec"] == "none" and row["batch_size"] == 10
    ]  # fmt: skip


def verdicts_of(folder: Path, rows: list[Row]) -> Verdicts:
    results = Results(stored(folder, rows).measurements())
    return Verdicts(results, Named(results), Paths(results))


def detail(verdicts: Verdicts, name: str, fmt: str) -> dict[str, Any]:
    return row_of(verdict.detail_table(verdicts), **{"workload class": name, "format": fmt})


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    rows = workload_rows()
    rows += beside(rows, "connect-internal", "cluster-metadata", 4, {"v3": 1.5})
    return verdicts_of(tmp_path_factory.mktemp("verdict"), [*rows, *appended()])


@pytest.fixture(scope="module")
def table(verdicts: Verdicts) -> Table:
    found = verdict.verdict_table(verdicts)
    assert found is not None
    return found


def costs_of(verdicts: Verdicts) -> Table:
    found = verdict.costs_table(verdicts)
    assert found is not None
    return found


def untimed(verdicts: Verdicts) -> list[Untimed]:
    return verdicts.untimed(lambda each: each.smaller("none"))


def test_each_workload_names_its_class_and_no_class_is_empty() -> None:
    """A workload without a class would be a row of its own."""
    classes = {name: workload.workload_class for name, workload in CATALOGUE.items()}
    assert not classes.keys() & set(classes.values())
    assert set(CLASS_ORDER) <= set(classes.values())


def test_classes_come_in_order_and_a_workload_of_none_is_its_own(table: Table) -> None:
    assert column(table, "workload class") == [ONE, SMALL, HEADERS, "forgotten"]


def test_bytes_are_geometric_means_of_the_workloads(table: Table, verdicts: Verdicts) -> None:
    row = row_of(table, **{"workload class": ONE})
    one = size_bytes("v2", 1, "none") / 1_000
    assert row["v2 (bytes)"] == pytest.approx(np.sqrt(one * 4 * one))
    assert row["v3 (× v2)"] == pytest.approx(size_bytes("v3", 1, "none") / size_bytes("v2", 1, "none"))
    detail = verdict.detail_table(verdicts)
    rows = [dict(zip((c.label for c in detail.columns), each, strict=True)) for each in detail.rows]
    for each in (each for each in rows if each["workload class"] == ONE and each["no codec (bytes)"] is not None):
        assert each["no codec (× v2)"] == pytest.approx(each["no codec (bytes)"] / row["v2 (bytes)"])
    assert [each["format"] for each in rows if each["workload class"] == SMALL] == ["v0", "v1", "v2", "v3"]


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
    assert {name for name, ratio in appends.items() if ratio is None} == {ONE, HEADERS}  # in forgotten v2 ties
    again = {each.name: each.again.get("append") for each in verdicts.classes}
    assert [name for name, ratio in again.items() if ratio is not None] == [SMALL] and again[SMALL] != appends[SMALL]
    said = "No append for one record a batch and record headers: not timed on these workloads."
    assert said in table.notes


def test_a_time_that_is_missing_has_its_reason(tmp_path: Path) -> None:
    none = verdicts_of(tmp_path / "none", workload_rows())
    every = tuple(each.name for each in none.classes if each.smaller("none"))
    assert untimed(none) == [(class_times.NOT_TIMED, every, ["append"])] and every == (ONE, SMALL, HEADERS)
    bare = verdicts_of(tmp_path / "bytes", [row for row in workload_rows() if row["kind"] == "bytes"])
    assert untimed(bare) == [(class_times.NOT_TIMED, every, ["encode", "decode", "append"])]
    said = "one record a batch, small batches and record headers: not timed on these workloads."
    assert f"No encode, decode and append for {said}" in costs_of(bare).notes
    assert verdict.cost_sentence(bare) == ""
    found = verdict.verdict_table(bare)
    assert found is not None and set(column(found, "v3 encode (× v2 CPU)")) == {None}
    assert "No encode, decode and append of v3 for any class: not timed on these workloads." in found.notes
    skipped: Row = {"status": "skipped", "error": "no control batches", "cpu_ns": None, "workload": "service-events"}
    some = verdicts_of(tmp_path / "skipped", [*workload_rows(), *appended(), *appended(cell_id="other", **skipped)])
    assert ("no control batches", (HEADERS,), ["append"]) in untimed(some)


def test_an_append_of_two_hosts_is_none(tmp_path: Path) -> None:
    both = [*workload_rows(), *appended(), *appended("elsewhere", cell_id="other")]
    found = costs_of(verdicts_of(tmp_path, both))
    assert set(column(found, "append (× v2 CPU)")) == {None}
    assert f"No append for small batches: {class_times.SEVERAL_HOSTS}." in found.notes


def test_a_format_that_cannot_carry_a_workload_has_no_number_and_the_reason_is_told(table: Table) -> None:
    row = row_of(table, **{"workload class": HEADERS})
    assert row["v0 (× v2)"] is None and row["v1 (× v2)"] is None and row["v3 (× v2)"] is not None
    assert "No bytes of v0 and v1 for record headers: no headers." in table.notes


def test_one_workload_that_a_format_cannot_carry_is_enough(tmp_path: Path) -> None:
    """user-activity in v0 alone is no number for a class of two."""
    rows = workload_rows()
    more = [
        row | {"status": "skipped", "error": "v0 has no room", "size_bytes": None} if row["format"] == "v0" else row
        for row in beside(rows, "cdc-debezium", "user-activity", 1, {})
    ]
    found = verdict.verdict_table(verdicts_of(tmp_path, [*rows, *more]))
    assert found is not None
    row = row_of(found, **{"workload class": SMALL})
    assert row["v0 (× v2)"] is None and row["v1 (× v2)"] is not None


def test_v2_wins_or_ties_within_a_percent(tmp_path: Path, table: Table) -> None:
    assert row_of(table, **{"workload class": "forgotten"})["winner (no codec)"] == "tie with v2"  # v3: 0.9 % less
    wins = {}
    for v2 in (900_000, 1_000_000, int(1_000_000 * (1 + TIE)), int(1_000_000 * (1 + TIE)) + 1):
        found = verdict.verdict_table(verdicts_of(tmp_path / str(v2), sized({"v2": v2, "v3": 1_000_000})))
        assert found is not None
        wins[v2] = row_of(found, **{"workload class": SMALL})["winner (no codec)"]
    assert list(wins.values()) == ["v2", "tie with v2", "tie with v2", "v3"]


def sized(sizes: dict[str, int]) -> list[Row]:
    """All other formats take twice a million."""
    rows = workload_rows()
    for row in rows:
        if row["status"] == "ok" and row["kind"] == "bytes":
            row["size_bytes"] = sizes.get(row["format"], 2_000_000)
    return rows


def test_what_loses_something_wins_nothing_and_says_what(verdicts: Verdicts, table: Table) -> None:
    """v0 takes 126 bytes, v1 134, v3 156 in batches of one record; v0 has no times, and neither has producer ids."""
    row = row_of(table, **{"workload class": ONE})
    assert row["winner (no codec)"] == "v3" and row["v0 (× v2)"] < row["v3 (× v2)"]
    lost = "v0 (times and producer ids) and v1 (producer ids)"
    assert f"Not compared where it loses something of the records of a class: {lost}." in table.notes
    assert detail(verdicts, ONE, "v0")["bytes (no codec)"] == "without times and producer ids"
    said = verdict.verdict_sentence(verdicts)
    assert "; v0, without times and producer ids, takes less than any that loses nothing in 2" in said
    assert "is the smallest in" not in said


def whole_v1() -> list[Row]:
    return [row | {"losses": "{}"} if row["format"] == "v1" and "losses" in row else row for row in workload_rows()]


def test_v1_wins_where_it_loses_nothing_and_what_it_has_no_room_for_is_said(tmp_path: Path) -> None:
    found = verdicts_of(tmp_path, whole_v1())
    (one,) = (each for each in found.classes if each.name == ONE)
    assert one.winners("none") == ("v1",) and "v1 is the smallest in 1" in verdict.verdict_sentence(found)
    table = verdict.verdict_table(found)
    assert table is not None
    row = row_of(table, **{"workload class": ONE})
    assert (row["winner (no codec)"], row["winner (zstd 3)"]) == ("v1 †", "v3")
    (note,) = (note for note in table.notes if note.startswith("†"))
    assert note.startswith(f"† v1 has no {listed(lacking('v1', 'v2'))}. ") and "control batches and zstd." in note


def test_what_wins_under_zstd_alone_has_no_cost_without_it(tmp_path: Path) -> None:
    """v1 takes 2.5 times v2's CPU. v3 wins under zstd, which v1 has not, and was timed without."""
    rows = [row for row in whole_v1() if row["workload"] == "cluster-metadata"]
    found = verdicts_of(tmp_path / "plain", rows)
    table = costs_of(found)
    assert column(table, "winner (no codec)") == ["v1 †"]
    (cost,) = column(table, "encode (× v2 CPU)")
    assert cost.median == pytest.approx(2.5, rel=0.02)
    said = "Winners under zstd 3 alone are left out (v3 for any class): "
    assert f"{said}not timed under zstd 3." in table.notes
    assert f"the winners without a codec take {cost.median:.2f} to encode" in verdict.cost_sentence(found)
    packed = [row | {"codec": "zstd", "level": 3, "cell_id": "z"} for row in rows if row["kind"] == "cpu"]
    assert f"{said}timed further below." in costs_of(verdicts_of(tmp_path / "packed", [*rows, *packed])).notes


def test_formats_near_the_smallest_share_its_place_and_each_has_its_cost(tmp_path: Path) -> None:
    """No rule is kinder to this project's variant than to v3."""
    rows = workload_rows()
    for row in [row for row in rows if row["format"] == "v3" and row["status"] == "ok"]:
        other = row | {"format": "v3-headers-first"}
        if row["kind"] == "bytes":
            other["size_bytes"] = int(row["size_bytes"] * (1 - TIE / 2))
        rows.append(other)
    found = verdicts_of(tmp_path, rows)
    table = verdict.verdict_table(found)
    assert table is not None
    row = row_of(table, **{"workload class": ONE})
    assert row["winner (no codec)"] == row["winner (zstd 3)"] == "v3 and v3-headers-first"
    costs = costs_of(found)
    assert [each[1] for each in costs.rows if each[0] == ONE] == ["v3", "v3-headers-first"]


def test_what_v3_costs_stands_beside_its_bytes(verdicts: Verdicts, table: Table) -> None:
    for each in verdicts.classes:
        row = row_of(table, **{"workload class": each.name})
        for operation in class_times.TIMED:
            time = each.cpu.get((operation, "v3"))
            assert row[f"v3 {operation} (× v2 CPU)"] == (time and time.mean)
    assert table.columns[-3].name == "v3 encode" and any("is a tie." in note for note in table.notes)
    assert any(note.startswith("No append of v3 for ") for note in table.notes)


def test_what_was_compared_is_told_from_the_rows(tmp_path: Path, table: Table) -> None:
    some = verdict.verdict_table(verdicts_of(tmp_path, [row for row in workload_rows() if row["format"] != "v1"]))
    assert some is not None
    rest = "; no other was measured on these workloads. "
    assert table.notes[0].startswith(f"Compared: v0, v1, v2 and v3{rest}")
    assert some.notes[0].startswith(f"Compared: v0, v2 and v3{rest}")


def test_the_picture_has_every_format_that_the_verdict_names(results: Results, tmp_path: Path) -> None:
    rows = [
        row | {"format": "v3-headers-first", "size_bytes": row["size_bytes"] // 2}
        for row in workload_rows()
        if (row["format"], row["kind"], row["status"]) == ("v3", "bytes", "ok")
    ]
    named = Results(stored(tmp_path, [*workload_rows(), *rows]).measurements())
    grid = results.all[(results.all["format"] == "v3") & (results.all["kind"] == "bytes")]
    more = [grid.assign(format=name) for name in ("v3-headers-first", "v3-header-only")]
    both = Results(pd.concat([results.all, *more, named.all], ignore_index=True))
    (figure,) = page(both, []).figures
    shown = ["v0", "v1", "v2", "v3", "v3-headers-first"]
    assert [each.split()[0] for each in figure.alt.partition(": ")[2].split("; ")] == [*shown, "the"]


def test_the_lead_is_two_sentences(results: Results, tmp_path: Path) -> None:
    named = Results(stored(tmp_path, workload_rows()).measurements())
    lead = page(Results(pd.concat([results.all, named.all], ignore_index=True)), []).lead
    assert lead.count(". ") == 1 and "the winners" not in lead


def test_a_codec_that_buys_nothing_is_told_where_the_smallest_does_not_have_it(tmp_path: Path) -> None:
    rows = whole_v1()
    for row in rows:
        if (row["workload"], row["kind"], row["codec"], row["status"]) == ("cluster-metadata", "bytes", "zstd", "ok"):
            row["size_bytes"] = {"v2": 172_000, "v3": 150_000}[row["format"]]
    dearer, cheaper = (verdict.verdict_table(verdicts_of(tmp_path / name, each)) for name, each in (
        ("dearer", rows), ("cheaper", whole_v1())))  # fmt: skip
    assert dearer is not None and cheaper is not None
    said = "one record a batch (v3 150.0 under zstd 3; v1 134.0 without a codec)"
    assert f"v0 and v1 have no zstd. Under zstd 3 the smallest takes more bytes than without a codec for {said}." in (
        dearer.notes
    )
    assert "v0 and v1 have no zstd." in cheaper.notes


def test_a_variant_of_this_project_is_named_as_one(tmp_path: Path, table: Table) -> None:
    rows = workload_rows()
    rows += [
        row | {"format": "v3-headers-first", "size_bytes": row["size_bytes"] // 2}
        for row in rows
        if (row["format"], row["kind"], row["status"]) == ("v3", "bytes", "ok")
    ]
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None and set(column(found, "winner (no codec)")) == {"v3-headers-first"}
    own = "v3-headers-first is this project's own, in no proposal's text: "
    assert [note.startswith(own) for note in found.notes].count(True) == 1
    assert not any("this project" in note for note in table.notes)


@pytest.mark.parametrize(("low", "is_tie"), [(1.02, False), (1.0051, False), (1.0049, True), (0.99, True)])
def test_a_tie_is_one_as_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, low: float, is_tie: bool
) -> None:
    """An interval that is printed as if it began at 1 is a tie, and no other is."""
    found = verdicts_of(tmp_path, workload_rows())
    time = class_times.joined([Interval(median=1.03, low=low, high=1.05)])
    one = replace(found.classes[0], cpu={("encode", "v3"): time}, again={})
    monkeypatch.setattr(found, "classes", [one])
    cell = row_of(costs_of(found), **{"workload class": ONE})["encode (× v2 CPU)"]
    assert ("(1.00–" in number(cell) or "(0.99–" in number(cell)) == is_tie
    assert isinstance(cell, Interval) and ties(cell, found.noise.get("encode")) == is_tie


def failed(rows: list[Row], kind: str = "bytes", **where: str) -> list[Row]:
    """The rows, those of a kind as errors where their cells are as told."""
    error = {"status": "error", "error": "it broke\nat a line", "size_bytes": None, "cpu_ns": None}
    return [row | error if row["kind"] == kind and where.items() <= row.items() else row for row in rows]


def test_without_v2_nobody_wins_and_its_own_error_says_why(tmp_path: Path) -> None:
    rows = failed(workload_rows(), format="v2", workload="user-activity", variant="default")
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None
    row = row_of(found, **{"workload class": SMALL})
    assert row["winner (no codec)"] is row["winner (zstd 3)"] is row["v3 (× v2)"] is None
    assert "No bytes of v2 for small batches: error, it broke; without v2 nothing is compared." in found.notes
    assert [note for note in found.notes if "headers" in note] == [
        "No bytes of v0 and v1 for record headers: no headers."
    ]


def test_v2_alone_wins_nothing(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["format"] in ("v0", "v2")]
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None and set(column(found, "winner (no codec)")) == {None}
    assert "No winner (no codec) for any class: no format but v2 that loses nothing." in found.notes


def test_a_winner_that_is_missing_under_one_codec_has_its_reason_there(tmp_path: Path) -> None:
    rows = failed(workload_rows(), format="v3", workload="user-activity", variant="default", codec="zstd")
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None
    row = row_of(found, **{"workload class": SMALL})
    assert (row["winner (no codec)"], row["winner (zstd 3)"]) == ("v3", None)
    assert "No bytes of v3 for small batches: error, it broke, under zstd 3." in found.notes
    assert "No winner (zstd 3) for small batches: no format but v2 that loses nothing." in found.notes


def test_reasons_are_those_of_the_class_and_not_of_a_variant(tmp_path: Path) -> None:
    rows = failed(workload_rows(), format="v3", variant="rate-10")
    rows = [row for row in rows if (row["workload"], row["format"]) != ("cluster-metadata", "v1")]
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None
    assert "No bytes of v1 for one record a batch: not measured." in found.notes and "broke" not in str(found.notes)


def test_a_class_without_a_common_format_is_dashes(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["workload"] == "user-activity" and row["variant"] == "default"]
    other = [row | {"workload": "cdc-debezium", "cell_id": "other"} for row in rows if row["format"] in ("v2", "v3")]
    verdicts = verdicts_of(tmp_path, [*(row for row in rows if row["format"] in ("v0", "v1")), *other])
    found = verdict.verdict_table(verdicts)
    assert found is not None and found.rows == ((SMALL, *[None] * (len(found.columns) - 1)),)
    assert verdict.detail_table(verdicts).rows == ()


@pytest.mark.parametrize("status", ["ok", "error"])
def test_a_time_of_another_host_has_its_own_reason(tmp_path: Path, status: str) -> None:
    """Not that of a codec's skipped row, nor of a variant's error."""
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


def test_rounds_that_are_no_pairs_are_no_time_and_are_told(tmp_path: Path) -> None:
    rows = workload_rows()
    for row in rows:
        if (row["kind"], row["format"], row["workload"]) == ("cpu", "v3", "cluster-metadata"):
            row["cpu_ns"] = row["cpu_ns"][:-2]
    found = verdicts_of(tmp_path, rows)
    assert (class_times.UNEQUAL, (ONE,), ["encode", "decode"]) in untimed(found)


def test_least_and_most_of_the_workloads_stand_beside_the_mean(verdicts: Verdicts) -> None:
    row = detail(verdicts, ONE, "v3")
    least, _, most = row["encode, least–most"].partition("–")
    assert (float(least), float(most)) == pytest.approx((1.1, 1.65), abs=0.02)  # as cluster-metadata, and 1.5 times it
    assert row["no codec, least–most"] == "0.923–0.923"
    assert detail(verdicts, SMALL, "v3")["encode, least–most"] is None  # of one workload


def test_the_lead_ranges_over_workloads(tmp_path: Path) -> None:
    """Of two workloads of a class one takes 10 % more, the other 10 % less: their mean says neither."""
    rows = sized({"v2": 1_000_000, "v3": 900_000})
    for row in rows:
        if row["workload"] == "service-events" and row["format"] == "v3" and "size_bytes" in row:
            row |= {"size_bytes": 1_100_000}
    rows = [row | {"workload": "cloudevents"} if row["workload"] == "user-activity" else row for row in rows]
    found = verdicts_of(tmp_path, rows)
    (headers,) = (each for each in found.classes if each.name == HEADERS)
    assert headers.ratio("none", "v3") == pytest.approx(np.sqrt(0.99)) and headers.span("none", "v3") == (0.9, 1.1)
    assert "0.900 to 1.100 without a codec (within 1 % in 0 of 4, more in 1)" in verdict.verdict_sentence(found)


def test_the_sentences_follow_the_rows(verdicts: Verdicts, tmp_path: Path) -> None:
    said, cpu = verdict.verdict_sentence(verdicts), verdict.cpu_sentence(verdicts)
    assert "0.923 to 0.991 without a codec (within 1 % in 1 of 5)" in said
    assert "v3 takes more for one record a batch, small batches, record headers and forgotten (1.10 to 1.35×)" in cpu
    rows = workload_rows()
    for row in rows:
        if row["format"] == "v3" and row["status"] == "ok" and row["kind"] == "bytes":
            row["size_bytes"] *= 2
        if row["format"] == "v3" and row["status"] == "ok" and row["kind"] == "cpu":
            row["cpu_ns"] = [ns // 2 for ns in row["cpu_ns"]]
    other = verdicts_of(tmp_path, rows)
    assert "1.846 to 1.981 without a codec (within 1 % in 0 of 4, more in 4)" in verdict.verdict_sentence(other)
    assert "v3 takes less for" in verdict.cpu_sentence(other) and "more" not in verdict.cpu_sentence(other)


def test_what_v2_against_itself_reads_is_a_tie(tmp_path: Path) -> None:
    """v3 takes 10 % more, and so does v2's A/A arm in one workload."""
    rows = workload_rows()
    for row in rows:
        if row["workload"] == "forgotten" and row.get("arm") == "aa":
            row["cpu_ns"] = [int(ns * 1.2) for ns in row["cpu_ns"]]
    noisy, quiet = verdicts_of(tmp_path / "noisy", rows), verdicts_of(tmp_path / "quiet", workload_rows())
    assert noisy.noise["encode"][1] > 1.15 > 1.02 > quiet.noise["encode"][1]
    assert "v3 takes as much, as far as can be told, in 4 of 4 classes to encode" in verdict.cpu_sentence(noisy)
    assert "in 0 of 4 classes to encode" in verdict.cpu_sentence(quiet)
    low, high = noisy.noise["encode"]
    assert f"By class, v2 against itself reads {low:.2f}–{high:.2f} (encode)" in verdict.cpu_sentence(noisy)
    assert f"reaches into {low:.2f}–{high:.2f} (encode)" in str(costs_of(noisy).notes)
    assert "the middle 95 % of v2 against itself by class, is a tie." in str(costs_of(noisy).notes)
    again = row_of(verdict.classes_table(noisy), **{"workload class": "forgotten"})["encode (× v2 CPU)"]
    assert again.median == pytest.approx(1.2, rel=0.03)


def test_a_noisy_operation_makes_no_ties_of_another(tmp_path: Path) -> None:
    """v3 takes 10 % more to encode and to decode; v2's decode alone reads 20 % more against itself."""
    rows = workload_rows()
    for row in rows:
        if row.get("operation") == "decode" and row.get("arm") == "aa":
            row["cpu_ns"] = [int(ns * 1.2) for ns in row["cpu_ns"]]
    found = verdicts_of(tmp_path, rows)
    assert found.noise["encode"][1] < 1.02 < 1.15 < found.noise["decode"][1]
    said = verdict.cpu_sentence(found)
    assert "in 0 of 4 classes to encode" in said and "in 4 of 4 classes to decode" in said


def test_of_the_other_formats_the_smallest_is_shown(tmp_path: Path) -> None:
    rows = workload_rows()
    for name, by in (("v3-full", 3), ("v3-tagged", 2)):
        rows += [row | {"format": name, "size_bytes": row["size_bytes"] // by} for row in rows if row["format"] == "v3"
                 and row["kind"] == "bytes" and row["status"] == "ok"]  # fmt: skip
    verdicts = verdicts_of(tmp_path, rows)
    assert verdicts.shown == ["v0", "v1", "v2", "v3", "v3-full"] and "v3-tagged" in verdicts.formats


def test_without_named_workloads_the_first_screen_has_a_picture_and_the_reason_stands_below(results: Results) -> None:
    found = page(results, [])
    assert found.table is None and [figure.name for figure in found.figures] == ["overhead"]
    missing = next(table for table in found.sections[-1].tables if table.name == "missing")
    assert ("Which format for which class of workload?", "no bytes of named workloads") in missing.rows
