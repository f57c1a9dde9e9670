"""Control measurements, whose result is known, and rows of other hosts."""

import pytest

from kfbench.report.data.arms import Band
from kfbench.report.data.results import Results
from kfbench.report.topics import control, cpu
from kfbench.tables import Interval
from tests.report.columns import column, some


def test_the_control_names_the_checksum(results: Results) -> None:
    table = some(control.control_table(results))
    assert {(row[0], row[2]) for row in table.rows} == {
        ("v0", "CRC-32"), ("v1", "CRC-32"), ("v2 (A/A)", "CRC-32C"), ("v3", "CRC-32C"),
    }  # fmt: skip


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
    rows = results.all.copy()
    rows.loc[rows["batch_size"] == 1, "host"] = "elsewhere"
    mixed = Results(rows)
    assert set(mixed.cpu["host"]) == {results.cpu["host"].iloc[0]}
    rest = some(cpu.cpu_slice(mixed, "batch_size"))
    for table in cpu.cpu_tables(rest, "encode", "cpu"):
        assert 1 not in column(table, "records per batch") and 10 in column(table, "records per batch")
    assert len(mixed.grid_bytes) == len(results.grid_bytes)  # bytes do not depend on the host, so these rows stay
