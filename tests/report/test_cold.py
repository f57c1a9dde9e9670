"""Cold cells (timed on memory outside the cache) have their own section. No other ratio uses them."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.results import Results
from kfbench.report.topics import cold
from tests.report.columns import some
from tests.runs import stored


@pytest.fixture
def with_cold(rows: list[dict[str, Any]], tmp_path: Path) -> Results:
    """Add cold copies of the CPU rows of the batch grid. They are 3 times as slow, or 4.5 times for v3."""
    slow = [
        row
        | {"grid": "cold", "cache": "cold", "rotated_bytes": 210_000_000}
        | {"cpu_ns": [ns * (9 if row["format"] == "v3" else 6) // 2 for ns in row["cpu_ns"]]}
        for row in rows
        if row["kind"] == "cpu" and row["grid"] == "batch"
    ]
    return Results(stored(tmp_path, [*rows, *slow]).measurements())


def test_resident_ratios_are_what_they_were(results: Results, with_cold: Results) -> None:
    assert len(with_cold.cold) == len(results.cpu[results.cpu["grid"] == "batch"]) > 0
    for name in ("cpu", "aa"):
        before, after = getattr(results, name), getattr(with_cold, name)
        assert before["together"].tolist() == after["together"].tolist()
    assert with_cold.noise == results.noise


def test_cold_stands_next_to_resident(with_cold: Results) -> None:
    table = some(cold.cold_table(with_cold, "encode"))
    assert [row[0] for row in table.rows] == [1, 2, 3, 5, 10, 100]
    labels = [column.label for column in table.columns]
    for row in table.rows:
        by = dict(zip(labels, row, strict=True))
        there, here = by["v3, resident (×)"], by["v3, cold (×)"]
        assert here.median == pytest.approx(1.5 * there.median, rel=1e-3)  # type: ignore[union-attr]
        assert by["v2, cold (ns per record)"] == pytest.approx(3 * by["v2, resident (ns per record)"])  # type: ignore[operator]
        assert by["v2 again, cold (×)"] is not None


def test_a_run_that_is_cold_alone(with_cold: Results, tmp_path: Path) -> None:
    rows = with_cold.all[with_cold.all["cache"] == "cold"]
    alone = Results(rows)
    table = cold.cold_table(alone, "decode")
    assert alone.cpu.empty and table is not None and all(row[-1] is None for row in table.rows)
