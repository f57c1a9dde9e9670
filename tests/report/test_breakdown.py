"""The sizes of fields in the report add up to the measured sizes."""

import json

import pytest

from kfbench.records import PAYLOAD
from kfbench.report.data.results import Results
from kfbench.report.topics import breakdown
from tests.report.columns import some


def test_a_breakdown_adds_up_to_the_overhead(results: Results) -> None:
    frame = some(breakdown.field_bytes(results, 100))
    part = some(results.along(results.uncompressed, "batch_size"))
    overhead = part.pivot("overhead_per_record").loc[100]
    assert frame.sum().to_dict() == pytest.approx(overhead[frame.columns].to_dict())
    assert not set(PAYLOAD) & set(frame.index)
    table = breakdown.fields_table(frame, 100)
    assert table.rows[-1][0] == "all overhead"
    assert breakdown.field_bytes(results, 77) is None


def test_fields_are_stored_as_json_that_adds_up(results: Results) -> None:
    row = results.uncompressed.iloc[0]
    assert sum(json.loads(row["field_bytes"]).values()) == row["size_bytes"]
