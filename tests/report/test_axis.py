"""Tables and sentences that vary one axis (such as the batch size) agree with the rows."""

import pytest

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.results import Results
from kfbench.report.topics import axis
from tests.report.columns import column, some


def test_the_overhead_table_is_the_slice(results: Results) -> None:
    part = some(results.along(results.uncompressed, "batch_size"))
    table = axis.axis_table(part, "overhead_per_record", name="o", caption="Overhead")
    assert column(table, "records per batch") == [1, 2, 3, 5, 10, 100]
    assert column(table, "v1") == [34.0] * 6
    ratios = axis.relative_table(part, "size_per_record", name="r", caption="Ratio")
    assert BASE_FORMAT not in [c.name for c in ratios.columns]
    sizes = part.pivot("size_per_record")
    assert column(ratios, "v3") == pytest.approx((sizes["v3"] / sizes["v2"]).tolist())


def test_the_step_sentence_names_who_moves_and_who_does_not(results: Results) -> None:
    part = some(results.along(results.uncompressed, "timestamp_spread_ms"))
    said = axis.step_sentence(part)
    assert said.endswith("v0 and v1.")
    frame = part.pivot("overhead_per_record")
    assert f"Overhead of v2: {frame['v2'].min():.2f} to {frame['v2'].max():.2f}" in said


def test_a_format_that_was_not_swept_is_not_called_constant(results: Results) -> None:
    part = some(results.along(results.uncompressed, "headers"))
    assert "v1" not in axis.step_sentence(part).replace("v1,", "")
