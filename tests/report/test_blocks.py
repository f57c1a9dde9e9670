"""The report has a section for one block (a part of the sweep file)."""

import tomllib

import pytest

from kfbench.report.data.results import Results
from kfbench.report.files import blocks as blocks_of
from kfbench.report.topics import blocks
from kfbench.shipped import DATASETS
from kfbench.tables import Interval
from tests.report.columns import column


def test_a_small_block_is_one_table_and_a_large_one_a_table_an_axis(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((small, _),) = blocks.block_tables(results, "codecs")
    assert [c.name for c in small.columns][:2] == ["records per batch", "codec"]
    assert [row[:2] for row in small.rows] == [(1, "gzip 6"), (1, "zstd 3"), (10, "gzip 6"), (10, "zstd 3")]
    assert dict(zip([row[:2] for row in small.rows], column(small, "v1"), strict=True))[1, "zstd 3"] is None
    monkeypatch.setattr(blocks, "SMALL_BLOCK_ROWS", 3)
    spread = blocks.block_tables(results, "spread")
    assert [table.name for table, _ in spread] == ["spread-bytes-timestamp_spread_ms"]
    batch = [table.name for table, _ in blocks.block_tables(results, "batch")]
    assert sorted(batch) == ["batch-bytes-batch_size", "batch-decode-batch_size", "batch-encode-batch_size"]


def test_a_block_of_cpu_rows_shows_ratios_without_v2(results: Results) -> None:
    for table, _ in blocks.block_tables(results, "large"):
        assert [c.name for c in table.columns] == ["value", "v0", "v1", "v3"]
        assert [row[0] for row in table.rows] == [100, 20_000]
        assert all(isinstance(cell, Interval) for row in table.rows for cell in row[1:])


def test_a_block_that_measures_the_same_today_has_the_text_of_today() -> None:
    text = (DATASETS / "sweeps" / "default.toml").read_text(encoding="utf-8")
    grids = {grid["name"]: grid for grid in tomllib.loads(text)["grid"]}
    old = [{"name": name, "title": "old title", "analysis": "Old text."} for name in ("headers", "codecs")]
    then = text.replace("headers = [0, 1, 2, 5, 10]", "headers = [7]")
    manifest = {"profile": "default", "grids": old, "profile_text": then}
    changed, same = blocks_of(manifest)
    assert (changed.title, changed.analysis) == ("old title", "Old text.")
    assert (same.title, same.analysis) == (grids["codecs"]["title"], grids["codecs"]["analysis"])
