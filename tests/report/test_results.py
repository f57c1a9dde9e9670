"""Slices of a run: one axis varies. Every other axis is as close to the reference point as the rows allow."""

from typing import Any

import pandas as pd
import pytest

from kfbench.formats import BASE_FORMAT, FORMATS, RESEARCH
from kfbench.report.data.axes import REFERENCE, level
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import PICTURED, in_order, pictured, worth_a_column
from kfbench.report.render import look
from kfbench.tables import Interval
from tests.report.columns import some


def test_formats_come_in_the_order_that_readers_expect() -> None:
    names = ["v3-header-only", "v2", "v0", "v3", "v1", "v3-attributes-only", "v2"]
    assert in_order(names) == ["v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only"]


def test_a_null_is_not_a_length() -> None:
    assert level("key_bytes", -1) == "null"
    assert level("base_timestamp_ms", -1) == -1
    assert level("payload", "template") == "template"


def test_a_slice_moves_one_axis_only(results: Results) -> None:
    for axis in ("batch_size", "timestamp_spread_ms", "key_bytes"):
        part = some(results.along(results.uncompressed, axis))
        for other in results.axes:
            assert (part.rows[other].nunique(dropna=False) > 1) == (other == axis), other


def test_the_slice_with_the_most_levels_comes_first_then_the_one_nearest_to_the_reference(results: Results) -> None:
    parts = results.slices(results.uncompressed, "batch_size")
    assert [part.rows["batch_size"].nunique() for part in parts] == sorted(
        (part.rows["batch_size"].nunique() for part in parts), reverse=True
    )
    assert parts[0].fixed == {axis: value for axis, value in REFERENCE.items() if axis != "batch_size"}
    spread = some(results.along(results.uncompressed, "timestamp_spread_ms"))
    assert spread.fixed["batch_size"] == 10


def test_a_plane_moves_two_axes_only(results: Results) -> None:
    assert results.plane(results.uncompressed, "batch_size", "value_bytes") is None  # all values have one size
    assert results.plane(results.uncompressed, "batch_size", "timestamp_spread_ms") is None  # not every combination
    batch = results.uncompressed[results.uncompressed["timestamp_spread_ms"] == 0]
    rows = pd.concat([batch, batch.assign(value_bytes=10), batch.assign(value_bytes=10, headers=5)[:1]])
    found = some(results.plane(rows, "batch_size", "value_bytes"))
    part, fixed = found
    assert {axis for axis in results.axes if part[axis].nunique() > 1} == {"batch_size", "value_bytes"}
    assert fixed == {axis: value for axis, value in REFERENCE.items() if axis not in ("batch_size", "value_bytes")}
    assert set(part["batch_size"]) == {1, 2, 3, 5, 10, 100}


def test_a_pivot_is_what_the_rows_say(results: Results) -> None:
    part = some(results.along(results.uncompressed, "batch_size"))
    frame = part.pivot("overhead_per_record")
    row = part.rows[(part.rows["batch_size"] == 5) & (part.rows["format"] == "v3")].iloc[0]
    assert frame.at[5, "v3"] == row["overhead_bytes"] / row["records"]
    assert list(frame.index) == [1, 2, 3, 5, 10, 100]
    assert (frame["v0"] == 26).all()
    assert (frame["v1"] == 34).all()


def test_rows_that_several_blocks_share_count_once(results: Results) -> None:
    assert not results.grid_bytes.duplicated(["cell_id", "format", "codec", "level"]).any()
    assert not results.cpu.duplicated(["cell_id", "format", "codec", "level", "operation", "arm"]).any()


def test_failed_and_skipped_rows_enter_no_slice(rows: list[dict[str, Any]], results: Results) -> None:
    assert any(row["status"] == "skipped" for row in rows)
    assert (results.ok["status"] == "ok").all()
    headers = some(results.along(results.uncompressed, "headers"))
    assert pd.isna(headers.pivot("overhead_per_record").at[2, "v1"])


def test_ns_a_record_are_medians_of_the_stored_samples(results: Results) -> None:
    row = results.cpu.iloc[0]
    expected = pd.Series(row["cpu_ns"]).median() / row["inner_loops"] / row["records"]
    assert row["ns_per_record"] == pytest.approx(expected)


def test_a_ratio_is_to_v2_of_the_same_cell_and_operation(results: Results) -> None:
    rows = results.with_ratios(results.cpu)
    base = rows[(rows["format"] == BASE_FORMAT) & (rows["arm"] == "measure")]
    assert set(base["ratio"]) == {Interval(median=1.0, low=1.0, high=1.0)}
    row = rows[(rows["format"] == "v0") & (rows["operation"] == "encode")].iloc[0]
    paired = base[(base["cell_id"] == row["cell_id"]) & (base["operation"] == "encode")].iloc[0]
    ratios = pd.Series(row["cpu_ns"]) / pd.Series(paired["cpu_ns"])
    assert row["ratio"].median == pytest.approx(ratios.median())
    assert row["ratio"].low <= row["ratio"].median <= row["ratio"].high


def test_without_v2_there_is_no_ratio(rows: list[dict[str, Any]], results: Results) -> None:
    lonely = Results(results.all[results.all["format"] != BASE_FORMAT])
    assert set(lonely.with_ratios(lonely.cpu)["ratio"]) == {None}
    assert lonely.noise is None


def test_the_noise_is_what_v2_against_v2_reads(results: Results) -> None:
    assert results.noise is not None
    low, high = results.noise
    assert low <= 1.0 <= high
    medians = [ratio.median for ratio in results.aa["ratio"]]
    assert len(medians) == results.cpu.drop_duplicates(["cell_id", "operation"]).shape[0]
    outside = sum(not low <= median <= high for median in medians)
    assert outside <= 2 + 0.05 * len(medians)
    assert min(medians) <= max(low, 1.0) and max(medians) >= min(high, 1.0)


def test_pictures_have_a_style_for_what_they_show() -> None:
    assert tuple(look.STYLES) == (*PICTURED, *RESEARCH)
    wide = pd.DataFrame({name: [1.0, 2.0] for name in FORMATS})
    assert list(pictured(wide)) == [name for name in FORMATS if name in PICTURED]


def test_a_proposal_that_was_measured_here_and_there_has_no_column() -> None:
    few = pd.DataFrame({"v0": [None] * 5, "kip98": [1.0, None, None, None, 2.0], "enriched": [1.0] * 5})
    assert worth_a_column(few) == ["v0", "enriched"]
