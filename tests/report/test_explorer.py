"""The data that the explorer's page gets. tests/browser has the page."""

import json
from typing import Any

import pytest

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.present.calculator import rules
from kfbench.present.calculator.data import format_sets, mean_settings, page_data, script_json
from kfbench.present.rows import Rows
from kfbench.report.calculator_rows import grid_cells, report_content, workload_cells
from kfbench.store import Run
from tests.present.made import counted, rows_of, runs_of, timed
from tests.report.workload_rows import workload_rows


def test_every_format_has_a_rule() -> None:
    assert {rule["name"] for rule in rules.format_rules()} == set(FORMATS)


@pytest.mark.parametrize(("name", "layout"), [("v0", "messages"), ("v2", "batch"), ("kip98", "kip98")])
def test_a_layout_is_known_by_the_fields(name: str, layout: str) -> None:
    assert rules.layout_of(FORMATS[name]) == layout


def test_every_set_has_the_base_format_and_known_formats_only() -> None:
    sets = format_sets()
    assert all(BASE_FORMAT in names and set(names) <= set(FORMATS) for names in sets.values())
    assert set().union(*sets.values()) == set(FORMATS)


def test_cells_have_the_bytes_under_codecs_and_the_times_of_the_run() -> None:
    """v2 takes 1 µs per record, v3 1.5 times as much in each round. Other levels follow the codec's name."""
    zstd: dict[str, Any] = {"codec": "zstd", "level": 3}
    rows = [counted("v2", 1234, 10, **zstd), counted("v2", 999, 10, codec="zstd", level=19), counted("v2", 2000, 10)]
    rows += [timed("v2", [10_000] * 9, 10), timed("v3", [15_000] * 9, 10), timed("v2", [9] * 9, 10, arm="aa")]
    rows += [timed("v3", [1] * 9, 10, cache="cold")]
    (cell,) = grid_cells(rows_of(rows))
    assert cell["bytes"] == {"zstd": {"v2": 123.4}, "zstd 19": {"v2": 99.9}}
    assert cell["cpu"] == {"none": {"encode": {"v2": 1000.0, "v3": [1500, 0, 0]}}}
    assert (cell["settings"]["records"], cell["settings"]["value_bytes"]) == (10, 100)


def test_rows_with_other_settings_than_those_of_the_form_are_no_cells(run: Run) -> None:
    rows = run.measurements()
    assert grid_cells(Rows(rows))
    assert grid_cells(Rows(rows.assign(header_value_bytes=50))) == []


def test_a_workload_is_shown_in_its_own_batches_with_its_means() -> None:
    fields = '{"header_key_length":0,"key":300,"header_key":0,"header_value":0,"value":700}'
    at = {"workload": "kv-etc", "field_bytes": fields, "variant": "default"}
    rows = [counted("v2", 1500, None, **at), counted("v3", 1400, None, **at), counted("v2", 1600, 10, **at)]
    (cell,) = workload_cells(rows_of(rows))
    assert cell["name"] == "kv-etc" and cell["bytes"] == {"none": {"v2": 150.0, "v3": 140.0}}
    assert (cell["settings"]["key_bytes"], cell["settings"]["value_bytes"]) == (30, 70)


def test_a_workload_has_the_means_of_its_records() -> None:
    fields = {"key": 30, "value": 200, "header_key_length": 20, "header_key": 120, "header_value": 240}
    found = mean_settings(fields, records=10, batches=4)
    assert found == {
        "records": 2, "key_bytes": 3, "value_bytes": 20, "headers": 2,
        "header_key_bytes": 6, "header_value_bytes": 12, "null_percent": 0,
    }  # fmt: skip


def test_no_key_is_a_null_key() -> None:
    fields = {"key": 0, "value": 0, "header_key_length": 0, "header_key": 0, "header_value": 0}
    assert mean_settings(fields, records=3, batches=3)["key_bytes"] == -1


def test_a_run_without_codecs_and_times_has_no_cells() -> None:
    rows = [row for row in workload_rows() if row["codec"] == "none" and row["kind"] == "bytes"]
    data = page_data(report_content(runs_of(rows)))
    assert (data["cells"], data["workloads"], data["codecs"]) == ([], [], [])


def test_no_text_ends_the_script_element() -> None:
    value = {"name": "</script><script>alert(1)"}
    text = script_json(value)
    assert "<" not in text and json.loads(text) == value
