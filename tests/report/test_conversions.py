"""Costs and losses of conversions in the report agree with the rows."""

import pytest

from kfbench.report.data.paths import Paths
from kfbench.report.topics import conversions
from tests.report.broker_rows import RECORDS
from tests.report.columns import column, row_of, some


def test_conversions_are_a_matrix_that_says_what_was_not_done(paths: Paths) -> None:
    plain = conversions.conversion_tables(paths, "none")
    assert [table.name for table in plain] == ["broker-convert-cpu-none", "broker-convert-bytes-none"]
    assert row_of(plain[1], **{"from": "v0"})["v1"] == pytest.approx(138 / 130)
    assert row_of(plain[0], **{"from": "v2"})["v2"] is None
    zstd = conversions.conversion_tables(paths, "zstd 3")[0]
    assert zstd.name == "broker-convert-cpu-zstd-3"
    assert row_of(zstd, **{"from": "v2"})["v1"] == "skipped"
    seconds = row_of(plain[0], **{"from": "v2"})["v1"]
    assert seconds == pytest.approx(5 * 20e-9 * RECORDS / 122_000 * 2**30, rel=0.02)
    told = some(conversions.losses_table(paths))
    assert row_of(told, **{"from": "v2", "to": "v0", "codecs": "none and gzip 6"})["lost, or why not"] == ("timestamps")
    assert "v1 has no zstd" in column(told, "lost, or why not")
