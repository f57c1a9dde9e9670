"""The section of migrations uses the run's own rows. It states assumptions and missing rows."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kfbench.migration import bills, plans
from kfbench.report.data.paths import Paths
from kfbench.report.data.views import Views
from kfbench.report.topics import claim_checks, migration
from kfbench.tables import Interval
from tests.report.broker_rows import SIZES, broker_rows, paths_of
from tests.report.columns import results_of, some

Row = dict[str, Any]


def costs(paths: Paths, plan: str) -> bills.Costs:
    return migration.costs_of(paths, plans.find(plan), "broker-100", "none", "none")


def test_costs_are_those_of_the_rows(paths: Paths) -> None:
    found = costs(paths, "v3")
    down = found.of(plans.Operation("down-convert", "v3", "v2"))
    assert (down.source_bytes, down.target_bytes) == (SIZES["v3"], SIZES["v2"])
    assert down.cpu_ns == pytest.approx(5 * 20 * 1000, rel=0.02)
    append = found.of(plans.Operation("append", "v2", "v2"))
    assert append.cpu_ns == pytest.approx(20 * 1000, rel=0.02)
    assert found.size_bytes == {"v2": SIZES["v2"], "v3": SIZES["v3"]}


def test_an_append_that_converts_has_rows_of_its_own(paths: Paths) -> None:
    """`append` makes one batch of a request of plain messages.

    `upgrade` makes a batch of one record from each message.
    """
    found = costs(paths, "kip724")
    append = found.of(plans.Operation("append", "v1", "v2"))
    assert append.target_bytes == SIZES["v2"] and append.cpu_ns == pytest.approx(6 * 20 * 1000, rel=0.02)
    upgrade = found.of(plans.Operation("upgrade", "v1", "v2"))
    assert upgrade.target_bytes == SIZES["v2"] * 3 // 2 and upgrade.cpu_ns == pytest.approx(4 * 20 * 1000, rel=0.02)
    plan = plans.find("kip724")
    stored = bills.load(plan, plan.phase("3.0"), found, migration.ALL_OLD).disk_bytes / migration.TRAFFIC.replication
    assert stored == pytest.approx(bills.GIB * SIZES["v2"] / SIZES["v1"])


def test_a_conversion_does_not_stand_in_for_an_append(tmp_path: Path) -> None:
    rows = [row for row in broker_rows() if row["operation"] != "append-convert"]
    found = migration.break_evens(paths_of(tmp_path, rows), plans.find("kip724"))
    said = [str(each) for row, each in found if row.codec != "zstd"]
    assert said and all(re.fullmatch(r"append of v[12]( to v2)? was not measured", each) for each in said), said


def test_a_break_even_is_that_of_the_rules_at_these_costs(paths: Paths) -> None:
    plan = plans.find("v3")
    expected = bills.break_even(plan, costs(paths, "v3"), migration.TRAFFIC, migration.PRICES)
    found = {(row.cell_id, row.with_codec): each for row, each in migration.break_evens(paths, plan)}
    assert found["broker-100", "none"] == expected


def test_dear_conversions_give_a_share_of_old_consumers(tmp_path: Path) -> None:
    rows = broker_rows()
    for row in rows:
        if row["operation"] == "convert" and row["status"] == "ok":
            row["cpu_ns"] = [each * 200 for each in row["cpu_ns"]]
    found = paths_of(tmp_path, rows)
    plan = plans.find("v3")
    table = some(migration.break_even_table(found, plan))
    (cells,) = [cells for cells in table.rows if cells[:2] == (100, "none")]
    assert isinstance(cells[2], Interval)
    share = cells[2].median
    assert 0 < cells[2].low <= share <= cells[2].high < 100 and cells[2].low < cells[2].high
    assert cells[3] == f"below {share:.{0 if share >= 10 else 1}f} %"
    at = replace(migration.TRAFFIC, old_consumers=share / 100)

    def asked(phase: str, traffic: bills.Traffic) -> float:
        """Return what down-conversion, storage and network cost together."""
        load = bills.load(plan, plan.phase(phase), costs(found, "v3"), traffic)
        counted = replace(load, append_cpu_s=0.0, fetch_cpu_s=load.down_convert_cpu_s)
        return bills.bill(counted, traffic, migration.PRICES).total

    assert asked(plan.goal, at) == pytest.approx(asked(plan.before, migration.ALL_OLD))
    last_word = claim_checks.kip931_discarded(found)
    assert last_word.verdict != "yes"


def test_a_codec_that_a_format_lacks_is_named(paths: Paths) -> None:
    table = some(migration.break_even_table(paths, plans.find("kip31")))
    (row,) = [row for row in table.rows if row[:2] == (100, "zstd 3")]
    assert row[2] is None and "zstd" in str(row[3])
    phases = some(migration.phases_table(paths, plans.find("kip31")))
    assert any(row[1] == "zstd 3" and "zstd" in str(row[-1]) for row in phases.rows)


def test_a_cost_that_the_run_lacks_is_named_and_no_number_is_made_up(tmp_path: Path) -> None:
    rows = [row for row in broker_rows() if row["operation"] != "fetch"]
    found = paths_of(tmp_path, rows)
    assert all("zero-copy" in str(each) for _, each in migration.break_evens(found, plans.find("v3")))
    assert isinstance(migration.migration_answer(Views(results_of(tmp_path / "again", rows))), str)
    assert not claim_checks.kip931_discarded(found).truths


def test_zero_copy_costs_its_call_whatever_is_handed_on(tmp_path: Path) -> None:
    rows = [row for row in broker_rows() if row["operation"] != "fetch" or row["codec"] == "none"]
    found = paths_of(tmp_path, rows)
    plan = plans.find("v3")
    gzip = migration.costs_of(found, plan, "broker-10", "gzip 6", "gzip").of(plans.Operation("zero-copy", "v3", "v3"))
    none = migration.costs_of(found, plan, "broker-10", "none", "none").of(plans.Operation("zero-copy", "v3", "v3"))
    assert gzip.cpu_ns == pytest.approx(none.cpu_ns, rel=0.05)
    assert gzip.source_bytes == gzip.target_bytes == SIZES["v3"]


def test_every_phase_has_its_load_before_with_old_clients_alone(paths: Paths) -> None:
    table = some(migration.phases_table(paths, plans.find("kip31")))
    labels = [column.label for column in table.columns]
    before = dict(zip(labels, table.rows[0], strict=True))
    assert before["phase"] == "before"
    assert (before["refused (% produced)"], before["refused (% fetched)"], before["zero-copy (% of out)"]) == (
        0,
        0,
        100,
    )
    shown = [row[0] for row in table.rows if row[1] == "none"]
    assert shown == ["before", "phase 1", "canary: that broker", "canary: the cluster", "phase 2"]


def test_what_is_refused_is_no_saving(paths: Paths) -> None:
    table = some(migration.phases_table(paths, plans.find("kip724")))
    labels = [column.label for column in table.columns]
    shown = {str(row[0]): dict(zip(labels, row, strict=True)) for row in table.rows if row[1] == "none"}
    assert shown["4.0"]["refused (% produced)"] == 10 and shown["4.0"]["bill (US$ per TiB)"] is None
    assert isinstance(shown["3.0"]["bill (US$ per TiB)"], float)


def test_actions_are_those_of_the_matrix() -> None:
    table = migration.actions_table(plans.find("kip31"))
    by = {row[0]: row[1:6] for row in table.rows}
    assert by["phase 2"] == ("v1", "up-convert", "in place", "down-convert", "zero-copy")
    assert by["canary"] == ("v1", "up-convert", None, "down-convert", None)
    assert by["before"] == ("v0", "in place", "UNSUPPORTED_VERSION", "zero-copy", "UNSUPPORTED_VERSION")


def test_assumptions_name_every_share_and_price() -> None:
    table = migration.assumptions_table()
    values = vars(migration.TRAFFIC) | vars(migration.PRICES)
    assert [str(row[0]).replace(" ", "_") for row in table.rows] == list(values)
    for (_, shown), (name, value) in zip(table.rows, values.items(), strict=True):
        assert f"{100 * value if name in migration.SHARES else value:g}" in str(shown), name


def test_costs_of_two_hosts_make_no_bill(tmp_path: Path) -> None:
    rows = broker_rows()
    for row in rows:
        if row["operation"] == "fetch":
            row["host"] = "there"
    found = paths_of(tmp_path, rows)
    assert isinstance(migration.migration_answer(Views(results_of(tmp_path / "again", rows))), str)
    assert not claim_checks.kip931_discarded(found).truths
