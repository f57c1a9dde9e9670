"""Overhead after compaction equals the bytes that each format writes for the surviving records."""

import pytest

from kfbench.report.data.paths import Paths
from kfbench.report.topics.broker_paths import holes_table
from tests.report.columns import row_of, some


def test_holes_cost_what_the_formats_write(paths: Paths) -> None:
    table = some(holes_table(paths))
    fresh = row_of(table, **{"kept": "all", "delete horizon": False})
    assert (fresh["v0"], fresh["v1"]) == (26.0, 34.0)
    tenth, hundredth = (row_of(table, **{"kept": f"1 in {step}", "delete horizon": False}) for step in (10, 100))
    assert tenth["v1"] == 34.0
    assert tenth["v2"] == pytest.approx(fresh["v2"] + 61 / 10 - 61 / 100, abs=0.5)
    assert hundredth["v2"] > 61
    assert row_of(table, **{"kept": "all", "delete horizon": True})["v2"] > fresh["v2"] + 2
