"""Holes cost what the formats write for what is left."""

import pytest

from kfbench.report.data.paths import Paths
from kfbench.report.topics import holes
from tests.report.broker_rows import row_of


def test_holes_cost_what_the_formats_write(paths: Paths) -> None:
    table = holes.holes_table(paths)
    assert table is not None
    fresh = row_of(table, **{"kept": "all", "delete horizon": False})
    assert (fresh["v0"], fresh["v1"]) == (26.0, 34.0)
    some = {kept: row_of(table, **{"kept": kept, "delete horizon": False}) for kept in ("1 in 10", "1 in 100")}
    assert some["1 in 10"]["v1"] == 34.0
    assert some["1 in 10"]["v2"] == pytest.approx(fresh["v2"] + 61 / 10 - 61 / 100, abs=0.5)
    assert some["1 in 100"]["v2"] > 61
    assert row_of(table, **{"kept": "all", "delete horizon": True})["v2"] > fresh["v2"] + 2
