"""The first screen of a report: classes of workloads, their means and their winners."""

from pathlib import Path

import numpy as np
import pytest

from kfbench.report.data.classes import CLASS_ORDER, Verdicts
from kfbench.report.data.named import TIE
from kfbench.report.topics import verdict
from kfbench.tables import Table
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from tests.common import numbers_in
from tests.report.class_rows import (
    HEADERS,
    ONE,
    SMALL,
    beside,
    costs_of,
    detail,
    sized,
    verdicts_of,
    whole_v1,
)
from tests.report.columns import column, row_of
from tests.report.workload_rows import CPU, WORKLOADS, Row, size_bytes, workload_rows


def test_each_workload_names_its_class_and_no_class_is_empty() -> None:
    """Without a class, a workload would be a row of its own."""
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


def test_a_format_that_cannot_carry_a_workload_has_no_number(table: Table) -> None:
    row = row_of(table, **{"workload class": HEADERS})
    assert row["v0 (× v2)"] is None and row["v1 (× v2)"] is None and row["v3 (× v2)"] is not None


def test_one_workload_that_a_format_cannot_carry_is_enough(tmp_path: Path) -> None:
    """v0 cannot carry one of the two workloads of a class. So v0 has no number for the whole class."""
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
    assert row_of(table, **{"workload class": "forgotten"})["winner (no codec)"] == "tie with v2"  # v3 takes 0.9 % less
    wins = {}
    for v2 in (900_000, 1_000_000, int(1_000_000 * (1 + TIE)), int(1_000_000 * (1 + TIE)) + 1):
        found = verdict.verdict_table(verdicts_of(tmp_path / str(v2), sized({"v2": v2, "v3": 1_000_000})))
        assert found is not None
        wins[v2] = row_of(found, **{"workload class": SMALL})["winner (no codec)"]
    assert list(wins.values()) == ["v2", "tie with v2", "tie with v2", "v3"]


def test_lossy_formats_do_not_win(verdicts: Verdicts, table: Table) -> None:
    """In batches of one record v0 takes 126 bytes, v1 134 and v3 156.

    But v0 loses timestamps, and both v0 and v1 lose producer ids.
    """
    row = row_of(table, **{"workload class": ONE})
    assert row["winner (no codec)"] == "v3" and row["v0 (× v2)"] < row["v3 (× v2)"]
    assert detail(verdicts, ONE, "v0")["bytes (no codec)"] == "without times and producer ids"


def test_v1_wins_where_it_loses_nothing(tmp_path: Path) -> None:
    found = verdicts_of(tmp_path, whole_v1())
    (one,) = (each for each in found.classes if each.name == ONE)
    assert one.winners("none") == ("v1",)
    table = verdict.verdict_table(found)
    assert table is not None
    row = row_of(table, **{"workload class": ONE})
    assert (row["winner (no codec)"], row["winner (zstd 3)"]) == ("v1 †", "v3")


def test_formats_near_the_smallest_share_its_place_and_each_has_its_cost(tmp_path: Path) -> None:
    """A variant is 0.5 % smaller than v3. Both share the first place, and each has its own CPU time."""
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


def failed(rows: list[Row], kind: str = "bytes", **where: str) -> list[Row]:
    """Return the rows, with those of one kind that match `where` replaced by errors."""
    error = {"status": "error", "error": "it broke\nat a line", "size_bytes": None, "cpu_ns": None}
    return [row | error if row["kind"] == kind and where.items() <= row.items() else row for row in rows]


def test_without_v2_nobody_wins(tmp_path: Path) -> None:
    rows = failed(workload_rows(), format="v2", workload="user-activity", variant="default")
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None
    row = row_of(found, **{"workload class": SMALL})
    assert row["winner (no codec)"] is row["winner (zstd 3)"] is row["v3 (× v2)"] is None


def test_v2_alone_wins_nothing(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["format"] in ("v0", "v2")]
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None and set(column(found, "winner (no codec)")) == {None}


def test_a_winner_may_be_missing_under_one_codec(tmp_path: Path) -> None:
    rows = failed(workload_rows(), format="v3", workload="user-activity", variant="default", codec="zstd")
    found = verdict.verdict_table(verdicts_of(tmp_path, rows))
    assert found is not None
    row = row_of(found, **{"workload class": SMALL})
    assert (row["winner (no codec)"], row["winner (zstd 3)"]) == ("v3", None)


def test_a_class_without_a_common_format_is_dashes(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["workload"] == "user-activity" and row["variant"] == "default"]
    other = [row | {"workload": "cdc-debezium", "cell_id": "other"} for row in rows if row["format"] in ("v2", "v3")]
    verdicts = verdicts_of(tmp_path, [*(row for row in rows if row["format"] in ("v0", "v1")), *other])
    found = verdict.verdict_table(verdicts)
    assert found is not None and found.rows == ((SMALL, *[None] * (len(found.columns) - 1)),)
    assert verdict.detail_table(verdicts).rows == ()


def test_least_and_most_of_the_workloads_stand_next_to_the_mean(verdicts: Verdicts) -> None:
    row = detail(verdicts, ONE, "v3")
    least, _, most = row["encode, least–most"].partition("–")
    assert (float(least), float(most)) == pytest.approx((1.1, 1.65), abs=0.02)  # 1.1, and 1.5 times 1.1
    assert row["no codec, least–most"] == "0.923–0.923"
    assert detail(verdicts, SMALL, "v3")["encode, least–most"] is None  # the class has one workload


def test_the_lead_ranges_over_workloads(tmp_path: Path) -> None:
    """One workload of a class takes 10 % more bytes, the other 10 % less.

    The span has both ends, because the mean hides them.
    """
    rows = sized({"v2": 1_000_000, "v3": 900_000})
    for row in rows:
        if row["workload"] == "service-events" and row["format"] == "v3" and "size_bytes" in row:
            row |= {"size_bytes": 1_100_000}
    rows = [row | {"workload": "cloudevents"} if row["workload"] == "user-activity" else row for row in rows]
    found = verdicts_of(tmp_path, rows)
    (headers,) = (each for each in found.classes if each.name == HEADERS)
    assert headers.ratio("none", "v3") == pytest.approx(np.sqrt(0.99)) and headers.span("none", "v3") == (0.9, 1.1)
    # the range without a codec, and the workloads with over 1 % more; the same under zstd 3
    said = [0.9, 1.1, 100 * TIE, 1, 4]
    assert numbers_in(verdict.verdict_sentence(found)) == [*said, 3, *said]


def test_the_sentences_have_the_ranges_and_counts_of_the_rows(tmp_path: Path) -> None:
    lossy, whole = verdicts_of(tmp_path / "lossy", workload_rows()), verdicts_of(tmp_path / "whole", whole_v1())
    batches = [variants["default"] for variants in WORKLOADS.values()]

    def ends(codec: str) -> list[float]:
        ratios = [size_bytes("v3", batch, codec) / size_bytes("v2", batch, codec) for batch in batches]
        return [round(min(ratios), 3), round(max(ratios), 3)]

    old = [1, 4, 1, 4]  # v1 and v0: each is the smallest in 1 of 4 workloads, or would be if it lost nothing
    assert numbers_in(verdict.verdict_sentence(lossy)) == [*ends("none"), 3, *ends("zstd"), *old]
    assert numbers_in(verdict.verdict_sentence(whole)) == [*ends("none"), 3, *ends("zstd"), *old]
    cpu = [CPU["v3"], CPU["v1"]] * 2  # v1 wins one class, v3 the others; encode and decode
    assert numbers_in(verdict.cost_sentence(whole)) == pytest.approx(cpu, rel=0.02)
    assert numbers_in(verdict.cost_sentence(lossy)) == pytest.approx([CPU["v3"]] * 2, rel=0.02)


def test_of_the_other_formats_the_smallest_is_shown(tmp_path: Path) -> None:
    rows = workload_rows()
    for name, by in (("v3-full", 3), ("v3-tagged", 2)):
        rows += [row | {"format": name, "size_bytes": row["size_bytes"] // by} for row in rows if row["format"] == "v3"
                 and row["kind"] == "bytes" and row["status"] == "ok"]  # fmt: skip
    verdicts = verdicts_of(tmp_path, rows)
    assert verdicts.shown == ["v0", "v1", "v2", "v3", "v3-full"] and "v3-tagged" in verdicts.formats
