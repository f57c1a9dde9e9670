"""Control measurements, whose result is known, and rows of other hosts."""

import dataclasses

import pytest

from kfbench.report.data.arms import Band
from kfbench.report.data.results import Results
from kfbench.report.topics import control, cpu
from kfbench.tables import Interval
from tests.report.columns import column, some


def test_the_control_names_the_checksum_and_flags_what_differs(results: Results) -> None:
    table = some(control.control_table(results))
    assert "20,000-byte values" in table.caption
    assert {(row[0], row[2]) for row in table.rows} == {
        ("v0", "CRC-32"), ("v1", "CRC-32"), ("v2 (A/A)", "CRC-32C"), ("v3", "CRC-32C"),
    }  # fmt: skip
    broken = dataclasses.replace(
        table, rows=tuple((*row[:4], "differs" if row[0] == "v3" else row[4]) for row in table.rows)
    )
    assert "fails for v3 encode and v3 decode." in control.control_sentence(broken)
    ties = dataclasses.replace(table, rows=tuple((*row[:4], "ties") for row in table.rows))
    assert control.control_sentence(ties).endswith("The check is passed.")


@pytest.mark.parametrize(
    ("median", "verdict"), [(1.003, "ties"), (1.011, "within 2.0 %"), (1.03, "differs"), (0.97, "differs")]
)
def test_the_control_has_a_limit(median: float, verdict: str) -> None:
    ratio = Interval(median=median, low=median - 0.002, high=median + 0.002)
    assert control._verdict(ratio, control.BASE_CHECKSUM, Band(0.996, 1.004)) == verdict


def test_each_format_has_its_own_checksum() -> None:
    names = ("v1", "enriched", "kip98", "columnar", "v3-of-tomorrow")
    assert [*map(control.checksum_of, names)] == ["CRC-32", "CRC-32", "CRC-32C", "CRC-32C", "no known checksum"]


def test_times_of_two_hosts_share_no_table(results: Results) -> None:
    part = some(cpu.cpu_slice(results, "batch_size"))
    assert [table.name for table in cpu.cpu_tables(part, "encode", "cpu")] == ["cpu-encode", "cpu-encode-ns"]
    assert control.hosts_sentence(results) == ""
    rows = results.all.copy()
    rows.loc[rows["batch_size"] == 1, "host"] = "elsewhere"
    mixed = Results(rows)
    cells = rows.loc[rows["kind"].isin(["cpu", "prefix"]) & (rows["host"] == "elsewhere"), "cell_id"].nunique()
    assert f": {cells} cells of elsewhere are left out" in control.hosts_sentence(mixed)
    assert set(mixed.cpu["host"]) == {results.cpu["host"].iloc[0]}
    rest = some(cpu.cpu_slice(mixed, "batch_size"))
    for table in cpu.cpu_tables(rest, "encode", "cpu"):
        assert 1 not in column(table, "records per batch") and 10 in column(table, "records per batch")
    assert len(mixed.grid_bytes) == len(results.grid_bytes)  # bytes do not depend on the host, so these rows stay


def test_the_aa_statement_counts_its_arms(results: Results) -> None:
    said, table = control.aa_sentence(results), control.aa_table(results)
    assert table is not None
    arms = sum(column(table, "cells"))
    assert f"{arms} times" in said
    held = sum(ratio.holds(1.0) for ratio in results.aa["ratio"])
    assert f"1.0 in {held} of them" in said
    assert "no A/A arm" in control.aa_sentence(Results(results.all[results.all["arm"] != "aa"]))
    assert "times no encode" in control.aa_sentence(Results(results.all[results.all["kind"] == "bytes"]))
